"""Functions and skills as tools."""
