"""The one URL that a channel speaks to: what every request to it carries, credentials included."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, final
from urllib.parse import urljoin

import msgspec
from msgspec import Raw, Struct

from longshore.errors import AuthorizationError, BadAnswer, ClientError, ConnectError, ConnectionLost, HttpRefused
from longshore.http_client.pool import HttpClient
from longshore.http_client.response import ExchangeBroken, HttpResponse, ResponseTooLarge, Unreachable
from longshore.http_client.urls import HeaderPairs, merge_headers, parse_url, without_secrets
from longshore.schema.kinds import is_object
from longshore.wire.codec import BROKEN
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.client.oauth.authorizer import Authorizer

CHALLENGES: Final = 3
"""Times that one request is sent again because the server wanted other credentials."""
REFUSAL_BYTES: Final = 1 << 20
"""What is read of an answer that is none of MCP's."""
_REFUSAL_SECONDS: Final = 10.0
_REASON_CHARACTERS: Final = 500
"""What is repeated of a server's reason for a refusal."""
STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS: Final = frozenset(("content-length", "transfer-encoding", "connection", "keep-alive", "te", "upgrade", "expect"))
"""They say how a message is framed: one from elsewhere would have the server read it wrongly."""
_SPOKEN: Final = frozenset(
    ("mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id", "accept-encoding")
)
"""What they say is up to the protocol, also where it says nothing. And we read none but plain answers."""


@final
class Endpoint:
    """Asks one URL. `worked` is whether it has ever answered: who was there once can be lost.

    `url` is the server's, as the user gave it: its tokens are kept under that name. `place` is where it answers, which
    may be a step aside.
    """

    def __init__(self, url: str, headers: HeaderPairs, authorizer: Authorizer | None) -> None:
        self.url = self.place = url
        self.address = parse_url(url)
        self.where = without_secrets(url)
        self.worked = False
        self._headers = _checked(headers, self.where)
        self._authorizer = authorizer
        self._known = authorizer is not None or any(name.lower() == "authorization" for name, _ in headers)
        """Whether it gets credentials from us."""
        self._http = HttpClient()

    @property
    def waiting(self) -> bool:
        """Whether somebody is logging in."""
        return self._authorizer is not None and self._authorizer.waiting(self.url)

    async def ask(
        self,
        method: str,
        headers: HeaderPairs,
        body: bytes = b"",
        *,
        url: str = "",
        seconds: float | None = None,
        login: bool = True,
    ) -> HttpResponse:
        """Send a request, again with other credentials where they are asked for.

        One step aside is taken too, on the same host: many servers move a path with a slash at its end to one
        without, or the other way round. What the protocol says counts more than the user's headers, and credentials
        count most. `login`: False takes a refusal as it is. Raises ConnectError, HttpRefused for a 401 or 403 that
        stays, and what the authorizer raises.
        """
        where, tries, moved = url or self.place, 0, False
        authorizer = self._authorizer
        while True:
            own = [] if authorizer is None else await authorizer.headers(method, where, body, server=self.url)
            answer = await self._http.stream(
                method, where, merge_headers(self._headers, headers, own), body, seconds=seconds
            )
            self.worked = True
            if authorizer is not None:
                authorizer.heard(answer.headers)
            aside = None if moved else self._aside(answer, where)
            if aside is not None:
                await read_refusal(answer)
                where, moved = aside, True
                if not url:
                    self.place = aside
                continue
            if answer.status not in (401, 403) or not login:
                return answer
            whole = await read_refusal(answer)
            if authorizer is None:
                refuse(whole, known=self._known)
            if tries == CHALLENGES:
                what = f"it refuses what the login gave, {CHALLENGES} times over (HTTP status {whole.status})"
                raise AuthorizationError(f"{_says(whole)}{what}; does this account have access there?")
            if not await _challenged(authorizer, whole, self.url):
                refuse(whole, known=True)
            tries += 1

    def _aside(self, answer: HttpResponse, where: str) -> str | None:
        """Where else on the same host the same request is wanted."""
        location = answer.header("location")
        if answer.status not in (307, 308) or location is None:
            return None
        try:
            url = urljoin(where, location)
            return url if parse_url(url).origin == self.address.origin else None
        except (ValueError, ConnectError):
            return None

    async def close(self, note: Callable[[str], None]) -> None:
        try:
            if self._authorizer is not None:
                await self._authorizer.close()
        except Exception as problem:  # a caller's own
            note(f"the authorizer could not be closed ({problem!r})")
        finally:
            await self._http.close()

    def explain(self, problem: ClientError) -> ClientError:
        """What a failure means to a caller. What surely did not arrive may be sent again."""
        if isinstance(problem, Unreachable) and self.worked:
            return ConnectionLost(problem.what, unsent=True)
        if isinstance(problem, ResponseTooLarge):
            return BadAnswer(problem.what)
        if isinstance(problem, ExchangeBroken):
            return ConnectionLost(problem.what)
        if isinstance(problem, Unreachable):
            return ConnectError(problem.what)
        return problem


def _checked(headers: HeaderPairs, where: str) -> HeaderPairs:
    """What a user wants every request to say. Raises ConnectError."""
    for name, _ in headers:
        if not _TOKEN.fullmatch(name):
            raise ConnectError(f"{name!r} is no name of a header; give letters, digits and hyphens", where)
        if name.lower() in _OURS:
            what = f"the header {name} says how a message is sent"
            raise ConnectError(what, where, fix="leave it out of {}", options=("headers",))
    return [pair for pair in headers if pair[0].lower() not in _SPOKEN]


