"""What has changed between two surfaces, in the forms in which it is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import asdict

from longshore.cli.screen import Line, one_line
from longshore.schema.evolution.changes import Change, verdict, worst_first

SHOWN: Final = 500
"""Changes that are told to people; programs get all."""
DIFFERENCES: Final = 200
"""Lines of the difference of one entry, for people."""


def lines(changes: Sequence[Change], before: str, now: str) -> Iterator[Line]:
    """For people: the worst first."""
    for change in worst_first(changes)[:SHOWN]:
        yield 0, [(one_line(change.title), "bold")]
        yield from ((2, [("BREAKS  ", "bold red"), (one_line(line), "")]) for line in change.broken)
        yield from ((2, [("safe    ", "green"), (one_line(line), "")]) for line in change.safe)
        yield from ((4, [(line, _style(line))]) for line in _cut(change.diff))
        yield 0, []
    if len(changes) > SHOWN:
        yield 0, [(f"… and {len(changes) - SHOWN:,} more: --format json has them all", "dim")]
    yield 0, [(f"{before} → {now}: {verdict(changes)}", "bold red" if any(c.breaks for c in changes) else "green")]


def as_json(changes: Sequence[Change], before: str, now: str) -> dict[str, Any]:
    return {
        "old": before,
        "new": now,
        "breaking": sum(change.breaks for change in changes),
        "changes": [{**asdict(change), "breaks": change.breaks} for change in worst_first(changes)],
    }


def as_markdown(changes: Sequence[Change], before: str, now: str) -> str:
    """A comment on a pull request."""
    from longshore.cli.findings import escape

    text = [f"### {escape(before)} → {escape(now)}: {verdict(changes)}", ""]
    for change in worst_first(changes)[:SHOWN]:
        text += [f"- **{escape(one_line(change.title))}**"]
        text += [f"  - **breaks:** {escape(one_line(line))}" for line in change.broken]
        text += [f"  - safe: {escape(one_line(line))}" for line in change.safe]
    if len(changes) > SHOWN:
        text.append(f"\n… and {len(changes) - SHOWN:,} more.")
    return "\n".join(text) + "\n"


def _cut(diff: Sequence[str]) -> list[str]:
    hidden = len(diff) - DIFFERENCES
    return [*diff[:DIFFERENCES], f"… and {hidden:,} lines more"] if hidden > 0 else [*diff]


def _style(line: str) -> str:
    return {"+": "green", "-": "red"}.get(line[:1], "dim")
