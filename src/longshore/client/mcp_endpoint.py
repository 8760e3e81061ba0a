"""The URL of an MCP server: sends requests with the user's headers and credentials, and explains refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, final
from urllib.parse import urljoin

import msgspec
from msgspec import Struct

from longshore.client.channel import TransportOptions
from longshore.errors import AuthorizationError, BadAnswer, ClientError, ConnectError, ConnectionLost, HttpRefused
from longshore.http_client.pool import HttpClient
from longshore.http_client.response import ExchangeBroken, HttpResponse, ResponseTooLarge, Unreachable
from longshore.http_client.urls import HeaderPairs, merge_headers, parse_url, without_secrets
from longshore.schema.kinds import is_object
from longshore.wire.codec import BROKEN
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.client.auth.authorizer import Authorizer

CHALLENGES: Final = 3
"""Times that one request is sent again with other credentials."""
REFUSAL_BYTES: Final = 1 << 20
"""Bytes that are read of a response that is not MCP's."""
_REFUSAL_SECONDS: Final = 10.0
_REASON_CHARACTERS: Final = 500
"""Characters that an error repeats of a server's reason."""
EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
POST_HEADERS: Final = (("Content-Type", JSON), ("Accept", f"{JSON}, {EVENT_STREAM}"))
MOST_REQUESTS: Final = 128
"""Requests in flight, each with its own connection. Others wait."""
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FRAMING: Final = frozenset(
    ("content-length", "transfer-encoding", "connection", "keep-alive", "te", "upgrade", "expect")
)
"""Headers that a user can't set: with a wrong one the server reads the message wrongly."""
_PROTOCOL: Final = frozenset(
    ("mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id", "accept-encoding")
)
"""Headers of a user that are left out: the protocol decides on them, also when they are absent."""


