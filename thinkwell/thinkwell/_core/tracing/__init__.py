"""Spans, metrics and log lines of an agent's work."""
