"""The endpoint of a server: its sockets, TLS, its store and its token, decided once before any process serves."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import ssl
import stat
import sys
from contextlib import suppress
from secrets import token_hex, token_urlsafe
from tempfile import mkdtemp
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from longshore.addresses import is_loopback
from longshore.auth.credentials import MOST_BYTES, TOKEN
from longshore.auth.guard import Guard
from longshore.auth.static_tokens import LEAST_CHARACTERS
from longshore.auth.verifiers import TokenVerifier
from longshore.config import Config
from longshore.config.sections import HttpConfig
from longshore.errors import ConfigError
from longshore.files import read_regular, user_directory
from longshore.transports.greeting import client_name
from longshore.transports.http.gate import auth_of, resource_url


class OwnToken(Struct, frozen=True):
    """A token that the server made for itself, and its file; None: the token is valid until this process ends."""

    text: str
    path: str | None


class Endpoint(Struct, frozen=True):
    """The address that is served: the bound port, the store that workers share, the server's own token."""

    port: int
    store: str | None
    token: OwnToken | None
    requires_token: bool
    console: bool = False
    """Whether the console is served. It asks for the token also where MCP does not."""
    temp_dir: str | None = None
    """A folder that is deleted when the server ends."""

    def apply(self, config: Config) -> Config:
        """The configuration with the bound port and the chosen store."""
        return replace(config, http=replace(config.http, port=self.port, store=self.store))


def open_endpoint(
    config: Config, makes_token: bool, console: bool = False, verifier: TokenVerifier | None = None
) -> tuple[Endpoint, list[socket.socket]]:
    """Check the configuration, bind the sockets, and choose the token and the store that workers share.

    `makes_token`: the server makes a token for itself if none is configured; `console`: also for its console. Raises
    ConfigError.
    """
    http, auth, token, has_token = config.http, auth_of(config), None, False
    if auth.mode != "off":
        # "required" is met by a token that is made here
        mode: Any = "auto" if makes_token or auth.mode == "optional" else auth.mode
        asking, where = replace(auth, mode=mode), resource_url(config)
        has_token = Guard(asking, config.tokens, resource=where, verifier=verifier).required
        if makes_token and not has_token:
            token, has_token = _own_token(), True
        elif console and not has_token:
            token = _own_token()
    requires_token = has_token and auth.mode != "optional"
    _check(config, has_token, requires_token)
    sockets = bind(http.host, http.port)
    port = sockets[0].getsockname()[1]
    if http.store is not None or http.workers == 1:
        return Endpoint(port, http.store, token, requires_token, console), sockets
    folder = None if http.port == 0 else _state_folder()
    temp_dir = None if folder else mkdtemp(prefix="longshore-")
    path = os.path.join(folder or temp_dir or "", f"{http.host.replace('/', '_')}-{port}.sqlite3")
    return Endpoint(port, f"sqlite:///{quote(path)}", token, requires_token, console, temp_dir), sockets


def _check(config: Config, has_token: bool, requires_token: bool) -> None:
    """Refuse a configuration that admits more callers than intended, or that workers can't share."""
    http = config.http
    if not (has_token or http.allow_unauthenticated_remote) and not all(
        is_loopback(str(address[0])) for _, address in find_addresses(http.host, http.port)
    ):
        raise ConfigError(
            f"http.host: {http.host} can be reached from other machines, and no caller would need a token; "
            "set a token (auth.token_file, LONGSHORE_AUTH_TOKEN or [tokens.NAME]), or allow it with "
            "--allow-unauthenticated-remote (http.allow_unauthenticated_remote)"
        )
    if requires_token and http.lines and config.auth.mode != "optional":
        raise ConfigError(
            "http.lines: lines carry no token, so they would let everyone in; switch them off, or the tokens "
            '(--auth off, auth.mode = "off")'
        )
    if http.workers > 1 and (http.store or "").lower().startswith("memory:"):
        raise ConfigError(
            f"http.store: {http.workers} workers can't share {http.store}; leave it unset, or name sqlite:///path or "
            "redis://host"
        )


