"""What clients ask of a tool: rules as data, and what finds the tools that break them."""
