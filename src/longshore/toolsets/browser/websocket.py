"""Attaching over a websocket to a browser that this server did not start and never closes."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import SplitResult, urlsplit

from msgspec import DecodeError, Struct, field
from msgspec.json import decode

from longshore.addresses import is_loopback
from longshore.toolsets.browser.connection import CdpConnection
from longshore.toolsets.browser.executable import BrowserUnavailable
from longshore.toolsets.browser.pipe import MOST_MESSAGE_BYTES

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

HTTP_SECONDS: Final = 5.0
"""A browser says in milliseconds where its websocket is; one far away in a second."""
OPEN_SECONDS: Final = 30.0
"""Chrome from 144 on asks its user first."""
CLOSE_SECONDS: Final = 2.0
_MOST_VERSION_BYTES: Final = 64 << 10
_LINUX_PROFILES: Final = (
    "google-chrome",
    "google-chrome-beta",
    "google-chrome-unstable",
    "chromium",
    "microsoft-edge",
    "BraveSoftware/Brave-Browser",
)
_MAC_PROFILES: Final = (
    "Google/Chrome",
    "Google/Chrome Beta",
    "Chromium",
    "Microsoft Edge",
    "BraveSoftware/Brave-Browser",
)
_HOW: Final = (
    "Start the browser with --remote-debugging-port=9222 --user-data-dir=FOLDER (from 136 on, Chrome ignores the port "
    "without a folder that is not its default one), or in Chrome from 144 on, switch remote debugging on "
    "in chrome://inspect/#remote-debugging and attach to `auto`"
)


class _Version(Struct, frozen=True):
    websocket: str = field(name="webSocketDebuggerUrl")


async def attach(url: str, addresses: Sequence[str] | None = None) -> CdpConnection:
    """Connect to the browser at http://HOST:PORT or ws://…, or with `auto` to one that runs here.

    `addresses` are those of its host that were checked: the name is not resolved again, since it could lead elsewhere.
    Only a proxy of the environment still resolves it.
    """
    if url == "auto":
        return await _attach_to_running()
    parts = _split(url)
    if parts.scheme in ("http", "https"):
        url = await asyncio.to_thread(_ask_for_websocket, parts, addresses)
    return await _open(url, addresses)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise BrowserUnavailable(f"{url!r} is no address of a browser; give http://HOST:PORT, ws://… or auto")


async def _attach_to_running() -> CdpConnection:
    problems: list[str] = []
    for file in _port_files():
        try:
            port, path = await asyncio.to_thread(_read_port_file, file)
            return await _open(f"ws://127.0.0.1:{port}{path}", None)
        except (BrowserUnavailable, OSError, ValueError) as problem:
            problems.append(f"{file}: {problem}")
    found = "; ".join(problems) or "no profile in the usual places has a file DevToolsActivePort"
    raise BrowserUnavailable(f"no running browser lets us attach ({found}). {_HOW}")


def _port_files() -> list[str]:
    """The files in which running browsers publish their ports, the newest first."""
    if sys.platform == "darwin":
        parent, profiles = os.path.expanduser("~/Library/Application Support"), _MAC_PROFILES
    else:
        parent, profiles = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), _LINUX_PROFILES
    files = [os.path.join(parent, profile, "DevToolsActivePort") for profile in profiles]
    return sorted(filter(os.path.isfile, files), key=os.path.getmtime, reverse=True)


def _read_port_file(file: str) -> tuple[int, str]:
    with open(file, encoding="ascii") as opened:
        port, _, path = opened.read(1024).strip().partition("\n")
    if not path.startswith("/devtools/browser"):
        raise ValueError("it names no websocket")
    return int(port), path


def _dial(parts: SplitResult, addresses: Sequence[str] | None) -> socket.socket:
    """A connection to the first address that accepts one."""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    problem = OSError("its name has no address")
    for address in [parts.hostname or ""] if addresses is None else addresses:
        try:
            return socket.create_connection((address, port), HTTP_SECONDS)
        except OSError as refused:
            problem = refused
    raise problem


def _ask_for_websocket(parts: SplitResult, addresses: Sequence[str] | None) -> str:
    """Ask /json/version for the websocket, and reach it by the given host."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection
    from ssl import create_default_context

    secure = parts.scheme == "https"
    where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    kind = HTTPSConnection if secure else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=HTTP_SECONDS)
    try:
        connection.sock = _dial(parts, addresses)
        if secure:
            connection.sock = create_default_context().wrap_socket(connection.sock, server_hostname=parts.hostname)
        query = f"?{parts.query}" if parts.query else ""
        connection.request("GET", f"{parts.path.rstrip('/')}/json/version{query}", headers={"Connection": "close"})
        answer = connection.getresponse()
        body = answer.read(_MOST_VERSION_BYTES)
    except (OSError, HTTPException) as problem:
        raise BrowserUnavailable(
            f"no browser answers at {where}: {problem or type(problem).__name__}. {_HOW}"
        ) from None
    finally:
        connection.close()
    try:
        found = urlsplit(decode(body, type=_Version).websocket)
    except (DecodeError, ValueError):
        said = f"status {answer.status}, {body[:200].decode(errors='replace')!r}"
        raise BrowserUnavailable(
            f"{where} does not say where its websocket is ({said}). "
            f"Chrome wants an IP address or localhost as host. {_HOW}"
        ) from None
    reached = found._replace(scheme="wss" if secure else "ws", netloc=parts.netloc)
    return reached._replace(query=found.query or parts.query).geturl()


