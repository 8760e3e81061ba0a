"""Opens the browser for a login and receives the redirect back.

By default a small listener on loopback receives it (RFC 8252). Any other request to its port, from a page in another
tab or a scanner, gets an error page: only the state of this login ends the wait.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from threading import Thread
from typing import Any, Protocol, final
from urllib.parse import parse_qs, urlsplit

from longshore.addresses import is_loopback
from longshore.client.auth.flow import MOST_FIELDS
from longshore.client.auth.token_authorizer import call_user
from longshore.client.auth.url_policy import plain_url
from longshore.client.tasks import name_of
from longshore.errors import AuthorizationError

SECONDS = 300.0
"""For a person to log in."""
_REQUEST_SECONDS = 10.0
"""For a browser to send a request. Some connect ahead and send nothing."""
_MOST_BYTES = 64 << 10
"""The head of a request. A browser sends the cookies of all local servers, whatever their port."""
_MOST_CONNECTIONS = 32
"""At once. A browser opens six to a host; any other client must not use up our descriptors."""
PATH = "/callback"
DEFAULT_URI = "http://127.0.0.1:9107/callback"
"""The redirect URI if a function of the caller's returns the answer."""

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Longshore</title>
<meta name="viewport" content="width=device-width">
<body style="font: 18px/1.5 system-ui; max-width: 32em; margin: 15vh auto; padding: 0 1em"><p>%s</p></body></html>
"""
_DONE = _PAGE % "Thank you. You may close this window and go back to your program."
_UNKNOWN = _PAGE % "This does not belong to a login that is under way. You may close this window."


class LoginTimeout(AuthorizationError):
    """The browser did not come back in time: no one was there, or they saw a page that refuses the client."""


class Redirect(Protocol):
    """Receives the answer of one login."""

    uri: str

    async def follow(self, url: str, state: str, why: str) -> str:
        """Open `url` in the browser and return the whole URL that it came back to. Raises AuthorizationError.

        `why` says to the person which server wants a login, and where.
        """
        ...

    async def close(self) -> None: ...


@final
class RedirectFunction:
    """A function of the caller's, for machines without a browser: it gets the URL and returns where it led."""

    def __init__(self, function: Callable[[str], Any], uri: str) -> None:
        self._function = function
        self.uri = uri

    async def follow(self, url: str, state: str, why: str) -> str:  # noqa: ARG002
        clock = asyncio.timeout(SECONDS)
        try:
            async with clock:
                found = await call_user(self._function, url)
        except Exception as problem:
            if clock.expired():
                raise LoginTimeout(_timeout_text()) from None
            raise AuthorizationError(f"authorization: redirect= raised {name_of(problem)}") from problem
        if not isinstance(found, str):
            what = f"authorization: redirect= returned {type(found).__name__}"
            raise AuthorizationError(f"{what}; return the whole URL that the browser was sent back to")
        return found

    async def close(self) -> None:
        pass


