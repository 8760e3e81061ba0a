"""The discovery toolset: how an agent finds out what is here."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from longshore.errors import ToolError
from longshore.protocol.revisions import NAMES
from longshore.registry.toolset import Toolset, tool

if TYPE_CHECKING:
    from longshore.app import Server

PAGE = 50


class ToolsetStatus(Struct):
    """One toolset: how many tools it offers, whether its state is open, and what it says of itself."""

    name: str
    tools: int
    open: bool
    details: dict[str, object]


class Status(Struct):
    """The server at this moment."""

    name: str
    version: str
    revisions: list[str]
    uptime_seconds: float
    tools: int
    calls: int
    running: int
    parked: int
    abandoned_threads: int
    toolsets: list[ToolsetStatus]


class Discovery(Toolset):
    """What is here and how to use it."""

    name = "discovery"

    def __init__(self, app: Server) -> None:
        self._app = app
        self._since = monotonic()

    @tool(effects="read", run="inline", title="Overview")
    def hello(self) -> str:
        """Say what this server is and what its tools are for. Call it first if you are new here."""
        from longshore.toolsets.discovery.survey import category_of

        counts: dict[str, int] = {}
        for entry in self._app.engine.tools.values():
            counts[category_of(entry)] = counts.get(category_of(entry), 0) + 1
        groups = ", ".join(f"{name} ({count})" for name, count in counts.items())
        return (
            f"This is {self._app.name} {self._app.version}. It has {sum(counts.values())} tools: {groups}.\n"
            "list_tools shows them by category or search word; tool_help explains one."
        )

    @tool(effects="read", run="inline", title="Server status")
    def server_status(self) -> Status:
        """Show the server's version, uptime, load and toolsets. Use it to see whether something is stuck."""

        app, executor = self._app, self._app.engine.executor
        return Status(
            name=app.name,
            version=app.version,
            revisions=list(NAMES),
            uptime_seconds=round(monotonic() - self._since, 1),
            tools=len(app.engine.tools),
            calls=executor.calls,
            running=executor.running,
            parked=executor.parked,
            abandoned_threads=executor.abandoned,
            toolsets=[self._toolset(name) for name in app.catalog.holders],
        )

    @tool(effects="read", run="inline", title="Explain a tool", examples=[{"name": "list_tools"}])
    def tool_help(self, name: Annotated[str, "the tool's name, as list_tools shows it"]) -> str:
        """Explain one tool: what it does, its arguments with defaults, what it returns, its errors and examples."""
        from longshore.registry.names import hint
        from longshore.toolsets.discovery.survey import explain

        tools = self._app.engine.tools
        entry = tools.get(name)
        if entry is None:
            raise ToolError(f"no tool {name!r}" + (hint(name, tools) or "; list_tools shows all"))
        return explain(entry)

    @tool(effects="read", run="inline", title="Find tools", examples=[{"search": "status"}, {"category": "discovery"}])
    def list_tools(
        self,
        category: Annotated[str | None, "only tools of this category"] = None,
        search: Annotated[str | None, "only tools whose name, tags or description hold these words"] = None,
        offset: Annotated[int, Meta(ge=0, description="how many to skip; for the next page")] = 0,
    ) -> str:
        """List the tools, one line each with its category and first sentence, 50 at a time."""
        from longshore.toolsets.discovery.survey import category_of, find

        tools = self._app.engine.tools.values()
        if category is not None and category not in {category_of(entry) for entry in tools}:
            raise ToolError(
                f"no category {category!r}; there are: {', '.join(sorted({category_of(e) for e in tools}))}"
            )
        found = find(tools, category, search)
        lines = [f"{line.name} [{line.category}] {line.summary}" for line in found[offset : offset + PAGE]]
        if not found:
            return "no tool fits; try fewer words"
        if not lines:
            return f"there are only {len(found)}; offset={offset} is past the last"
        left = len(found) - offset - len(lines)
        return "\n".join(lines) + (f"\n… {left} more: offset={offset + PAGE}" if left > 0 else "")

    def _toolset(self, name: str) -> ToolsetStatus:
        holder = self._app.catalog.holders[name]
        count = sum(entry.toolset is holder for entry in self._app.engine.tools.values())
        return ToolsetStatus(name, count, holder.ready, _details(holder.toolset))


def _details(toolset: Toolset) -> dict[str, object]:
    """What a toolset says of itself. One that can't say it must not hide the rest of the server."""
    from longshore.schema.output import OutputMismatch, encode

    try:
        details = toolset.status()
        encode(details)
    except OutputMismatch as problem:
        return {"problem": f"its status is not JSON: {problem}"}
    except Exception as problem:
        return {"problem": f"its status raised {type(problem).__name__}"}
    return details
