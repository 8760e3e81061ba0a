"""The error text for a call of a tool that is not on offer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshore.config.sections import dotted, quote
from longshore.config.tools import tool_config, toolset_config
from longshore.registry.catalog import find_alias
from longshore.registry.tool import Entry, hint

if TYPE_CHECKING:
    from longshore.protocol.peer import Principal
    from longshore.server.engine import Engine
    from longshore.server.policy import Policy


def explain(engine: Engine, name: str, otherwise: str = "", *, principal: Principal | None = None) -> str:
    """Why a tool is unavailable, or how to turn it on; else the most similar listed name, else `otherwise`.

    A tool that is hidden from the caller, `principal`, is not mentioned.
    """
    text, tools = f"no tool {name[:100]!r}", engine.catalog.tools
    off = tools.get(name) or find_alias(tools, name)
    if off is not None and principal is not None and engine.policy.hides(off, principal):
        off = None
    if off is not None and off.toolset is not None and off.toolset.unavailable:
        return f"the tool {name!r} is unavailable: {off.toolset.unavailable}"
    if off is not None:
        subject = "it is" if off.name == name else f"it is now {off.name!r}, which is"
        return f"{text}: {subject} off; {_how_to_enable(engine.policy, off)} turns it on"
    if engine.catalog.trouble:
        return f"{text}: {engine.catalog.trouble}"
    near = hint(name, (entry.name for entry in engine.listed_tools(principal)))
    if engine.policy.forms:  # the caller has not seen all names
        return f"{text}{near or ';'} search_tools finds tools by what they do"
    return text + (near or otherwise)


def _how_to_enable(policy: Policy, entry: Entry) -> str:
    if policy.chosen(entry) is False:
        return f"app.enable({entry.name!r})"
    if entry.catalog_forms and entry.toolset is not None and not entry.toolset.toolset.enabled:
        return f'[server] catalog = "{entry.catalog_forms[0]}"'
    own = f"[{dotted(('tools', entry.name))}] enabled = true"
    if policy.config.server.tags is not None or policy.config.server.exclude_tags:
        return own  # which wins over what its tags say
    if entry.toolset is None or tool_config(policy.config, entry.name).enabled is False:
        return own
    toolset: str = entry.toolset.name
    table = toolset_config(policy.config, toolset)
    declared = entry.toolset.toolset.enabled if table.enabled is None else table.enabled
    keys = [] if declared else ["enabled = true"]
    if entry.group is not None and entry.group not in table.groups:
        keys.append(f"groups = [{quote(entry.group)}]")
    return f"[{dotted(('toolsets', toolset))}] {', '.join(keys)}" if keys else own
