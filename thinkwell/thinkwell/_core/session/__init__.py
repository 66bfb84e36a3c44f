"""A session: its turns, its tools, its settings and its history."""
