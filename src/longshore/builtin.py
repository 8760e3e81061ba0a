"""The product: which toolsets the built-in server has."""

from __future__ import annotations

import os

from longshore import __version__
from longshore.app import Server

CATEGORIES = ("browser-lifecycle", "navigation", "content-capture", "interaction", "discovery")
"""The categories of our tools. A new category is added here first."""

INSTRUCTIONS = (
    "Longshore gives you tools on this machine. Call hello for an overview, list_tools to find one, "
    "and tool_help for how to use it."
)

TOOLSETS = {"longshore.toolsets.discovery.tools:Discovery": ""}
"""The factories of our toolsets, each with the extra that installs the libraries behind it."""

INDEX = os.path.join(os.path.dirname(__file__), "toolsets", "index.json")
"""What `python -m longshore.builtin` writes of these toolsets, so that a start imports none of them."""


def make() -> Server:
    """The server that `longshore serve` runs when no target is given."""
    app = make_empty()
    app.add_indexed(INDEX)
    return app


def make_empty() -> Server:
    """The built-in server without its toolsets."""
    app = Server(
        "longshore",
        version=__version__,
        title="Longshore",
        instructions=INSTRUCTIONS,
        standards="refuse",
        categories=CATEGORIES,
    )
    app.asks_token = True  # its tools act on this machine, so other users of the machine must not reach it
    return app


if __name__ == "__main__":
    from longshore.toolsets.index import write_index

    with open(INDEX, "wb") as file:
        file.write(write_index(make_empty(), TOOLSETS))
