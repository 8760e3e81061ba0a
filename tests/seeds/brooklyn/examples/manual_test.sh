# Test stdio transport with proper format
echo '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"brooklyn_status","arguments":{}},"id":1}' | brooklyn mcp start --log-level debug
