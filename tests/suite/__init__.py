"""What every run of the suite has: its progress, its event loops, and a check for what tests leave behind."""
