"""Recordings: what went over the wire and what came of it, as a file; and such a file as a run again."""
