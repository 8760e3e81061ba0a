"""The meaning of TARGET: a URL, a server file, a configured server's name, a command line, or a JSON file.

`locate` is for commands that connect (`call`, `list`, `read`), `resolve` for those that also take a file or only load a
server in Python (`lint`, `schema`).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout, suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from longshore.client.channel import CLIENT_LIMITS
from longshore.client.configs import ConfiguredServer, NoSuchServer, look_up, url_of
from longshore.client.targets import FILE, serve_command
from longshore.errors import ConfigError, RegistrationError, TargetError
from longshore.files import read_bounded
from longshore.schema.kinds import as_object, is_array

if TYPE_CHECKING:
    from longshore.app import Server

BUILTIN: Final = "builtin"
STDIN: Final = "-"
FORMS: Final = (
    "TARGET is a URL, a server file such as server.py, the name of a server in a client's configuration, "
    '"builtin", or a command line as one word in quotes'
)
LIST_FORMS: Final = "expected a tools/list result, an array of tools, or what `longshore schema snapshot` wrote"
_LOG: Final = ("--log-format", "json")
"""Servers that we start log JSON, whatever their configuration says, so that their tracebacks can be shown."""
_URL: Final = re.compile(r"https?://", re.IGNORECASE)
_ALMOST_URL: Final = re.compile(
    r"""[a-z][a-z0-9+.-]*://.*                                              # another scheme
      | (?:localhost | \[[0-9a-f:.]+\] | [\w-]+(?:\.[\w-]+)+ | [\w-]+(?=:[0-9]))  # or none: a host
        (?: :[0-9]{1,5}(?:/.*)? | /.* )                                      # and its port or a path""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_MODULE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_BEGINNING: Final = "a URL begins with http:// or https://"


class Destination(Struct, frozen=True):
    """A server to connect to. `target` is what `Client` takes; `name` is for people and holds no secrets of a file."""

    target: Any
    name: str
    is_url: bool = False
    origin: str = ""
    """The project's file that names it."""
    source: str = ""
    """The file or module of a server in Python, or `builtin`: it can be loaded instead of started."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of its configuration entry."""
        return as_object(as_object(self.target).get("headers"))

    @property
    def is_bare_program(self) -> bool:
        """Whether it is a program without arguments."""
        command: Any = self.target
        return is_array(command) and len(command) == 1


def is_url(text: str) -> bool:
    return _URL.match(text) is not None


# -- a server to connect to


def locate(text: str, config: str | None = None) -> Destination:
    """The server that TARGET names. Raises ConfigError or click.UsageError, which list the forms of TARGET."""
    if not text.strip():
        raise click.UsageError(f"an empty TARGET; {FORMS}")
    if is_url(text):
        from longshore.http_client.urls import without_secrets

        scheme, rest = text.split("://", 1)
        url = f"{scheme.lower()}://{rest}"
        return Destination(url, without_secrets(url), is_url=True)
    if config is not None:
        return _configured(look_up(text, config))
    if text == BUILTIN:
        return Destination(serve_command(None, *_LOG), BUILTIN, source=BUILTIN)
    one_word = len(text.split()) == 1
    file = FILE.fullmatch(text)
    if file is not None and (os.path.isfile(file["path"]) or one_word):
        if not os.path.isfile(file["path"]):
            raise click.UsageError(f"{file['path']}: there is no such file; {FORMS}")
        source = os.path.abspath(file["path"]) + (file["name"] or "")
        return Destination(serve_command(source, *_LOG), text, source=source)
    if one_word and os.sep not in text:
        return _word(text)
    if one_word:
        _check_program(text)
    try:
        return Destination(shlex.split(text), text)
    except ValueError as problem:
        raise click.UsageError(f"the command line {text!r} can't be read: {problem}") from None


def _word(text: str) -> Destination:
    """One word: a configured server, a module's server, or a program, in this order."""
    from shutil import which

    try:
        return _configured(look_up(text))
    except NoSuchServer as problem:
        if _MODULE.fullmatch(text):
            return Destination(serve_command(text, *_LOG), text, source=text)
        if which(text):
            return Destination([text], text)
        _check_program(text)
        raise ConfigError(f"{problem}\n{FORMS}") from None


