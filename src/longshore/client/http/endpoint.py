"""The one URL that a channel speaks to: what every request to it carries, credentials included."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NoReturn, final
from urllib.parse import urljoin

import msgspec
from msgspec import Raw, Struct

from longshore.client.http.address import Pairs, locate, without_secrets
from longshore.client.http.exchange import Answer, Broken, Streaming, Unreachable
from longshore.client.http.fetch import Http
from longshore.errors import AuthorizationError, ClientError, ConnectError, ConnectionLost, HttpRefused
from longshore.wire.codec import BROKEN
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.client.oauth.authorizer import Authorizer

CHALLENGES: Final = 3
"""Times that one request is sent again because the server wanted other credentials."""
REFUSAL_BYTES: Final = 1 << 20
"""What is read of an answer that is none of MCP's."""
_REFUSAL_SECONDS: Final = 10.0
STREAM: Final = "text/event-stream"
JSON: Final = "application/json"


@final
class Endpoint:
    """Asks one URL. `worked` is whether it has ever answered: who was there once can be lost."""

    def __init__(self, url: str, headers: Pairs, authorizer: Authorizer | None) -> None:
        self.url = url
        self.address = locate(url)
        self.where = without_secrets(url)
        self.worked = False
        self._headers = tuple(headers)
        self._authorizer = authorizer
        self._http = Http()

    @property
    def waiting(self) -> bool:
        """Whether somebody is logging in."""
        return self._authorizer is not None and self._authorizer.waiting

    async def ask(
        self, method: str, headers: Pairs, body: bytes = b"", *, url: str = "", seconds: float | None = None
    ) -> Streaming:
        """Send a request, again with other credentials where they are asked for.

        One step aside is taken too, on the same host: many servers move a path with a slash at its end to one
        without, or the other way round. Raises ConnectError, HttpRefused for a 401 or 403 that stays, and what the
        authorizer raises.
        """
        where, tries, moved = url or self.url, 0, False
        authorizer = self._authorizer
        while True:
            own = [] if authorizer is None else await authorizer.headers(method, self.url, body)
            answer = await self._http.stream(method, where, [*self._headers, *headers, *own], body, seconds=seconds)
            self.worked = True
            if authorizer is not None:
                authorizer.heard(answer.headers)
            aside = None if moved else self._aside(answer, where)
            if aside is not None:
                await read_refusal(answer)
                where, moved = aside, True
                if not url:
                    self.url = aside
                continue
            if answer.status not in (401, 403):
                return answer
            whole = await read_refusal(answer)
            if authorizer is None:
                refuse(whole)
            if tries == CHALLENGES:
                what = f"it refuses what the login gave, {CHALLENGES} times over (HTTP status {whole.status})"
                raise AuthorizationError(f"{what}; does this account have access there?")
            if not await authorizer.challenged(whole.status, self.url, whole.headers):
                refuse(whole)
            tries += 1

    def _aside(self, answer: Streaming, where: str) -> str | None:
        """Where else on the same host the same request is wanted."""
        location = answer.header("location")
        if answer.status not in (307, 308) or location is None:
            return None
        try:
            url = urljoin(where, location)
            return url if locate(url).key == self.address.key else None
        except (ValueError, ConnectError):
            return None

    async def close(self) -> None:
        try:
            if self._authorizer is not None:
                await self._authorizer.close()
        finally:
            await self._http.close()

    def explain(self, problem: ClientError) -> ClientError:
        """What a failure means to a caller. What surely did not arrive may be sent again."""
        if isinstance(problem, Unreachable) and self.worked:
            return ConnectionLost(problem.what, unsent=True)
        if isinstance(problem, Broken):
            return ConnectionLost(problem.what)
        if isinstance(problem, Unreachable):
            return ConnectError(problem.what)
        return problem


def media_type(answer: Streaming) -> str:
    return (answer.header("content-type") or "").partition(";")[0].strip().lower()


async def read_refusal(answer: Streaming) -> Answer:
    """An answer that is not what was hoped for, as much of it as there is: it is for people to read."""
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_REFUSAL_SECONDS):
            async for chunk in answer:
                chunks.append(chunk)
                size += len(chunk)
                if size > REFUSAL_BYTES:
                    break
    except (TimeoutError, Broken):
        pass
    finally:
        await answer.aclose()
    return Answer(answer.status, answer.headers, b"".join(chunks)[:REFUSAL_BYTES])


def refuse(answer: Answer) -> NoReturn:
    """Raise HttpRefused, with what could help."""
    problem = HttpRefused(answer.status, answer.body, answer.headers)
    wants = answer.status == 401 or answer.header("www-authenticate") is not None
    if wants:
        problem.what += "; it wants credentials: give the client auth= (a token, or OAuth) or headers="
    elif 300 <= answer.status < 400:
        to = without_secrets(answer.header("location") or "nowhere")[:200]
        problem.what += f"; it points to {to}, and redirects are not followed: give that URL if you trust it"
    elif answer.status in (429, 503) and answer.header("retry-after"):
        problem.what += f"; try again in {str(answer.header('retry-after'))[:40]} (Retry-After)"
    raise problem


# -- what a message is, as far as a transport must know


class _Glimpse(Struct):
    id: Any = None
    method: Any = None


class _Error(Struct):
    error: Raw
    id: Any = None


class _Words(Struct):
    message: str


class _Complaint(Struct):
    error: _Words


_glimpse = msgspec.json.Decoder(_Glimpse).decode
_glimpse_batch = msgspec.json.Decoder(list[_Glimpse]).decode
_read_error = msgspec.json.Decoder(_Error).decode
_read_words = msgspec.json.Decoder(_Complaint).decode


def answered(frame: bytes) -> list[Id]:
    """The requests of ours that a frame answers: one, none, or several in a batch."""
    try:
        found = _glimpse_batch(frame) if frame[:1] == b"[" else [_glimpse(frame)]
    except BROKEN:
        return []
    return [each.id for each in found if each.method is None and type(each.id) in (int, str)]


def is_session_over(answer: Answer) -> bool:
    """Whether a refusal of a request with a session's id says that the server does not know the session.

    The status for that is 404. The official TypeScript servers, and whoever began with their code, say 400 and put it
    into words: "Bad Request: No valid session ID provided".
    """
    if answer.status != 400:
        return answer.status == 404
    try:
        return "session" in _read_words(answer.body).error.message.lower()
    except BROKEN:
        return False


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
