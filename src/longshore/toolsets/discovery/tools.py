"""The discovery toolset: tools that describe the server to an agent."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from longshore.errors import ToolError
from longshore.protocol.revisions import NAMES
from longshore.registry.toolset import Toolset, tool

if TYPE_CHECKING:
    from longshore.app import Server

PAGE = 50
"""Tools on a page: some 2,000 tokens."""
MOST_OFFSET = 100_000
"""More tools than any server has. Some clients drop schemas without a maximum."""


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
    folders: list[str]
    toolsets: list[ToolsetStatus]


class Discovery(Toolset):
    """Describes the server: overview, status, tools, help."""

    name = "discovery"

    def __init__(self, app: Server) -> None:
        self._app = app

    @tool(effects="read", run="inline", title="Overview")
    def hello(self) -> str:
        """Say what this server is and what its tools are for. Call it first if you are new here."""
        from longshore.toolsets.discovery.survey import count_categories

        tools = self._app.engine.listed_tools()
        absent = [each for each in self._app.catalog.toolsets.values() if each.unavailable]
        return (
            f"This is {self._app.name} {self._app.version}. "
            f"It has {len(tools)} tools: {count_categories(tools)}.\n"
            "list_tools shows them by category or search word; tool_help explains one."
            + self._describe_forms()
            + "".join(f"\nUnavailable here: {each.name}: {each.unavailable}" for each in absent)
            + (self._describe_folders() if self._uses_folders() else "")
        )

    @tool(effects="read", run="inline", title="Server status")
    def server_status(self) -> Status:
        """Show the server's version, uptime, load and toolsets. Use it to see whether something is stuck."""

        app, executor = self._app, self._app.engine.executor
        return Status(
            name=app.name,
            version=app.version,
            revisions=list(NAMES),
            uptime_seconds=round(monotonic() - executor.since, 1),
            tools=len(app.engine.listed_tools()),
            calls=executor.calls,
            running=executor.running,
            parked=executor.queued,
            abandoned_threads=executor.abandoned,
            folders=list(executor.files.roots.folders) if self._uses_folders() else [],
            toolsets=[
                self._toolset(name)
                for name, handle in app.catalog.toolsets.items()
                if not app.engine.policy.is_idle(handle)
            ],
        )

    @tool(
        effects="read",
        run="inline",
        title="Explain a tool",
        examples=[{"name": "list_tools"}],
        errors={"no tool of this name": "take the one that the error names, or look it up with list_tools"},
    )
    def tool_help(self, name: Annotated[str, "the tool's name, as list_tools shows it"]) -> str:
        """Explain one tool: what it does, its arguments with defaults, what it returns, its errors and examples."""
        from longshore.server import unknown_tool
        from longshore.toolsets.discovery.survey import explain

        engine = self._app.engine
        entry = engine.tools.get(name) or engine.find_renamed(name)
        if entry is None:
            raise ToolError(unknown_tool.explain(engine, name, "; list_tools shows all"))
        return explain(entry, name)

    @tool(
        effects="read",
        run="inline",
        title="Find tools",
        examples=[{"search": "status"}, {"category": "discovery"}],
        errors={"no category of this name": "take one of those that the error lists"},
    )
    def list_tools(
        self,
        category: Annotated[str | None, "only tools of this category"] = None,
        search: Annotated[str | None, "only tools whose name, tags or help hold these words"] = None,
        offset: Annotated[
            int, Meta(ge=0, le=MOST_OFFSET, description="how many to skip (0 to 100000), for the next page")
        ] = 0,
    ) -> str:
        """List the tools, one line each with its category and first sentence, 50 at a time."""
        from longshore.toolsets.discovery.survey import category_of, count_categories, find

        tools = self._app.engine.listed_tools()
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
        if category is None and search is None and offset == 0:
            lines.insert(0, f"Categories: {count_categories(tools)}")
        left = len(found) - offset - PAGE
        return "\n".join(lines) + (f"\n… {left} more: offset={offset + PAGE}" if left > 0 else "")

    @tool(category="discovery", effects="read", run="inline", listed=False)
    def brooklyn_status(
        self,
        detail: Annotated[
            Literal["basic", "full", "teams"], "Optional. How much to say; teams says the same as basic"
        ] = "basic",
    ) -> str:
        """Show whether the server works, its version and what is unavailable, as JSON."""
        app = self._app
        tools = app.engine.listed_tools()
        unavailable = {each.name: each.unavailable for each in app.catalog.toolsets.values() if each.unavailable}
        made: dict[str, Any] = {
            "success": True,
            "status": "degraded" if unavailable else "ok",
            "name": app.name,
            "version": app.version,
            "uptimeSeconds": round(monotonic() - app.engine.executor.since, 1),
            "tools": len(tools),
            "unavailable": unavailable,
        }
        if detail == "full":
            made["server"] = self.server_status()
        elif detail == "teams":
            made["notice"] = "there are no teams here: what is opened belongs to its caller"
        return msgspec.json.encode(made).decode()

    def _describe_forms(self) -> str:
        forms = self._app.engine.policy.forms
        if not forms:
            return ""
        from longshore.server.catalog_forms import instructions_for

        return f"\n{instructions_for(forms)}"

    def _uses_folders(self) -> bool:
        engine = self._app.engine
        offered = {entry.toolset for entry in engine.tools.values() if entry.toolset is not None}
        return any(handle.toolset.uses_folders for handle in offered if not engine.policy.is_idle(handle))

    def _describe_folders(self) -> str:
        roots = self._app.engine.executor.files.roots
        places = f"\nIts tools use files in {', '.join(roots.folders)}." if roots.folders else ""
        return f"{places}\nNote: {roots.why}." if roots.why else places

    def _toolset(self, name: str) -> ToolsetStatus:
        holder = self._app.catalog.toolsets[name]
        count = sum(entry.toolset is holder for entry in self._app.engine.listed_tools())
        if holder.unavailable:
            return ToolsetStatus(name, 0, False, {"unavailable": holder.unavailable})
        return ToolsetStatus(name, count, holder.ready, _details(holder.toolset))


def _details(toolset: Toolset) -> dict[str, object]:
    """The status of a toolset. An error in it must not hide the rest of the server."""
    from longshore.schema.output import OutputMismatch, encode

    try:
        details = toolset.status()
        encode(details)
    except OutputMismatch as problem:
        return {"problem": f"its status is not JSON: {problem}"}
    except Exception as problem:
        return {"problem": f"its status raised {type(problem).__name__}"}
    return details
