"""Writing servers into the configuration files of MCP clients, and taking them out again."""
