"""Rules about permissions: what they match, and how they are written."""
