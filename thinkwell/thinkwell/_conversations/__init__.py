"""Conversations of channels and the server: an agent, its sessions, and the order of turns."""
