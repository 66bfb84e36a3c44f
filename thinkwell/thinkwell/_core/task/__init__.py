"""What is asked of an agent."""
