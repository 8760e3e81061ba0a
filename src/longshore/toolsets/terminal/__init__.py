"""Commands in a sandbox: their processes, output, terminals and input."""
