"""Sending a person's browser off, and being there when it comes back.

By default that is a small listener on loopback (RFC 8252). Whatever else comes to its port, from a page in another tab
or a scanner, is answered and forgotten: only the state of this login ends the wait.
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
from longshore.client.oauth.addresses import split
from longshore.client.oauth.calling import call
from longshore.client.oauth.flow import MOST_FIELDS
from longshore.client.threads import name_of
from longshore.errors import AuthorizationError

SECONDS = 300.0
"""For a person to log in."""
_REQUEST_SECONDS = 10.0
"""For a browser to say what it wants. Some connect ahead and say nothing."""
_MOST_BYTES = 64 << 10
"""The head of a request. A browser sends the cookies of all that ever ran on this machine, whatever their port."""
_MOST_CONNECTIONS = 32
"""At once. A browser opens six to a host; whoever opens more is none, and must not use up our descriptors."""
PATH = "/callback"
ELSEWHERE = "http://127.0.0.1:9107/callback"
"""What is named as the way back where the caller's own function brings the answer."""

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Longshore</title>
<meta name="viewport" content="width=device-width">
<body style="font: 18px/1.5 system-ui; max-width: 32em; margin: 15vh auto; padding: 0 1em"><p>%s</p></body></html>
"""
_DONE = _PAGE % "Thank you. You may close this window and go back to your program."
_STRANGE = _PAGE % "This does not belong to a login that is under way. You may close this window."


class Late(AuthorizationError):
    """Nobody came back in time: nobody was there, or all that they saw was a page that refuses us."""


class Redirect(Protocol):
    """A way back for one login."""

    uri: str

    async def follow(self, url: str, state: str, why: str) -> str:
        """Send the browser to `url` and return the whole URL that it came back to. Raises AuthorizationError.

        `why` tells the person which server wants that, and where they log in.
        """
        ...

    async def close(self) -> None: ...


@final
class Given:
    """The caller's own function, for machines without a browser: it gets the URL and returns where that led."""

    def __init__(self, function: Callable[[str], Any], uri: str) -> None:
        self._function = function
        self.uri = uri

    async def follow(self, url: str, state: str, why: str) -> str:  # noqa: ARG002 - the caller sees to it
        clock = asyncio.timeout(SECONDS)
        try:
            async with clock:
                found = await call(self._function, url)
        except Exception as problem:
            if clock.expired():
                raise Late(_late()) from None
            raise AuthorizationError(f"authorization: redirect= raised {name_of(problem)}") from problem
        if not isinstance(found, str):
            what = f"authorization: redirect= returned {type(found).__name__}"
            raise AuthorizationError(f"{what}; return the whole URL that the browser was sent back to")
        return found

    async def close(self) -> None:
        pass


@final
class Listener:
    """Listens on loopback until the browser comes back."""

    def __init__(self, uri: str, server: asyncio.Server, path: str) -> None:
        self.uri = uri
        self._server = server
        self._path = path
        self._state = ""
        self._came: asyncio.Future[str] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, wanted: str | None, before: str | None) -> Listener:
        """`wanted` is the very URI to listen at; `before` the one that was used last, which may be taken now."""
        holder: list[Listener] = []

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if holder:
                holder[0].take(reader, writer)
            else:
                writer.transport.abort()

        host, port, path = _place(wanted or (before if before and _is_local(before) else None))
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
        made = cls(wanted or f"http://{shown}:{port}{path}", server, path)
        holder.append(made)
        return made

    async def follow(self, url: str, state: str, why: str) -> str:
        self._state, self._came = state, asyncio.get_running_loop().create_future()
        show(url, why)
        try:
            async with asyncio.timeout(SECONDS):
                return await self._came
        except TimeoutError:
            raise Late(_late()) from None

    async def close(self) -> None:
        """Stop listening. The page that says goodbye is still brought to its end, for a moment."""
        self._server.close()
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=0.5)
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left, timeout=0.5)

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
                status, page = self._judge(target)
                writer.write(_answer(status, page))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it went away, or is no browser
        except asyncio.CancelledError:
            pass  # the login is over
        finally:
            writer.close()

    def _judge(self, target: str | None) -> tuple[str, str]:
        if target is None:
            return "400 Bad Request", _STRANGE
        try:
            parts = urlsplit(target)
            states = parse_qs(parts.query, max_num_fields=MOST_FIELDS).get("state", [])
        except ValueError:
            return "400 Bad Request", _STRANGE
        if parts.path != self._path:
            return "404 Not Found", _STRANGE
        if self._came is None or self._state not in states:
            return "400 Bad Request", _STRANGE
        if not self._came.done():
            self._came.set_result(f"{self.uri.partition('?')[0]}?{parts.query}")
        return "200 OK", _DONE


def _place(uri: str | None) -> tuple[str, int, str]:
    """Host, port and path to listen at."""
    parts = split(uri) if uri else None
    if parts is None:
        return "127.0.0.1", 0, PATH
    host = parts.hostname or "127.0.0.1"
    return "127.0.0.1" if host.endswith("localhost") else host, parts.port or 80, parts.path or "/"


def _is_local(uri: str) -> bool:
    parts = split(uri)
    return parts is not None and parts.scheme == "http" and is_loopback(parts.hostname or "")


def check_uri(uri: str, *, listens: bool) -> str:
    """A way back that the caller gave: https, or http on loopback; to listen at it, the latter. Raises ValueError."""
    parts = split(uri)
    if parts is None or not (_is_local(uri) or (parts.scheme == "https" and not listens)):
        raise ValueError(
            "redirect_uri: expected http on loopback, such as http://127.0.0.1:3000/callback"
            + ("; for https give redirect= too, a function that brings the answer" if listens else ", or https")
        )
    return uri


def _target(head: bytes) -> str | None:
    """The target of a GET."""
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3 or words[0] != b"GET" or not words[1].startswith(b"/") or not words[1].isascii():
        return None
    return words[1].decode("ascii")


def _answer(status: str, page: str) -> bytes:
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


def show(url: str, why: str) -> None:
    """Tell the person, and open a browser where there is one. The URL's scheme was checked before it came here."""
    what = f"longshore: {why}; to log in, open this page (it is waited for {SECONDS / 60:g} minutes):"
    try:
        sys.stderr.write(f"{what}\n{url}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # nobody is there to read it; the browser may open
    if _has_browser():
        Thread(target=_open, args=(url,), name="longshore-browser", daemon=True).start()


def _has_browser() -> bool:
    """Whether there is a screen for one. On a bare terminal the standard library would start a browser in it."""
    if sys.platform == "darwin":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _open(url: str) -> None:
    import webbrowser

    try:
        webbrowser.open(url)
    except Exception:  # whatever a desktop does; the person has the address
        return


def _late() -> str:
    return f"authorization: nobody logged in within {SECONDS / 60:g} minutes; try again"
