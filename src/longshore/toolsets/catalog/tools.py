"""The catalog toolset: tools that find the tools of a server, say how to call them, and call them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from longshore.errors import ToolError
from longshore.registry.token_budget import LEAST_TOKENS, MaxTokens, fit_lines
from longshore.registry.tool import Entry
from longshore.registry.toolset import Toolset, tool
from longshore.schema.annotations import Hidden
from longshore.server.context import Context
from longshore.toolsets.discovery.survey import count_categories, first_sentence

if TYPE_CHECKING:
    from longshore.app import Server
    from longshore.protocol.peer import Principal
    from longshore.toolsets.catalog.search import ToolSearch

ANSWER_TOKENS: Final = 1_500
"""The default budget of an answer: five tools in full, some twenty stubs."""
HITS: Final = 5
"""Tools that a search shows unless it asks for more or fewer."""
MOST_HITS: Final = 50
MOST_NAMES: Final = 50
NEAR_NAMES: Final = 3
"""Names that are shown where nothing was found."""

UNBOUNDED: Final = "the error says the bounds, and they would cost a model tokens in every list"


class CatalogTools(Toolset):
    """Finds, describes and calls the tools of the server."""

    name = "catalog"

    def __init__(self, app: Server) -> None:
        self._app = app
        self._searched: Mapping[str, Entry] | None = None
        """The tools on offer of which the index was made."""
        self._search: ToolSearch | None = None

    @tool(
        category="discovery",
        effects="read",
        title="Search tools",
        catalog_forms=["search", "code"],
        examples=[{"query": "take a picture of a web page"}, {"query": "delete a file", "detail": "full", "limit": 1}],
        errors={"limit": f"give 1 to {MOST_HITS}"},
        waive={"B56": UNBOUNDED},
    )
    async def search_tools(
        self,
        query: Annotated[str, "What you want to do, in a few words"],
        detail: Annotated[
            Literal["name", "summary", "full"], "full: with the types and meaning of parameters"
        ] = "summary",
        limit: Annotated[int | None, f"Most tools, {HITS} unless given"] = None,
        max_tokens: Annotated[MaxTokens, Hidden()] = ANSWER_TOKENS,
        *,
        ctx: Context,
    ) -> str:
        """Find tools by what they do. The best come first."""
        most = HITS if limit is None else limit
        if not 1 <= most <= MOST_HITS:
            raise ToolError(f"limit={limit}: give 1 to {MOST_HITS}")
        await self._app.engine.wait_for_mounts()
        hides, every = self._app.engine.policy.hides, len(self._app.engine.tools)
        hits = (await self._index()).search(query, every if self._app.config.server.hide_forbidden else most)
        found = [entry for entry in hits if not hides(entry, ctx.principal)][:most]
        if not found:
            return self._nothing_found(query, ctx.principal)
        blocks = [_show(entry, detail) for entry in found]
        return fit_lines(blocks, max_tokens, lambda end: _left_out(len(blocks) - end)).text

    @tool(
        category="discovery",
        title="Call a tool",
        effects="destroy",
        open_world=True,
        catalog_forms=["search"],
        examples=[{"name": "list_tools", "arguments": {"search": "status"}}],
    )
    def call_tool(
        self,
        name: Annotated[str, "The tool's name, as search_tools shows it"],
        arguments: Annotated[dict[str, Any] | None, "Its arguments by name"] = None,
    ) -> str:
        """Call a tool that is not listed. search_tools with detail=full shows its arguments."""
        raise AssertionError(f"the engine calls {name} itself, with {len(arguments or {})} arguments")

    @tool(
        category="discovery",
        effects="read",
        title="Show tools as Python",
        catalog_forms=["code"],
        errors={"no tool of this name": "take the one that the error names, or find it by search_tools"},
    )
    async def tool_api(
        self,
        names: Annotated[list[str], "As search_tools shows them"],
        max_tokens: Annotated[MaxTokens, Hidden()] = 2 * ANSWER_TOKENS,
        *,
        ctx: Context,
    ) -> str:
        """Show Python signatures of tools, for run_code: types, defaults and one line on each."""
        from longshore.toolsets.catalog.stubs import write_stub

        if not 1 <= len(names) <= MOST_NAMES:
            raise ToolError(f"{len(names)} names: give 1 to {MOST_NAMES}")
        await self._app.engine.wait_for_mounts()
        entries = [self._require(name, ctx.principal) for name in dict.fromkeys(names)]
        stubs = [write_stub(entry) for entry in entries]
        return fit_lines(stubs, max_tokens, lambda end: f"{len(stubs) - end} more: ask for fewer at once").text

    def _require(self, name: str, principal: Principal) -> Entry:
        engine = self._app.engine
        entry = engine.tools.get(name) or engine.find_renamed(name)
        if entry is None or engine.policy.hides(entry, principal):
            from longshore.server import unknown_tool

            raise ToolError(unknown_tool.explain(engine, name, principal=principal))
        return entry

    async def _index(self) -> ToolSearch:
        """The index of the tools on offer, made again when they are others."""
        from longshore.toolsets.catalog.search import ToolSearch

        entries, tools = self._listed(), self._app.engine.tools
        found = self._search
        if found is None or self._searched is not tools:
            found = await asyncio.to_thread(ToolSearch, entries)
            self._search, self._searched = found, tools
        return found

    def _listed(self, principal: Principal | None = None) -> list[Entry]:
        return [entry for entry in self._app.engine.listed_tools(principal) if not entry.catalog_forms]

    def _nothing_found(self, query: str, principal: Principal) -> str:
        """What there is, and the names that are most similar to what was asked for."""
        from difflib import get_close_matches

        tools = self._listed(principal)
        near = get_close_matches(
            "_".join(query.lower().split())[:100], [entry.name for entry in tools], NEAR_NAMES, 0.5
        )
        lines = ["No tool fits. Say it in other words, or in fewer."]
        if near:
            lines.append(f"Similar names: {', '.join(near)}.")
        lines.append(f"There are {len(tools)} tools: {count_categories(tools)}.")
        return fit_lines(lines, LEAST_TOKENS * 5).text


def _show(entry: Entry, detail: str) -> str:
    if detail == "name":
        return entry.name
    from longshore.toolsets.catalog.stubs import describe_parameters, write_line, write_stub

    if detail == "summary":
        return write_line(entry)
    description: str = (entry.describe().get("description") or "").strip()
    whole = [] if description == first_sentence(description) else [f"  {line}" for line in description.splitlines()]
    return "\n".join([write_stub(entry), *whole, *describe_parameters(entry)])


def _left_out(count: int) -> str:
    return f"{count} more of the hits: a larger max_tokens or less detail shows them"
