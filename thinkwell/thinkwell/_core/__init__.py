"""The core: from a task to its result."""
