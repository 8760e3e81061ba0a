"""A browser for agents: Chromium over the DevTools protocol."""
