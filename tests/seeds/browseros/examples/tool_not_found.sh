# List available tools
echo '{"jsonrpc":"2.0","method":"tools/list","id":"1"}' | \
  python -m browseros.mcp.server
