"""MCP servers of the caller's: what their values may be, and files that hold them."""
