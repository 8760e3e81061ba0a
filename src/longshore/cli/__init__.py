"""The command line: one file per command. Never imported on the stdio path."""
