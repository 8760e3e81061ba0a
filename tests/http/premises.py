"""A server whose tools leave word that they ran, on a real port, and everything that a refused request must not touch.

with opened(folder, '[auth] token = "…"') as site:      # behind uvicorn, as an app of anybody's
with opened(folder, own=True) as site:                  # behind our own listener, as under `longshore serve --http`
    with site.untouched():                              # nothing runs, nothing is kept
        answer = site.send("POST", …).finish()
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from asgi import configured

from longshore import Ask, Context, Header, Server
from longshore.telemetry.records import Problem
from serving import SECONDS, Exchange, Pairs, Served, serve


class Premises:
    """A server, its app, and what its tools did."""

    def __init__(self, folder: Path, toml: str = "", **settings: Any) -> None:
        self.server = Server("premises", version="1.2.3")
        self.ran: Counter[str] = Counter()
        """How often each handler ran."""
        self.seen: list[Any] = []
        """What the handlers could see of their caller."""
        _declare(self)
        self.app = configured(self.server, folder, toml, **{"rate": 0, **settings})
        self.problems: list[Problem] = []
        self.server.recorder.fallback = lambda: self.problems.append  # type: ignore[assignment,return-value]

    def traces(self) -> dict[str, Any]:
        """Whatever a request can leave behind."""
        app, engine = self.app, self.app.engine
        family = app.store._families.get("session:")
        return {
            "handlers": dict(self.ran),
            "calls": engine.executor.calls,
            "live": len(engine.executor.live),
            "sessions": len(app.sessions.loaded),
            "stored": 0 if family is None else len(family),
            "links": len(engine.subscriptions.links),
            "listens": len(engine.subscriptions.listens),
            "old sessions": len(app.sse.open),
        }


def wait_cut_off(exchange: Exchange) -> None:
    """Until the server has closed its side of the connection."""
    wire = exchange.wire
    wire.settimeout(SECONDS)
    try:
        while wire.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass


class Site:
    """The premises with a door to the street."""

    def __init__(self, premises: Premises, server: Served) -> None:
        self.premises, self.server = premises, server

    @property
    def port(self) -> int:
        return self.server.port

    def send(self, method: str, path: str = "/mcp", headers: Pairs = (), body: bytes | None = None) -> Exchange:
        return self.server.send(method, path, headers, body)

    def write(self, data: bytes) -> Exchange:
        """Exactly these bytes, on a connection of their own."""
        connection = self.server.connect()
        connection.write(data)
        return Exchange(connection.wire)

    def traces(self) -> dict[str, Any]:
        self.server.settle()
        return self.server.look(self.premises.traces)

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """What is done here must leave nothing behind and have nothing run."""
        before = self.traces()
        yield
        assert self.traces() == before


@contextmanager
def opened(folder: Path, toml: str = "", *, own: bool = False, **settings: Any) -> Iterator[Site]:
    """Premises that are served while the block lasts."""
    premises = Premises(folder, toml, **{"grace": 0.0, **settings})
    with serve(premises.app, own=own) as server:
        yield Site(premises, server)


# -- what is there. Each thing comes in two: one that a proxy would let through, and one that it would not.


def _declare(premises: Premises) -> None:
    app, ran, seen = premises.server, premises.ran, premises.seen

    @app.tool(run="inline")
    def safe() -> str:
        """Harmless."""
        ran["safe"] += 1
        return "safe"

    @app.tool(run="inline")
    def danger() -> str:
        """Not harmless."""
        ran["danger"] += 1
        return "danger"

    @app.tool(run="inline")
    def region(where: Annotated[str, Header("Region")], size: Annotated[int, Header("Size")] = 0) -> str:
        """Its arguments stand in headers too."""
        ran["region"] += 1
        return where

    @app.tool(run="inline", scopes=["notes:read"])
    def peruse() -> str:
        """Needs one scope."""
        ran["peruse"] += 1
        return "perused"

    @app.tool(run="inline", scopes=["notes:write", "admin"], aliases=["correct"])
    def amend() -> str:
        """Needs two."""
        ran["amend"] += 1
        return "amended"

    @app.tool(effects="destroy")
    async def refund(order: str, ok: Annotated[bool, Ask("Refund {order}?")]) -> str:
        """Ask first."""
        ran["refund"] += 1
        return f"{order}: {ok}"

    @app.tool
    async def look(ctx: Context) -> str:
        """Look around for whatever a tool can see of its caller."""
        ran["look"] += 1
        seen.append(ctx)
        return repr(ctx.principal)

    @app.tool(run="inline")
    def burst() -> str:
        """Fail in a way that nobody foresaw."""
        raise RuntimeError("nobody foresaw this")

    @app.resource("note://{name}")
    def note(name: str) -> str:
        """A note."""
        ran[f"note {name}"] += 1
        return name

    @app.prompt
    def calm() -> str:
        """Be calm."""
        ran["calm"] += 1
        return "Be calm."

    @app.prompt
    def harm(kind: str = "") -> str:
        """Do harm."""
        ran["harm"] += 1
        return "Do harm."

    @app.completion("harm", "kind")
    def kinds(value: str) -> list[str]:
        ran["kinds"] += 1
        return [kind for kind in ("little", "much") if kind.startswith(value)]
