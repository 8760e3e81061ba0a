# Enable JSON-RPC transport
export BROWSEROS_MCP_TRANSPORT=stdio

# Enable debug logging
export BROWSEROS_MCP_DEBUG=true

# Set request timeout (seconds)
export BROWSEROS_MCP_TIMEOUT=30
