"""Files and terminals that an agent uses through its client."""