@final
class LoopbackListener:
    """Listens on loopback until the browser comes back."""

    def __init__(self, uri: str, server: asyncio.Server, path: str) -> None:
        self.uri = uri
        self._server = server
        self._path = path
        self._state = ""
        self._answer: asyncio.Future[str] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, wanted: str | None, before: str | None) -> LoopbackListener:
        """`wanted` is the exact URI to listen at; `before` the one that was used last, which may be in use now."""
        made: list[LoopbackListener] = []

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if made:
                made[0].accept(reader, writer)
            else:
                writer.transport.abort()

        host, port, path = _listen_address(wanted or (before if before and _is_local(before) else None))
        try:
            server = await asyncio.start_server(connected, host, port, limit=_MOST_BYTES)
        except OSError as problem:
            if wanted is not None:
                what = f"authorization: can't listen at {wanted} ({problem.strerror or problem})"
                raise AuthorizationError(f"{what}; free the port or give another redirect_uri=") from None
            host, path = "127.0.0.1", PATH
            server = await asyncio.start_server(connected, host, 0, limit=_MOST_BYTES)
        port = server.sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        made.append(cls(wanted or f"http://{shown}:{port}{path}", server, path))
        return made[0]

    async def follow(self, url: str, state: str, why: str) -> str:
        self._state, self._answer = state, asyncio.get_running_loop().create_future()
        open_browser(url, why)
        try:
            async with asyncio.timeout(SECONDS):
                return await self._answer
        except TimeoutError:
            raise LoginTimeout(_timeout_text()) from None

    async def close(self) -> None:
        """Stop listening. The last page has a moment to be sent."""
        self._server.close()
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=0.5)
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left, timeout=0.5)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= _MOST_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one page."""
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                target = _target(head)
                status, page = self._choose_page(target)
                writer.write(_http_response(status, page))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it disconnected, or is no browser
        except asyncio.CancelledError:
            pass  # the login is over
        finally:
            writer.close()

    def _choose_page(self, target: str | None) -> tuple[str, str]:
        if target is None:
            return "400 Bad Request", _UNKNOWN
        try:
            parts = urlsplit(target)
            states = parse_qs(parts.query, max_num_fields=MOST_FIELDS).get("state", [])
        except ValueError:
            return "400 Bad Request", _UNKNOWN
        if parts.path != self._path:
            return "404 Not Found", _UNKNOWN
        if self._answer is None or self._state not in states:
            return "400 Bad Request", _UNKNOWN
        if not self._answer.done():
            self._answer.set_result(f"{self.uri.partition('?')[0]}?{parts.query}")
        return "200 OK", _DONE


def _listen_address(uri: str | None) -> tuple[str, int, str]:
    """Host, port and path to listen at."""
    parts = plain_url(uri) if uri else None
    if parts is None:
        return "127.0.0.1", 0, PATH
    host = parts.hostname or "127.0.0.1"
    return "127.0.0.1" if host.endswith("localhost") else host, parts.port or 80, parts.path or "/"


def _is_local(uri: str) -> bool:
    parts = plain_url(uri)
    return parts is not None and parts.scheme == "http" and is_loopback(parts.hostname or "")


def check_uri(uri: str, *, listens: bool) -> str:
    """A redirect URI of the caller's: https, or http on loopback, where we can listen. Raises ValueError."""
    parts = plain_url(uri)
    if parts is None or not (_is_local(uri) or (parts.scheme == "https" and not listens)):
        raise ValueError(
            "redirect_uri: expected http on loopback, such as http://127.0.0.1:3000/callback"
            + ("; for https give redirect= too, a function that returns the answer" if listens else ", or https")
        )
    return uri


def _target(head: bytes) -> str | None:
    """The target of a GET."""
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3 or words[0] != b"GET" or not words[1].startswith(b"/") or not words[1].isascii():
        return None
    return words[1].decode("ascii")


def _http_response(status: str, page: str) -> bytes:
    body = page.encode()
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        "Referrer-Policy: no-referrer",
        "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + body


def open_browser(url: str, why: str) -> None:
    """Print the URL for the person, and open a browser if there is one. The URL's scheme has been checked."""
    what = f"longshore: {why}; to log in, open this page (within {SECONDS / 60:g} minutes):"
    try:
        sys.stderr.write(f"{what}\n{url}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # stderr is closed; the browser may open
    if _has_browser():
        Thread(target=_open, args=(url,), name="longshore-browser", daemon=True).start()


def _has_browser() -> bool:
    """Whether there is a screen. Without one, `webbrowser` would start a text browser in the terminal."""
    if sys.platform == "darwin":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _open(url: str) -> None:
    import webbrowser

    try:
        webbrowser.open(url)
    except Exception:  # of the desktop; the person has the address
        return


def _timeout_text() -> str:
    return f"authorization: no one logged in within {SECONDS / 60:g} minutes; try again"
