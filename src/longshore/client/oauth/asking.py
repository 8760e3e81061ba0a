"""Fetching documents and posting forms, only to where the wall lets us, within sizes and deadlines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard, final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from longshore.client.oauth.addresses import Wall, shown
from longshore.client.oauth.authorizer import Headers
from longshore.errors import AuthorizationError, ConnectError
from longshore.protocol.revisions import MODERN

if TYPE_CHECKING:
    from longshore.client.http.fetch import Http

SECONDS = 20.0
"""For one exchange, from connecting to the last byte. A person may be waiting."""

MOST_BYTES = 256 << 10
"""Of one answer. The metadata of large issuers have 10 KiB."""

_SHOWN_CHARS = 200


class Reply(Struct, frozen=True):
    """What came back: the status, the headers with names in lower case, and the body if it is a JSON object."""

    status: int
    headers: Headers
    document: dict[str, Any] | None

    def text(self, name: str) -> str:
        """A text of the document; empty if there is none."""
        value = (self.document or {}).get(name)
        return value if isinstance(value, str) else ""


@final
class Asker:
    """Asks on behalf of one server's client."""

    def __init__(self, http: Http, wall: Wall) -> None:
        self._http = http
        self.wall = wall

    async def get(self, url: str, what: str) -> Reply:
        """Fetch a document. Raises AuthorizationError if it can't be asked for, not for what the answer says."""
        self.wall.check(url, what)
        return await self._fetch("GET", url, [("MCP-Protocol-Version", MODERN[-1])], b"", what)

    async def post_form(self, url: str, form: Mapping[str, str], headers: Headers, what: str) -> Reply:
        """Post a form, as token endpoints want it."""
        self.wall.check(url, what)
        return await self.post_form_to(url, form, headers, what)

    async def post_form_to(self, url: str, form: Mapping[str, str], headers: Headers, what: str) -> Reply:
        """Post a form to a URL that the caller gave and no server named."""
        kind = ("Content-Type", "application/x-www-form-urlencoded")
        return await self._fetch("POST", url, [kind, *headers], urlencode(form).encode(), what)

    async def post_json(self, url: str, document: Mapping[str, Any], what: str) -> Reply:
        """Post a JSON document, as registration endpoints want it."""
        self.wall.check(url, what)
        return await self._fetch(
            "POST", url, [("Content-Type", "application/json")], msgspec.json.encode(document), what
        )

    async def _fetch(self, method: str, url: str, headers: Headers, body: bytes, what: str) -> Reply:
        try:
            headers = [("Accept", "application/json"), *headers]
            answer = await self._http.fetch(method, url, headers, body, seconds=SECONDS, most=MOST_BYTES)
        except ConnectError as problem:
            raise AuthorizationError(f"{what} {shown(url)} could not be asked: {problem.what}") from None
        return Reply(answer.status, list(answer.headers), _read(answer.body))


def _read(body: bytes) -> dict[str, Any] | None:
    try:
        found: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None
    return found if _is_object(found) else None


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def refusal(reply: Reply) -> str:
    """What an OAuth endpoint says is wrong, for an error: its own code and description, cut and on one line."""
    error, description = reply.text("error"), reply.text("error_description")
    if not error:
        redirect = "; redirects are not followed" if 300 <= reply.status < 400 else ""
        return f"status {reply.status}{redirect}"
    return plain(f"{error}: {description}" if description else error)


def plain(text: str) -> str:
    """Foreign text as one line of printable characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + "…"
