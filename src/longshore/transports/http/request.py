"""What is known of an HTTP request before its body is looked at, and the body itself."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from longshore.protocol.peer import Principal
from longshore.server.link import LOCAL
from longshore.transports.http.answers import Receive, Scope
from longshore.transports.http.uploads import Uploads
from longshore.wire.codec import INVALID_REQUEST

_UNKNOWN = ("", None)
NOT_YET = Principal("", frozenset())
"""Stands for a caller whose token must be looked up before it gets any further."""
NOBODY: frozenset[bytes] = frozenset()


class Request(Struct, gc=False):
    """One HTTP request that has passed the gate."""

    scope: Scope
    headers: dict[bytes, bytes]
    twice: frozenset[bytes]
    path: str
    """Below where the app is mounted."""
    principal: Principal
    """Who asks."""
    accepts_json: bool = True
    accepts_stream: bool = True
    extra: tuple[tuple[bytes, bytes], ...] = ()
    """Headers of every response to it: CORS, where a browser of a named origin asks."""

    @property
    def owner(self) -> str:
        """Whom the request counts against: the principal, or the address where nobody has to say who it is."""
        return self.caller[0]

    @property
    def caller(self) -> tuple[str, object]:
        """The owner, and what tells its clients apart: the address of a principal's, or else the connection's port."""
        client: tuple[str, object] = self.scope.get("client") or _UNKNOWN
        if self.principal is LOCAL or self.principal.name == LOCAL.name:
            return client
        return self.principal.name, client[0]

    @property
    def only_one(self) -> bool:
        """Whether the client does not take both kinds of answer."""
        return not (self.accepts_json and self.accepts_stream)


class Denied(Exception):
    """The request is refused with this status, before anything was made of its body."""

    def __init__(
        self,
        status: int,
        text: str,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        code: int = INVALID_REQUEST,
    ) -> None:
        super().__init__(text)
        self.status, self.text, self.headers, self.code = status, text, headers, code


def shutting_down() -> Denied:
    """The refusal of whatever is new while the server ends: come back, on another connection."""
    return Denied(503, "the server is shutting down", ((b"retry-after", b"1"), (b"connection", b"close")))


class TooLong(Exception):
    """The body is over the limit."""


class Gone(Exception):
    """The client hung up before it had said everything."""


def repeated(headers: Any) -> frozenset[bytes]:
    """The names of headers that came more than once."""
    seen: set[bytes] = set()
    twice: set[bytes] = set()
    for name, _ in headers:
        (twice if name in seen else seen).add(name)
    return frozenset(twice)


async def read_body(receive: Receive, most: int, uploads: Uploads | None) -> bytes:
    """The whole body. Reading stops where the limit is. What is unfinished is counted where the server does not."""
    parts: list[bytes] = []
    size, counted, more = 0, 0, True
    try:
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise Gone
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > most:
                raise TooLong
            parts.append(part)
            more = message.get("more_body", False)
            if more and uploads is not None:
                if not uploads.add(len(part)):
                    raise Denied(503, "too many requests are unfinished; try again later", ((b"retry-after", b"1"),))
                counted += len(part)
    finally:
        if uploads is not None:
            uploads.remove(counted)
    return b"".join(parts)
