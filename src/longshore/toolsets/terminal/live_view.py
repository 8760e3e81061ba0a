"""The live view of a command for a person: its screen, or the end of its output."""

from __future__ import annotations

from time import time
from typing import Final

from longshore.registry.views import Shown, View
from longshore.telemetry.redactor import redact
from longshore.toolsets.terminal.answers import show_state
from longshore.toolsets.terminal.command import Command

LINES: Final = 200
TOKENS: Final = 8000
"""Of the output's end."""
_TITLE_CHARACTERS: Final = 120


def view_of(owner: str, id: str, command: Command) -> View:
    """The view of one command, without texts that look like secrets."""

    async def look() -> Shown:
        screen = command.screen
        is_drawing = screen is not None and command.is_running
        text = screen.text() if screen and is_drawing else command.output.tail(LINES, TOKENS).text
        return Shown(redact(text).encode("utf-8", "replace"))

    return View(
        key=f"{owner}/{id}",
        kind="text",
        title=" ".join(redact(command.text).split())[:_TITLE_CHARACTERS],
        owner=owner,
        subtitle=f"{id}, {show_state(command)}",
        updated=time() - command.quiet_seconds,
        look=look,
    )
