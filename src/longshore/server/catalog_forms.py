"""The forms of the catalogue: which tools `tools/list` shows, and what stands in for those that it leaves out.

A tool is in one form: its toolset's, else the server's. It is shown if that form is "full", or if it is pinned. Where
any tool is in another form, tools that find and call it are shown: those that name that form in `catalog_forms`.
A server in form "full" does not import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from longshore.config.sections import CatalogForm
    from longshore.registry.catalog import Catalog
    from longshore.registry.tool import Entry
    from longshore.registry.toolset import ToolsetHandle

RUN_CODE: Final = "run_code"
"""The tool without which form "code" is of no use."""
_INSTRUCTIONS: Final = {
    "search": "Not all tools are listed: search_tools finds others by what they do, and call_tool calls them.",
    "code": "Not all tools are listed: search_tools finds others by what they do, tool_api shows how Python calls "
    "them, and run_code runs Python that does.",
}


def forms_in_use(
    catalog: Catalog,
    form_of: Callable[[ToolsetHandle | None], CatalogForm],
    is_enabled: Callable[[Entry], bool],
) -> frozenset[CatalogForm]:
    """The forms, other than "full", of the tools that are enabled and listed."""
    owners = {
        entry.toolset
        for entry in tuple(catalog.tools.values())
        if entry.listed and not entry.catalog_forms and is_enabled(entry)
    }
    # A mounted server, which has a rank, may not have said yet which tools it has.
    owners.update(handle for handle in tuple(catalog.toolsets.values()) if handle.rank)
    found: set[CatalogForm] = {form_of(owner) for owner in owners or {None}}
    found.discard("full")
    return frozenset(found)


def without_code(forms: frozenset[CatalogForm], offered: Collection[str]) -> frozenset[CatalogForm]:
    """These forms, with "search" for "code" where the tool that runs code is not on offer."""
    if "code" not in forms or RUN_CODE in offered:
        return forms
    only_search: frozenset[CatalogForm] = frozenset({"search"})
    return only_search


def is_shown(
    entry: Entry,
    forms: frozenset[CatalogForm],
    form_of: Callable[[ToolsetHandle | None], CatalogForm],
    pinned: Collection[str],
) -> bool:
    """Whether `tools/list` shows a tool, where these forms are in use."""
    if not entry.listed:
        return False
    if entry.catalog_forms:
        return not forms.isdisjoint(entry.catalog_forms)
    return form_of(entry.toolset) == "full" or entry.name in pinned


def instructions_for(forms: frozenset[CatalogForm]) -> str:
    """How to find and call the tools that are not listed. Empty if all are."""
    return " ".join(text for form, text in _INSTRUCTIONS.items() if form in forms)
