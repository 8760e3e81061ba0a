"""The linter over the tools of servers that others wrote."""
