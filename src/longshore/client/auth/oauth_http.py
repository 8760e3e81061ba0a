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
_FORM = ("Content-Type", "application/x-www-form-urlencoded")
_JSON = ("Content-Type", "application/json")


class OAuthResponse(Struct, frozen=True):
    """Status, headers (names in lower case), and the body if it is a JSON object."""

    status: int
    headers: Headers
    document: dict[str, Any] | None

    def text(self, name: str) -> str:
        """A text of the document; empty if there is none."""
        value = (self.document or {}).get(name)
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
        return await self._fetch_named("GET", url, [("MCP-Protocol-Version", MODERN[-1])], b"", what)

    async def post_form(self, url: str, form: Mapping[str, str], headers: Headers, what: str) -> OAuthResponse:
        """Post a form, as token endpoints want it."""
        return await self._fetch_named("POST", url, [_FORM, *headers], urlencode(form).encode(), what)

    async def post_form_to(self, url: str, form: Mapping[str, str], headers: Headers, what: str) -> OAuthResponse:
        """Post a form to a URL that the caller gave and no server named."""
        return await self._fetch(self._any, "POST", url, [_FORM, *headers], urlencode(form).encode(), what)

    async def post_json(self, url: str, document: Mapping[str, Any], what: str) -> OAuthResponse:
        """Post a JSON document, as registration endpoints want it."""
        return await self._fetch_named("POST", url, [_JSON], msgspec.json.encode(document), what)

    async def _fetch_named(self, method: str, url: str, headers: Headers, body: bytes, what: str) -> OAuthResponse:
        """Send a request to a URL that a server named. The addresses of its host are subject to the policy too."""
        self.policy.check(url, what)
        http = self._any if self.policy.may_be_internal(url) else self._public
        return await self._fetch(http, method, url, headers, body, what)

    async def _fetch(
        self, http: HttpClient, method: str, url: str, headers: Headers, body: bytes, what: str
    ) -> OAuthResponse:
        headers = [("Accept", "application/json"), *headers]
        try:
            response = await http.fetch(method, url, headers, body, seconds=SECONDS, limit=MOST_BYTES)
        except ConnectError as problem:
            said = f"{what} {shown(url)} could not be asked: {problem.what}"
            if isinstance(problem, NotAllowed):
                said += ", a place in this machine's own network, which a server outside has no reason to name"
                said += "; not used. If it is right, name it by issuer="
            raise AuthorizationError(said) from None
        return OAuthResponse(response.status, response.headers, _read(response.body))


def _read(body: bytes) -> dict[str, Any] | None:
    try:
        found: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None
    return found if is_object(found) else None


def explain_refusal(response: OAuthResponse, secrets: Iterable[str | None] = ()) -> str:
    """The error code and description of an OAuth endpoint, short and on one line.

    It may quote what it was sent. Secrets are removed before the text is cut: a part of one is still secret.
    """
    error, description = (_redact(response.text(name), secrets) for name in ("error", "error_description"))
    if not error:
        redirect = "; redirects are not followed" if 300 <= response.status < 400 else ""
        return f"status {response.status}{redirect}"
    return one_line(f"{error}: {description}" if description else error)


def _redact(text: str, secrets: Iterable[str | None]) -> str:
    for secret in secrets:
        if secret:
            text = text.replace(secret, "…").replace(quote_plus(secret), "…")
    return text


def one_line(text: str) -> str:
    """Foreign text as one line of printable characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + "…"
