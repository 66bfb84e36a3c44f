"""Permission rules: matching, and their file format."""
