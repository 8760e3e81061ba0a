"""`longshore completion`: shell completion by click, and the words that it completes. No server is started for it."""

from __future__ import annotations

import os

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

VARIABLE = "_LONGSHORE_COMPLETE"
SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
INSTALL = {
    "bash": 'add to ~/.bashrc:  eval "$(longshore completion bash)"',
    "zsh": 'add to ~/.zshrc, after compinit:  eval "$(longshore completion zsh)"',
    "fish": "add to ~/.config/fish/config.fish:  longshore completion fish | source",
}


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    It completes commands, options, the rules of longshore lint, and the names of servers in your clients'
    configuration. It starts no server and connects to none.
    """
    script = SHELLS[shell](ctx.find_root().command, {}, "longshore", VARIABLE).source()
    head, _, rest = script.partition("\n") if script.startswith("#compdef") else ("", "", script)
    click.echo("\n".join(line for line in (head, f"# To install it, {INSTALL[shell]}", rest) if line), nl=False)


def complete_target(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Complete TARGET: the servers of the configuration files, `builtin`, and file names."""
    from longshore.client.configs import read_servers
    from longshore.errors import ConfigError

    config: str | None = ctx.params.get("config")
    if config is not None and not os.path.isfile(os.path.expanduser(config)):
        return []  # reading a named pipe would block the shell
    try:
        found = {name: each.file.path for name, each in read_servers(config).items() if _is_one_word(name)}
    except ConfigError:
        found = {}
    found["builtin"] = "the built-in server"
    items = [CompletionItem(name, help=path) for name, path in found.items() if name.startswith(incomplete)]
    return [CompletionItem(incomplete, type="file"), *items]


def complete_rule(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Complete the id of a lint rule, or `all`."""
    from longshore.schema.lint.rules import RULES

    found = {**{rule.id: rule.title for rule in RULES}, "all": "a list of them"}
    return [CompletionItem(id, help=title) for id, title in found.items() if id.startswith(incomplete)]


def complete_waiver(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Complete `[TOOL:]RULE=`."""
    from longshore.schema.lint.rules import RULES

    tool, colon, _ = incomplete.rpartition(":")
    found = {f"{tool}{colon}{rule.id}=": rule.title for rule in RULES}
    return [CompletionItem(waiver, help=title) for waiver, title in found.items() if waiver.startswith(incomplete)]


def _is_one_word(name: str) -> bool:
    """Whether a shell needs no quotes for it."""
    return name.isprintable() and not set(name) & set(" \t\"'\\`$;&|<>(){}[]*?!#~^,:=")
