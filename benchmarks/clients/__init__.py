"""One program per measured client; each runs in a process of its own and prints one line of JSON."""
