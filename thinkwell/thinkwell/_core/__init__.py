"""What happens between a task and its result."""
