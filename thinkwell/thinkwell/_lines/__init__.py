"""Agents that speak lines: one JSON object each, on standard input and output."""
