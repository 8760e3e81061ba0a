"""Other MCP servers behind ours: their entries are in our catalog, and calls are forwarded to them."""
