"""A running agent, its runs, and its public handles."""
