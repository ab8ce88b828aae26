"""What is known of a kernel before code is made: blocks, shapes of values, where lanes part."""
