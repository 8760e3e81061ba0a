"""The linter on the tools of third-party servers."""
