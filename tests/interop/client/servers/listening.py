"""Serving an ASGI app of others on a port of the loopback, which is printed once it is bound."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn


def listen(app: Any, port: int) -> None:
    """Serve until the process is ended. Port 0: any free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(100)
    print(f"listening on {listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, timeout_keep_alive=60)
    uvicorn.Server(config).run(sockets=[listener])
