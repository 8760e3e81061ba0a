"""List results: rendered once for each revision and page, and cached as bytes until the offer changes."""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from msgspec import UNSET, Raw, UnsetType

from longshore.errors import ProtocolError
from longshore.protocol.peer import Peer
from longshore.protocol.revisions import ANY_STRUCTURED, ARGUMENT, PROMPT, RESOURCE, TEMPLATE, TOOL, Revision, lower
from longshore.registry.tool import Entry
from longshore.telemetry.recorder import Recorder
from longshore.wire.codec import INVALID_PARAMS, encode

if TYPE_CHECKING:
    from longshore.server.policy import Policy

CACHE_HINTS = {"ttlMs": 0, "cacheScope": "private"}
"""A list may change at any moment and may depend on the caller; a client that caches it can listen for changes."""


@final
class Lists:
    """The list results of one server. `clear` drops the cache."""

    def __init__(self, page: int, server_meta: Mapping[str, Any], recorder: Recorder, policy: Policy) -> None:
        self._page = page
        self._server_meta = server_meta
        self._recorder = recorder
        self._policy = policy
        self._cached: dict[tuple[str, int, int], Raw] = {}
        self._described: dict[str, list[dict[str, Any]]] = {}

    def clear(self) -> None:
        self._cached.clear()
        self._described.clear()

    def get(
        self,
        method: str,
        key: str,
        table: Mapping[str, int],
        entries: Sequence[Entry],
        peer: Peer,
        cursor: str | UnsetType,
    ) -> Raw:
        """One page, as the bytes of the result."""
        start = 0 if cursor is UNSET else self._start(method, entries, cursor)
        cached = self._cached.get((method, peer.revision.index, start))
        if cached is None:
            cached = Raw(encode(self._render(method, key, table, entries, peer.revision, start)))
            if start % self._page == 0:  # a client can make a cursor for any position; only whole pages are cached
                self._cached[method, peer.revision.index, start] = cached
        return cached

    def _render(
        self, method: str, key: str, table: Mapping[str, int], entries: Sequence[Entry], revision: Revision, start: int
    ) -> dict[str, Any]:
        described = self._describe(method, entries)
        page = described[start : start + self._page]
        lowered = [_lower(record, table, revision) for record in page]
        result: dict[str, Any] = {key: self._rewrite(lowered) if method == "tools/list" else lowered}
        after = start + self._page
        if after < len(described):
            result["nextCursor"] = _cursor(after, _key(described[after]))
        if revision.modern:
            result = {"resultType": "complete", **result, **CACHE_HINTS, "_meta": self._server_meta}
        return result

    def _rewrite(self, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
        form = self._policy.form
        if form is None:
            return tools
        from longshore.schema.client_forms import lower as lower_to

        return [lower_to(tool, form) for tool in tools]

    def _describe(self, method: str, entries: Sequence[Entry]) -> list[dict[str, Any]]:
        described = self._described.get(method)
        if described is None:
            found = (self._describe_one(entry) for entry in entries)
            described = self._described[method] = [record for record in found if record is not None]
        return described

    def _describe_one(self, entry: Entry) -> dict[str, Any] | None:
        """None: a type has no JSON Schema, which pydantic reports only now. The other entries are listed."""
        try:
            return entry.describe()
        except Exception as problem:
            text = f"{entry.where}: the {entry.kind} is not listed, because its schema can't be made"
            self._recorder.problem("error", text, problem)
            return None

    def _start(self, method: str, entries: Sequence[Entry], cursor: str) -> int:
        position, key = _read_cursor(cursor)
        keys = [_key(record) for record in self._describe(method, entries)]
        if 0 <= position < len(keys) and keys[position] == key:
            return position
        if key in keys:  # an entry before it was added or removed since the last page
            return keys.index(key)
        raise ProtocolError(INVALID_PARAMS, f"no such cursor for {method}; begin again without one")


def _key(record: dict[str, Any]) -> str:
    """The unique key of an entry in its list. Resources may share a name."""
    return str(record.get("uri") or record.get("uriTemplate") or record["name"])


def _cursor(position: int, key: str) -> str:
    return b2a_base64(f"{position}:{key}".encode(), newline=False).decode()


def _read_cursor(cursor: str) -> tuple[int, str]:
    try:
        position, _, key = a2b_base64(cursor.encode("ascii"), strict_mode=True).decode().partition(":")
        return int(position), key
    except (Base64Error, ValueError):
        return -1, ""


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


_ROOT_ONLY = ("$schema", "$id", "$defs", "definitions")


TABLES = {
    "tools/list": ("tools", TOOL),
    "prompts/list": ("prompts", PROMPT),
    "resources/list": ("resources", RESOURCE),
    "resources/templates/list": ("resourceTemplates", TEMPLATE),
}
