"""The interface between an HTTP channel and its credentials, and the simplest credentials: a bearer token."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Protocol, final

from msgspec import Struct

from longshore.errors import AuthorizationError

if TYPE_CHECKING:
    from longshore.http_client.response import HttpResponse

Headers = list[tuple[str, str]]
"""Of an HTTP message; received ones have names in lower case."""

TOKEN = re.compile(r"[\x21-\x7e]+")
"""The characters of a token that a header can hold. Any other could end the header."""


class AuthRequest(Struct, frozen=True):
    """A request that needs credentials."""

    method: str
    url: str
    body: bytes
    server: str
    """The URL of the MCP server as the user gave it. `url` may be another one of the same origin."""
    on_login: Callable[[bool], None]
    """Called with True when the request begins to wait for a person who logs in, and with False when that ends. The
    deadlines of the client don't run meanwhile."""


class Authorizer(Protocol):
    """Puts credentials on requests to MCP servers, and gets others when they are refused."""

    def auth_flow(self, request: AuthRequest) -> AsyncGenerator[Headers, HttpResponse]:
        """Yield the headers to send with a request, and receive the response.

        Yielding again sends the request again with new headers; returning accepts the response, and a 401 or 403 is
        then an error. The body of a 401 or 403 has been read. Raises AuthorizationError.
        """
        ...

    async def close(self) -> None:
        """Close connections and end a login that no request waits for. It can be used again afterwards."""
        ...


@final
class Bearer:
    """A token that the caller has. If it is refused there is no other."""

    def __init__(self, token: str) -> None:
        token = token.strip()
        if not TOKEN.fullmatch(token):
            raise ValueError("a bearer token is a text of printable ASCII characters without blanks")
        self._token = token

    def __repr__(self) -> str:
        return "Bearer(…)"

    async def auth_flow(self, request: AuthRequest) -> AsyncGenerator[Headers, HttpResponse]:  # noqa: ARG002
        response = yield [("Authorization", f"Bearer {self._token}")]
        if response.status == 401:
            what = "it refused the bearer token (401)"
            raise AuthorizationError(what, fix="give one that is valid, by {}", options=("auth",))

    async def close(self) -> None:
        pass
