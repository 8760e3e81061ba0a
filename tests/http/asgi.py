"""An HTTP client for tests that calls the app itself; `serving` has the one that comes through a socket.

app = configured(server, tmp_path, '[auth] token = "…"', rate=0)   # with a file of its own
status, headers, body = await request(app, "POST", "/tools/add", {"content-type": "application/json"}, b"{}")
async with opened(app): …             # the same app for several requests, shut down and closed at the end

This folder has no `__init__.py` on purpose: a package named `http` would hide the standard library's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from longshore import Server

WAIT_SECONDS = 60.0
"""The longest that any test waits for anything."""
HOST = "127.0.0.1"
PORT = 9100


class Answer(NamedTuple):
    """A whole response. Its headers have lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def configured(server: Server, folder: Path, toml: str = "", **settings: Any) -> Any:
    """The app of a server, with a configuration file of its own."""
    path = folder / "longshore.toml"
    path.write_text(toml)
    return server.asgi(config_path=str(path), **settings)


async def request(
    app: Any,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    root: str = "",
    pieces: int = 1,
    hang_up: asyncio.Event | None = None,
) -> Answer:
    """One request, as an ASGI server would make it. Status 0: the app never answered, as after `hang_up`."""
    path, _, query = path.partition("?")
    size = max(-(-len(body) // pieces), 1)
    parts = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if parts:
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}
        await (hang_up or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    given = {"host": f"{HOST}:{PORT}", **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "server": (HOST, PORT),
        "method": method,
        "path": root + path,
        "root_path": root,
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items()],
    }
    async with asyncio.timeout(WAIT_SECONDS):
        await app(scope, receive, send)
    if not sent:
        return Answer(0, {}, b"")
    head = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], head, b"".join(message["body"] for message in sent[1:]))


@asynccontextmanager
async def opened(app: Any) -> AsyncIterator[Any]:
    """The app for a while."""
    await app.start()
    try:
        yield app
    finally:
        await app.shut(0)
        await app.close()
