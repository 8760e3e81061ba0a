"""One visit to a server: connect, do the work, hang up, and say by the exit code how it went."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import Awaitable, Callable
from math import isfinite
from typing import Any

import click
import msgspec

from longshore.cli.destination import Destination, locate
from longshore.cli.options import Options
from longshore.cli.screen import Screen, abandon_stdout, json_text, one_line
from longshore.client.client import Client
from longshore.client.records import LogMessage
from longshore.errors import (
    CAPABILITY_MISSING,
    AuthorizationError,
    ClientError,
    ConfigError,
    ConnectError,
    ServerError,
    Unanswerable,
)
from longshore.protocol.revisions import LOG_LEVELS, REVISIONS
from longshore.telemetry.records import Problem

FAILED, USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes; those of errors are theirs."""
_LOG_CHARACTERS = 2000
"""What is shown of one log message: some servers log whole documents."""
_OPTIONS = {"timeout": "--timeout", "auth": "--auth", "headers": "--header", "cwd": "--cwd"}
"""What `Client` takes, and what it is called here."""
_KEYWORD = re.compile(rf"\b({'|'.join(_OPTIONS)})=")


def visit(
    target: str | Destination, options: Options, screen: Screen, work: Callable[[Client, Destination], Awaitable[int]]
) -> int:
    """Do the work with a client of the target; the exit code. Raises for wrong usage only."""
    try:
        place = target if isinstance(target, Destination) else locate(target, options.config)
        client = Client(place.target, **client_options(place, options, screen))
    except (ConfigError, ConnectError) as problem:
        screen.fail(str(problem))
        return USAGE
    if place.origin and screen.err_is_terminal:  # a project may have a server of the same name as one's own
        screen.note(f"{place.name}, as {place.origin} has it")
    ended: list[int] = []
    try:
        code = asyncio.run(_visit(client, place, options, screen, work, ended))
        if code == FAILED:
            _show_traces(client.said(), screen)
        return code
    except (KeyboardInterrupt, asyncio.CancelledError):
        screen.clear()
        return 128 + ended[0] if ended else INTERRUPTED
    except ClientError as problem:
        problem.said = _readable(client.said() or problem.said)  # by now the child has ended, so that is all of it
        screen.fail(_explain(problem, place, options))
        return problem.exit_code
    except BrokenPipeError:
        raise  # whoever read has left, and `run` knows what to do
    except OSError as problem:
        abandon_stdout()
        screen.fail(f"the output could not be written: {problem.strerror or problem}")
        return FAILED
    finally:
        screen.clear()


async def _visit(
    client: Client,
    place: Destination,
    options: Options,
    screen: Screen,
    work: Callable[[Client, Destination], Awaitable[int]],
    ended: list[int],
) -> int:
    _end_by_signals(ended)
    async with client:
        await _set_level(client, options, screen)
        return await work(client, place)


def _end_by_signals(ended: list[int]) -> None:
    """Whoever ends us ends the server too: it is no child that the system would end with us."""
    task = asyncio.current_task()
    assert task is not None

    def end(number: int) -> None:
        ended.append(number)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end, number)


def _level(options: Options, screen: Screen) -> str | None:
    return options.log_level or ("info" if screen.err_is_terminal else None)


async def _set_level(client: Client, options: Options, screen: Screen) -> None:
    level = _level(options, screen)
    modern = REVISIONS[client.server.revision].modern
    if level is None or not (modern or client.server.can("logging")):
        return
    try:
        await client.set_log_level(level)
    except ServerError as problem:
        screen.note(f"the server's log is not shown: {problem.what}")


def client_options(place: Destination, options: Options, screen: Screen) -> dict[str, Any]:
    """What `Client` is given beside the target. Raises click.UsageError."""
    if not isfinite(options.timeout) or options.timeout < 0:
        raise click.UsageError("--timeout: expected a number of seconds, or 0 for no limit")
    made: dict[str, Any] = {"era": options.era, "timeout": options.timeout or None}
    level = _level(options, screen)
    if level is not None:
        made["on_log"] = _shower(screen, level)
    if screen.person:
        from longshore.cli.asking import Asking

        made["on_elicit"] = Asking(screen, place.name)
    return made | (_for_url(place, options, screen) if place.is_url else _for_command(place, options))


