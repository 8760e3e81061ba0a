"""The HTTP client of the MCP client, of OAuth and of the server's token checks."""
