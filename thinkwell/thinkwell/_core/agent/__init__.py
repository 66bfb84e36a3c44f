"""An agent that runs, its runs, and the handles that programs hold."""
