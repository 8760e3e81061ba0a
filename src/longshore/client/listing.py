"""What a server offers: its lists, page by page, and what is known of each tool when it is called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from time import monotonic
from typing import Any, final

from longshore.client.cache import Cache
from longshore.client.mirror import mirrored
from longshore.client.records import KEYS, ToolInfo, read_entry
from longshore.client.results import Result
from longshore.errors import BadAnswer
from longshore.protocol.headers import HeaderParam, HeaderProblem, header_params

PAGES = 1000
"""A list that has more pages than this does not end."""
ENTRIES = 100_000

Ask = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]


class Known:
    """A tool, and what calling it needs."""

    __slots__ = ("_validator", "headers", "tool")

    def __init__(self, tool: ToolInfo, headers: tuple[HeaderParam, ...]) -> None:
        self.tool = tool
        self.headers = headers
        self._validator: Any = None

    def faults(self, value: Any) -> list[str]:
        """How structured content breaks the tool's own promise."""
        from longshore.schema.validate import SchemaProblem, compile

        if self._validator is None:
            try:
                self._validator = compile(self.tool.output_schema)
            except SchemaProblem:
                self._validator = False  # a promise that can't be read binds nobody
        return [] if self._validator is False else self._validator.errors(value)


@final
class Listing:
    """The lists of one server. `problems` says which entries were left out, and why."""

    def __init__(self, ask: Ask, cache: Cache) -> None:
        self._ask = ask
        self._cache = cache
        self.tools: dict[str, Known] = {}
        self.problems: list[str] = []

    async def pages(self, method: str, *, fresh: bool = False) -> AsyncIterator[list[dict[str, Any]]]:
        """The pages of a list, as they come. Bounded: a list that goes round, or never ends, is an error."""
        key, _ = KEYS[method]
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(PAGES):
            page = await self._page(method, cursor, fresh)
            entries: Any = page.get(key)
            if not isinstance(entries, list):
                raise BadAnswer(f"the answer to {method} has no list {key!r}")
            yield entries
            following: Any = page.get("nextCursor")
            if following is None:
                return
            if not isinstance(following, str) or following in seen:
                raise BadAnswer(f"{method} goes round in circles: the cursor {str(following)[:50]!r} came twice")
            seen.add(following)
            cursor = following
        raise BadAnswer(f"{method} has more than {PAGES} pages")

    async def _page(self, method: str, cursor: str | None, fresh: bool) -> dict[str, Any]:
        kept = None if fresh else self._cache.get((method, cursor), monotonic())
        if kept is not None:
            return kept
        page = await self._ask(method, {} if cursor is None else {"cursor": cursor})
        self._cache.put((method, cursor), page, monotonic())
        return page

    async def all(self, method: str, *, fresh: bool = False) -> list[Any]:
        """The whole list. An entry that can't be used is left out and noted: it takes the others not with it."""
        _, kind = KEYS[method]
        found: list[Any] = []
        async for page in self.pages(method, fresh=fresh):
            for entry in page:
                try:
                    found.append(read_entry(kind, entry))
                except BadAnswer as problem:
                    self._leave_out(problem.what)
            if len(found) > ENTRIES:
                raise BadAnswer(f"{method} has more than {ENTRIES:,} entries")
        return found

    async def all_tools(self, *, by_header: bool, fresh: bool = False) -> list[ToolInfo]:
        """The tools. `by_header`: calls repeat arguments in headers, so one whose marks are wrong can't be called."""
        found: list[ToolInfo] = []
        known: dict[str, Known] = {}
        for tool in await self.all("tools/list", fresh=fresh):
            try:
                headers = header_params(tool.input_schema) if by_header else ()
            except HeaderProblem as problem:
                self._leave_out(f"the tool {tool.name[:100]!r} is left out: {problem.what}")
                continue
            found.append(tool)
            known[tool.name] = Known(tool, headers)
        self.tools = known
        return found

    def _leave_out(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)

    def headers(self, name: str, arguments: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        known = self.tools.get(name)
        return mirrored(known.headers, arguments) if known is not None and known.headers else ()

    def repeatable(self, name: str) -> bool:
        known = self.tools.get(name)
        return known is not None and known.tool.repeatable

    def check(self, name: str, result: Result) -> None:
        """Raise BadAnswer where a result breaks what the tool's listing promised."""
        known = self.tools.get(name)
        if known is None or known.tool.output_schema is None or result.is_error:
            return
        if "structuredContent" not in result.record:
            raise BadAnswer(f"the tool {name!r} promises structured content, and gave none")
        faults = known.faults(result.structured)
        if faults:
            raise BadAnswer(f"the tool {name!r} breaks its own output schema: " + "; ".join(faults))
