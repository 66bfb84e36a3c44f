"""An agent's questions, and who answers them."""
