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
from typing import Any, TypeAlias, final
from urllib.parse import parse_qs, urlsplit

from longshore.addresses import is_loopback
from longshore.client.auth.flow import call_user
from longshore.client.auth.oauth_http import plain_url
from longshore.client.tasks import Tasks, name_of
from longshore.errors import AuthorizationError

SECONDS = 300.0
"""For a person to log in."""
MOST_FIELDS = 64
"""In the query that a browser comes back with. Five of them are read, and some servers add their own."""
_REQUEST_SECONDS = 10.0
"""For a browser to send a request. Some connect ahead and send nothing."""
_PAGE_SECONDS = 0.5
"""For the last page to be sent."""
_MOST_BYTES = 64 << 10
"""The head of a request. A browser sends the cookies of all local servers, whatever their port."""
_MOST_CONNECTIONS = 32
"""At once. A browser opens six to a host; any other client must not use up our descriptors."""
DEFAULT_URI = "http://127.0.0.1:9107/callback"
"""The redirect URI if a function of the caller's returns the answer."""

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Longshore</title>
<meta name="viewport" content="width=device-width">
<body style="font: 18px/1.5 system-ui; max-width: 32em; margin: 15vh auto; padding: 0 1em"><p>%s</p></body></html>
"""
_DONE = "Thank you. You may close this window and go back to your program."
_UNKNOWN = "This does not belong to a login that is under way. You may close this window."
_HEAD = """HTTP/1.1 %s
Content-Type: text/html; charset=utf-8
Content-Length: %d
Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'
Referrer-Policy: no-referrer
X-Content-Type-Options: nosniff
Cache-Control: no-store
Connection: close

"""


class LoginTimeout(AuthorizationError):
    """The browser did not come back in time: the user was absent, or saw a page that refuses the client."""

    def __init__(self, hint: str = "") -> None:
        super().__init__(f"authorization: no one logged in within {SECONDS / 60:g} minutes; try again{hint}")


@final
class RedirectFunction:
    """A function of the caller's, for machines without a browser: it gets the URL and returns the final one."""

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
                raise LoginTimeout from None
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

    def __init__(self) -> None:
        self.uri = self._path = self._state = ""
        self._answer: asyncio.Future[str] | None = None
        self._server: asyncio.Server | None = None
        self._connections = Tasks()

    @classmethod
    async def open(cls, wanted: str | None, before: str | None) -> LoopbackListener:
        """`wanted` is the exact URI to listen at; `before` the one that was used last, which may be in use now."""
        listener = cls()
        if before is not None and not _is_local(before):
            before = None
        parts = urlsplit(wanted or before or "http://127.0.0.1:0/callback")
        host, port = parts.hostname or "", 80 if parts.port is None else parts.port
        listen_host = "127.0.0.1" if host.endswith("localhost") else host
        listener._path = parts.path or "/"
        try:
            server = await asyncio.start_server(listener._accept, listen_host, port, limit=_MOST_BYTES)
        except OSError as problem:
            if wanted is None and before is not None:
                return await cls.open(None, None)
            what = f"authorization: can't listen at {wanted} ({problem.strerror or problem})"
            raise AuthorizationError(f"{what}; free the port or give another redirect_uri=") from None
        listener._server = server
        port = server.sockets[0].getsockname()[1]
        shown = f"[{listen_host}]" if ":" in listen_host else listen_host
        listener.uri = wanted or f"http://{shown}:{port}{listener._path}"
        return listener

    async def follow(self, url: str, state: str, why: str) -> str:
        """Open `url` in the browser and return the whole URL that it came back to. Raises AuthorizationError.

        `why` says to the person which server wants a login, and where.
        """
        self._state, self._answer = state, asyncio.get_running_loop().create_future()
        _open_browser(url, why)
        try:
            async with asyncio.timeout(SECONDS):
                return await self._answer
        except TimeoutError:
            raise LoginTimeout from None

    async def close(self) -> None:
        """Stop listening, after a short time for sending the last page."""
        if self._server is not None:
            self._server.close()
        await self._connections.wait(_PAGE_SECONDS)
        await self._connections.end()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= _MOST_CONNECTIONS:
            writer.transport.abort()
        else:
            self._connections.start(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one page."""
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                status, text = self._choose_page(await reader.readuntil(b"\r\n\r\n"))
                page = (_PAGE % text).encode()
                writer.write((_HEAD % (status, len(page))).replace("\n", "\r\n").encode() + page)
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it disconnected, or is no browser
        finally:
            writer.close()

    def _choose_page(self, head: bytes) -> tuple[str, str]:
        try:
            method, target, _ = head.partition(b"\r\n")[0].decode("ascii").split(" ")
            parts = urlsplit(target)
            states = parse_qs(parts.query, max_num_fields=MOST_FIELDS).get("state", [])
        except ValueError:
            return "400 Bad Request", _UNKNOWN
        if method == "GET" and parts.path != self._path:
            return "404 Not Found", _UNKNOWN
        if method != "GET" or self._answer is None or self._state not in states:
            return "400 Bad Request", _UNKNOWN
        if not self._answer.done():
            self._answer.set_result(f"{self.uri.partition('?')[0]}?{parts.query}")
        return "200 OK", _DONE


Redirect: TypeAlias = RedirectFunction | LoopbackListener
"""Receives the answer of one login."""


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


def _open_browser(url: str, why: str) -> None:
    """Print the URL for the person, and open a browser if there is one. The URL's scheme has been checked."""
    what = f"longshore: {why}; to log in, open this page (within {SECONDS / 60:g} minutes):"
    try:
        sys.stderr.write(f"{what}\n{url}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # stderr is closed; the browser may open
    # Without a screen, `webbrowser` would start a text browser in the terminal.
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform == "darwin" or any(os.environ.get(name) for name in screens):
        Thread(target=_open, args=(url,), name="longshore-browser", daemon=True).start()


def _open(url: str) -> None:
    import webbrowser

    try:
        webbrowser.open(url)
    except Exception:  # of the desktop; the person has the address
        return
