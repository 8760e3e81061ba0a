# Check if server is running
ps aux | grep browseros.mcp.server

# Test with simple ping
echo '{"jsonrpc":"2.0","method":"ping","id":"1"}' | \
  python -m browseros.mcp.server
