"""One session with a server: connect, do the work, close, and turn what happens into an exit code."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from math import isfinite
from typing import Any, Final, NoReturn, TypeVar

import click
import msgspec

from longshore.cli.options import FAILED, INTERRUPTED, SIGNALLED, USAGE, SessionOptions
from longshore.cli.screen import Screen, json_text, one_line
from longshore.cli.target import Destination, locate
from longshore.client.client import Client
from longshore.client.models import LogMessage
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

_LOG_CHARACTERS: Final = 2000
"""Characters shown of one log message: some servers log whole documents."""
SPELLED: Final = {"timeout": "--timeout", "auth": "--auth", "headers": "--header", "cwd": "--cwd"}
"""Arguments of `Client` as options of the command line."""

T = TypeVar("T")


def run_session(
    target: str | Destination,
    options: SessionOptions,
    screen: Screen,
    work: Callable[[Client, Destination], Awaitable[T]],
    failure: int | None = None,
) -> T:
    """Return the result of the work with a client of the target. Raises click.UsageError for wrong options.

    If the session fails, the error is shown and click's Exit raised, with `failure` as its code if that is given.
    """

    def end(code: int) -> NoReturn:
        raise click.exceptions.Exit(code if failure is None or code > SIGNALLED else failure)

    try:
        place = target if isinstance(target, Destination) else locate(target, options.config)
        client = Client(place.target, **_client_options(place, options, screen))
    except (ConfigError, ConnectError) as problem:
        screen.fail(str(problem))
        end(USAGE)
    if place.origin and screen.err_is_terminal:  # a project's server may have the same name as the user's
        screen.note(f"{place.name}, as {place.origin} has it")
    signals: list[int] = []

    async def run() -> T:
        task = asyncio.current_task()
        assert task is not None

        def cancel(number: int) -> None:
            signals.append(number)
            task.cancel()

        for number in (signal.SIGTERM, signal.SIGHUP):  # end the server with us: it has a process group of its own
            asyncio.get_running_loop().add_signal_handler(number, cancel, number)
        async with client:
            await _set_log_level(client, options, screen)
            return await work(client, place)

    try:
        result = asyncio.run(run())
        if isinstance(result, int) and result == FAILED:
            _show_traces(client.stderr_tail(), screen)
        return result
    except (KeyboardInterrupt, asyncio.CancelledError):
        end(SIGNALLED + signals[0] if signals else INTERRUPTED)
    except ClientError as problem:
        problem.said = _readable(client.stderr_tail() or problem.said)  # complete, since the child has ended by now
        screen.fail(_explain(problem, place, options))
        end(problem.exit_code)
    finally:
        screen.clear()


# -- what `Client` is given


def _client_options(place: Destination, options: SessionOptions, screen: Screen) -> dict[str, Any]:
    if not isfinite(options.timeout) or options.timeout < 0:
        raise click.UsageError("--timeout: expected a number of seconds, or 0 for no limit")
    made: dict[str, Any] = {"era": options.era, "timeout": options.timeout or None}
    level = _log_level(options, screen)
    if level is not None:
        made["on_log"] = _log_printer(screen, level)
    if screen.person:
        from longshore.cli.prompts import Prompts

        made["on_elicit"] = Prompts(screen, place.name)
    given = {"--env": options.env, "--cwd": options.cwd, "--header": options.header, "--auth": options.auth}
    for stray in ("--env", "--cwd") if place.is_url else ("--header", "--auth"):
        if given[stray]:
            meant, is_one = ("command", "URL") if place.is_url else ("URL", "command")
            raise click.UsageError(f"{stray} is for a {meant}, and {place.name} is a {is_one}")
    if not place.is_url:
        made["env"] = dict(pair(each, "=", "--env") for each in options.env) or None
        made["cwd"] = options.cwd
        return made
    made["headers"] = headers = dict(pair(each, ":", "--header") for each in options.header)
    if options.auth is not None or not any(name.lower() == "authorization" for name in (*headers, *place.headers)):
        from longshore.cli.auth_option import choose, source

        made["auth"] = choose(source(place, options), person=screen.person)
    return made


def pair(text: str, mark: str, option: str) -> tuple[str, str]:
    """`NAME=VALUE` or `NAME: VALUE` of an option. Raises click.UsageError."""
    name, found, value = text.partition(mark)
    if not found or not name.strip() or set(text) & set("\r\n\0"):
        raise click.UsageError(f"{option}: expected NAME{mark}VALUE")
    return name.strip(), value.strip() if mark == ":" else value


# -- the server's log


def _log_level(options: SessionOptions, screen: Screen) -> str | None:
    return options.log_level or ("info" if screen.err_is_terminal else None)


async def _set_log_level(client: Client, options: SessionOptions, screen: Screen) -> None:
    level = _log_level(options, screen)
    if level is not None and (REVISIONS[client.server.revision].modern or client.server.can("logging")):
        try:
            await client.set_log_level(level)
        except ServerError as problem:
            screen.note(f"the server's log is not shown: {problem.what}")


def _log_printer(screen: Screen, level: str) -> Callable[[LogMessage], None]:
    """Prints the log from a level on. Older servers send all levels, whatever level was set."""
    hidden = LOG_LEVELS[: LOG_LEVELS.index(level)]

    def show(message: LogMessage) -> None:
        if message.level not in hidden:
            text = one_line(message.data if isinstance(message.data, str) else json_text(message.data))
            logger = f"{one_line(message.logger)}: " if message.logger else ""
            cut = text if len(text) <= _LOG_CHARACTERS else text[:_LOG_CHARACTERS] + "…"
            screen.note(f"{one_line(message.level)}: {logger}{cut}")

    return show


# -- what a server printed on stderr


def _show_traces(stderr: str, screen: Screen) -> None:
    """Show the tracebacks that a Longshore server logged: a developer needs them, a model does not."""
    for line in stderr.splitlines():
        record = _read_problem(line)
        if record is not None and record.trace:
            screen.fail(f"{record.text}\n{record.trace.rstrip()}")


def _readable(stderr: str) -> str:
    """The same text with JSON log records as plain lines."""
    lines: list[str] = []
    for line in stderr.splitlines():
        record = _read_problem(line)
        lines += [line] if record is None else [f"{record.level}: {record.text}", *record.trace.splitlines()]
    return "\n".join(lines)


def _read_problem(line: str) -> Problem | None:
    try:
        return msgspec.json.decode(line, type=Problem)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _explain(problem: ClientError, place: Destination, options: SessionOptions) -> str:
    """The message of an error, with the options of the command line."""
    if isinstance(problem, Unanswerable):
        return f"{place.name}: the server asks a question ({problem.what}), which can be answered on a terminal only"
    problem.fix, problem.options = problem.advice(SPELLED), ()
    problem.server = place.name  # not the command that was started: it may hold secrets from a configuration file
    text = str(problem)
    if isinstance(problem, ServerError) and problem.code == CAPABILITY_MISSING:
        text += "\nIt wants to ask a question, which is offered on a terminal only."
    if isinstance(problem, AuthorizationError):
        from longshore.cli.auth_option import hint

        text += hint(place, options)
    return text