def _for_url(place: Destination, options: Options, screen: Screen) -> dict[str, Any]:
    if options.env or options.cwd:
        raise click.UsageError(f"{'--env' if options.env else '--cwd'} is for a command, and {place.name} is a URL")
    headers = dict(_pair(each, ":", "--header") for each in options.header)
    if options.auth is None and any(name.lower() == "authorization" for name in (*headers, *place.headers)):
        return {"headers": headers}
    from longshore.cli.login import choose, source

    return {"headers": headers, "auth": choose(source(place, options), person=screen.person)}


def _for_command(place: Destination, options: Options) -> dict[str, Any]:
    if options.header or options.auth:
        raise click.UsageError(
            f"{'--header' if options.header else '--auth'} is for a URL, and {place.name} is a command"
        )
    env = dict(_pair(each, "=", "--env") for each in options.env)
    return {"env": env or None, "cwd": options.cwd}


def _pair(text: str, mark: str, option: str) -> tuple[str, str]:
    name, found, value = text.partition(mark)
    if not found or not name.strip() or set(text) & set("\r\n\0"):
        raise click.UsageError(f"{option}: expected NAME{mark}VALUE")
    return name.strip(), value.strip() if mark == ":" else value


def _shower(screen: Screen, level: str) -> Callable[[LogMessage], None]:
    """Shows the log from a level on. Older servers send all of it, whatever they were told."""
    shown = LOG_LEVELS[LOG_LEVELS.index(level) :]

    def show(message: LogMessage) -> None:
        if message.level in shown or message.level not in LOG_LEVELS:
            screen.note(log_line(message))

    return show


def log_line(message: LogMessage) -> str:
    """A log message of the server's on one line."""
    data = message.data if isinstance(message.data, str) else json_text(message.data)
    text = one_line(data)
    who = f"{one_line(message.logger)}: " if message.logger else ""
    return f"{one_line(message.level)}: {who}{text if len(text) <= _LOG_CHARACTERS else text[:_LOG_CHARACTERS] + '…'}"


def _show_traces(said: str, screen: Screen) -> None:
    """Show the tracebacks that a Longshore server logged: a developer who calls a tool needs them, a model does not."""
    for line in said.splitlines():
        record = _read_problem(line)
        if record is not None and record.trace:
            screen.fail(f"{record.text}\n{record.trace.rstrip()}")


def _readable(said: str) -> str:
    """What a child printed, its log lines as text in place of JSON."""
    lines: list[str] = []
    for line in said.splitlines():
        record = _read_problem(line)
        lines += [line] if record is None else [f"{record.level}: {record.text}", *record.trace.splitlines()]
    return "\n".join(lines)


def _read_problem(line: str) -> Problem | None:
    try:
        return msgspec.json.decode(line, type=Problem)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _explain(problem: ClientError, place: Destination, options: Options) -> str:
    """What went wrong, in the words of the command line."""
    if isinstance(problem, Unanswerable):
        return f"{place.name}: the server asks a question ({problem.what.partition(';')[0]}), and nobody can answer it"
    if not isinstance(problem, ServerError):
        problem.what = _KEYWORD.sub(lambda found: _OPTIONS[found[1]], problem.what)
    problem.server = place.name  # not the command that was started: what its file filled in may be secret
    text = str(problem)
    if "no Server there" in problem.said:  # the words of another process: it has no other way to say it
        text += f"\nIf it is a program that serves by itself: longshore … '{sys.executable} {place.name}'"
    if isinstance(problem, ServerError) and problem.code == CAPABILITY_MISSING:
        text += "\nIt wants to ask a question, which is offered on a terminal only."
    if isinstance(problem, AuthorizationError):
        from longshore.cli.login import hint

        text += hint(place, options)
    return text
