"""Parts: what is served beside MCP under a path of its own, such as the console, behind the same gate.

A part is made by a factory that a `Server` names as "module:name", so that nothing of it is imported before HTTP is
served. Its requests have passed the gate: Host, Origin, credentials. Paths that it calls open need no credential; they
must hold no data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final

from msgspec import Struct

from longshore.auth.guard import Guard
from longshore.config import Config
from longshore.server.engine import Engine
from longshore.transports.http.responses import HeaderPairs, Receive, Send

if TYPE_CHECKING:
    from longshore.transports.http.gate import Gate, HttpRequest
    from longshore.transports.http.sessions import Sessions
    from longshore.transports.http.sse_2024 import SseSessions


class PartHost(Struct, frozen=True):
    """What a part may use of the app that serves it."""

    engine: Engine
    config: Config
    """As the app was started with it; `engine.policy.config` is the one that holds now."""
    gate: Gate
    guard: Guard
    """The guard of the parts: it asks for a credential also where MCP's path does not, unless authentication is off."""
    sessions: Sessions
    sse: SseSessions


class HttpPart(Protocol):
    """A part of the HTTP app."""

    @property
    def prefix(self) -> str:
        """The path under which it is served: `/console`, and all below."""
        ...

    @property
    def headers(self) -> HeaderPairs:
        """The headers of refusals under its path."""
        ...

    def is_open(self, path: str) -> bool:
        """Whether a path is served without a credential."""
        ...

    async def serve(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Answer a request. May raise `longshore.transports.http.gate.Denied(status, text)`, which is sent."""
        ...

    async def close(self) -> None:
        """End every stream: the app is shutting down."""
        ...


PartFactory: TypeAlias = Callable[[PartHost], HttpPart]


@final
class HttpParts:
    """The parts of one app, by their prefixes."""

    def __init__(self, parts: Sequence[HttpPart]) -> None:
        self._parts = {part.prefix: part for part in parts}
        self.prefixes = tuple(self._parts)

    def find(self, path: str) -> HttpPart | None:
        """The part of a path."""
        if not path.startswith(self.prefixes):
            return None
        return next(
            (part for prefix, part in self._parts.items() if path == prefix or path.startswith(prefix + "/")), None
        )

    def is_open(self, path: str) -> bool:
        """Whether a part serves this path without a credential."""
        part = self.find(path)
        return part is not None and part.is_open(path)

    async def close(self) -> None:
        for part in self._parts.values():
            await part.close()


def load_factory(name: str) -> Callable[..., Any]:
    """The factory of this name: "module:name"."""
    module, _, attribute = name.partition(":")
    factory: Callable[..., Any] = getattr(import_module(module), attribute)
    return factory
