"""The commands that may run. The sandbox confines them; a policy only restricts which are started."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Final, final

from longshore.errors import ToolError
from longshore.registry.token_budget import cut_line
from longshore.toolsets.terminal.options import Policy

SHELLS: Final = ("/bin/bash", "/bin/sh")
"""The first that exists runs commands that are given as one text."""

_INPUT_CHARACTERS: Final = 1000
"""Of a command's input, in a question: more than a user reads."""


@final
class CommandPolicy:
    """Turns the arguments of a caller into an argv that may be started."""

    def __init__(self, policy: Policy, allow: Sequence[str]) -> None:
        self.asks = policy == "ask"
        self._allowed = [shlex.split(entry) for entry in allow] if policy == "allow-list" else None

    def read(self, command: str | None, argv: list[str] | None, env: dict[str, str] | None) -> tuple[str, ...]:
        """The argv to start. Raises ToolError for a command that is not allowed."""
        if (command is None) == (argv is None):
            raise ToolError("give either command, a text for the shell, or argv, a program and its arguments")
        if argv is not None and not (argv and argv[0]):
            raise ToolError("argv is empty: its first item is the program")
        if self._allowed is None:
            return _by_shell(command) if command is not None else tuple(argv or ())
        found = tuple(argv or _split(command or ""))
        if env:
            raise ToolError("env is not allowed here: variables could change what an allowed command does")
        if not any(entry and list(found[: len(entry)]) == entry for entry in self._allowed):
            known = ", ".join(map(shlex.join, self._allowed)) or "none"
            raise ToolError(f"{shlex.join(found[:3])!r} is not allowed here; allowed are: {known}; without a shell")
        return found


def make_question(text: str, cwd: str | None, env: Mapping[str, str] | None, stdin: str | None) -> str:
    """The question whether a command may run: all that determines its effects, with hidden characters made visible."""
    lines = ["Run this command?", text]
    if cwd:
        lines.append(f"in {cwd}")
    if env:
        lines.append(f"with {shlex.join(f'{name}={value}' for name, value in env.items())}")
    if stdin:
        lines.append(f"with the input {cut_line(stdin, _INPUT_CHARACTERS)}")
    return "".join(map(_visible, "\n".join(lines)))


def _visible(character: str) -> str:
    return character if character in "\n\t" or character.isprintable() else ascii(character)[1:-1]


def _by_shell(command: str) -> tuple[str, ...]:
    if not command.strip():
        raise ToolError("command is empty")
    return (next((shell for shell in SHELLS if os.path.exists(shell)), SHELLS[-1]), "-c", command)


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as problem:
        raise ToolError(f"command can't be divided into a program and its arguments: {problem}; give argv") from None
