"""The product: the profiles that `longshore serve` and its other entry points serve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from msgspec import Struct

from longshore import __version__
from longshore.app import Server
from longshore.config import ForeignConfig
from longshore.errors import ConfigError
from longshore.runtime import INDEX

CATEGORIES = (
    "browser-lifecycle",
    "navigation",
    "content-capture",
    "interaction",
    "discovery",
    "filesystem",
    "terminal",
    "context",
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
    "longshore.toolsets.browser.tools:BrowserTools": "",
    "longshore.toolsets.context.tools:ContextTools": "",
    "longshore.toolsets.catalog.tools:CatalogTools": "",
    "longshore.toolsets.code.tools:Code": "",
}
"""The factories of our toolsets, each with the extra that installs the libraries behind it."""


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
    foreign: ForeignConfig | None = None
    """The configuration of the program that it stands for."""


def _declare_toolsets(app: Server) -> None:
    app.acts_on_machine = True
    app.add_indexed(INDEX)


def _declare_brooklyn(app: Server) -> None:
    from longshore.dialects.brooklyn import DOCUMENT_TOOLS

    app.acts_on_machine = True
    app.add_indexed(INDEX, "discovery", "browser")
    app.catalog.dialect_tools = DOCUMENT_TOOLS


def _declare_browseros(app: Server) -> None:
    from longshore.dialects.browseros import DOCUMENT_TOOLS

    app.acts_on_machine = True
    app.add_indexed(INDEX, "discovery", *_BROWSEROS_TOOLSETS)
    app.catalog.dialect_tools = DOCUMENT_TOOLS


def _declare_context(app: Server) -> None:
    from longshore.dialects.ghost import DOCUMENT_TOOLS

    app.acts_on_machine = True
    app.add_indexed(INDEX, "context")
    app.catalog.dialect_tools = DOCUMENT_TOOLS


def _declare_hello(app: Server) -> None:
    @app.tool(effects="read", run="inline")
    def hello(name: Annotated[str, "Name to greet"]) -> str:
        """Returns a greeting message"""
        return f"Hello, {name}!"


_BROWSEROS_TOOLSETS: Final = ("browser", "filesystem", "terminal")
BROWSEROS_CONFIG: Final = ForeignConfig(
    keys={"transport": "server.transport", "debug": "server.log_level", "timeout": "server.timeout"},
    switches={"debug": ("warning", "debug")},
    variables={
        "BROWSEROS_MCP_TRANSPORT": "transport",
        "BROWSEROS_MCP_DEBUG": "debug",
        "BROWSEROS_MCP_TIMEOUT": "timeout",
    },
    path="~/.config/browseros/mcp_config.json",
    toolsets=_BROWSEROS_TOOLSETS,
    shared=("timeout",),
)
_BROWSER_GRACE: Final = 60
"""Seconds, so that a piped call of the browser is answered though the input has ended."""
_BROWSEROS_DEFAULTS: Final = {
    "server.dialect": "browseros",
    "server.transport": "auto",
    "server.eof_grace": _BROWSER_GRACE,
    "http.lines": True,
    "auth.mode": "optional",
    "toolsets.browser.attach": False,  # callers of the port need no token, and the user's browser has logins
    # What callers without a token may not do. Empty lists grant it to them.
    "toolsets.terminal.scopes": ["terminal"],
    **{f"tools.{name}.scopes": ["files:write"] for name in ("fs_write", "fs_edit", "fs_move", "fs_delete")},
}

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
    "brooklyn": Profile(
        server="brooklyn",
        title="Brooklyn",
        instructions=INSTRUCTIONS,
        declare=_declare_brooklyn,
        categories=CATEGORIES,
        defaults={
            "server.dialect": "brooklyn",
            "server.schemas": "brooklyn",
            "server.eof_grace": _BROWSER_GRACE,
            "http.port": 3000,
        },
    ),
    "browseros": Profile(
        server="browseros",
        title="BrowserOS",
        instructions=INSTRUCTIONS,
        declare=_declare_browseros,
        categories=CATEGORIES,
        defaults=_BROWSEROS_DEFAULTS,
        foreign=BROWSEROS_CONFIG,
    ),
    "ghost": Profile(
        server="contextgraph-ghost",
        version="1.0.0",
        title="ContextGraph",
        declare=_declare_context,
        categories=CATEGORIES,
        defaults={"server.dialect": "ghost", "toolsets.context.format": "json"},
    ),
}
"""The profiles by name. All but `longshore` are those of the documents."""


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
        foreign=profile.foreign,
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
