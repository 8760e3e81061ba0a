"""Opening connections: all addresses of a host, TLS with the system's trust store, and proxies from the environment.

The proxy variables are those of other tools: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in lower case too. An
https URL is reached by CONNECT; a plain one is sent to the proxy whole. Loopback is never asked for through a proxy.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from longshore.errors import ConnectError
from longshore.http_client.http1 import HttpConnection, Proxy
from longshore.http_client.response import Unreachable
from longshore.http_client.urls import Url, without_secrets

if TYPE_CHECKING:
    from ssl import SSLContext

_NEXT_SECONDS: Final = 0.25
"""Before the next address is tried beside one that has not answered yet (RFC 8305)."""
_PROXY_HEAD_BYTES: Final = 16 << 10
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] (\d{3})[^\r\n]*")
_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where systems keep their certificates. A Python that was built elsewhere may look in none of these places."""

Allow: TypeAlias = Callable[[str], bool] | None
"""Whether a connection to an IP address is allowed. None: all are. Through a proxy, the proxy decides."""
MakeConnection: TypeAlias = Callable[["Proxy | None"], HttpConnection]
"""Makes the protocol of a connection, which may lead through a proxy."""


class NotAllowed(Unreachable):
    """The host resolves to no address that `Allow` permits."""


async def dial(make: MakeConnection, url: Url, seconds: float, allow: Allow = None) -> HttpConnection:
    """Connect to a server. The caller bounds the whole; `seconds` are shared between addresses where necessary.

    With `allow`, the address that is checked is the address that is used: a second lookup of the name may give another.
    Raises OSError, TimeoutError, ConnectError.
    """
    loop = asyncio.get_running_loop()
    tls = None
    if url.scheme == "https":
        tls = _trusting(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    proxy = find_proxy(url)
    if proxy is None and allow is None and isinstance(loop, asyncio.BaseEventLoop):
        _, connection = await loop.create_connection(
            lambda: make(None), url.host, url.port, ssl=tls, happy_eyeballs_delay=_NEXT_SECONDS
        )
        return connection
    if proxy is None:
        wire = await _open_socket(loop, url.host, url.port, seconds, allow)
    else:
        wire = await _open_proxy(loop, proxy, url, seconds)
    try:
        name = None if tls is None else url.host
        _, connection = await loop.create_connection(lambda: make(proxy), sock=wire, ssl=tls, server_hostname=name)
        return connection
    except BaseException:
        wire.close()
        raise


async def _open_socket(
    loop: asyncio.AbstractEventLoop, host: str, port: int, seconds: float, allow: Allow
) -> socket.socket:
    """A connected socket to the first address that accepts; each address has its share of the time."""
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    named = list(dict.fromkeys((each[0], each[4]) for each in found))
    places = [(family, place) for family, place in named if allow is None or allow(str(place[0]))]
    if named and not places:
        raise NotAllowed(f"the name {host!r} stands for {named[0][1][0]}")
    problem: OSError = OSError("it has no address")
    for family, place in places:
        wire = socket.socket(family, socket.SOCK_STREAM)
        try:
            wire.setblocking(False)
            async with asyncio.timeout(seconds / len(places)):
                await loop.sock_connect(wire, place)
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return wire
        except OSError as failed:  # TimeoutError is one
            wire.close()
            problem = failed
        except BaseException:
            wire.close()
            raise
    raise problem


# -- proxies


def find_proxy(url: Url) -> Proxy | None:
    """The proxy for a URL, by the environment. Raises ConnectError for one that can't be used."""
    if url.is_loopback:
        return None
    name = f"{url.scheme}_proxy"
    given = _variable(name) or _variable("all_proxy")
    if not given or _is_excepted(url, _variable("no_proxy")):
        return None
    return _read_proxy(name.upper(), given)


def _variable(name: str) -> str:
    if name == "http_proxy" and "REQUEST_METHOD" in os.environ:
        return os.environ.get(name, "")  # in a CGI program, HTTP_PROXY is the header Proxy of the request
    return os.environ.get(name) or os.environ.get(name.upper(), "")


def _is_excepted(url: Url, listed: str) -> bool:
    """Whether NO_PROXY names the host: a name with its subdomains, an address, a network, each with a port or not."""
    host = url.host.lower().rstrip(".")
    for entry in listed.lower().replace(",", " ").split():
        name, _, port = entry.rpartition(":") if re.search(r"[^:]:\d+$", entry) else (entry, "", "")
        if port and int(port) != url.port:
            continue
        name = name.strip("[]").removeprefix("*").removeprefix(".")
        if entry == "*" or (name and (host == name or host.endswith("." + name) or _is_in_network(host, name))):
            return True
    return False


def _is_in_network(host: str, network: str) -> bool:
    from ipaddress import ip_address, ip_network

    try:
        return "/" in network and ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


@lru_cache(maxsize=8)
def _read_proxy(variable: str, given: str) -> Proxy:
    text = given if "://" in given else f"http://{given}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port or 80
    except ValueError:
        host, port, parts = "", 0, urlsplit("")
    if not host or parts.scheme != "http":
        shown = without_secrets(text)[:200]
        raise ConnectError(f"{variable} names {shown!r}; give the proxy as http://host:port, or unset the variable")
    if parts.username is None:
        return Proxy(host, port)
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(host, port, f"Basic {b64encode(pair.encode()).decode()}")


async def _open_proxy(loop: asyncio.AbstractEventLoop, proxy: Proxy, url: Url, seconds: float) -> socket.socket:
    """A socket that leads to the server (https) or to the proxy (http). Raises Unreachable: nothing was sent."""
    where = f"the proxy {proxy.host}:{proxy.port}"
    try:
        wire = await _open_socket(loop, proxy.host, proxy.port, seconds, None)
    except OSError as problem:
        raise Unreachable(f"{where} can't be reached ({problem.strerror or type(problem).__name__})") from None
    if url.scheme == "http":
        return wire
    try:
        host = f"[{url.host}]" if ":" in url.host else url.host
        place = f"{host}:{url.port}"
        request = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n".encode() + proxy.head + b"\r\n"
        await loop.sock_sendall(wire, request)
        status = await _read_status(loop, wire)
    except OSError as problem:
        wire.close()
        raise Unreachable(f"{where} broke off ({problem.strerror or type(problem).__name__})") from None
    except BaseException:
        wire.close()
        raise
    if not 200 <= status < 300:
        wire.close()
        fix = "; give user and password in the variable: http://user:password@host:port" if status == 407 else ""
        raise Unreachable(f"{where} does not connect to {place} (HTTP status {status}){fix}")
    return wire


async def _read_status(loop: asyncio.AbstractEventLoop, wire: socket.socket) -> int:
    """The status of a response to CONNECT. Nothing may follow its head: in TLS the client speaks first."""
    head = b""
    while b"\r\n\r\n" not in head:
        data = await loop.sock_recv(wire, 4096)
        head += data
        if not data or len(head) > _PROXY_HEAD_BYTES:
            raise Unreachable("the proxy's answer to CONNECT is no HTTP")
    line = _STATUS_LINE.match(head)
    status = int(line[1]) if line else 0
    if line is None or (200 <= status < 300 and not head.endswith(b"\r\n\r\n")):
        raise Unreachable("the proxy's answer to CONNECT is no HTTP")
    return status


# -- TLS


@lru_cache(maxsize=8)
def _trusting(file: str | None, folder: str | None) -> SSLContext:
    """Trusts the system's certificates, or those of SSL_CERT_FILE and SSL_CERT_DIR. Cached: it takes long to make."""
    import ssl

    if file and not os.path.isfile(file):
        raise ConnectError(f"SSL_CERT_FILE names {file}, which is no file; correct it or unset it")
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not (file or folder or paths.cafile or paths.capath or context.cert_store_stats()["x509_ca"]):
        bundle = next((each for each in _BUNDLES if os.path.isfile(each)), None)
        if bundle is not None:
            context.load_verify_locations(bundle)
    return context
