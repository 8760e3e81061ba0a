"""What a TARGET is to `longshore lint` and `longshore schema`.

A file with a list in it; a server in Python, which is loaded and not run; or any other one, which is visited.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, redirect_stdout, suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from longshore.cli.destination import BUILTIN, Destination, locate
from longshore.cli.visit import USAGE, visit
from longshore.client.channel import CLIENT_LIMITS
from longshore.errors import RegistrationError, TargetError
from longshore.files import read_bounded

if TYPE_CHECKING:
    from longshore.app import Server
    from longshore.cli.options import Options
    from longshore.cli.screen import Screen
    from longshore.client.client import Client

STDIN: Final = "-"
SIGNALLED: Final = 128
"""Exit codes above this tell which signal ended us."""
FORMS: Final = "expected a tools/list result, an array of tools, or what `longshore schema snapshot` wrote"

T = TypeVar("T")


def aim(target: str | None, command: tuple[str, ...], options: Options) -> str | Destination:
    """A file, or a server; none named is the built-in one. Raises ConfigError and click.UsageError."""
    if command:
        return Destination([*command], shlex.join(command), ours=False)
    if target is None and options.config is not None:
        raise click.UsageError("--config is a file in which TARGET is looked up by its name; name one")
    if target is not None and options.config is None and _holds_list(target):
        return target
    return locate(BUILTIN if target is None else target, options.config)


def _holds_list(target: str) -> bool:
    """Whether it is a file to be read: by its name, or since nothing else can be done with it, as with a pipe."""
    if target == STDIN or target.lower().endswith(".json"):
        return True
    plain = ("." in target or os.sep in target) and not target.endswith(".py")
    return plain and os.path.exists(target) and not os.path.isdir(target) and not os.access(target, os.X_OK)


def ask(place: Destination, options: Options, screen: Screen, look: Callable[[Client, Destination], Awaitable[T]]) -> T:
    """What a look at a server finds. Where there is none to be had, Exit says so: by a signal, or as wrong usage."""
    found: list[T] = []

    async def work(client: Client, place: Destination) -> int:
        found.append(await look(client, place))
        return 0

    code = visit(place, options, screen, work)
    if not found:
        raise click.exceptions.Exit(code if code > SIGNALLED else USAGE)
    return found[0]


def load(source: str) -> tuple[Server, list[RegistrationError]]:
    """A server in Python, and what it could not register. What its code prints is no answer of ours."""
    from longshore.__main__ import find
    from longshore.registry.standards import deferring

    with _aside(), deferring() as refused:
        try:
            app: Server = find(None if source == BUILTIN else source)
        except TargetError as problem:
            if "no Server there" not in str(problem):
                raise
            fix = f"If it is a program that serves by itself: longshore … -- {shlex.join([sys.executable, source])}"
            raise TargetError(f"{problem}\n{fix}") from None
        except RegistrationError as problem:  # one that ends the loading: what was refused before is told with it
            raise TargetError("\n".join(map(str, [*refused, problem]))) from None
    return app, refused


@contextmanager
def _aside() -> Generator[None]:
    """Have all that is printed meanwhile go to stderr: by Python, by a library in C, by a program that it starts."""
    stdout = None
    with suppress(OSError):  # what is closed can't be mixed up with the other
        stdout = fcntl(1, F_DUPFD_CLOEXEC, 3)
        os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if stdout is not None:
            if sys.__stdout__ is not None:
                sys.__stdout__.flush()  # what was printed there by its own name still waits in its buffer
            os.dup2(stdout, 1)
            os.close(stdout)


def read(path: str) -> Any:
    """What a file of JSON holds. Raises TargetError."""
    from longshore.testing.patterns import read_json
    from longshore.wire.codec import BROKEN

    most, what = CLIENT_LIMITS.frame_bytes, called(path)
    try:
        data = _read_stdin(most + 1) if path == STDIN else read_bounded(path, most)
        if len(data) > most:
            raise TargetError(f"{what} is longer than {most >> 20} MiB; {FORMS}")
        return read_json(data.removeprefix(b"\xef\xbb\xbf"))
    except FileNotFoundError:
        fix = f"longshore schema snapshot [TARGET] --output {what} writes one"
        raise TargetError(f"{what}: there is no such file; {fix}; {FORMS}") from None
    except OSError as problem:
        raise TargetError(f"{what} can't be read: {problem.strerror or problem}") from None
    except BROKEN as problem:
        raise TargetError(f"{what} holds no JSON: {problem}; {FORMS}") from None


def _read_stdin(most: int) -> bytes:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - who started us has closed it
        raise OSError("it is closed")
    return sys.stdin.buffer.read(most)


def called(path: str) -> str:
    return "stdin" if path == STDIN else path
