"""The product: which toolsets the built-in server has."""

from __future__ import annotations

from longshore import __version__
from longshore.app import Server

CATEGORIES = ("browser-lifecycle", "navigation", "content-capture", "interaction", "discovery")
"""The categories of our tools. A new category is added here first."""

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
    app.asks_token = True  # its tools act on this machine, so other users of the machine must not reach it
    app.add_toolset(Discovery(app))
    return app
