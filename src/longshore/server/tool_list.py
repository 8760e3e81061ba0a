"""The tools that a server offers, as the linter takes them."""

from __future__ import annotations

from typing import Any

import msgspec

from longshore.registry.tool import Entry
from longshore.registry.tool_lint import declaration_of
from longshore.schema.lint.tool_list import ToolList
from longshore.server.engine import Engine
from longshore.server.lists import wrap
from longshore.server.policy import Admission
from longshore.wire.codec import encode


def list_tools(engine: Engine, admission: Admission) -> ToolList:
    """The tools that a server offers under its configuration; of mounted servers, those that are connected."""
    tools = engine.listed_tools()
    return ToolList(
        name=engine.server_info["name"],
        tools=tuple(listed for entry in tools if (listed := _as_listed(entry)) is not None),
        instructions=engine.policy.instructions,
        declared={entry.name: declaration_of(entry, admission.waived) for entry in tools},
        categories=admission.categories,
    )


def _as_listed(entry: Entry) -> Any:
    """A tool as `tools/list` has it for modern clients; None if it has no schema, so no list has it either."""
    try:
        listed = msgspec.json.decode(encode(entry.describe()))
        output = listed.get("outputSchema", {"type": "object"})
        return listed if output.get("type") == "object" else {**listed, "outputSchema": wrap(output)}
    except Exception:
        return None
