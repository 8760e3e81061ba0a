"""`longshore`: the group of commands, each loaded when it is called."""

from __future__ import annotations

import sys
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from longshore import __version__
from longshore.errors import LongshoreError

COMMANDS = {
    "serve": ("longshore.cli.serve:serve", "Serve MCP, on stdio or over HTTP."),
    "new": ("longshore.cli.new:new", "Make the project of a server."),
    "dev": ("longshore.cli.dev:dev", "Serve a file of yours, and load it again when it is saved."),
    "install": ("longshore.cli.install:install", "Write a server into the configuration file of a client."),
    "uninstall": (
        "longshore.cli.uninstall:uninstall",
        "Remove a server that `longshore install` wrote into a client's configuration file.",
    ),
    "config": ("longshore.cli.config:config", "Show and check the configuration."),
    "trust": ("longshore.cli.trust:trust", "Trust a configuration file that tools could write."),
    "browser": ("longshore.cli.browser:browser", "Install a browser for the browser tools, or say which one they use."),
    "doctor": ("longshore.cli.doctor:doctor", "Say what works here, what does not, and the fix."),
    "tools": ("longshore.cli.tools:tools", "List the tools of a server."),
    "call": ("longshore.cli.call:call", "Call a tool of a server."),
    "list": ("longshore.cli.list:list_", "List what a server offers."),
    "read": ("longshore.cli.read:read", "Read a resource of a server."),
    "prompt": ("longshore.cli.prompt:prompt", "Get a prompt of a server, filled in."),
    "complete": ("longshore.cli.complete:complete", "Complete an argument of a prompt or a resource template."),
    "context": ("longshore.cli.context:context", "Look at, export, import and check the project's memory."),
    "lint": ("longshore.cli.lint:lint", "Check the tools of a server against what clients accept."),
    "schema": ("longshore.cli.schema:schema", "Keep what a server offers, and see which changes break callers."),
    "completion": ("longshore.cli.completion:completion", "Print a shell's completion script."),
}
"""Name → where the command is, and its line in the overview: `longshore --help` loads none of them."""


class LazyGroup(click.Group):
    """A group that imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, without loading them all for their help."""
        found = [CompletionItem(name, help=line) for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from longshore.nearest import nearest

            near = nearest(args[0], COMMANDS)
            fix = f"did you mean {near}?" if near else f"there are {', '.join(COMMANDS)}"
            ctx.fail(f"no command {args[0]!r}; {fix}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="longshore", message="%(prog)s %(version)s")
def cli() -> None:
    """An MCP server that any agent can plug in."""


def run(argv: list[str], command: click.Command = cli, program: str = "longshore") -> int:
    """Run a command line (without the program's name); the exit code. It never raises for a user's mistake."""
    try:
        result = command.main(argv, prog_name=program, standalone_mode=False)
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - the parent may have closed it
            sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except LongshoreError as error:
        click.echo(str(error), err=True)
        return error.exit_code
    except click.Abort:
        return 130
    except BrokenPipeError:
        # `… | head` closed the pipe. Python would complain once more when it flushes at exit.
        from longshore.cli.screen import abandon_stdout

        abandon_stdout()
        return 1
    except OSError as error:
        from longshore.cli.screen import abandon_stdout

        abandon_stdout()
        click.echo(f"{program}: {error.strerror or error}", err=True)
        return 1
    return result if isinstance(result, int) else 0
