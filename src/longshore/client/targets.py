"""The targets that `Client(target)` accepts, and the channels to them."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from longshore.client.channel import Channel, ChannelEvents, ChannelFactory, TransportOptions
from longshore.errors import ConnectError
from longshore.schema.kinds import is_array, is_object

FILE = re.compile(r"(?P<path>.+\.py)(?P<name>:\w+)?")
_RUNNING = ("run", "serve", "serve_http")
"""Methods that serve a `Server`."""


class Target(Struct, frozen=True):
    """A server to connect to. Its `channels` are tried in order: a later one only where the server is an older one."""

    name: str
    channels: tuple[ChannelFactory, ...]
    key: str = ""
    """The address under which its revision is remembered; empty: it is not."""
    engine: Any = None
    """The engine of a server in this process. `SyncClient` reads it to see whether waiting for it would block."""


def find(target: Any, options: TransportOptions) -> Target:
    """The target that `Client(target)` connects to. Raises ConnectError."""
    if isinstance(target, Target):
        if options.env or options.cwd or options.headers or options.auth is not None:
            raise ConnectError(
                "env, cwd, headers and auth are too late here; give them to what made this target, such as record(…)"
            )
        return target
    if isinstance(target, str):
        return _from_text(target, options)
    if isinstance(target, os.PathLike):
        return _file(os.fspath(cast("os.PathLike[str]", target)), "", options)
    if isinstance(target, Mapping):
        return _from_mapping(cast("Mapping[str, Any]", target), options)
    if isinstance(target, (list, tuple)):
        words = [str(word) for word in cast("Sequence[Any]", target)]
        if not words:
            raise ConnectError('an empty command; give a program and its arguments, such as ["python", "server.py"]')
        return _child(words, options)
    if hasattr(target, "engine"):
        return _memory(target)
    if callable(target):
        return Target("server", (cast("ChannelFactory", target),))
    what = f"a client can't be pointed at {target!r}"
    raise ConnectError(f"{what}; give a Server, a command, a URL or an entry of mcpServers")


def _from_mapping(target: Mapping[str, Any], options: TransportOptions) -> Target:
    """An entry of `mcpServers`, or a whole `mcpServers` with one entry."""
    servers: Any = target.get("mcpServers")
    if servers is None:
        return from_entry(target, options)
    if not is_object(servers) or not servers or not all(map(is_object, servers.values())):
        raise ConnectError('"mcpServers" is an object of servers by name, such as {"weather": {"command": …}}')
    if len(servers) > 1:
        fix = f'write Client(config["mcpServers"]["{next(iter(servers))}"])'
        raise ConnectError(f"mcpServers has several servers ({', '.join(servers)}), and a client is for one; {fix}")
    [(name, entry)] = servers.items()
    return from_entry(entry, options, name)


def from_entry(entry: Mapping[str, Any], options: TransportOptions, name: str = "") -> Target:
    """An entry of a client's `mcpServers`: a command with `args`, `env`, `cwd`, or a `url` with `headers`."""
    url = url_of(entry)
    if url is not None:
        headers = {**_texts(entry, "headers"), **(options.headers or {})}
        return _url(url, replace(options, headers=headers), name, sse=entry.get("type") == "sse")
    command = entry.get("command")
    if not isinstance(command, str) or not command:
        raise ConnectError(
            f'an entry of mcpServers has a "command" or a "url"; this one has {", ".join(entry) or "nothing"}'
        )
    arguments: Any = entry.get("args", [])
    if not is_array(arguments):
        raise ConnectError('"args" of an entry of mcpServers is a list')
    env = {**_texts(entry, "env"), **(options.env or {})}
    cwd: Any = options.cwd or entry.get("cwd")
    if not (cwd is None or isinstance(cwd, str)):
        raise ConnectError('"cwd" of an entry of mcpServers is a text')
    words = [command, *(str(each) for each in arguments)]
    return _child(words, replace(options, env=env, cwd=cwd), name)


def url_of(entry: Mapping[str, Any]) -> str | None:
    """The URL of an entry; None if it starts a program."""
    texts = (entry.get(key) for key in ("url", "serverUrl", "httpUrl"))
    return next((text for text in texts if isinstance(text, str) and text), None)


def _texts(entry: Mapping[str, Any], key: str) -> dict[str, str]:
    found: Any = entry.get(key) or {}
    if not isinstance(found, Mapping):
        raise ConnectError(f'"{key}" of an entry of mcpServers is an object of texts')
    return {str(name): str(value) for name, value in cast("Mapping[str, Any]", found).items()}


def _from_text(text: str, options: TransportOptions) -> Target:
    if text.startswith(("http://", "https://")):
        return _url(text, options)
    file = FILE.fullmatch(text)
    if file is not None and os.path.isfile(file["path"]):
        return _file(file["path"], file["name"] or "", options)
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise ConnectError(f"the command {text!r} can't be read: {problem}; give it as a list") from None
    if not words:
        raise ConnectError("an empty target; give a Server, a command, a URL or an entry of mcpServers")
    return _child(words, options)


def _file(path: str, name: str, options: TransportOptions) -> Target:
    """A Python file: served if it only declares a server or `name` names one of its servers, else run."""
    if name or _only_declares(path):
        return _child(serve_command(os.path.abspath(path) + name), options, path + name)
    return _child([sys.executable, path], options)


def serve_command(target: str | None = None, *options: str) -> list[str]:
    """The command that serves a target. -P: a file in this folder must not shadow a library of the same name."""
    return [sys.executable, "-P", "-m", "longshore", "serve", *options, *([target] if target is not None else [])]


def _only_declares(path: str) -> bool:
    """Whether a file makes a `Server` of ours and does not serve it when it is run."""
    import ast

    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
        nodes = list(ast.walk(tree))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False  # Python's own message is better
    imported = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules = {alias.name for alias in imported}
    modules |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    values = [node.value for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    makers = [value.func for value in values if isinstance(value, ast.Call)]
    made = any("Server" in (getattr(maker, "id", None), getattr(maker, "attr", None)) for maker in makers)
    used = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in _RUNNING]
    others = {alias.asname or alias.name for alias in imported}  # subprocess.run, in a tool
    runs = any(not isinstance(node.value, ast.Name) or node.value.id not in others for node in used)
    guarded = any(isinstance(node, ast.Constant) and node.value == "__main__" for node in nodes)
    ours = any(module.partition(".")[0] == "longshore" for module in modules)
    return ours and made and not runs and not guarded


def _child(words: list[str], options: TransportOptions, name: str = "") -> Target:
    def make(events: ChannelEvents) -> Channel:
        from longshore.client.stdio import StdioChannel

        return StdioChannel(words, events, options)

    shown = shlex.join(words)
    return Target(name or shown, (make,), key=f"{options.cwd or ''}\0{shown}")


def _url(url: str, options: TransportOptions, name: str = "", *, sse: bool = False) -> Target:
    from longshore.http_client.urls import without_secrets

    def make(events: ChannelEvents, *, sse: bool = False) -> Channel:
        from longshore.client.http import HttpChannel
        from longshore.client.sse import SseChannel

        return (SseChannel if sse else HttpChannel)(url, events, options)

    make_sse = partial(make, sse=True)
    return Target(name or without_secrets(url), (make_sse,) if sse else (make, make_sse), key=url)


def _memory(server: Any) -> Target:
    def make(events: ChannelEvents) -> Channel:
        from longshore.client.memory import MemoryChannel

        return MemoryChannel(server, events)

    return Target(str(server.name), (make,), engine=server.engine)