@final
class McpEndpoint:
    """Sends requests to one server.

    `url` is the server's URL as the user gave it; its tokens are stored under it. `current_url` is where it answers,
    which may be one redirect away. `answered`: whether it has ever answered. `on_login` is called with True when a
    person starts to log in for a request of ours, and with False when no one is logging in any more.
    """

    def __init__(self, url: str, options: TransportOptions, on_login: Callable[[bool], None]) -> None:
        headers, authorizer = tuple((options.headers or {}).items()), options.auth
        if isinstance(authorizer, str):
            from longshore.client.auth.authorizer import Bearer

            authorizer = Bearer(authorizer)
        self.url = self.current_url = url
        self.origin = parse_url(url).origin
        self.label = without_secrets(url)
        self.answered = False
        self._headers = _check_headers(headers, self.label)
        self._authorizer: Authorizer | None = authorizer
        self._has_credentials = authorizer is not None or any(name.lower() == "authorization" for name, _ in headers)
        self._on_login = on_login
        self._logins = 0
        self._http = HttpClient()

    async def send(
        self,
        method: str,
        headers: HeaderPairs,
        body: bytes = b"",
        *,
        url: str = "",
        seconds: float | None = None,
        login: bool = True,
    ) -> HttpResponse:
        """Send a request, again with other credentials where the server asks for them.

        One redirect within the same origin is followed: many servers redirect a path to itself with or without a
        slash at the end. The protocol's headers override the user's, and credentials override both. With
        `login=False` a 401 or 403 is returned. Raises ConnectError, HttpRefused for a 401 or 403, and what the
        authorizer raises.
        """
        where = url or self.current_url
        response = await self._send_authorized(method, where, headers, body, seconds, login)
        target = self._redirect_target(response, where)
        if target is None:
            return response
        await read_refusal(response)
        if not url:
            self.current_url = target
        return await self._send_authorized(method, target, headers, body, seconds, login)

    async def _send_authorized(
        self, method: str, url: str, headers: HeaderPairs, body: bytes, seconds: float | None, login: bool
    ) -> HttpResponse:
        if self._authorizer is None:
            pairs = merge_headers(self._headers, headers)
            response = await self._http.stream(method, url, pairs, body, seconds=seconds)
            self.answered = True
            if response.status in (401, 403) and login:
                refuse(await read_refusal(response), has_credentials=self._has_credentials)
            return response
        from longshore.client.auth.authorizer import AuthRequest

        flow = self._authorizer.auth_flow(AuthRequest(method, url, body, self.url, self._count_logins))
        try:
            credentials = await anext(flow)
            tries = 0
            while True:
                pairs = merge_headers(self._headers, headers, credentials)
                response = await self._http.stream(method, url, pairs, body, seconds=seconds)
                self.answered = True
                refused = response.status in (401, 403)
                if refused and not login:
                    return response
                if refused:
                    await read_refusal(response)
                try:
                    if tries == CHALLENGES and refused:
                        what = f"it refuses what the login gave, {CHALLENGES} times over (HTTP status"
                        raise AuthorizationError(f"{what} {response.status}); does this account have access there?")
                    credentials = await flow.asend(response)
                except StopAsyncIteration:
                    if refused:
                        refuse(response, has_credentials=True)
                    return response
                except AuthorizationError as problem:
                    reason = _reason(response)
                    problem.what = f'the server says "{reason}"; {problem.what}' if reason else problem.what
                    raise
                response.close()
                tries += 1
        finally:
            await flow.aclose()

    def _count_logins(self, begins: bool) -> None:
        before, self._logins = self._logins, self._logins + (1 if begins else -1)
        if not before or not self._logins:
            self._on_login(begins)

    def _redirect_target(self, response: HttpResponse, url: str) -> str | None:
        location = response.header("location")
        if response.status not in (307, 308) or location is None:
            return None
        try:
            target = urljoin(url, location)
            return target if parse_url(target).origin == self.origin else None
        except (ValueError, ConnectError):
            return None

    async def close(self, note: Callable[[str], None]) -> None:
        try:
            if self._authorizer is not None:
                await self._authorizer.close()
        except Exception as problem:  # of a caller's own class
            note(f"the authorizer could not be closed ({problem!r})")
        finally:
            await self._http.close()

    def explain(self, problem: ClientError) -> ClientError:
        """The error that a caller gets. `unsent` says that the request did not reach the server."""
        if isinstance(problem, Unreachable):
            return ConnectionLost(problem.what, unsent=True) if self.answered else ConnectError(problem.what)
        if isinstance(problem, ResponseTooLarge):
            return BadAnswer(problem.what)
        if isinstance(problem, ExchangeBroken):
            return ConnectionLost(problem.what)
        return problem


def _check_headers(headers: HeaderPairs, label: str) -> HeaderPairs:
    """The headers of a user that are sent. Raises ConnectError."""
    for name, _ in headers:
        if not _TOKEN.fullmatch(name):
            raise ConnectError(f"{name!r} is no name of a header; give letters, digits and hyphens", label)
        if name.lower() in _FRAMING:
            what = f"the header {name} says how a message is sent"
            raise ConnectError(what, label, fix="leave it out of {}", options=("headers",))
    return [pair for pair in headers if pair[0].lower() not in _PROTOCOL]


# -- refusals


def media_type(response: HttpResponse) -> str:
    return (response.header("content-type") or "").partition(";")[0].strip().lower()


async def read_refusal(response: HttpResponse) -> HttpResponse:
    """Read as much of a refusal's body as arrives."""
    await response.read_start(REFUSAL_BYTES, _REFUSAL_SECONDS)
    return response


def _reason(response: HttpResponse) -> str:
    """The server's own reason for a refusal: from its challenge (RFC 6750), else from the JSON in the body."""
    from longshore.client.auth.discovery import challenge_description

    body = _refusal(response.body)
    texts = (
        challenge_description(response.headers) or None,
        body.error_description,
        body.error_message,
        body.message,
        body.detail,
    )
    reason = next((text for text in texts if isinstance(text, str)), "")
    return " ".join(reason.split())[:_REASON_CHARACTERS]


