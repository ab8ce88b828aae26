"""The steps of one block: recorded in the simulator, as tables, and as data for a page that replays them."""
