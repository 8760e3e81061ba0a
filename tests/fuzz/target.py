"""What the fuzzer drives: bytes through the framer into an engine with tools of every kind, without a transport.

`one_input` raises AssertionError when a promise is broken: nothing escapes, every answer is one line of JSON-RPC 2.0,
no request gets two answers, and no answer comes to what is not in flight.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any, Literal

from longshore import Ask, Context, Limits, Server, ToolError
from longshore.server.link import Link
from longshore.wire.codec import read
from longshore.wire.framing import Framer, TooLong
from longshore.wire.messages import Message

LIMITS = Limits(frame_bytes=1 << 16)
HELLO = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"%s","capabilities":{"elicitation":{}},'
    b'"clientInfo":{"name":"f","version":"0"}}}'
)
SESSIONS = (b"", HELLO % b"2025-11-25", HELLO % b"2025-03-26", HELLO % b"2024-11-05")
"""What comes before the input: its first byte chooses."""
CODES = {-32700, -32600, -32601, -32602, -32603, -32002, -32021, -32022}
"""Every code that a server on stdio may send."""


def make_server() -> Server:
    app = Server("fuzz", limits=LIMITS)

    @app.tool(run="inline")
    def echo(text: str = "", count: int = 1, kind: Literal["a", "b"] = "a", rest: list[float] | None = None) -> str:
        return text * min(count, 3)

    @app.tool(run="inline")
    def fail(how: str = "") -> str:
        if how == "well":
            raise ToolError("as it was meant to")
        raise RuntimeError("secret")

    @app.tool(run="inline")
    def tell(ctx: Context) -> dict[str, Any]:
        ctx.progress(1)
        ctx.info("told")
        return {"meta": ctx.meta, "trace": ctx.trace, "client": ctx.client}

    @app.tool
    async def later(text: str = "") -> str:
        return text

    @app.tool
    def ask(ok: Annotated[bool, Ask("Sure?")]) -> str:
        return str(ok)

    @app.resource("r://{name}/{number}{?q}", run="inline")
    def part(name: str, number: int, q: str = "") -> str:
        return f"{name}{number}{q}"

    @app.prompt(run="inline")
    def write(topic: str, style: Literal["x", "y"] = "x") -> str:
        return topic

    return app


class _NoLoop:
    """Calls that need a loop are set going and never run: a fuzzer must be able to repeat what it did."""

    def is_running(self) -> bool:
        return False

    def call_soon(self, *_: Any) -> None:
        return None

    call_later = call_at = call_soon_threadsafe = call_soon


class Collector(Link):
    """Counts what is in flight, and what is answered."""

    __slots__ = ("answered", "asked", "nameless")

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[tuple[type, Any]] = Counter()
        self.answered: Counter[tuple[type, Any]] = Counter()
        self.nameless = 0

    def send(self, frame: bytes) -> None:
        assert b"\n" not in frame and len(frame.decode().splitlines()) == 1
        assert b"secret" not in frame
        said = json.loads(frame, parse_constant=_no_constant)
        for message in said if isinstance(said, list) else [said]:
            self._check(message)

    def _check(self, message: dict[str, Any]) -> None:
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            assert "result" not in message and "error" not in message
            return
        assert ("result" in message) != ("error" in message)
        if "error" in message:
            assert message["error"]["code"] in CODES and isinstance(message["error"]["message"], str)
            assert message["error"]["code"] != -32603 or "log has it" in message["error"]["message"], message
        if message["id"] is None:
            self.nameless += 1
        else:
            self.answered[type(message["id"]), message["id"]] += 1


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


_app = make_server()
_engine = _app.engine
_engine.executor.adopt_loop(_NoLoop())  # type: ignore[arg-type]


def one_input(data: bytes) -> None:
    """Play one input: a byte that chooses the session, then lines."""
    link = Collector()
    hello = SESSIONS[data[0] % len(SESSIONS)] if data else b""
    framer = Framer(LIMITS.frame_bytes)
    stream = hello + b"\n" + data[1:]
    chunk = 1 + (data[1] if len(data) > 1 else 0)
    frames = [frame for start in range(0, len(stream), chunk) for frame in framer.feed(stream[start : start + chunk])]
    frames += framer.close()
    try:
        for frame in frames:
            if isinstance(frame, TooLong):
                reply = _engine.too_long(frame, link)
                if reply is not None:
                    link.send(reply)
            else:
                _one_frame(bytes(frame), link)
    finally:
        _clean_up(link)


def _one_frame(frame: bytes, link: Collector) -> None:
    before, nameless, rows = link.answered.copy(), link.nameless, set(link.session.rows)
    batches = link.session.peer is not None and link.session.peer.revision.batches
    reply = _engine.handle(frame, link)
    if reply is not None:
        link.send(reply)
    message = read(frame, LIMITS.depth, LIMITS.batch)
    is_batch = batches and frame.lstrip()[:1] == b"["
    came = sum((link.answered - before).values()) + link.nameless - nameless
    if isinstance(message, Message) and not is_batch:
        wants = message.method != "" and isinstance(message.id, (int, str))
        begun = len(set(link.session.rows) - rows)
        assert came + begun == wants, (frame, came, begun)
    elif not is_batch:
        assert came <= 1, frame


def _clean_up(link: Collector) -> None:
    """Take back what was set going, so that inputs don't change each other."""
    for id in list(link.session.rows):
        _engine.cancel(link, id)
    assert not link.session.rows
    _engine.detach(link)
    executor = _engine.executor
    assert not executor.live and executor.running == executor.queued == executor._held == 0
