"""The checks of Brooklyn's documents: a server is started, given lines on its stdin, and what it writes is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from longshore.cli.check import Check
from longshore.cli.exchange import Exchange, Json, decode, exchange, request
from longshore.errors import TargetError
from longshore.protocol.peer import OWN_ENVELOPE
from longshore.protocol.revisions import LEGACY, MODERN
from longshore.schema.kinds import as_array, as_object
from longshore.wire.codec import INTERNAL_ERROR, METHOD_NOT_FOUND, PARSE_ERROR

LIST, CALL, FAILING, UNKNOWN = range(1, 5)
"""The ids of the requests without a handshake."""
FAILING_TOOL: Final = "navigate_to_url"
_STATUS_TOOL: Final = "brooklyn_status"

Compare = Callable[[Exchange], str]
"""Returns what is wrong; nothing if all is well."""


def check_protocol(argv: Sequence[str], fix: str) -> Iterator[Check]:
    """The checks of a server's messages: without a handshake, with one, and of 2026-07-28.

    `fix` is for tools that it lacks. Raises TargetError if it answers nothing without a handshake.
    """
    bare = exchange(
        argv,
        request(LIST, "tools/list"),
        request(CALL, "tools/call", name=_STATUS_TOOL, arguments={}),
        request(FAILING, "tools/call", name=FAILING_TOOL, arguments={"url": "file:///"}),
        request(UNKNOWN, "brooklyn/unknown"),
        {"jsonrpc": "2.0", "method": "notifications/unknown"},
        b"{no json",
    )
    yield from _compare(bare, _WITHOUT_HANDSHAKE)
    listed = [each.get("name") for each in bare.tools(LIST)]
    for tool, why, checks in (
        (_STATUS_TOOL, "no result can be looked at", _RESULT),
        (FAILING_TOOL, "no tool can be made to fail", _FAILED_TOOL),
    ):
        if tool in listed:
            yield from _compare(bare, checks)
        else:
            yield from (Check(says, "missing", f"{tool} is not on offer, so {why}", fix) for says in checks)
    info = {"name": "brooklyn-check", "version": "1"}
    handshake = request(LIST, "initialize", protocolVersion=LEGACY[-1], capabilities={}, clientInfo=info)
    started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    yield from _exchange_and_compare(argv, _WITH_HANDSHAKE, handshake, started, request(CALL, "tools/list"))
    modern = request(LIST, "tools/list", _meta=msgspec.Raw(OWN_ENVELOPE))
    yield from _exchange_and_compare(argv, _MODERN, modern)


def listed_tools(argv: Sequence[str]) -> list[Json]:
    """The tools that a server lists without a handshake, under MCP's keys. Raises TargetError unless it lists all."""
    found = exchange(argv, request(LIST, "tools/list"))
    tools = [_under_mcp_keys(each) for each in found.tools(LIST)]
    if not tools:
        raise TargetError(f"{argv[0]} lists no tools without a handshake; longshore lint --profile brooklyn makes one")
    if found.result(LIST).get("nextCursor") is not None:
        raise TargetError(f"{argv[0]} lists its tools in pages; longshore lint --profile brooklyn reads them all")
    return tools


def _under_mcp_keys(tool: Json) -> Json:
    made = {key: value for key, value in tool.items() if key not in ("input_schema", "category")}
    made.setdefault("inputSchema", tool.get("input_schema"))
    if "category" in tool:
        made["_meta"] = as_object(tool.get("_meta")) | {"longshore/category": tool["category"]}
    return made


def _exchange_and_compare(argv: Sequence[str], checks: dict[str, Compare], *messages: Json) -> Iterator[Check]:
    """Further checks of a server that has answered before: if it does not now, all of them have failed."""
    try:
        found = exchange(argv, *messages)
    except TargetError as problem:
        yield from (Check(says, "failed", str(problem)) for says in checks)
    else:
        yield from _compare(found, checks)


def _compare(found: Exchange, checks: dict[str, Compare]) -> Iterator[Check]:
    for says, compare in checks.items():
        wrong = compare(found)
        yield Check(says, "failed" if wrong else "ok", wrong)


