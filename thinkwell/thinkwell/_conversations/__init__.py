"""What channels and the server keep of a conversation: an agent, its sessions, whose turn it is."""
