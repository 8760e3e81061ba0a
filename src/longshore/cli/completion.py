"""`longshore completion`: the scripts by which shells complete our words.

Ours for bash differs from click's: bash breaks words at `=` and `:`, so `city=Par` and a URL would come to us in parts.
"""

from __future__ import annotations

import os

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

VARIABLE = "_LONGSHORE_COMPLETE"

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' completion type value
    COMPREPLY=()
    for completion in $(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_BREAKS="$COMP_WORDBREAKS" \
%(complete_var)s=bash_complete "$1" 2>/dev/null); do
        type="${completion%%%%,*}" value="${completion#*,}"
        if [[ $type == dir ]]; then
            compopt -o dirnames
        elif [[ $type == file ]]; then
            compopt -o default
        else
            [[ $value == *= ]] && compopt -o nospace
            COMPREPLY+=("$value")
        fi
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    """bash, with the line as it was typed."""

    source_template = _BASH

    def source(self) -> str:
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_LINE"]
        typed = line.encode()[: int(os.environ["COMP_POINT"])].decode("utf-8", "ignore")
        words = split_arg_string(typed)
        if not typed or typed[-1].isspace():
            return words[1:], ""
        return words[1:-1], words[-1] if words else ""

    def format_completion(self, item: CompletionItem) -> str:
        """bash puts the value in place of what follows the last break only."""
        _, incomplete = self.get_completion_args()
        breaks = set(os.environ.get("COMP_BREAKS", "=:")) & set("=:@")
        cut = max((incomplete.rfind(mark) for mark in breaks), default=-1) + 1
        value = item.value[cut:] if item.type == "plain" and item.value.startswith(incomplete[:cut]) else item.value
        return f"{item.type},{value}"


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": ZshComplete, "fish": FishComplete}
LINES = {
    "bash": 'add to ~/.bashrc:  eval "$(longshore completion bash)"',
    "zsh": 'add to ~/.zshrc, after compinit:  eval "$(longshore completion zsh)"',
    "fish": "add to ~/.config/fish/config.fish:  longshore completion fish | source",
}


def register() -> None:
    """Have click use ours."""
    add_completion_class(Bash)


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    It completes commands, configured servers, and by asking the server: tools, their arguments and resources.

    So Tab after TARGET runs something. It starts a server file (server.py, module:name) and the servers of your own
    configuration, and connects to a URL that stands on the line, with what you logged in with there. What a command
    line, a project's files (.mcp.json, .cursor/mcp.json, .vscode/mcp.json) or --config name is neither started nor
    connected to until you have visited it once by longshore call, list or read.

    A server is asked for 3 seconds at most, and not more than once a minute.
    """
    made = SHELLS[shell](ctx.find_root().command, {}, "longshore", VARIABLE)
    script = made.source()
    head, _, rest = script.partition("\n") if script.startswith("#compdef") else ("", "", script)
    click.echo("\n".join(line for line in (head, f"# To have it always, {LINES[shell]}", rest) if line), nl=False)
