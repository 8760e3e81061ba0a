"""List results: rendered once for each revision and page, and cached as bytes until the offer changes."""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from longshore.errors import ProtocolError
from longshore.protocol.peer import ABSENT
from longshore.protocol.revisions import ANY_STRUCTURED, ARGUMENT, PROMPT, RESOURCE, TEMPLATE, TOOL, Revision, lower
from longshore.registry.tool import Entry, report_problem
from longshore.server.replies import CACHE_HINTS
from longshore.wire.codec import INVALID_PARAMS, encode

if TYPE_CHECKING:
    from longshore.protocol.peer import Principal
    from longshore.server.call import Call
    from longshore.server.engine import Engine
    from longshore.server.middleware import Listed, MiddlewareStack

_TABLES = {
    "tools/list": ("tools", TOOL),
    "prompts/list": ("prompts", PROMPT),
    "resources/list": ("resources", RESOURCE),
    "resources/templates/list": ("resourceTemplates", TEMPLATE),
}
_LISTED: dict[str, Listed] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
}
_EVERY_TOOL = "tools"
_ROOT_ONLY = ("$schema", "$id", "$defs", "definitions")


@final
class Lists:
    """The list results of one server. `clear` drops the cache."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._page = engine.limits.page
        self._cached: dict[tuple[str, int, int], Raw] = {}
        self._described: dict[str, list[dict[str, Any]]] = {}

    def clear(self) -> None:
        self._cached.clear()
        self._described.clear()

    def page(self, method: str, revision: Revision, cursor: str | UnsetType, principal: Principal) -> Raw:
        """One page of what a caller may see, as the bytes of the result."""
        if self._hides(method):
            return Raw(encode(self._render_for(method, revision, cursor, self._visible(method, principal))))
        start = 0 if cursor is UNSET else self._start(method, cursor, self._describe(method))
        page = self._cached.get((method, revision.index, start))
        if page is None:
            page = Raw(encode(self._render(method, revision, start, self._describe(method))))
            if start % self._page == 0:  # a client can make a cursor for any position; only whole pages are cached
                self._cached[method, revision.index, start] = page
        absent = self._absent(method)
        if not absent:
            return page
        result = msgspec.json.decode(page)
        return Raw(encode(result | {"_meta": result.get("_meta", {}) | {ABSENT: absent}}))

    def _absent(self, method: str) -> dict[str, str]:
        """The mounted servers that are down: their tools may be missing from the list."""
        mounts = self._engine.catalog.pending_mounts
        return {} if mounts is None or method != "tools/list" else mounts.unavailable()

    def _hides(self, method: str) -> bool:
        """Whether callers may see different entries."""
        return method in ("tools/list", _EVERY_TOOL) and self._engine.policy.config.server.hide_forbidden

    def _visible(self, method: str, principal: Principal) -> list[dict[str, Any]]:
        """The entries of a list that a caller may see."""
        if not self._hides(method):
            return self._describe(method)
        names = {entry.name for entry in self._engine.listed_tools(principal)}
        return [record for record in self._describe(method) if record["name"] in names]

    def _render_for(
        self, method: str, revision: Revision, cursor: str | UnsetType, records: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """One page of a list that is made for one request."""
        start = 0 if cursor is UNSET else self._start(method, cursor, records)
        result, absent = self._render(method, revision, start, records), self._absent(method)
        return result | {"_meta": result.get("_meta", {}) | {ABSENT: absent}} if absent else result

    def tools(self, principal: Principal) -> list[dict[str, Any]]:
        """Every tool that a caller may see as the newest revision lists it, in any form.

        Tools whose schema can't be made are left out.

        For programs, which read no list at every turn.
        """
        return self._visible(_EVERY_TOOL, principal)

    def entry(self, middleware: MiddlewareStack, method: str, cursor: str | UnsetType) -> Entry:
        """What answers a request for one page of a list that middleware runs around."""

        async def make(_: Any, call: Call) -> dict[str, Any]:
            records = await middleware.list(_LISTED[method], self._visible(method, call.link.principal), call)
            return self._render_for(method, call.peer.revision, cursor, records)

        lifespan = self._engine.policy.lifespan
        return Entry(
            kind="completion",
            name=method,
            where=method,
            run="async",
            decode=lambda nothing: nothing,
            invoke=make,
            render=lambda page, _: page,
            explain=report_problem,
            describe=dict,
            waits=lifespan is not None and not lifespan.is_open,
            limit=self._engine.limits.timeout_seconds or inf,
        )

    def _render(self, method: str, revision: Revision, start: int, described: list[dict[str, Any]]) -> dict[str, Any]:
        key, table = _TABLES[method]
        after = start + self._page
        records = [_lower(record, table, revision) for record in described[start:after]]
        form = self._engine.policy.form
        if method == "tools/list" and form is not None:
            from longshore.schema.client_forms import lower as lower_to

            records = [lower_to(tool, form) for tool in records]
        result: dict[str, Any] = {key: records}
        if after < len(described):
            cursor = f"{after}:{_key(described[after])}".encode()
            result["nextCursor"] = b2a_base64(cursor, newline=False).decode()
        if revision.modern:
            meta = self._engine.replies.server_meta
            result = {"resultType": "complete", **result, **CACHE_HINTS, "_meta": meta}
        return result

    def _describe(self, method: str) -> list[dict[str, Any]]:
        described = self._described.get(method)
        if described is None:
            entries = self._entries(method)  # which may clear the cache
            described = self._described[method] = []
            for entry in entries:
                try:
                    described.append(entry.describe())
                except Exception as problem:  # a type has no JSON Schema, which pydantic reports only now
                    text = f"{entry.where}: the {entry.kind} is not listed, because its schema can't be made"
                    self._engine.recorder.problem("error", text, problem)
        return described

    def _entries(self, method: str) -> list[Entry]:
        catalog = self._engine.catalog
        match method:
            case "tools/list":
                return self._engine.shown_tools()
            case _ if method == _EVERY_TOOL:
                return [entry for entry in self._engine.listed_tools() if not entry.catalog_forms]
            case "prompts/list":
                return list(catalog.offered("prompts").values())
            case _:
                fixed = method == "resources/list"
                return [entry for entry in catalog.offered("resources").values() if (entry.template is None) is fixed]

    def _start(self, method: str, cursor: str, described: list[dict[str, Any]]) -> int:
        try:
            text, _, key = a2b_base64(cursor.encode("ascii"), strict_mode=True).decode().partition(":")
            position = int(text)
        except (Base64Error, ValueError):
            position, key = -1, ""
        keys = [_key(record) for record in described]
        if 0 <= position < len(keys) and keys[position] == key:
            return position
        if key in keys:  # an entry before it was added or removed since the last page
            return keys.index(key)
        raise ProtocolError(INVALID_PARAMS, f"no such cursor for {method}; begin again without one")


def _key(record: dict[str, Any]) -> str:
    """The unique key of an entry in its list. Resources may share a name."""
    return str(record.get("uri") or record.get("uriTemplate") or record["name"])


def _lower(record: dict[str, Any], table: Mapping[str, int], revision: Revision) -> dict[str, Any]:
    lowered = lower(record, table, revision)
    if "arguments" in lowered:
        lowered["arguments"] = [lower(argument, ARGUMENT, revision) for argument in lowered["arguments"]]
    schema = lowered.get("outputSchema")
    if schema is not None and revision.index < ANY_STRUCTURED and schema.get("type") != "object":
        # Before 2026-07-28 structured content is an object; other values are wrapped, in schema and result alike.
        lowered["outputSchema"] = wrap(schema)
    return lowered


def wrap(schema: dict[str, Any]) -> dict[str, Any]:
    """Wrap a schema in an object, as its `result`. Definitions stay at the root; references to the root are moved."""
    from longshore.schema.rewrite import move_references

    unnamed = {key: value for key, value in schema.items() if key != "$id"}
    moved = move_references(unnamed, "#/properties/result", definitions=False)
    inner = {key: value for key, value in moved.items() if key not in _ROOT_ONLY}
    outer = {key: moved.get(key, schema[key]) for key in _ROOT_ONLY if key in schema}
    return {"type": "object", "properties": {"result": inner}, "required": ["result"], **outer}
