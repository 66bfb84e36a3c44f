"""Skills: their files and the tools that give them to an agent."""
