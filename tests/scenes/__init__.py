"""Stored scenes: what is written on the wire, and what a run's log says, for turns of every kind."""