# -- what is compared; each returns what is wrong


def _stdout_is_messages(found: Exchange) -> str:
    return f"{len(found.others)} lines are none, such as {found.others[0][:80]!r}" if found.others else ""


def _answers_once(found: Exchange) -> str:
    answered = [each.get("id") for each in found.frames if "method" not in each]
    expected = [LIST, CALL, FAILING, UNKNOWN, None]
    return "" if sorted(map(repr, answered)) == sorted(map(repr, expected)) else f"answers have the ids {answered}"


def _is_wrapped(found: Exchange) -> str:
    result = found.result(CALL)
    content = as_array(result.get("content"))
    if not content:
        return f"its result is {msgspec.json.encode(found.answer(CALL))[:200].decode()}"
    if "success" in result:
        return "the tool's own object is the result, beside content"
    untyped = [each for each in content if not isinstance(as_object(each).get("type"), str)]
    return f"{len(untyped)} items of content have no type" if untyped else ""


def _is_json_text(found: Exchange) -> str:
    first = as_object(next(iter(as_array(found.result(CALL).get("content"))), None))
    text = first.get("text")
    if first.get("type") != "text" or not isinstance(text, str):
        return "the first item is no text"
    return "" if "success" in decode(text) else f"its text is {text[:80]!r}"


def _has_snake_key(found: Exchange) -> str:
    return _wrong_keys(found.tools(LIST), needed="input_schema", forbidden="inputSchema")


def _has_both_keys(found: Exchange) -> str:
    return _wrong_keys(found.tools(CALL), needed="inputSchema") or _wrong_keys(found.tools(CALL), needed="input_schema")


def _wrong_keys(tools: list[Json], *, needed: str, forbidden: str = "") -> str:
    if not tools:
        return "there are no tools"
    wrong = [str(each.get("name")) for each in tools if not as_object(each.get(needed)) or forbidden in each]
    return f"not so for {', '.join(wrong[:5])}" if wrong else ""


def _failed_tool(found: Exchange) -> str:
    error = found.error(FAILING)
    data = as_object(error.get("data"))
    said = error.get("code"), error.get("message"), data.get("toolName")
    if said != (INTERNAL_ERROR, "Tool execution failed", FAILING_TOOL) or not data.get("error"):
        return f"the answer is {msgspec.json.encode(found.answer(FAILING))[:200].decode()}"
    return ""


def _has_code(id: int | None, code: int) -> Compare:
    return lambda found: "" if found.error(id).get("code") == code else f"the answer is {found.answer(id)}"[:200]


def _ended_well(found: Exchange) -> str:
    return f"the exit code is {found.exit_code}" if found.exit_code else ""


def _agrees_on_revision(found: Exchange) -> str:
    version = found.result(LIST).get("protocolVersion")
    return "" if version == LEGACY[-1] else f"the revision is {version!r}"


def _is_modern(found: Exchange) -> str:
    kind = found.result(LIST).get("resultType")
    return "" if kind == "complete" else f"resultType is {kind!r}"


_WITHOUT_HANDSHAKE: Final[dict[str, Compare]] = {
    "every line on stdout is a message": _stdout_is_messages,
    "each request is answered once, notifications are not": _answers_once,
    "a list has input_schema": _has_snake_key,
    "an unknown method is -32601": _has_code(UNKNOWN, METHOD_NOT_FOUND),
    "a line that is no JSON is -32700": _has_code(None, PARSE_ERROR),
    "the server ends with its input": _ended_well,
}
_RESULT: Final[dict[str, Compare]] = {
    "a result is wrapped in content, and its items have a type": _is_wrapped,
    "an object is JSON text": _is_json_text,
}
_FAILED_TOOL: Final[dict[str, Compare]] = {"a failed tool is -32603 with toolName and error": _failed_tool}
_WITH_HANDSHAKE: Final[dict[str, Compare]] = {
    f"a handshake agrees on {LEGACY[-1]}": _agrees_on_revision,
    "after a handshake a list has both keys": _has_both_keys,
}
_MODERN: Final[dict[str, Compare]] = {f"a request of {MODERN[-1]} gets MCP": _is_modern}
