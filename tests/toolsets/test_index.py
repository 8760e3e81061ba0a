"""The index of the built-in toolsets."""

from __future__ import annotations

from pathlib import Path

from longshore.builtin import INDEX, TOOLSETS, make
from longshore.toolsets.index import write_index
from talk import call


def test_the_index_agrees_with_the_code() -> None:
    """Writing it also lints the tools, by the standards of the built-in server."""
    assert Path(INDEX).read_bytes() == write_index(make(empty=True), TOOLSETS), "python -m longshore.builtin"


def test_the_uptime_does_not_begin_with_the_first_call() -> None:
    app = make()
    app.engine.executor.since -= 100
    assert call(app, "server_status")["structuredContent"]["uptime_seconds"] >= 100
