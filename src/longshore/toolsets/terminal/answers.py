"""Answers of the terminal tools: output within its budget, and one line on the state of the command."""

from __future__ import annotations

from typing import Final

from longshore.registry.token_budget import LEAST_TOKENS, cut_line, fit_ends
from longshore.toolsets.terminal.command import Command
from longshore.toolsets.terminal.output import Excerpt

_COMMAND_CHARACTERS: Final = 80
"""Of a command, in a list."""
_LINE_TOKENS: Final = 40
"""For the line on the state of a command."""


def show_seconds(seconds: float) -> str:
    """A duration in a few characters."""
    if seconds < 10:
        return f"{seconds:.2g} s" if seconds >= 0.001 else "0 s"
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def show_state(command: Command) -> str:
    """Whether a command runs, and how it ended."""
    took = show_seconds(command.seconds)
    if command.is_running:
        return f"running for {took}"
    by = f" ({command.signal})" if command.signal else ""
    why = ", ended because its time was over" if command.is_over_time else ""
    return f"exit code {command.exit_code}{by} after {took}{why}"


def describe(id: str, command: Command) -> str:
    """The line at the end of an answer."""
    if not command.is_running:
        return f"[{id}: {show_state(command)}]"
    hint = "; it seems to wait for input: terminal_send" if command.waits_for_input else ""
    if hint and command.screen is None:
        hint = "; it seems to wait for input: terminal_kill it, and run it again with stdin or pty"
    return f"[{id}: {show_state(command)}{hint}; more: terminal_read]"


def room_for_output(max_tokens: int) -> int:
    """The tokens of a budget that remain beside the line on the state."""
    return max(LEAST_TOKENS, max_tokens - _LINE_TOKENS)


def show_new_output(id: str, command: Command, max_tokens: int, note: str) -> Excerpt:
    """The output that no answer has shown yet."""
    shown = command.output.ends(command.seen, room_for_output(max_tokens), note)
    command.seen = shown.cursor
    return Excerpt(join(shown.text, describe(id, command)), shown.cursor, shown.complete)


def show_screen(id: str, command: Command, max_tokens: int) -> str:
    """The screen of a command on a terminal, and where its cursor is."""
    assert command.screen is not None
    command.seen = command.output.size
    row, column = command.screen.cursor
    text = fit_ends(command.screen.text(), room_for_output(max_tokens))
    return join(text, f"[cursor at row {row}, column {column}]\n{describe(id, command)}")


def show_list_line(id: str, command: Command) -> str:
    """One line about a command."""
    cpu = f", cpu {show_seconds(command.cpu_seconds)}" if command.is_running else ""
    last = command.output.last_line()
    text = cut_line(" ".join(command.text.split()), _COMMAND_CHARACTERS)
    return f"{id}: {show_state(command)}{cpu}: {text}" + (f" | {last}" if last else "")


def join(text: str, line: str) -> str:
    """A text and a line below it."""
    return f"{text.removesuffix(chr(10))}\n{line}" if text.strip() else line
