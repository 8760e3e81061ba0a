"""What whoever starts the server sees: where it is, and the line that connects a client to it."""

from __future__ import annotations

import shlex
import sys

from msgspec.structs import replace

from longshore.config import Config
from longshore.transports.greeting import client_name
from longshore.transports.http.making import resource_url
from longshore.transports.serving.site import Site

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104  (to recognise, not to bind)
"""What to call an address that stands for all: the one that works from here."""


def greet(name: str, config: Config, site: Site, workers: int) -> None:
    """Say it on stderr, in the words of a terminal if it is one."""
    secret = site.token.text if site.token else ("TOKEN" if site.asks else None)
    header = f' --header "Authorization: Bearer {secret}"' if secret else ""
    url = resource_url(config) if config.http.public_url else address(config)
    command = f"claude mcp add --transport http {client_name(name)} {shlex.quote(url)}{header}"
    bold, plain = ("\x1b[1m", "\x1b[0m") if sys.stderr.isatty() else ("", "")
    several = f", {workers} workers" if workers > 1 else ""
    sys.stderr.write(
        f"{name} serves MCP at {bold}{address(config)}{plain} (Ctrl-C ends it{several})\n"
        f"To connect Claude Code:  {bold}{command}{plain}\n"
    )
    if site.token:
        kept = f"is kept in {site.token.path}: delete that for another" if site.token.path else "is new at each start"
        sys.stderr.write(f"The token {kept}; auth.token_file sets one, --auth off asks for none.\n")
    sys.stderr.flush()


def address(config: Config) -> str:
    """Where it listens, as somebody on this machine would say it."""
    http = config.http
    return resource_url(
        replace(config, http=replace(http, public_url=None, host=ANY_ADDRESS.get(http.host, http.host)))
    )
