"""One turn, and the record of one run."""
