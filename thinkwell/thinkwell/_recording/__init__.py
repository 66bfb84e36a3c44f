"""Recordings: the messages and results of runs in a file, and replaying such a file as a run."""
