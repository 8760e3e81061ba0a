"""The options of every command with a TARGET, and how such commands parse their line."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click
from msgspec import Struct

from longshore.protocol.revisions import LOG_LEVELS, REVISIONS

CODES = (
    "Exit codes: 0 success; 1 the tool failed or the server refused the request; 2 wrong arguments; 3 no connection, "
    "or credentials refused; 4 no answer in time; 130 interrupted."
)


FAILED, USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes; exceptions have their own."""
SIGNALLED = 128
"""Exit codes above this say which signal ended us."""


class SessionOptions(Struct, frozen=True):
    """The options of a session with a server."""

    config: str | None = None
    timeout: float = 60.0
    era: str = "auto"
    header: tuple[str, ...] = ()
    auth: str | None = None
    env: tuple[str, ...] = ()
    cwd: str | None = None
    log_level: str | None = None


class TargetCommand(click.Command):
    """A command with a TARGET. It explains options that belong to a command line without quotes."""

    output_failure = FAILED
    """The exit code if the output can't be written."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as problem:
            fix = f"Is it TARGET's? A command line is one word: {ctx.command_path} 'npx -y some-server' …"
            raise click.UsageError(f"{problem.format_message()} {fix}", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # `main.run` handles it
        except OSError as problem:
            from longshore.cli.screen import Screen, abandon_stdout

            abandon_stdout()
            Screen().fail(f"the output could not be written: {problem.strerror or problem}")
            return self.output_failure


class TargetOrCommand(TargetCommand):
    """A command with a TARGET, or with a command line after `--`, which needs no quotes."""

    output_failure = USAGE

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[at + 1 :])
            if not ctx.meta[_COMMAND] and not ctx.resilient_parsing:
                raise click.UsageError("after -- comes the command that starts a server: -- npx some-server", ctx)
            args = args[:at]
        ctx.allow_extra_args = True  # refused here, with what to do
        extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            fix = f"A command comes after --: {ctx.command_path} -- npx some-server"
            raise click.UsageError(f"unexpected extra argument {extra[0]}. {fix}", ctx)
        return extra

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND ...]"]


_COMMAND = "longshore.command"


def command_of(ctx: click.Context) -> tuple[str, ...]:
    """The command line after `--`; empty without one."""
    found: tuple[str, ...] = ctx.meta.get(_COMMAND, ())
    return found


def utf8(text: str) -> str:
    """Decode a word of the command line as UTF-8, whatever the locale. Raises click.UsageError."""
    try:
        return os.fsencode(text).decode()
    except UnicodeError:
        raise click.UsageError(f"{text!a} is no UTF-8") from None


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `SessionOptions` to a command."""
    levels, eras = click.Choice(LOG_LEVELS), click.Choice(["auto", "modern", "legacy", *REVISIONS])
    for option in reversed(
        (
            click.option(
                "--config",
                type=click.Path(),
                metavar="FILE",
                help="Look up TARGET by its name in this file's mcpServers.",
            ),
            click.option("--timeout", type=float, default=60.0, metavar="S", help=_TIMEOUT),
            click.option("--era", type=eras, default="auto", metavar="E", help=_ERA),
            click.option("--header", multiple=True, metavar="'NAME: VALUE'", help="Send this to a URL. Repeatable."),
            click.option("--auth", metavar="TOKEN", help=_AUTH),
            click.option("--env", multiple=True, metavar="NAME=VALUE", help="Set this for a command. Repeatable."),
            click.option("--cwd", type=click.Path(), metavar="DIR", help="Start a command in this folder."),
            click.option("--log-level", type=levels, metavar="LEVEL", help=_LOG),
        )
    ):
        command = option(command)
    return command


_TIMEOUT = "Seconds to connect, and for each answer; progress restarts them. 0: no limit.  [default: 60]"
_ERA = "auto, modern, legacy, or a revision such as 2025-06-18.  [default: auto]"
_AUTH = (
    "A bearer token for a URL, best as env:NAME or @FILE, since other users can see command lines; none: no "
    "login.  [default for loopback URLs: the variable LONGSHORE_AUTH_TOKEN, if set]"
)
_LOG = "The least severe log message of the server that is shown.  [default: info on a terminal, else none]"
