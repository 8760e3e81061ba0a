"""Where a server is reached and what its processes share: settled once, before any of them serves."""

from __future__ import annotations

import os
import socket
from tempfile import mkdtemp
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from longshore.auth.guard import Guard
from longshore.config import Config
from longshore.errors import ConfigError
from longshore.files import user_directory
from longshore.transports.http.making import resource_url
from longshore.transports.serving.binding import bind, find_addresses, is_local
from longshore.transports.serving.saved_token import new_token, saved_token


class OwnToken(Struct, frozen=True):
    """A token that the server made for itself, and the file that keeps it; None: it holds until this process ends."""

    text: str
    path: str | None


class Site(Struct, frozen=True):
    """What is not in the configuration, or only as a wish: the real port, the store, the server's own token."""

    port: int
    store: str | None
    token: OwnToken | None
    asks: bool
    """Whether anybody is asked for a token, this one or another."""
    passing: str | None = None
    """A folder that is of no use after this start."""


def choose_token(config: Config, asks_token: bool) -> tuple[OwnToken | None, bool]:
    """A token of its own, if the server asks for one and none is configured; and whether any is asked for."""
    auth = config.auth
    if auth.mode == "off":
        return None, False
    if asks_token:
        auth = replace(auth, mode="auto")  # "required" is met by the one that is made here
    configured = Guard(auth, config.tokens, resource=resource_url(config)).required
    token = _own_token() if asks_token and not configured else None
    return token, configured or token is not None


def _own_token() -> OwnToken:
    folder = _state_folder()
    if folder is not None:
        path = os.path.join(folder, "token")
        try:
            return OwnToken(saved_token(path), path)
        except OSError:
            pass  # the disk is full, or knows no links
    return OwnToken(new_token(), None)


def check(config: Config, asked: bool) -> None:
    """Refuse what would leave the server open to more people than its owner thinks."""
    http = config.http
    if not asked and not http.allow_unauthenticated_remote and not is_local(find_addresses(http.host, http.port)):
        raise ConfigError(
            f"http.host: {http.host} can be reached from other machines, and nobody would be asked who they are; "
            "set a token (auth.token_file, LONGSHORE_AUTH_TOKEN or [tokens.NAME]), or allow it with "
            "--allow-unauthenticated-remote (http.allow_unauthenticated_remote)"
        )
    if asked and http.lines:
        raise ConfigError(
            "http.lines: lines carry no token, so they would let everyone in; switch them off, or the tokens "
            '(--auth off, auth.mode = "off")'
        )
    if http.workers > 1 and (http.store or "").lower().startswith("memory:"):
        raise ConfigError(
            f"http.store: {http.workers} workers can't share {http.store}; leave it unset, or name sqlite:///path or "
            "redis://host"
        )


def open_site(config: Config, token: OwnToken | None, asks: bool) -> tuple[Site, list[socket.socket]]:
    """Bind the sockets, and settle what follows from them."""
    http = config.http
    sockets = bind(http.host, http.port)
    port = sockets[0].getsockname()[1]
    if http.store is not None or http.workers == 1:
        return Site(port, http.store, token, asks), sockets
    folder = None if http.port == 0 else _state_folder()
    passing = None if folder else mkdtemp(prefix="longshore-")
    path = os.path.join(folder or passing or "", f"{http.host.replace('/', '_')}-{port}.sqlite3")
    return Site(port, f"sqlite:///{quote(path)}", token, asks, passing), sockets


def settle(config: Config, site: Site) -> Config:
    """The configuration as it holds on this site."""
    return replace(config, http=replace(config.http, port=site.port, store=site.store))


def _state_folder() -> str | None:
    """The folder of the token and of the SQLite files that workers share, one for each address; None: it can't be had.

    It lies under XDG_STATE_HOME, not with the temporary files: a restart, also of the machine, finds its sessions
    again. A port that was picked at random won't be picked again, so what is kept for that is thrown away at the end.
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
