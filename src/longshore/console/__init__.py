"""The web console: a part of the HTTP app that shows a server at work, and changes its settings."""
