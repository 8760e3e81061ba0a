"""What a client can be pointed at, and the channels that lead there."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from longshore.client.channel import CLIENT_LIMITS, Channel
from longshore.errors import ConnectError
from longshore.limits import Limits
from longshore.schema.kinds import is_array


class Target(Struct, frozen=True):
    """Where a server is. `channels` lead there, tried in order: a later one only where the server is an older one."""

    name: str
    channels: tuple[Callable[[], Channel], ...]
    key: str = ""
    """Under which what was learned of the server is remembered; empty: nowhere."""


class Way(Struct, frozen=True):
    """How to get there: what a caller gives beside the target."""

    env: Mapping[str, str] | None = None
    cwd: str | None = None
    headers: Mapping[str, str] | None = None
    auth: Any = None
    limits: Limits = CLIENT_LIMITS


def find(target: Any, way: Way) -> Target:
    """What `Client(target)` means. Raises ConnectError."""
    if isinstance(target, Target):
        if way.env or way.cwd or way.headers or way.auth is not None:
            raise ConnectError(
                "env, cwd, headers and auth are too late here; give them to what made this target, such as record(…)"
            )
        return target
    if isinstance(target, str):
        return _from_text(target, way)
    if isinstance(target, os.PathLike):
        return _child(_python(os.fspath(cast("os.PathLike[str]", target))), way)
    if isinstance(target, Mapping):
        return from_entry(cast("Mapping[str, Any]", target), way)
    if isinstance(target, (list, tuple)):
        words = [str(word) for word in cast("Sequence[Any]", target)]
        if not words:
            raise ConnectError('an empty command; give a program and its arguments, such as ["python", "server.py"]')
        return _child(words, way)
    if hasattr(target, "engine"):
        return _memory(target)
    if callable(target):
        return Target("server", (cast("Callable[[], Channel]", target),))
    what = f"a client can't be pointed at {target!r}"
    raise ConnectError(f"{what}; give a Server, a command, a URL or an entry of mcpServers")


def from_entry(entry: Mapping[str, Any], way: Way, name: str = "") -> Target:
    """An entry of a client's `mcpServers`: a command with `args`, `env`, `cwd`, or a `url` with `headers`."""
    url = url_of(entry)
    if url is not None:
        headers = {**_texts(entry, "headers"), **(way.headers or {})}
        return _url(url, Way(way.env, way.cwd, headers, way.auth, way.limits), name, old=entry.get("type") == "sse")
    command = entry.get("command")
    if not isinstance(command, str) or not command:
        raise ConnectError(
            f'an entry of mcpServers has a "command" or a "url"; this one has {", ".join(entry) or "nothing"}'
        )
    arguments: Any = entry.get("args", [])
    if not is_array(arguments):
        raise ConnectError('"args" of an entry of mcpServers is a list')
    env = {**_texts(entry, "env"), **(way.env or {})}
    cwd: Any = way.cwd or entry.get("cwd")
    if not (cwd is None or isinstance(cwd, str)):
        raise ConnectError('"cwd" of an entry of mcpServers is a text')
    words = [command, *(str(each) for each in arguments)]
    return _child(words, Way(env, cwd, way.headers, way.auth, way.limits), name)


def url_of(entry: Mapping[str, Any]) -> str | None:
    """Where connecting leads; None where it starts a program."""
    texts = (entry.get(key) for key in ("url", "serverUrl", "httpUrl"))
    return next((text for text in texts if isinstance(text, str) and text), None)


def _texts(entry: Mapping[str, Any], key: str) -> dict[str, str]:
    found: Any = entry.get(key) or {}
    if not isinstance(found, Mapping):
        raise ConnectError(f'"{key}" of an entry of mcpServers is an object of texts')
    return {str(name): str(value) for name, value in cast("Mapping[str, Any]", found).items()}


def _from_text(text: str, way: Way) -> Target:
    if text.startswith(("http://", "https://")):
        return _url(text, way)
    if text.endswith(".py") and os.path.isfile(text):
        return _child(_python(text), way)
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise ConnectError(f"the command {text!r} can't be read: {problem}; give it as a list") from None
    if not words:
        raise ConnectError("an empty target; give a Server, a command, a URL or an entry of mcpServers")
    return _child(words, way)


def _python(path: str) -> list[str]:
    return [sys.executable, path]


def _child(words: list[str], way: Way, name: str = "") -> Target:
    def make() -> Channel:
        from longshore.client.stdio import StdioChannel

        return StdioChannel(words, env=way.env, cwd=way.cwd, limits=way.limits)

    shown = shlex.join(words)
    return Target(name or shown, (make,), key=f"{way.cwd or ''}\0{shown}")


def _url(url: str, way: Way, name: str = "", *, old: bool = False) -> Target:
    from longshore.client.http.address import without_secrets

    headers = tuple((way.headers or {}).items())

    def make() -> Channel:
        from longshore.client.http.channel import HttpChannel

        return HttpChannel(url, headers=headers, authorizer=_authorizer(way.auth), limits=way.limits)

    def make_old() -> Channel:
        from longshore.client.http.old import OldHttpChannel

        return OldHttpChannel(url, headers=headers, authorizer=_authorizer(way.auth), limits=way.limits)

    return Target(name or without_secrets(url), (make_old,) if old else (make, make_old), key=url)


def _authorizer(auth: Any) -> Any:
    if isinstance(auth, str):
        from longshore.client.oauth.authorizer import Bearer

        return Bearer(auth)
    return auth


def _memory(server: Any) -> Target:
    def make() -> Channel:
        from longshore.client.memory import MemoryChannel

        return MemoryChannel(server)

    return Target(str(server.name), (make,))
