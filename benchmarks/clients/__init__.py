"""One program per measured client; each runs in its own process and prints one line of JSON."""
