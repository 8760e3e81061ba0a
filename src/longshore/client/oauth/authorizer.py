"""What an HTTP channel asks for credentials, and the simplest that can answer: a token that is known already."""

from __future__ import annotations

import re
from typing import Protocol, final

from longshore.errors import AuthorizationError

Headers = list[tuple[str, str]]
"""Of an HTTP message; the names are in lower case where they were received."""

TOKEN = re.compile(r"[\x21-\x7e]+")
"""What a header can carry of a token. Anything else could end the header."""


class Authorizer(Protocol):
    """Puts credentials on requests to an MCP server and gets others when they are refused."""

    def waiting(self, server: str) -> bool:
        """Whether a person is waited for on behalf of this server. Its deadlines don't count that: it may take long."""
        ...

    async def headers(self, method: str, url: str, body: bytes, server: str = "") -> Headers:
        """What to send beside this request. Called before each, also before one that is sent again.

        `url` is where the request goes; `server` is the URL of the server, if it is another: its tokens are sent.
        """
        ...

    def heard(self, answer_headers: Headers) -> None:
        """Take note of an answer. Called after each, by the task that called `headers` for it."""
        ...

    async def challenged(self, status: int, url: str, answer_headers: Headers) -> bool:
        """The server said 401 or 403. True: send the same again. Raises AuthorizationError.

        Called by the task that called `headers` for the request, so that it is known which token was refused.
        """
        ...

    async def close(self) -> None:
        """Let go of connections and of a login under way. It can be used again afterwards."""
        ...


@final
class Bearer:
    """A token that somebody else got. If it is refused there is no other."""

    def __init__(self, token: str) -> None:
        token = token.strip()
        if not TOKEN.fullmatch(token):
            raise ValueError("a bearer token is a text of printable ASCII characters without blanks")
        self._token = token

    def __repr__(self) -> str:
        return "Bearer(…)"

    def waiting(self, server: str) -> bool:  # noqa: ARG002 - never
        return False

    async def headers(self, method: str, url: str, body: bytes, server: str = "") -> Headers:  # noqa: ARG002
        return [("Authorization", f"Bearer {self._token}")]

    def heard(self, answer_headers: Headers) -> None:
        pass

    async def challenged(self, status: int, url: str, answer_headers: Headers) -> bool:  # noqa: ARG002
        if status == 401:
            what = "it refused the bearer token (401)"
            raise AuthorizationError(what, fix="give one that is valid, by {}", options=("auth",))
        return False

    async def close(self) -> None:
        pass
