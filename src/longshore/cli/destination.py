"""What TARGET means to `longshore call`, `list` and `read`: a URL, a file, a configured server, a command line."""

from __future__ import annotations

import os
import re
import shlex
from typing import Any

import click
from msgspec import Struct

from longshore.client.servers import Listed, NoSuchServer, look_up, url_of
from longshore.client.targets import FILE, serve_command
from longshore.errors import ConfigError
from longshore.schema.kinds import is_array, is_object

BUILTIN = "builtin"
_LOG = ("--log-format", "json")
"""How a server that we start logs, whatever its configuration says, so that its tracebacks can be shown."""
_URL = re.compile(r"https?://", re.IGNORECASE)
_ALMOST_URL = re.compile(
    r"""[a-z][a-z0-9+.-]*://.*                                              # another scheme
      | (?:localhost | \[[0-9a-f:.]+\] | [\w-]+(?:\.[\w-]+)+ | [\w-]+(?=:[0-9]))  # or none: a host
        (?: :[0-9]{1,5}(?:/.*)? | /.* )                                      # and its port or a path""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_BEGINNING = "a URL begins with http:// or https://"
FORMS = (
    "TARGET is a URL, a server file such as server.py, the name of a server in a client's configuration, "
    '"builtin", or a command line as one word in quotes'
)


class Destination(Struct, frozen=True):
    """A server to visit. `target` is what `Client` takes; `name` is for people, and holds no secrets of a file's."""

    target: Any
    name: str
    is_url: bool = False
    ours: bool = True
    """Whether the person chose it, by configuring it or by pointing right at it, and no project or command line did."""
    origin: str = ""
    """The project's file that names it."""
    source: str = ""
    """The file or module of a server in Python, or `builtin`, for whoever would rather look into it than run it."""

    @property
    def headers(self) -> dict[str, str]:
        """Those that its entry brings along."""
        entry: Any = self.target
        found: Any = entry.get("headers") if is_object(entry) else None
        return dict(found) if is_object(found) else {}

    @property
    def bare(self) -> bool:
        """A program without arguments."""
        command: Any = self.target
        return is_array(command) and len(command) == 1


def is_url(text: str) -> bool:
    return _URL.match(text) is not None


def locate(text: str, config: str | None = None) -> Destination:
    """Find out what is meant. Raises ConfigError or click.UsageError, which say what could be."""
    if not text.strip():
        raise click.UsageError(f"an empty TARGET; {FORMS}")
    if is_url(text):
        return _url(text)
    if config is not None:
        return _listed(look_up(text, config), named=True)
    if text == BUILTIN:
        return Destination(serve_command(None, *_LOG), BUILTIN, source=BUILTIN)
    one_word = len(text.split()) == 1
    file = FILE.fullmatch(text)
    if file is not None and (os.path.isfile(file["path"]) or one_word):
        return _file(file["path"], file["name"] or "")
    if one_word and os.sep not in text:
        return _word(text)
    if one_word:
        _check_program(text)
    return Destination(_words(text), text, ours=False)


def _url(text: str) -> Destination:
    from longshore.http_client.urls import without_secrets

    scheme, rest = text.split("://", 1)
    url = f"{scheme.lower()}://{rest}"
    return Destination(url, without_secrets(url), is_url=True)


def _word(text: str) -> Destination:
    """One word: a configured server, a module's, or a program. An entry that is broken is no other program."""
    from shutil import which

    try:
        return _listed(look_up(text))
    except NoSuchServer as problem:
        if _MODULE.fullmatch(text):
            return Destination(serve_command(text, *_LOG), text, source=text)
        if which(text):
            return Destination([text], text, ours=False)
        _check_program(text)
        raise ConfigError(f"{problem}\n{FORMS}") from None


def _check_program(text: str) -> None:
    """Say of what is surely no program what it is."""
    if os.path.isdir(text):
        raise click.UsageError(f"{text} is a folder; {FORMS}")
    if os.path.exists(text):
        if not os.access(text, os.X_OK):
            raise click.UsageError(f"{text} is a file that can't be run; {FORMS}")
    elif _ALMOST_URL.fullmatch(text):
        raise click.UsageError(f"{text}: {_BEGINNING}")


def _file(path: str, name: str) -> Destination:
    if not os.path.isfile(path):
        raise click.UsageError(f"{path}: there is no such file; {FORMS}")
    source = os.path.abspath(path) + name
    return Destination(serve_command(source, *_LOG), path + name, source=source)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as problem:
        raise click.UsageError(f"the command line {text!r} can't be read: {problem}") from None


def _listed(listed: Listed, *, named: bool = False) -> Destination:
    """A file that is named on the line may be a project's too, so it is as little ours as a command line is."""
    file = listed.file
    entry = listed.entry()
    url = url_of(entry)
    if url is not None and not is_url(url):
        raise ConfigError(f"{file.path}: {listed.name}: {_BEGINNING}")
    return Destination(
        entry,
        listed.name,
        is_url=url is not None,
        ours=not file.project and not named,
        origin=file.path if file.project else "",
    )
