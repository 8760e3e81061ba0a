"""Tools as plain REST routes: a list, and one POST per tool with its arguments as the body.

A call goes through the engine like a 2026-07-28 call, which checks arguments, scopes, limits and time. The engine's
answer becomes a status and one envelope for success and failure; content and structured content are sent unchanged.
"""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic
from typing import Any, Final, final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.config import Config
from longshore.errors import CapabilityMissing, Forbidden
from longshore.protocol.dialect import Failure, FailureKind
from longshore.protocol.http_headers import is_json
from longshore.protocol.peer import OWN_ENVELOPE, Principal
from longshore.transports.http.gate import Denied, Gate, HttpRequest, shutting_down
from longshore.transports.http.openapi import describe
from longshore.transports.http.pending import Delivery, PendingResponse
from longshore.transports.http.responses import JSON_TYPE, HeaderPairs, Receive, Send, reply
from longshore.wire.codec import (
    BROKEN,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorFrame,
    encode,
    is_utf8,
    too_deep,
)
from longshore.wire.messages import Fault

TOOLS: Final = "/tools"
OPENAPI: Final = "/openapi.json"

_FRAME = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":' + OWN_ENVELOPE + b',"name":%s,"arguments":%s}}'
)
_WRAPPED = 2
"""Levels of nesting that the frame adds around the arguments."""
_read_raw = msgspec.json.Decoder(msgspec.Raw).decode


@final
class RestResponse(PendingResponse):
    """The response to one call. Progress is dropped, and questions are refused."""

    __slots__ = ("_began", "_name")
    has_session = False
    transport = "rest"

    def __init__(self, delivery: Delivery, request: HttpRequest, name: str) -> None:
        super().__init__(delivery, request)
        self.accepts_json, self.accepts_stream = True, False
        self._name, self._began = name, monotonic()

    def send(self, frame: bytes) -> None:
        pass

    def failed(self, failure: Failure) -> None:
        if not self.done:  # an abandoned thread may still fail, and is not the reason why this call did
            self.kind = failure.kind

    def lose(self) -> None:
        super().lose()
        if not self.done:
            self._delivery.engine.hang_up(self)

    async def send_answer(self, send: Send) -> None:
        seconds = monotonic() - self._began
        try:
            body = read_result(self._name, self.frame, self.kind, seconds)
        except RestError as problem:
            if problem.needed:
                problem.headers = self.challenge(problem.needed)
            await problem.send(send, self.extra, seconds)
        else:
            await reply(send, 200, body, (JSON_TYPE, *self.extra))


