"""The log of a run: its readers, its view, its budget."""
