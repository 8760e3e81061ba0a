# Start server
python -m browseros.mcp.server

# In another terminal, send JSON-RPC request
echo '{"jsonrpc":"2.0","method":"tools/list","id":"1"}' | python -m browseros.mcp.server

# With jq for pretty output
echo '{"jsonrpc":"2.0","method":"tools/list","id":"1"}' | \
  python -m browseros.mcp.server | jq .
