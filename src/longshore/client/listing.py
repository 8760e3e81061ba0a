"""The lists of a server, page by page, and what they say of each tool when it is called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from math import isfinite
from time import monotonic
from typing import Any, final

from msgspec import Raw, to_builtins
from msgspec.json import decode

from longshore.client.cache import Cache, lifetime, weigh
from longshore.client.models import KEYS, Result, ToolInfo, read_entry
from longshore.errors import BadAnswer
from longshore.protocol.http_headers import PARAM, HeaderParam, write_value
from longshore.protocol.peer import ABSENT
from longshore.schema.header_params import HeaderProblem, header_params
from longshore.schema.kinds import is_object

PAGES = 1000
"""A list with more pages than this is taken for endless."""
ENTRIES = 100_000
LIST_CHARS = 256 << 20
"""Characters of a whole list. Each page may be as long as a message."""
MOST_PROBLEMS = 100
"""Entries that are reported as left out. A list that is wrong throughout needs no more."""
_PREFIX = PARAM.decode()

Ask = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]


class ListedTool:
    """A tool as it was listed, and what a call of it needs."""

    __slots__ = ("_validator", "headers", "repeatable", "tool")

    def __init__(self, tool: ToolInfo, headers: tuple[HeaderParam, ...]) -> None:
        self.tool = tool
        self.headers = headers
        self.repeatable = tool.repeatable
        self._validator: Any = None

    def reuse_validator(self, before: ListedTool | None) -> None:
        """Take over the compiled schema of an equal tool: compiling costs a hundred times what a check does."""
        if before is not None and before.tool.record == self.tool.record:
            self._validator = before._validator

    def faults(self, value: Any) -> list[str]:
        """How structured content violates the tool's output schema."""
        if self._validator is None:
            from longshore.schema.cost import compile_bounded

            self._validator = compile_bounded(self.tool.output_schema) or False  # an unreadable schema checks nothing
        if self._validator is False or self._validator.is_valid(value):
            return []
        faults: list[str] = self._validator.errors(value)
        return faults


@final
class Listing:
    """The lists of one server. `problems` says which entries were left out, and why."""

    def __init__(self, ask: Ask, cache: Cache) -> None:
        self._ask = ask
        self._cache = cache
        self.tools: dict[str, ListedTool] = {}
        self._as_of = 0
        """The cache's count of changes to the tools when they were listed."""
        self.problems: list[str] = []
        self.absent: dict[str, str] = {}
        """Servers mounted behind this one that are down: by their prefix, why."""
        self._lifetimes: dict[str, float] = {}
        """Seconds for which the last page of each list may be cached."""

    def lifetime(self, kinds: Iterable[str]) -> float:
        """Seconds for which the server allows these kinds of lists to be cached: the least of them."""
        return min((self._lifetimes.get(f"{kind}/list", 0.0) for kind in kinds), default=0.0)

    async def pages(self, method: str, *, fresh: bool = False) -> AsyncIterator[list[dict[str, Any]]]:
        """The pages of a list, as they come. Raises BadAnswer for one that repeats a cursor or never ends."""
        if method not in KEYS:
            raise ValueError(f"{method!r} lists nothing; what does: {', '.join(KEYS)}")
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
        cached = None if fresh else self._cache.get((method, cursor), monotonic())
        if cached is not None:
            return cached
        since = self._cache.changes
        page = await self._ask(method, {} if cursor is None else {"cursor": cursor})
        self._lifetimes[method] = lifetime(page)
        if method == "tools/list":
            self.absent = _absent(page.get("_meta"))
        self._cache.put((method, cursor), page, monotonic(), since)
        return page

    async def all(self, method: str, *, fresh: bool = False) -> list[Any]:
        """The whole list, without entries that can't be used. `problems` names those."""
        _, kind = KEYS[method]
        found: list[Any] = []
        count = chars = pages = 0
        async for page in self.pages(method, fresh=fresh):
            count += len(page)
            if count > ENTRIES:
                raise BadAnswer(f"{method} has more than {ENTRIES:,} entries")
            pages += 1
            if pages > 1:  # one message is bounded already
                chars += weigh(page)
                if chars > LIST_CHARS:
                    raise BadAnswer(f"{method} is longer than {LIST_CHARS >> 20} MiB")
            for entry in page:
                try:
                    found.append(read_entry(kind, entry))
                except BadAnswer as problem:
                    self._leave_out(problem.what)
        return found

    async def all_tools(self, *, by_header: bool, fresh: bool = False) -> list[ToolInfo]:
        """The tools. `by_header`: calls repeat arguments in headers, so a tool that marks them wrongly is left out."""
        found: list[ToolInfo] = []
        known: dict[str, ListedTool] = {}
        as_of = self._cache.changes_of("tools/list")
        for tool in await self.all("tools/list", fresh=fresh):
            try:
                headers = header_params(tool.input_schema) if by_header else ()
            except HeaderProblem as problem:
                self._leave_out(f"the tool {tool.name[:100]!r} is left out: {problem.what}")
                continue
            found.append(tool)
            known[tool.name] = entry = ListedTool(tool, headers)
            entry.reuse_validator(self.tools.get(tool.name))
        self.tools, self._as_of = known, as_of
        return found

    def _leave_out(self, text: str) -> None:
        if len(self.problems) < MOST_PROBLEMS and text not in self.problems:
            self.problems.append(text)

    def headers(self, name: str, arguments: Mapping[str, Any] | Raw) -> tuple[tuple[str, str], ...]:
        """The headers that repeat arguments of a call. They may be by an outdated list: the server says so then."""
        known = self.tools.get(name)
        if known is None or not known.headers:
            return ()
        return param_headers(known.headers, decode(arguments) if isinstance(arguments, Raw) else arguments)

    def _current(self, name: str) -> ListedTool | None:
        """A tool, unless the list has changed since, or the connection."""
        return self.tools.get(name) if self._as_of == self._cache.changes_of("tools/list") else None

    def repeatable(self, name: str) -> bool:
        known = self._current(name)
        return known is not None and known.repeatable

    def check(self, name: str, result: Result) -> None:
        """Raise BadAnswer if a result violates the output schema that the tool was listed with."""
        known = self._current(name)
        if known is None or known.tool.output_schema is None or result.is_error:
            return
        if "structuredContent" not in result.record:
            raise BadAnswer(f"the tool {name!r} promises structured content, and gave none")
        faults = known.faults(result.structured)
        if faults:
            raise BadAnswer(f"the tool {name!r} breaks its own output schema: " + "; ".join(faults))


def _absent(meta: Any) -> dict[str, str]:
    found: Any = meta.get(ABSENT) if is_object(meta) else None
    if not is_object(found):
        return {}
    return {prefix: why for prefix, why in list(found.items())[:MOST_PROBLEMS] if isinstance(why, str)}


def param_headers(params: tuple[HeaderParam, ...], arguments: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The headers that repeat arguments of a modern HTTP call, as the body has them. Absent and null ones have none."""
    arguments = to_builtins(arguments)
    found: list[tuple[str, str]] = []
    for param in params:
        value: Any = arguments
        for step in param.path:
            value = value.get(step) if is_object(value) else None
        if isinstance(value, (str, int)) or (isinstance(value, float) and isfinite(value)):  # JSON has no other numbers
            name = "Mcp-Param-" + param.header.decode().removeprefix(_PREFIX).title()
            found.append((name, write_value(_header_text(value))))
    return tuple(found)


def _header_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
