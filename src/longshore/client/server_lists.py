"""The lists of a server, page by page, the facts that a call needs of a listed tool, and the cache of answers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from math import isfinite
from time import monotonic
from typing import Any, final

from msgspec import Raw, to_builtins
from msgspec.json import decode, encode

from longshore.client.models import KEYS, Result, ToolInfo, read_entry
from longshore.errors import BadAnswer
from longshore.protocol.http_headers import PARAM, HeaderParam, write_value
from longshore.protocol.peer import ABSENT
from longshore.schema.header_params import HeaderProblem, header_params
from longshore.schema.kinds import as_object, is_array, is_object

PAGES = 1000
"""A list with more pages than this is taken for endless."""
ENTRIES = 100_000
LIST_BYTES = 256 << 20
"""Bytes of a whole list as JSON. Each page may be as long as a message."""
MOST_PROBLEMS = 100
"""Entries that are reported as left out. A list that is wrong throughout needs no more."""
_PREFIX = PARAM.decode()

MOST = 256
"""Cached answers. The least recently used one makes room."""
MOST_BYTES = 16 << 20
"""Bytes of all of them as JSON. An answer that is longer by itself is not cached."""
MOST_SECONDS = 24 * 3600
"""A day, also where the server says longer: it may have forgotten to report a change."""

Key = tuple[str, str | None]
Ask = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]


@final
class Cache:
    """Answers that a modern server allows to be cached, by method and subject (a URI, a cursor), as JSON.

    A result without a valid `ttlMs` is not cached.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, tuple[float, bytes]] = OrderedDict()
        self._size = 0
        self.changes = 0
        """How often something was dropped."""
        self._dropped: dict[str, int] = {}
        self._cleared = 0

    def get(self, key: Key, now: float) -> dict[str, Any] | None:
        expires, answer = self._entries.get(key, (0.0, b""))
        if not answer or expires <= now:
            self._remove(key)
            return None
        self._entries.move_to_end(key)
        found: dict[str, Any] = decode(answer)
        return found

    def put(self, key: Key, result: Mapping[str, Any], now: float, since: int | None = None) -> None:
        """Cache an answer. `since` is `changes` at the time of the request: a notification may have overtaken it."""
        self._remove(key)
        seconds = lifetime(result)
        if not seconds or (since is not None and since != self.changes):
            return
        answer = encode(result)
        if len(answer) > MOST_BYTES:
            return
        self._entries[key] = now + seconds, answer
        self._size += len(answer)
        while len(self._entries) > MOST or self._size > MOST_BYTES:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: Key) -> None:
        _, answer = self._entries.pop(key, (0.0, b""))
        self._size -= len(answer)

    def drop(self, method: str, about: str | None = None) -> None:
        """Drop all answers to a method, or those about a URI or resources that contain it: they have changed."""
        self.changes += 1
        self._dropped[method] = self._dropped.get(method, 0) + 1
        for key in [key for key in self._entries if key[0] == method and (about is None or covers(key[1], about))]:
            self._remove(key)

    def changes_of(self, method: str) -> int:
        """How often answers to a method, cached or not, were dropped."""
        return self._cleared + self._dropped.get(method, 0)

    def clear(self) -> None:
        """Drop everything: the server may be another one now."""
        self.changes += 1
        self._cleared += 1
        self._entries.clear()
        self._size = 0


def covers(whole: str | None, part: str) -> bool:
    """Whether a resource is `whole` or a part of it: servers may report changes of parts."""
    return whole is not None and (part == whole or part.startswith(whole.rstrip("/") + "/"))


def lifetime(result: Mapping[str, Any]) -> float:
    """Seconds for which the server allows an answer to be cached. 0.0: not at all."""
    ttl = result.get("ttlMs")
    if not isinstance(ttl, (int, float)) or isinstance(ttl, bool) or ttl <= 0:
        return 0.0
    return min(ttl, 1000 * MOST_SECONDS) / 1000


class ListedTool:
    """A tool as it was listed, with the data that calls of it need."""

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
        """The violations of the tool's output schema in structured content."""
        if self._validator is None:
            from longshore.schema.cost import compile_bounded

            self._validator = compile_bounded(self.tool.output_schema) or False  # an unreadable schema checks nothing
        if self._validator is False or self._validator.is_valid(value):
            return []
        faults: list[str] = self._validator.errors(value)
        return faults


@final
class ServerLists:
    """The lists of one server. `problems` says which entries were left out, and why."""

    def __init__(self, ask: Ask, bad_answer: Callable[[str], BadAnswer], cache: Cache) -> None:
        self._ask, self._bad = ask, bad_answer
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
        count = size = 0
        for number in range(PAGES):
            page = await self._page(method, cursor, fresh)
            entries: Any = page.get(key)
            if not is_array(entries):
                raise self._bad(f"the answer to {method} has no list {key!r}")
            count += len(entries)
            if count > ENTRIES:
                raise self._bad(f"{method} has more than {ENTRIES:,} entries")
            size += len(encode(page)) if number else 0  # one message is bounded already
            if size > LIST_BYTES:
                raise self._bad(f"{method} is longer than {LIST_BYTES >> 20} MiB")
            yield entries
            following: Any = page.get("nextCursor")
            if following is None:
                return
            if not isinstance(following, str) or following in seen:
                raise self._bad(f"{method} goes round in circles: the cursor {str(following)[:50]!r} came twice")
            seen.add(following)
            cursor = following
        raise self._bad(f"{method} has more than {PAGES} pages")

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
        async for page in self.pages(method, fresh=fresh):
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
            raise self._bad(f"the tool {name!r} promises structured content, and gave none")
        faults = known.faults(result.structured)
        if faults:
            raise self._bad(f"the tool {name!r} breaks its own output schema: " + "; ".join(faults))


def _absent(meta: Any) -> dict[str, str]:
    found = as_object(as_object(meta).get(ABSENT))
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
