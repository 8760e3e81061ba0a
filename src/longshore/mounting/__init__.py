"""Other MCP servers behind ours: what they offer stands in our catalog, and calls are passed on to them."""
