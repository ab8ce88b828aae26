"""What a launch is given: its arguments, and which of its blocks run."""