@final
class RestEndpoint:
    """The REST routes of one app."""

    def __init__(self, delivery: Delivery, gate: Gate, config: Config) -> None:
        self._delivery = delivery
        self._engine, self._limits = delivery.engine, delivery.limits
        self._gate, self._config = gate, config

    async def serve(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        method, path = request.scope["method"], request.path
        is_call = path not in (TOOLS, OPENAPI)
        allowed = ("POST",) if is_call else ("GET", "HEAD")
        try:
            if method not in allowed:
                headers = ((b"allow", ", ".join(allowed).encode()),)
                raise RestError("method", f"{path} takes {' and '.join(allowed)}", headers)
            if not is_call:
                page: Any = {"tools": self._engine.lists.tools(request.principal)}
                if path == OPENAPI:
                    root = request.scope.get("root_path", "")
                    page = describe(self._engine, self._config, self._delivery.guard.required, root, request.principal)
                await reply(send, 200, encode(page), (JSON_TYPE, *request.extra))
                return
            name = path[len(TOOLS) + 1 :]
            self._check(name, request.principal)
            arguments = await self._arguments(request, receive)
        except RestError as problem:
            await problem.send(send, request.extra)
            return
        response = RestResponse(self._delivery, request, name)
        body = _FRAME % (encode(name), arguments)
        if self._delivery.tap.watchers:
            self._delivery.tap.show("in", response, body)
        frame = self._engine.handle(body, response)
        if frame is not None:
            response.answer(frame)
        await response.deliver(receive, send)

    def _check(self, name: str, principal: Principal) -> None:
        if self._delivery.stopping:
            denied = shutting_down()
            raise RestError("busy", denied.text, denied.headers)
        engine = self._engine
        call_tool = engine.policy.call_tool
        if engine.find_tool(name, principal) is None and (call_tool is None or name != call_tool.name):
            from longshore.server.unknown_tool import explain

            raise RestError("unknown_tool", explain(engine, name, "; GET /tools has them all", principal=principal))

    async def _arguments(self, request: HttpRequest, receive: Receive) -> bytes:
        """The body, checked to be exactly one JSON object: it is put into a frame unchanged."""
        headers = request.headers
        try:
            self._gate.check_length(headers)
            body = await self._gate.read_body(request, receive)
        except Denied as denied:
            if denied.status != 413:
                raise
            raise RestError("body_too_large", denied.text) from None
        if not body.strip():
            return b"{}"
        plain = b"content-encoding" not in headers and b"content-type" not in request.twice
        if not plain or not is_json(headers.get(b"content-type")):
            raise RestError("media_type", "send the arguments as Content-Type: application/json, not compressed")
        depth = self._limits.depth - _WRAPPED
        if too_deep(body, depth):
            raise RestError("invalid_arguments", f"the arguments nest deeper than {depth} levels")
        try:
            _read_raw(body)
        except BROKEN as broken:
            raise RestError("invalid_arguments", f"the body is not JSON: {broken}") from None
        if not is_utf8(body):
            raise RestError("invalid_arguments", "the body is not UTF-8")
        if body.lstrip()[:1] != b"{":
            raise RestError("invalid_arguments", "the body must be a JSON object: the tool's arguments by name")
        return body


STATUSES: Final = {
    "invalid_arguments": 400,
    "permission": 403,
    "unknown_tool": 404,
    "not_found": 404,
    "method": 405,
    "body_too_large": 413,
    "media_type": 415,
    "question": 422,
    "rate": 429,
    "execution": 500,
    "too_large": 500,
    "internal": 500,
    "busy": 503,
    "cancelled": 503,
    "timeout": 504,
}
"""The kinds of failure. A result that is too large is our trouble, not that of the request; so it is no 413."""

_AGAIN: Final = ((b"retry-after", b"1"),)
_HEADERS: Final = {
    "rate": _AGAIN,  # a bucket refills by at least one call a second, so no longer wait is needed
    "busy": _AGAIN,
    "cancelled": _AGAIN,
    "body_too_large": ((b"connection", b"close"),),
}
_CALLERS_FAULT: Final = (PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS)


class RestError(Exception):
    """A call that failed, or can't be made. The headers of its answer depend on the kind, unless given.

    `data` is the structured content of the tool's failure, `needed` the missing scopes.
    """

    def __init__(
        self,
        kind: str,
        text: str,
        headers: HeaderPairs | None = None,
        *,
        data: Raw | UnsetType = UNSET,
        needed: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(text)
        self.kind, self.text, self.data, self.needed = kind, text, data, needed
        self.headers = _HEADERS.get(kind, ()) if headers is None else headers

    async def send(self, send: Send, extra: HeaderPairs, seconds: float | None = None) -> None:
        """Send it as a response."""
        milliseconds = UNSET if seconds is None else _milliseconds(seconds)
        body = encode(Failed(False, {"kind": self.kind, "message": self.text}, self.data, milliseconds, _now()))
        await reply(send, STATUSES[self.kind], body, (JSON_TYPE, *self.headers, *extra))


class _Result(Struct, frozen=True, rename="camel"):
    content: Raw = Raw(b"[]")
    structured: Raw | UnsetType = field(name="structuredContent", default=UNSET)
    is_error: bool = False
    result_type: str = "complete"


class _Answer(Struct):
    result: _Result = _Result()
    error: Fault | UnsetType = UNSET


class _Block(Struct):
    type: str = ""
    text: str = ""


class Success(Struct, rename="camel"):
    """The envelope of a result. `data` is the structured content, else the text, else null."""

    success: bool
    data: Any
    content: Raw
    execution_time: float
    timestamp: str


class Failed(Struct, rename="camel", omit_defaults=True):
    """The envelope of a failure. `data` is the structured content of the tool's failure."""

    success: bool
    error: dict[str, str]
    data: Raw | UnsetType = UNSET
    execution_time: float | UnsetType = UNSET
    timestamp: str = ""


_read_answer = msgspec.json.Decoder(_Answer).decode
_read_blocks = msgspec.json.Decoder(list[_Block]).decode


def read_result(name: str, frame: bytes | None, kind: FailureKind | None, seconds: float) -> bytes:
    """The envelope of a call's result. `kind` is the reason of a failure, if the engine knows it. Raises RestError."""
    if frame is None:
        raise RestError("cancelled", f"{name} was cancelled")
    answer = _read_answer(frame)
    result = answer.result
    cause = frame.cause if isinstance(frame, ErrorFrame) else None
    if isinstance(cause, CapabilityMissing) or result.result_type != "complete":
        fix = "call it over MCP, with a client that can answer"
        raise RestError("question", f"{name} asks its caller a question, which REST can't pass on; {fix}")
    if answer.error is not UNSET:
        if isinstance(cause, Forbidden):
            raise RestError("permission", answer.error.message, needed=cause.needed)
        is_callers_fault = isinstance(frame, ErrorFrame) and frame.code in _CALLERS_FAULT
        raise RestError(kind or ("invalid_arguments" if is_callers_fault else "internal"), answer.error.message)
    text = "\n".join(block.text for block in _read_blocks(result.content) if block.type == "text")
    if kind is not None or result.is_error:
        raise RestError(kind or "execution", text or f"{name} failed", data=result.structured)
    data: Any = result.structured if result.structured is not UNSET else (text or None)
    return encode(Success(True, data, result.content, _milliseconds(seconds), _now()))


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
