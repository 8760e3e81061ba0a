"""Servers over HTTP: an HTTP/1.1 client as small as MCP and OAuth need it, and the channels on it."""
