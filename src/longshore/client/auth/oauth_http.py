"""OAuthHttp: fetches documents and posts forms to URLs that the policy allows, within sizes and deadlines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, final
from urllib.parse import quote_plus, urlencode

import msgspec
from msgspec import Struct

from longshore.client.auth.authorizer import Headers
from longshore.client.auth.url_policy import UrlPolicy, is_internal, shown
from longshore.errors import AuthorizationError, ConnectError
from longshore.http_client.dial import NotAllowed
from longshore.http_client.pool import HttpClient
from longshore.protocol.revisions import MODERN
from longshore.schema.kinds import is_object

SECONDS = 20.0
"""For one exchange, from connecting to the last byte. A person may be waiting."""
MOST_BYTES = 256 << 10
"""Of one response. The metadata of large issuers have 10 KiB."""
_SHOWN_CHARS = 200
"""Characters of foreign text in an error: two or three lines of a terminal."""


class OAuthResponse(Struct, frozen=True):
    """Status, headers (names in lower case), and the body if it is a JSON object, else an empty one."""

    status: int
    headers: Headers
    document: dict[str, Any]

    def text(self, name: str) -> str:
        """A text of the document; empty if there is none."""
        value = self.document.get(name)
        return value if isinstance(value, str) else ""


class TryLater(AuthorizationError):
    """An authorization server can't answer now."""


@final
class OAuthHttp:
    """An HTTP client for one authorization: `async with OAuthHttp(policy) as http`."""

    def __init__(self, policy: UrlPolicy) -> None:
        self.policy = policy
        self._public, self._any = HttpClient(allow=lambda address: not is_internal(address)), HttpClient()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._public.close()
        await self._any.close()

    async def get(self, url: str, what: str) -> OAuthResponse:
        """Fetch a document. Raises AuthorizationError if there is no response, whatever its status."""
        return await self._fetch("GET", url, what, [("MCP-Protocol-Version", MODERN[-1])])

    async def post_form(
        self, url: str, what: str, form: Mapping[str, str], headers: Headers, *, given: bool = False
    ) -> OAuthResponse:
        """Post a form, as token endpoints want it. `given`: the caller gave the URL, and no server named it."""
        headers = [("Content-Type", "application/x-www-form-urlencoded"), *headers]
        return await self._fetch("POST", url, what, headers, urlencode(form).encode(), given=given)

    async def post_json(self, url: str, what: str, document: Mapping[str, Any]) -> OAuthResponse:
        """Post a JSON document, as registration endpoints want it."""
        headers = [("Content-Type", "application/json")]
        return await self._fetch("POST", url, what, headers, msgspec.json.encode(document))

    async def _fetch(
        self, method: str, url: str, what: str, headers: Headers, body: bytes = b"", *, given: bool = False
    ) -> OAuthResponse:
        """The addresses of the host of a URL that a server named are subject to the policy too."""
        if not given:
            self.policy.check(url, what)
        http = self._any if given or self.policy.may_be_internal(url) else self._public
        headers = [("Accept", "application/json"), *headers]
        try:
            response = await http.fetch(method, url, headers, body, seconds=SECONDS, limit=MOST_BYTES)
        except ConnectError as problem:
            said = f"{what} {shown(url)} could not be asked: {problem.what}"
            if isinstance(problem, NotAllowed):
                said += ", a place in this machine's own network, which a server outside has no reason to name"
                said += "; not used. If it is right, name it by issuer="
            raise AuthorizationError(said) from None
        try:
            document: Any = msgspec.json.decode(response.body)
        except (ValueError, RecursionError):
            document = None
        return OAuthResponse(response.status, response.headers, document if is_object(document) else {})


def explain_refusal(response: OAuthResponse, secrets: Iterable[str | None] = ()) -> str:
    """The error code and description of an OAuth endpoint, short and on one line.

    It may quote what it was sent. Secrets are removed before the text is cut: a part of one is still secret.
    """
    if not response.text("error"):
        redirect = "; redirects are not followed" if 300 <= response.status < 400 else ""
        return f"status {response.status}{redirect}"
    said = f"{response.text('error')}: {response.text('error_description')}"
    for secret in secrets:
        if secret:
            said = said.replace(secret, "…").replace(quote_plus(secret), "…")
    return one_line(said)


def one_line(text: str) -> str:
    """An error and its description, which others wrote, as one line of printable characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split()).removesuffix(":")
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + "…"
