"""The line between the process that supervises and one worker: a socket pair that both hold for as long as they live.

The supervisor sends what the worker must know (the token of this start among it, which no command line or environment
should show), and the worker says when it is ready. Whoever ends, however it ends, the other one sees the line close:
a worker stops then, and the supervisor starts another.
"""

from __future__ import annotations

import os
import socket

import msgspec
from msgspec import Struct

from longshore.transports.serving.site import Site

VARIABLE = "_LONGSHORE_WORKER"
"""Tells a process that it is a worker, by the number of its end of the line. Not one of the configuration's."""
READY = b"!"
_PATIENCE_SECONDS = 10.0
"""For the orders, which are sent as soon as the worker is started; whoever has not by then won't."""
_PIECE_BYTES = 1 << 16
"""What is read at once. The orders are a few hundred bytes."""


class Orders(Struct, frozen=True):
    """What a worker is told."""

    site: Site
    sockets: list[int]


def send_orders(line: socket.socket, orders: Orders) -> None:
    line.sendall(msgspec.json.encode(orders) + b"\n")


def take_orders() -> tuple[Orders, socket.socket] | None:
    """What this process was told, and its end of the line; None if it is no worker. Its children are told nothing."""
    number = os.environ.pop(VARIABLE, None)
    if number is None:
        return None
    try:
        line = socket.socket(fileno=int(number))
    except (OSError, ValueError):
        return None  # a worker's child that was started before the worker came to this
    line.set_inheritable(False)
    line.settimeout(_PATIENCE_SECONDS)
    try:
        orders = msgspec.json.decode(_read_line(line), type=Orders)
    except (OSError, msgspec.DecodeError):
        line.close()
        raise SystemExit(1) from None  # whoever started us is gone
    line.setblocking(False)
    for fd in orders.sockets:
        os.set_inheritable(fd, False)
    return orders, line


def _read_line(line: socket.socket) -> bytes:
    said = b""
    while not said.endswith(b"\n") and (piece := line.recv(_PIECE_BYTES)):
        said += piece
    return said