async def _open(url: str, addresses: Sequence[str] | None) -> CdpConnection:
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import WebSocketException
    except ImportError:
        raise BrowserUnavailable("attaching needs the package websockets; pip install 'websockets>=15'") from None

    class Connect(connect):
        def process_redirect(self, exc: Exception) -> Exception | str:
            return exc  # its destination is unchecked

    async def dial() -> ClientConnection:
        options: dict[str, Any] = {"max_size": MOST_MESSAGE_BYTES, "compression": None, "ping_interval": None}
        proxy, problem = _proxy_for(parts), OSError("its name has no address")
        for address in [None] if proxy or addresses is None else addresses:
            there: dict[str, Any] = {} if address is None else {"host": address}
            try:
                return await Connect(
                    url, open_timeout=None, close_timeout=CLOSE_SECONDS, proxy=proxy, **there, **options
                )
            except OSError as refused:
                problem = refused
        raise problem

    parts = _split(url)
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            opened = await dial()
    except (OSError, WebSocketException) as problem:
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        why = str(problem) or f"no answer within {OPEN_SECONDS:g} s"
        raise BrowserUnavailable(f"the browser at {where} does not let us attach: {why}. {_HOW}") from None
    connection = CdpConnection()
    connection.open(WebsocketTransport(connection, opened))
    return connection


def _proxy_for(parts: SplitResult) -> str | None:
    """The proxy of the environment through which a websocket is reached."""
    from urllib.request import getproxies, proxy_bypass

    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    names = (parts.scheme, "socks", "https", *(("http",) if parts.scheme == "ws" else ()))
    proxies = getproxies()
    return next((proxies[name] for name in names if name in proxies), None)


@final
class WebsocketTransport:
    """Carries messages over a websocket, with one task for each direction."""

    def __init__(self, connection: CdpConnection, socket: ClientConnection) -> None:
        self._connection, self._socket = connection, socket
        self._unsent: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._closing = False
        loop = asyncio.get_running_loop()
        self._tasks = loop.create_task(self._read()), loop.create_task(self._write())

    def write(self, message: bytes) -> None:
        self._unsent.put_nowait(message)

    def close(self) -> None:
        """Close the websocket after all sent messages."""
        if not self._closing:
            self._closing = True
            self._unsent.put_nowait(None)

    async def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                self._connection.receive(await self._socket.recv())
        except ConnectionClosed:
            pass
        finally:
            self._connection.close()

    async def _write(self) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            while (message := await self._unsent.get()) is not None:
                await self._socket.send(message, text=True)
        except ConnectionClosed:
            return
        finally:
            await self._socket.close()
