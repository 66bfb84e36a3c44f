"""The terminal in which a program runs."""
