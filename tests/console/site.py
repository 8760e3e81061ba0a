"""A server with a console on a real port, and what a page asks of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from longshore import Context, Server
from longshore.console.part import Console
from longshore.transports.http.app import HttpApp
from posting import call, encode, modern, modern_headers
from serving import OWN, Exchange, Served, eventually, serve

TOKEN = "the-owner-s-token-of-thirty-two-characters"
VIEWER = "the-viewer-s-token-of-thirty-two-character"
OTHER = "another-caller-s-token-of-thirty-two-chara"
TOKENS = f"""
[tokens.viewer]
token = "{VIEWER}"
scopes = ["console:read"]

[tokens.other]
token = "{OTHER}"
scopes = ["tools"]
"""


class Site:
    """A served app with a console."""

    def __init__(self, server: Served, app: HttpApp, author: Server, folder: Path) -> None:
        self.server, self.app, self.author, self.folder = server, app, author, folder

    @property
    def console(self) -> Console:
        part = self.app._parts.find("/console")
        assert isinstance(part, Console)
        return part

    @property
    def settings_file(self) -> Path:
        return self.folder / "longshore.toml"

    def send(
        self, method: str, path: str, token: str | None = TOKEN, body: Any = None, *headers: tuple[str, str]
    ) -> Exchange:
        """A request of the console's API that is not waited for."""
        credential = [("Authorization", f"Bearer {token}")] if token else []
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.server.send(method, path, [*credential, *headers], data)

    def get(self, name: str, token: str | None = TOKEN, *headers: tuple[str, str]) -> Exchange:
        return self.send("GET", f"/console/api/{name}", token, None, *headers).finish()

    def post(self, name: str, body: Any, token: str | None = TOKEN, *headers: tuple[str, str]) -> Exchange:
        return self.send("POST", f"/console/api/{name}", token, body, *headers).finish()

    def call(self, tool: str, token: str = TOKEN, /, **arguments: Any) -> Exchange:
        """A tool call, as the page makes it."""
        message = modern(call(tool, arguments))
        headers = [*modern_headers(message), ("Authorization", f"Bearer {token}")]
        return self.server.send("POST", "/mcp", headers, encode(message))

    def stream(self, query: str = "", token: str = TOKEN) -> Exchange:
        return self.send("GET", f"/console/api/stream?{query}", token).begin()


def events(stream: Exchange, kind: str) -> list[Any]:
    """The events of one kind so far."""
    return [event.message for event in stream.events if event.kind == kind]


def rows(stream: Exchange) -> list[Any]:
    return [row for batch in events(stream, "records") for row in batch["records"]]


@contextmanager
def opened(folder: Path, config: str = TOKENS, *, own: bool = True, **settings: Any) -> Iterator[Site]:
    """Serve tools with a console. Its configuration is in `folder`."""
    (folder / "longshore.toml").write_text(config)
    author = Server("shop", version="3.1", auth=settings.pop("auth", TOKEN))

    @author.tool(run="inline", effects="read")
    def add(a: int, b: int) -> int:
        """Add two numbers"""
        return a + b

    @author.tool(effects="read")
    async def wait(ctx: Context, note: str = "") -> str:
        """Wait until it is cancelled"""
        await ctx.progress(1, 4, note or "waiting")
        await asyncio.sleep(60)
        return "done"

    @author.tool(effects="read", run="inline")
    def fail(note: str = "") -> str:
        """Fail"""
        raise ValueError("no")

    config_file = settings.pop("config_file", str(folder / "longshore.toml"))
    app = author.asgi(config_path=config_file, console=True, **settings)
    with serve(app) if not own else owned(app) as server:
        yield Site(server, app, author, folder)


@contextmanager
def owned(app: HttpApp) -> Iterator[Served]:
    token = OWN.set(True)
    try:
        with serve(app) as server:
            yield server
    finally:
        OWN.reset(token)


__all__ = ["OTHER", "TOKEN", "TOKENS", "VIEWER", "Site", "eventually", "events", "opened", "owned", "rows"]
