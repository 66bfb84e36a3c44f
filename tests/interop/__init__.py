"""Runs against real agents from npm, with a scripted stand-in for their model services."""
