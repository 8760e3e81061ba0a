"""Fetch: small documents from one URL that the configuration names.

The standard HTTP client blocks, so each exchange has a daemon thread. It follows no redirect and uses no proxy: where
keys and secrets go is what the configuration says. After the deadline its socket is shut, so a peer that sends one
byte at a time does not hold a thread.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR, socket
from threading import Thread
from typing import final

from longshore.auth.metadata import trusted
from longshore.auth.verdict import Unavailable

SECONDS = 5.0
"""From asking to the last byte. A person waits for it."""

MOST_BYTES = 256 << 10
"""A key set of a large issuer has 20 KiB."""

Outcome = bytes | Unavailable


@final
class Fetcher:
    """Fetches from one URL."""

    def __init__(self, key: str, url: str, headers: dict[str, str]) -> None:
        parts = trusted(key, url)
        self.origin = f"{parts.scheme}://{parts.netloc.lower()}"
        self.url = url
        self._address = parts.hostname or "", parts.port
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"Accept": "application/json", "User-Agent": "longshore", "Connection": "close", **headers}
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._open: dict[_Exchange, asyncio.Future[bytes]] = {}
        self._closed = False

    async def fetch(self, body: bytes | None = None) -> bytes:
        """The document; with a body, the answer to a POST. Raises Unavailable."""
        if self._closed:
            raise Unavailable("the server is stopping")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes] = loop.create_future()
        exchange = _Exchange(self._connection(), self._target, body, self._headers)
        self._open[exchange] = done
        Thread(target=exchange.run, args=(_teller(loop, done),), name="longshore-fetch", daemon=True).start()
        try:
            async with asyncio.timeout(SECONDS):
                return await done
        except TimeoutError:
            raise Unavailable(f"{self.url} {_late()}") from None
        except Unavailable as error:
            raise Unavailable(f"{self.url} {error}") from None
        finally:
            del self._open[exchange]
            exchange.abort()

    def close(self) -> None:
        """End what is under way; whoever waits for it gets Unavailable."""
        self._closed = True
        for done in self._open.values():
            if not done.done():
                done.set_exception(Unavailable("was not waited for: the server is stopping"))

    def _connection(self) -> HTTPConnection:
        host, port = self._address
        if self._tls is None:
            return HTTPConnection(host, port, timeout=SECONDS)
        return HTTPSConnection(host, port, timeout=SECONDS, context=self._tls)


@final
class _Exchange:
    """One request and its answer, on a thread of its own."""

    def __init__(self, connection: HTTPConnection, target: str, body: bytes | None, headers: dict[str, str]) -> None:
        self._connection = connection
        self._target = target
        self._body = body
        self._headers = headers
        self._socket: socket | None = None
        self._aborted = False

    def run(self, tell: Callable[[Outcome], None]) -> None:
        try:
            tell(self._answer())
        except Unavailable as error:
            tell(error)
        except TimeoutError:
            tell(Unavailable(_late()))
        except (OSError, HTTPException, ValueError) as error:  # ValueError: a read on a TLS socket that abort() shut
            tell(Unavailable(f"can't be reached: {_reason(error)}"))
        finally:
            self._connection.close()

    def abort(self) -> None:
        """Make the thread end soon, wherever it is; if it still connects, as soon as it has."""
        self._aborted = True
        try:
            if self._socket is not None:
                self._socket.shutdown(SHUT_RDWR)
        except OSError:
            pass  # it is closed already

    def _answer(self) -> bytes:
        self._connection.connect()
        self._socket = self._connection.sock
        if self._aborted:
            raise Unavailable("was not waited for")
        self._connection.request("GET" if self._body is None else "POST", self._target, self._body, self._headers)
        with self._connection.getresponse() as response:
            if response.status != 200:
                redirect = "; redirects are not followed" if 300 <= response.status < 400 else ""
                raise Unavailable(f"answered with status {response.status}{redirect}")
            data = response.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise Unavailable(f"answered with more than {MOST_BYTES} bytes")
            if response.length:
                raise Unavailable("broke off in the middle of its answer")
        return data


def _teller(loop: asyncio.AbstractEventLoop, done: asyncio.Future[bytes]) -> Callable[[Outcome], None]:
    def settle(outcome: Outcome) -> None:
        if done.done():
            return
        if isinstance(outcome, Unavailable):
            done.set_exception(outcome)
        else:
            done.set_result(outcome)

    def tell(outcome: Outcome) -> None:
        try:
            loop.call_soon_threadsafe(settle, outcome)
        except RuntimeError:
            pass  # the loop is closed: the process is ending

    return tell


def _late() -> str:
    return f"did not answer within {SECONDS:g} seconds"


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (getattr(error, "strerror", None) or type(error).__name__).lower()
