"""The caller's MCP servers: checks of their values, and files with servers."""
