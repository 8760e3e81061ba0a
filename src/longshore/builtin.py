"""The product: which toolsets the built-in server has."""

from __future__ import annotations

from longshore import __version__
from longshore.app import Server

CATEGORIES = ("browser-lifecycle", "navigation", "content-capture", "interaction", "discovery")
"""What a tool of ours can be about. A new category is entered here first."""

INSTRUCTIONS = (
    "Longshore gives you tools on this machine. Call hello for an overview, list_tools to find one, "
    "and tool_help for how to use it."
)


def make() -> Server:
    """The server that `longshore serve` runs when no target is given."""
    from longshore.toolsets.discovery.tools import Discovery

    app = Server(
        "longshore",
        version=__version__,
        title="Longshore",
        instructions=INSTRUCTIONS,
        standards="refuse",
        categories=CATEGORIES,
    )
    app.asks_token = True  # it reaches into this machine, so whoever else is on it must not reach it
    app.add(Discovery(app))
    return app
