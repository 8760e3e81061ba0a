"""What a server offers: its lists, page by page, and what is known of each tool when it is called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from time import monotonic
from typing import Any, final

from msgspec import Raw
from msgspec.json import decode

from longshore.client.cache import Cache, lifetime, weigh
from longshore.client.mirror import mirrored
from longshore.client.records import KEYS, ToolInfo, read_entry
from longshore.client.results import Result
from longshore.errors import BadAnswer
from longshore.protocol.http_headers import HeaderParam
from longshore.protocol.peer import ABSENT
from longshore.schema.header_params import HeaderProblem, header_params
from longshore.schema.kinds import is_object

PAGES = 1000
"""A list that has more pages than this does not end."""
ENTRIES = 100_000
LIST_CHARS = 256 << 20
"""Of text in a whole list. Each page may be as long as a message."""
_PROBLEMS = 100
"""Entries that are told of. A list that is wrong throughout needs no more."""

Ask = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]


class Known:
    """A tool, and what calling it needs."""

    __slots__ = ("_validator", "headers", "repeatable", "tool")

    def __init__(self, tool: ToolInfo, headers: tuple[HeaderParam, ...]) -> None:
        self.tool = tool
        self.headers = headers
        self.repeatable = tool.repeatable
        self._validator: Any = None

    def take_over(self, before: Known | None) -> None:
        """Compiling a schema costs a hundred times what using it does: one that is the same is not compiled again."""
        if before is not None and before.tool.record == self.tool.record:
            self._validator = before._validator

    def faults(self, value: Any) -> list[str]:
        """How structured content breaks the tool's own promise."""
        if self._validator is None:
            from longshore.schema.cost import compile_bounded

            self._validator = compile_bounded(self.tool.output_schema) or False  # what can't be read binds nobody
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
        self.tools: dict[str, Known] = {}
        self._as_of = 0
        """How often the tools had changed when they were listed."""
        self.problems: list[str] = []
        self.absent: dict[str, str] = {}
        """Servers mounted behind this one that are down: by their prefix, why."""
        self._lifetimes: dict[str, float] = {}
        """Seconds for which the last page of each list may be kept."""

    def lifetime(self, kinds: Iterable[str]) -> float:
        """For how many seconds the lists of these kinds hold, by the server's word: the least of them."""
        return min((self._lifetimes.get(f"{kind}/list", 0.0) for kind in kinds), default=0.0)

    async def pages(self, method: str, *, fresh: bool = False) -> AsyncIterator[list[dict[str, Any]]]:
        """The pages of a list, as they come. Bounded: a list that goes round, or never ends, is an error."""
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
        kept = None if fresh else self._cache.get((method, cursor), monotonic())
        if kept is not None:
            return kept
        since = self._cache.changes
        page = await self._ask(method, {} if cursor is None else {"cursor": cursor})
        self._lifetimes[method] = lifetime(page)
        if method == "tools/list":
            self.absent = _absent(page.get("_meta"))
        self._cache.put((method, cursor), page, monotonic(), since)
        return page

    async def all(self, method: str, *, fresh: bool = False) -> list[Any]:
        """The whole list. An entry that can't be used is left out and noted: it takes the others not with it."""
        _, kind = KEYS[method]
        found: list[Any] = []
        count = chars = pages = 0
        async for page in self.pages(method, fresh=fresh):
            count += len(page)
            if count > ENTRIES:
                raise BadAnswer(f"{method} has more than {ENTRIES:,} entries")
            pages += 1
            if pages > 1:  # what fits into one message was let in already
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
        """The tools. `by_header`: calls repeat arguments in headers, so one whose marks are wrong can't be called."""
        found: list[ToolInfo] = []
        known: dict[str, Known] = {}
        as_of = self._cache.changes_of("tools/list")
        for tool in await self.all("tools/list", fresh=fresh):
            try:
                headers = header_params(tool.input_schema) if by_header else ()
            except HeaderProblem as problem:
                self._leave_out(f"the tool {tool.name[:100]!r} is left out: {problem.what}")
                continue
            found.append(tool)
            known[tool.name] = entry = Known(tool, headers)
            entry.take_over(self.tools.get(tool.name))
        self.tools, self._as_of = known, as_of
        return found

    def _leave_out(self, text: str) -> None:
        if len(self.problems) < _PROBLEMS and text not in self.problems:
            self.problems.append(text)

    def headers(self, name: str, arguments: Mapping[str, Any] | Raw) -> tuple[tuple[str, str], ...]:
        """Also by what was known before a change: a server says when that is wrong, and without it none would do."""
        known = self.tools.get(name)
        if known is None or not known.headers:
            return ()
        return mirrored(known.headers, decode(arguments) if isinstance(arguments, Raw) else arguments)

    def _promised(self, name: str) -> Known | None:
        """A tool by its listing, if that still holds: after a change, or with another connection, it may be another."""
        return self.tools.get(name) if self._as_of == self._cache.changes_of("tools/list") else None

    def repeatable(self, name: str) -> bool:
        known = self._promised(name)
        return known is not None and known.repeatable

    def check(self, name: str, result: Result) -> None:
        """Raise BadAnswer where a result breaks what the tool's listing promised."""
        known = self._promised(name)
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
    return {prefix: why for prefix, why in list(found.items())[:_PROBLEMS] if isinstance(why, str)}
