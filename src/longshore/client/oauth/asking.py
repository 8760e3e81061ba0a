"""Fetching documents and posting forms, only to where the wall lets us, within sizes and deadlines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, final
from urllib.parse import quote_plus, urlencode

import msgspec
from msgspec import Struct

from longshore.client.oauth.addresses import Wall, is_inside, shown
from longshore.client.oauth.authorizer import Headers
from longshore.errors import AuthorizationError, ConnectError
from longshore.protocol.revisions import MODERN
from longshore.schema.kinds import is_object

if TYPE_CHECKING:
    from longshore.http_client.pool import HttpClient

SECONDS = 20.0
"""For one exchange, from connecting to the last byte. A person may be waiting."""

MOST_BYTES = 256 << 10
"""Of one answer. The metadata of large issuers have 10 KiB."""

_SHOWN_CHARS = 200
"""What is shown of foreign text in an error: two or three lines of a terminal."""
_FORM = ("Content-Type", "application/x-www-form-urlencoded")
_JSON = ("Content-Type", "application/json")


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

    def __init__(self, http: Callable[[bool], HttpClient], wall: Wall) -> None:
        """`http` gives what connects: with True, to public addresses only."""
        self._http = http
        self.wall = wall

    async def get(self, url: str, what: str) -> Reply:
        """Fetch a document. Raises AuthorizationError if it can't be asked for, not for what the answer says."""
        self.wall.check(url, what)
        return await self._fetch_named("GET", url, [("MCP-Protocol-Version", MODERN[-1])], b"", what)

    async def post_form(self, url: str, form: Mapping[str, str], headers: Headers, what: str) -> Reply:
        """Post a form, as token endpoints want it."""
        self.wall.check(url, what)
        return await self._fetch_named("POST", url, [_FORM, *headers], urlencode(form).encode(), what)

    async def post_form_to(self, url: str, form: Mapping[str, str], headers: Headers, what: str) -> Reply:
        """Post a form to a URL that the caller gave and no server named."""
        return await self._fetch("POST", url, [_FORM, *headers], urlencode(form).encode(), what)

    async def post_json(self, url: str, document: Mapping[str, Any], what: str) -> Reply:
        """Post a JSON document, as registration endpoints want it."""
        self.wall.check(url, what)
        return await self._fetch_named("POST", url, [_JSON], msgspec.json.encode(document), what)

    async def _fetch_named(self, method: str, url: str, headers: Headers, body: bytes, what: str) -> Reply:
        """Ask a place that a server named. What its name stands for is held to the wall too."""
        from longshore.http_client.dial import NotAllowed

        if self.wall.is_free(url):
            return await self._fetch(method, url, headers, body, what)
        try:
            return await self._fetch(method, url, headers, body, what, public=True)
        except _Refused as refused:
            if not isinstance(refused.problem, NotAllowed):
                raise
            if not await self._is_inside():
                why = "a place in this machine's own network, which a server outside has no reason to name; not used"
                raise AuthorizationError(f"{refused.what}, {why}. If it is right, name it by issuer=") from None
        return await self._fetch(method, url, headers, body, what)

    async def _is_inside(self) -> bool:
        """Whether the server that names places is in our own network itself.

        Only a connection tells: whoever runs a name can have it stand for anything for a moment, but not have somebody
        else's machine prove by its certificate that it is the one of that name.
        """
        if self.wall.proven is None:
            seen: list[str] = []

            def note(address: str) -> bool:
                seen.append(address)
                return is_inside(address)

            from longshore.http_client.pool import HttpClient

            http = HttpClient(allow=note)
            try:
                await http.fetch("GET", self.wall.root, seconds=SECONDS, limit=MOST_BYTES)
                self.wall.proven = bool(seen)
            except ConnectError:
                return False
            finally:
                await http.close()
        return self.wall.proven

    async def _fetch(
        self, method: str, url: str, headers: Headers, body: bytes, what: str, *, public: bool = False
    ) -> Reply:
        try:
            headers = [("Accept", "application/json"), *headers]
            answer = await self._http(public).fetch(method, url, headers, body, seconds=SECONDS, limit=MOST_BYTES)
        except ConnectError as problem:
            raise _Refused(f"{what} {shown(url)} could not be asked: {problem.what}", problem) from None
        return Reply(answer.status, list(answer.headers), _read(answer.body))


class _Refused(AuthorizationError):
    """A place could not be reached."""

    def __init__(self, what: str, problem: ConnectError) -> None:
        super().__init__(what)
        self.problem = problem


def _read(body: bytes) -> dict[str, Any] | None:
    try:
        found: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None
    return found if is_object(found) else None


class TryLater(AuthorizationError):
    """Somebody is there and can't answer now."""


def refusal(reply: Reply, secrets: Iterable[str | None] = ()) -> str:
    """What an OAuth endpoint says is wrong, for an error: its own code and description, cut and on one line.

    It may quote what it was sent. That is taken out first: what is left of a secret by a cut is still a secret.
    """
    error, description = (_without(reply.text(name), secrets) for name in ("error", "error_description"))
    if not error:
        redirect = "; redirects are not followed" if 300 <= reply.status < 400 else ""
        return f"status {reply.status}{redirect}"
    return plain(f"{error}: {description}" if description else error)


def _without(text: str, secrets: Iterable[str | None]) -> str:
    for secret in secrets:
        if secret:
            text = text.replace(secret, "…").replace(quote_plus(secret), "…")
    return text


def plain(text: str) -> str:
    """Foreign text as one line of printable characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + "…"