def _state_folder() -> str | None:
    """The folder of the token and of the SQLite files that workers share, one for each address; None: it can't be made.

    Under XDG_STATE_HOME, so that a restart, also of the machine, finds its sessions again. The file of a port that was
    picked at random is temporary: the next start picks another.
    """
    state = user_directory("state")
    if state is None:
        return None
    folder = os.path.join(state, "http")
    try:
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o700)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


# -- sockets

TRIES = 16
"""Attempts to find a port that is free on every address of a host name."""

Address = tuple[socket.AddressFamily, tuple[Any, ...]]


def find_addresses(host: str, port: int) -> list[Address]:
    """The addresses of a host name. `localhost` often has two, and clients may use either."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is no host name"
        raise ConfigError(f"http.host: {host!r} can't be used: {reason}; 127.0.0.1 is this machine alone") from None
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets for every address of a host, on one port."""
    addresses = find_addresses(host, port)
    for left in reversed(range(TRIES)):
        try:
            return _bind_all(addresses, port)
        except OSError as problem:
            if port or problem.errno != errno.EADDRINUSE or not left:
                raise ConfigError(_why_not(host, port, problem)) from None
    raise AssertionError


def _bind_all(addresses: list[Address], port: int) -> list[socket.socket]:
    bound: list[socket.socket] = []
    at = 0
    try:
        for family, address in addresses:
            # With its protocol named: asyncio turns Nagle's algorithm off for no other, and answers would wait 40 ms.
            each = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            bound.append(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.bind((address[0], port, *address[2:]))
            port = each.getsockname()[1]
            each.listen(socket.SOMAXCONN)
            at += 1
    except OSError as problem:
        for each in bound:
            each.close()
        # A machine may know the name ::1 and yet have no IPv6.
        if problem.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) and len(addresses) > 1:
            return _bind_all(addresses[:at] + addresses[at + 1 :], port)
        raise
    return bound


def _why_not(host: str, port: int, problem: OSError) -> str:
    match problem.errno:
        case errno.EADDRINUSE:
            fix = "another program listens there; stop it, or choose another port with --port (0: any free one)"
            return f"http.port: {host}:{port} is in use: {fix}"
        case errno.EACCES:
            return f"http.port: {port} may not be used by this user; choose one from 1024 on with --port"
        case errno.EADDRNOTAVAIL:
            return f"http.host: {host} is no address of this machine; 127.0.0.1 is this machine alone, 0.0.0.0 all"
        case _:
            return f"http.host: {host}:{port} can't be listened on: {problem.strerror}"


# -- TLS from two PEM files


def make_context(http: HttpConfig) -> ssl.SSLContext | None:
    """The context to serve HTTPS with; None if that is not configured. Errors name the key and the file."""
    cert, key = http.tls_cert, http.tls_key
    if cert is None:
        if key is not None:
            raise ConfigError("http.tls_key: of no use without http.tls_cert")
        return None
    for name, path in (("http.tls_cert", cert), ("http.tls_key", key or cert)):
        try:
            open(path, "rb").close()
        except OSError as problem:
            raise ConfigError(f"{name}: {path} can't be read: {problem.strerror}") from None
    key_name, key_path = ("http.tls_cert", cert) if key is None else ("http.tls_key", key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert, key, password=_refuse_password)
    except _Encrypted:
        raise ConfigError(
            f"{key_name}: {key_path} is encrypted, and a server can't ask for the passphrase; "
            "decrypt it:  openssl pkey -in IN -out OUT"
        ) from None
    except (ssl.SSLError, ValueError) as problem:
        if "MISMATCH" in (getattr(problem, "reason", "") or ""):
            text = f"http.tls_key: {key_path} is not the key of the certificate in {cert}"
        elif _is_certificate(cert):
            text = f"{key_name}: {key_path} holds no private key in PEM form"
        else:
            text = f"http.tls_cert: {cert} holds no certificate in PEM form"
        raise ConfigError(text) from None
    return context


class _Encrypted(Exception):
    pass


def _refuse_password() -> str:
    raise _Encrypted