def refuse(response: HttpResponse, *, has_credentials: bool = False) -> NoReturn:
    """Raise HttpRefused, with a fix where there is one."""
    status, wanted = response.status, response.header("www-authenticate")
    problem = HttpRefused(status, response.body, response.headers)
    if status == 401 or wanted is not None:
        reason = _reason(response)
        challenge = f" ({wanted[:200]})" if wanted and not reason else ""
        if reason:
            problem.what = f"HTTP status {status}: {reason}"
        if not has_credentials:
            problem.what += "; it wants credentials"
            problem.fix, problem.options = "give the client {} (a token, or OAuth) or {}", ("auth", "headers")
        elif status == 401:
            problem.what += f"; it does not take the credentials that it got{challenge}"
            problem.fix, problem.options = "give others by {} or {}", ("auth", "headers")
        else:
            problem.what += f"; the credentials that it got do not allow this{challenge}"
            problem.fix = "give some that do"
    elif 300 <= status < 400:
        to = without_secrets(response.header("location") or "nowhere")[:200]
        problem.what += f"; it points to {to}, and redirects are not followed: give that URL if you trust it"
    elif status == 407:
        problem.what += "; the proxy wants credentials: give them in HTTP_PROXY as http://user:password@host:port"
    elif status in (429, 503) and response.header("retry-after"):
        problem.what += f"; try again in {str(response.header('retry-after'))[:40]} (Retry-After)"
    raise problem


# -- the fields of messages that the transport reads


class _MessageIds(Struct):
    id: Any = None
    method: Any = None


class _Refusal(Struct):
    """A JSON-RPC error, or one of the places where servers put the reason of a refusal."""

    jsonrpc: Any = None
    id: Any = None
    error: Any = None
    error_description: Any = None
    message: Any = None
    detail: Any = None

    @property
    def error_message(self) -> Any:
        return self.error.get("message") if is_object(self.error) else self.error


_SESSION_CODES = (-32000, -32001, -32600)
"""Of refused sessions: the examples of the TypeScript SDK, its transport, the Python SDK."""
_NAMES_SESSION_ID = re.compile(r"session[ -]?id|session not found", re.IGNORECASE)
"""As in "Bad Request: No valid session ID provided". A tool may have sessions of its own, which crash and expire."""
_read_ids = msgspec.json.Decoder(_MessageIds).decode
_read_batch_ids = msgspec.json.Decoder(list[_MessageIds]).decode
_decode_refusal = msgspec.json.Decoder(_Refusal).decode


def _refusal(body: bytes) -> _Refusal:
    try:
        return _decode_refusal(body)
    except BROKEN:
        return _Refusal()


def answered_ids(frame: bytes) -> list[Id]:
    """The requests of this client that a frame answers: one, none, or several in a batch."""
    try:
        found = _read_batch_ids(frame) if frame[:1] == b"[" else [_read_ids(frame)]
    except BROKEN:
        return []
    return [each.id for each in found if each.method is None and type(each.id) in (int, str)]


def is_session_over(response: HttpResponse, id: Id | None = None) -> bool:
    """Whether the refusal of a request with a session id says that the server does not know the session.

    The status for that is 404, unless the body is a JSON-RPC error for the very request: some servers say so that they
    don't know a method. Servers after the examples of the official SDKs say 400 with an error that has one of their
    codes, names the session's id and is for no request. A request is then sent again: it must not have been run.
    """
    if response.status not in (400, 404):
        return False
    found = _refusal(response.body)
    error: dict[str, Any] = found.error if found.jsonrpc == "2.0" and is_object(found.error) else {}
    is_for_request = bool(error) and id is not None and found.id == id
    names_session = _NAMES_SESSION_ID.search(str(error.get("message"))) is not None
    if response.status == 404:
        return names_session or not is_for_request
    return names_session and not is_for_request and error.get("code") in _SESSION_CODES


def error_for(body: bytes, id: Id, *, accept_null_id: bool) -> bytes | None:
    """The JSON-RPC error in a refusal's body, if it is for this request. `accept_null_id`: or for none."""
    found = _refusal(body)
    if found.error is None or (found.id != id and not (found.id is None and accept_null_id)):
        return None
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "error": found.error})
