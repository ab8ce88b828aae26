"""Where results are kept, and the tables made of them."""
