"""Runs an ASGI app as a process: sockets, connections with deadlines, workers, and an orderly end."""
