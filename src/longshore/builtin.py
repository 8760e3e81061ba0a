"""The product: the profiles that `longshore serve` and its other entry points serve."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from msgspec import Struct

from longshore import __version__
from longshore.app import Server
from longshore.errors import ConfigError

CATEGORIES = (
    "browser-lifecycle",
    "navigation",
    "content-capture",
    "interaction",
    "discovery",
    "filesystem",
    "terminal",
)
"""The categories of our tools. A new category is added here first."""

INSTRUCTIONS = (
    "Longshore gives you tools on this machine. Call hello for an overview, list_tools to find one, "
    "and tool_help for how to use it."
)

TOOLSETS = {
    "longshore.toolsets.discovery.tools:Discovery": "",
    "longshore.toolsets.filesystem.tools:Filesystem": "",
    "longshore.toolsets.terminal.tools:Terminal": "",
}
"""The factories of our toolsets, each with the extra that installs the libraries behind it."""

INDEX = os.path.join(os.path.dirname(__file__), "toolsets", "index.json")
"""What `python -m longshore.builtin` writes of these toolsets, so that a start imports none of them."""


class Profile(Struct, frozen=True, kw_only=True):
    """An entry point's server: its name, its tools, and the configuration that it starts from."""

    server: str
    """The name that clients see."""
    version: str = __version__
    title: str | None = None
    instructions: str | None = None
    declare: Callable[[Server], None]
    """Adds its tools and toolsets."""
    closed: bool = False
    """Whether its tools never change while it runs."""
    categories: tuple[str, ...] | None = None
    defaults: Mapping[str, Any] = {}
    """Configuration where nothing else is configured: the dialect, authentication, telemetry."""


def _declare_toolsets(app: Server) -> None:
    app.asks_token = True  # its tools act on this machine, so other users of the machine must not reach it
    app.add_indexed(INDEX)


def _declare_hello(app: Server) -> None:
    @app.tool(effects="read", run="inline")
    def hello(name: Annotated[str, "Name to greet"]) -> str:
        """Returns a greeting message"""
        return f"Hello, {name}!"


PROFILES: Final = {
    "longshore": Profile(
        server="longshore",
        title="Longshore",
        instructions=INSTRUCTIONS,
        declare=_declare_toolsets,
        categories=CATEGORIES,
    ),
    "bb": Profile(
        server="bb-mcp-server",
        version="0.1.0",
        declare=_declare_hello,
        closed=True,
        defaults={"server.dialect": "bb", "server.log_level": "debug", "telemetry.records": True, "auth.mode": "off"},
    ),
}
"""The profiles by name. `bb` is that of the document of bb-mcp-server, whose values it has."""


def make(name: str = "longshore", *, empty: bool = False) -> Server:
    """The server of a profile, `empty` without its tools. Raises ConfigError for an unknown one."""
    profile = PROFILES.get(name)
    if profile is None:
        raise ConfigError(f"--profile: no profile {name!r}; there are {', '.join(PROFILES)}")
    app = Server(
        profile.server,
        version=profile.version,
        title=profile.title,
        instructions=profile.instructions,
        standards="refuse",
        categories=profile.categories,
        defaults=profile.defaults,
    )
    if not empty:
        profile.declare(app)
        app.catalog.closed = profile.closed
    return app


if __name__ == "__main__":
    from longshore.toolsets.index import write_index

    index = write_index(make(empty=True), TOOLSETS)
    with open(INDEX, "wb") as file:
        file.write(index)
