# Test with real server
python -m browseros.mcp.server &
SERVER_PID=$!

# Send test request
echo '{"jsonrpc":"2.0","method":"ping","id":"1"}' | \
  nc localhost 9100

# Cleanup
kill $SERVER_PID