def media_type(answer: HttpResponse) -> str:
    return (answer.header("content-type") or "").partition(";")[0].strip().lower()


async def read_refusal(answer: HttpResponse) -> HttpResponse:
    """A response that is no success, with as much of its body as arrives: people read it."""
    await answer.read_start(REFUSAL_BYTES, _REFUSAL_SECONDS)
    return answer


async def _challenged(authorizer: Authorizer, answer: HttpResponse, url: str) -> bool:
    """Whether the authorizer has other credentials to send. Its error begins with what the server said."""
    try:
        return await authorizer.challenged(answer.status, url, answer.headers)
    except AuthorizationError as problem:
        problem.what = _says(answer) + problem.what
        raise


def _says(answer: HttpResponse) -> str:
    reason = _reason(answer)
    return f'the server says "{reason}"; ' if reason else ""


def _reason(answer: HttpResponse) -> str:
    """Why a server refuses, in its own words: of its challenge (RFC 6750), else of the JSON in the body."""
    from longshore.client.oauth.challenge import description

    reason = description(answer.headers)
    if not reason:
        try:
            body = _read_reasons(answer.body)
        except BROKEN:
            return ""
        texts = (
            body.error_description,
            body.error.get("message") if is_object(body.error) else body.error,
            body.message,
            body.detail,
        )
        reason = next((text for text in texts if isinstance(text, str)), "")
    return " ".join(reason.split())[:_REASON_CHARACTERS]


def refuse(answer: HttpResponse, *, known: bool = False) -> NoReturn:
    """Raise HttpRefused, with what could help. `known`: it got credentials."""
    problem = HttpRefused(answer.status, answer.body, answer.headers)
    wanted = answer.header("www-authenticate")
    if answer.status == 401 or wanted is not None:
        reason = _reason(answer)
        if reason:
            problem.what = f"HTTP status {answer.status}: {reason}"
        _advise(problem, wanted or "", known, reason)
    elif 300 <= answer.status < 400:
        to = without_secrets(answer.header("location") or "nowhere")[:200]
        problem.what += f"; it points to {to}, and redirects are not followed: give that URL if you trust it"
    elif answer.status in (429, 503) and answer.header("retry-after"):
        problem.what += f"; try again in {str(answer.header('retry-after'))[:40]} (Retry-After)"
    raise problem


def _advise(problem: HttpRefused, wanted: str, known: bool, reason: str) -> None:
    challenge = f" ({wanted[:200]})" if wanted and not reason else ""
    if not known:
        problem.what += "; it wants credentials"
        problem.fix, problem.options = "give the client {} (a token, or OAuth) or {}", ("auth", "headers")
    elif problem.status == 401:
        problem.what += f"; it does not take the credentials that it got{challenge}"
        problem.fix, problem.options = "give others by {} or {}", ("auth", "headers")
    else:
        problem.what += f"; the credentials that it got do not allow this{challenge}"
        problem.fix = "give some that do"


# -- what a message is, as far as a transport must know


class _Glimpse(Struct):
    id: Any = None
    method: Any = None


class _Error(Struct):
    error: Raw
    id: Any = None


class _Words(Struct):
    message: str


class _Reasons(Struct):
    """Where the servers of others put the reason of a refusal."""

    error: Any = None
    error_description: Any = None
    message: Any = None
    detail: Any = None


class _Complaint(Struct):
    error: _Words
    id: Any = None


_glimpse = msgspec.json.Decoder(_Glimpse).decode
_glimpse_batch = msgspec.json.Decoder(list[_Glimpse]).decode
_read_error = msgspec.json.Decoder(_Error).decode
_read_reasons = msgspec.json.Decoder(_Reasons).decode
_read_words = msgspec.json.Decoder(_Complaint).decode


def answered(frame: bytes) -> list[Id]:
    """The requests of ours that a frame answers: one, none, or several in a batch."""
    try:
        found = _glimpse_batch(frame) if frame[:1] == b"[" else [_glimpse(frame)]
    except BROKEN:
        return []
    return [each.id for each in found if each.method is None and type(each.id) in (int, str)]


def is_session_over(answer: HttpResponse, id: Id | None = None) -> bool:
    """Whether a refusal of a request with a session's id says that the server does not know the session.

    The status for that is 404. The official TypeScript servers, and whoever began with their code, say 400 and put it
    into words: "Bad Request: No valid session ID provided". An error with the `id` of the request is about that.
    """
    if answer.status != 400:
        return answer.status == 404
    try:
        found = _read_words(answer.body)
    except BROKEN:
        return False
    return (id is None or found.id != id) and "session" in found.error.message.lower()


def error_for(body: bytes, id: Id, *, nameless: bool) -> bytes | None:
    """The JSON-RPC error that a refusal's body is, if it is this request's. None: it is no such thing.

    `nameless`: one without an id counts as well. It came as the answer to this very request.
    """
    try:
        found = _read_error(body)
    except BROKEN:
        return None
    if found.id == id and type(found.id) is type(id):
        return body
    if found.id is None and nameless and bytes(found.error) != b"null":
        return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "error": found.error})
    return None
