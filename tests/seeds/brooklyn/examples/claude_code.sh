# Manual testing process
bun run build && bun run install
claude mcp remove brooklyn  
claude mcp add -s user brooklyn brooklyn mcp start
claude mcp list  # Should show no errors

# Test in Claude Code with any command
# Should not see "oneOf, allOf, or anyOf" errors
