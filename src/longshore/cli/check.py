"""A check of `longshore doctor`: what was looked at, its state, and the fix."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from longshore.cli.screen import Line

State = Literal["ok", "missing", "failed"]
"""`missing`: it works, but something is not there or is weaker. `failed`: it does not work."""
_STYLES: Final[dict[State, str]] = {"ok": "green", "missing": "yellow", "failed": "red"}


class Check(Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    state: State
    detail: str = ""
    fix: str = ""


def show(check: Check) -> list[Line]:
    """A check as lines for a person."""
    said = f"{check.name}: {check.detail}" if check.detail else check.name
    lines: list[Line] = [(0, [(f"{check.state:8}", _STYLES[check.state]), (said, "")])]
    return [*lines, (8, [(f"fix: {check.fix}", "bold")])] if check.fix else lines
