"""What goes on as spans and as log lines."""