def _is_certificate(path: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except (ssl.SSLError, OSError, ValueError):
        return False
    return True


# -- the server's own token

TOKEN_BYTES = 32
"""Random bytes of a token: 43 characters in the line to paste."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def _own_token() -> OwnToken:
    folder = _state_folder()
    if folder is not None:
        path = os.path.join(folder, "token")
        with suppress(OSError):  # the disk is full, or knows no links
            return OwnToken(saved_token(path), path)
    return OwnToken(token_urlsafe(TOKEN_BYTES), None)


def saved_token(path: str) -> str:
    """The token in a file, which is created if it does not exist.

    Raises ConfigError for a file that can't be trusted, and OSError if none can be created.
    """
    if not os.path.lexists(path):
        _create(path)
    if os.path.islink(path):
        raise _unusable(path, "it is not a regular file")
    try:
        data, found = read_regular(path, MOST_BYTES)
    except OSError as problem:
        raise _unusable(path, f"it can't be read: {(problem.strerror or 'unknown').lower()}") from None
    if not stat.S_ISREG(found.st_mode):
        raise _unusable(path, "it is not a regular file")
    if found.st_uid != os.geteuid():
        raise _unusable(path, f"it belongs to another user (uid {found.st_uid})")
    if found.st_mode & _OTHERS:
        raise _unusable(path, f"other users may open it (mode {found.st_mode & 0o777:o}), so they may know the token")
    token = data.strip()
    if not LEAST_CHARACTERS <= len(token) <= MOST_BYTES or not TOKEN.fullmatch(token):
        raise _unusable(path, "it holds no token")
    return token.decode()


def _create(path: str) -> None:
    """Write a new token, atomically. If two processes do so at the same time, the first one's stays."""
    draft = f"{path}.{token_hex(6)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            if os.fstat(descriptor).st_mode & _OTHERS:
                raise PermissionError(errno.EPERM, "this file system can't make a file private", draft)
            file.write(token_urlsafe(TOKEN_BYTES) + "\n")
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)


def _unusable(path: str, what: str) -> ConfigError:
    return ConfigError(f"{path}, the token file of this server: {what}; delete it, and the next start makes a new one")


# -- the greeting

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104  (to recognise, not to bind)
"""The address to print for one that stands for all addresses."""


def greet(name: str, config: Config, endpoint: Endpoint, workers: int) -> None:
    """Write the address, and the command that connects a client, to stderr."""
    own = endpoint.token.text if endpoint.token else "TOKEN"
    asks = endpoint.requires_token or (endpoint.token is not None and config.auth.mode == "optional")
    secret = own if asks else None
    header = f' --header "Authorization: Bearer {secret}"' if secret else ""
    url = resource_url(config) if config.http.public_url else address(config)
    command = f"claude mcp add --transport http {client_name(name)} {shlex.quote(url)}{header}"
    bold, plain = ("\x1b[1m", "\x1b[0m") if sys.stderr.isatty() else ("", "")
    several = f", {workers} workers" if workers > 1 else ""
    lines = [
        f"{name} serves MCP at {bold}{address(config)}{plain} (Ctrl-C ends it{several})",
        f"To connect Claude Code:  {bold}{command}{plain}",
    ]
    if endpoint.console:
        lines.insert(1, f"The console:  {bold}{console_address(config, endpoint)}{plain}")
    if endpoint.token:
        path = endpoint.token.path
        kept = f"is kept in {path}: delete that for another" if path else "is new at each start"
        whose = "The token" if asks else "The console's token"
        lines.append(f"{whose} {kept}; auth.token_file sets one, --auth off asks for none.")
    sys.stderr.write("\n".join([*lines, ""]))  # in one write: a log of several processes keeps it together
    sys.stderr.flush()


def console_address(config: Config, endpoint: Endpoint) -> str:
    """The URL of the console, with the token that the page takes from it; a token of the configuration is not shown."""
    fragment = f"#token={endpoint.token.text}" if endpoint.token else ""
    return f"{address(config).removesuffix(config.http.path)}/console{fragment}"


def address(config: Config) -> str:
    """The URL of the server for clients on this machine."""
    http = config.http
    return resource_url(
        replace(config, http=replace(http, public_url=None, host=ANY_ADDRESS.get(http.host, http.host)))
    )