def _check_program(text: str) -> None:
    """Raise click.UsageError for a path that can't be run."""
    if os.path.isdir(text):
        raise click.UsageError(f"{text} is a folder; {FORMS}")
    if os.path.exists(text):
        if not os.access(text, os.X_OK):
            raise click.UsageError(f"{text} is a file that can't be run; {FORMS}")
    elif _ALMOST_URL.fullmatch(text):
        raise click.UsageError(f"{text}: {_BEGINNING}")


def _configured(listed: ConfiguredServer) -> Destination:
    file = listed.file
    entry = listed.entry()
    url = url_of(entry)
    if url is not None and not is_url(url):
        raise ConfigError(f"{file.path}: {listed.name}: {_BEGINNING}")
    return Destination(entry, listed.name, is_url=url is not None, origin=file.path if file.project else "")


# -- a server, or a file with a list of tools


def resolve(target: str | None, command: tuple[str, ...], config: str | None) -> str | Destination:
    """The path of a JSON file, or a server; no TARGET means the built-in one. Raises ConfigError, click.UsageError."""
    if command:
        return Destination([*command], shlex.join(command))
    if target is None and config is not None:
        raise click.UsageError("--config is a file in which TARGET is looked up by its name; name one")
    if target is not None and config is None and _is_list_file(target):
        return target
    return locate(BUILTIN if target is None else target, config)


def _is_list_file(target: str) -> bool:
    """Whether to read it as JSON: by its name, or because it can't be run, as with a pipe."""
    if target == STDIN or target.lower().endswith(".json"):
        return True
    plain = ("." in target or os.sep in target) and not target.endswith(".py")
    return plain and os.path.exists(target) and not os.path.isdir(target) and not os.access(target, os.X_OK)


def read_list_file(path: str) -> Any:
    """The JSON of a file, or of stdin. Raises TargetError."""
    from longshore.testing.transcript import read_json
    from longshore.wire.codec import BROKEN

    most, name = CLIENT_LIMITS.frame_bytes, name_of(path)
    try:
        if path != STDIN:
            data = read_bounded(path, most)
        elif sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - the parent process may have closed it
            raise OSError("it is closed")
        else:
            data = sys.stdin.buffer.read(most + 1)
        if len(data) > most:
            raise TargetError(f"{name} is longer than {most >> 20} MiB; {LIST_FORMS}")
        return read_json(data.removeprefix(b"\xef\xbb\xbf"))
    except FileNotFoundError:
        fix = f"longshore schema snapshot [TARGET] --output {name} writes one"
        raise TargetError(f"{name}: there is no such file; {fix}; {LIST_FORMS}") from None
    except OSError as problem:
        raise TargetError(f"{name} can't be read: {problem.strerror or problem}") from None
    except BROKEN as problem:
        raise TargetError(f"{name} holds no JSON: {problem}; {LIST_FORMS}") from None


def name_of(path: str) -> str:
    return "stdin" if path == STDIN else path


# -- a server in Python, loaded and not run


def load(source: str) -> tuple[Server, list[RegistrationError]]:
    """Import a server in Python, to describe it; also return what it could not register. Raises TargetError.

    Toolsets that can't run on this machine are described too.
    """
    from longshore.__main__ import find
    from longshore.registry.tool_lint import collect_refusals

    with stdout_to_stderr(), collect_refusals() as refused:
        try:
            app: Server = find(None if source == BUILTIN else source)
        except RegistrationError as problem:  # it ended the import: report what was refused before it, too
            raise TargetError("\n".join(map(str, [*refused, problem]))) from None
    for handle in app.catalog.toolsets.values():
        handle.assume_available()
    return app, refused


@contextmanager
def stdout_to_stderr() -> Generator[None]:
    """Redirect stdout at every level: `print`, C libraries, child processes."""
    stdout = None
    with suppress(OSError):  # a closed stdout needs no redirection
        stdout = fcntl(1, F_DUPFD_CLOEXEC, 3)
        os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if stdout is not None:
            if sys.__stdout__ is not None:
                sys.__stdout__.flush()  # text printed to sys.__stdout__ is still in its buffer
            os.dup2(stdout, 1)
            os.close(stdout)
