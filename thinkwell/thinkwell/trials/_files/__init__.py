"""Reports as files: a page, replays, trajectories."""
