"""The terminal that a program runs in."""
