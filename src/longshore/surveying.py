"""A server of ours as the standards look at it: the tools that it lists, and what their authors declared besides."""

from __future__ import annotations

from typing import Any

import msgspec

from longshore.app import Server
from longshore.registry.facts import facts_of
from longshore.registry.tool import Entry
from longshore.schema.standards.subject import Surface
from longshore.server.lists import wrap
from longshore.wire.codec import encode

_OBJECT = {"type": "object"}


def surface_of(app: Server) -> Surface:
    """What the server offers now, under its configuration. Of mounted servers what has come so far."""
    tools = tuple(app.engine.tools.values())
    return Surface(
        name=app.name,
        tools=tuple(shown for entry in tools if (shown := _show(entry)) is not None),
        instructions=app.engine.instructions,
        facts={entry.name: facts_of(entry, app.admission.waived) for entry in tools},
        categories=app.admission.categories,
    )


def _show(entry: Entry) -> Any:
    """A tool as `tools/list` has it for today's clients. None: it has no schema, so it is in no list either."""
    try:
        shown = msgspec.json.decode(encode(entry.describe()))
        output = shown.get("outputSchema", _OBJECT)
        return shown if output.get("type") == "object" else {**shown, "outputSchema": wrap(output)}
    except Exception:
        return None
