"""Plays a transcript over HTTP: every line is a POST on a connection of its own.

What is compared: every expected message comes, on a stream where it belongs (answers to a POST, and what is said while
it is answered, on its own response; notices that belong to no request on the session's GET stream, or on the listen
that asked for them), and on each stream in the order of the script. Between two streams HTTP has no order, so there
none is compared. Besides, the status of each response must be the one that goes with its content, notifications and
responses must be answered 202 with nothing, and by `--` nothing else may have come on any stream.

A line is sent as modern, with headers that repeat it, if it has a part of the envelope or a method of that era alone; a
cancel of a modern request is the client's hanging up. All other lines belong to the session that `initialize` began.
Before there is one, HTTP refuses them without looking (400, no id), whatever stdio would answer. What can't be so over
HTTP stands in `ELSEWHERE`.
"""

from __future__ import annotations

import asyncio
import json
import runpy
import time
from pathlib import Path
from select import select
from typing import Any

from longshore.transports.http.pending import RESPONSE
from posting import Session, modern_headers
from serving import SECONDS, Exchange, Served, serve

from .script import PREFIX, Checker, Expect, Quiet, Script, Send, fill, matches

FIXTURES = Path(__file__).with_name("fixtures.py")

ELSEWHERE = {
    ("listen", '"id":"sub","method":"subscriptions/listen"', 2): "each modern POST has ids of its own",
    ("listen", '"id":"sub","method":"tools/list"', 1): "each modern POST has ids of its own",
}
"""Lines that are not played: the transcript, a part of the line, the how-manieth such line; and why."""

_MODERN_ONLY = ("server/discover", "subscriptions/listen")
_CHANGES = ("list_changed", "resources/updated")
_LEGACY_STATUS = {-32700: 400, -32600: 400}
_MODERN_STATUS = {-32700: 400, -32600: 400, -32601: 404, -32020: 400, -32021: 400, -32022: 400}


def play_over_http(script: Script, name: str) -> None:
    app: Any = runpy.run_path(str(FIXTURES))[script.server]
    watched = Watched(app.asgi())
    with serve(watched, shut=[watched.app]) as server:
        player = Player(script, name, server, watched)
        player.play()
        player.leave()
        executor = app.engine.executor
        server.until(lambda: not watched.open, "the end of every request")
        assert server.look(lambda: (list(executor.live), executor.running)) == ([], 0)
        assert server.look(lambda: (set(app.engine.subscriptions.listens), set(app.engine.subscriptions.links))) == (
            set(),
            set(),
        )


class Watched:
    """The app, and which of its requests have been heard and which are over, by the client's port."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.heard: set[int] = set()
        self._open: set[int] = set()
        self._taken: dict[int, Any] = {}

    @property
    def open(self) -> set[int]:
        return self._open | {port for port, exchange in self._taken.items() if _goes_on(exchange)}

    def begin_post(self, exchange: Any) -> None:
        """Our own server calls this with a POST whose body is complete."""
        port = exchange.scope["client"][1]
        self.heard.discard(port)
        self.app.begin_post(exchange)
        self._taken[port] = exchange
        if exchange.task is None or RESPONSE in exchange.scope:
            self.heard.add(port)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        port = scope["client"][1]

        async def hear() -> Any:
            message = await receive()
            if not message.get("more_body"):
                asyncio.get_running_loop().call_soon(self.heard.add, port)  # by then it has been dealt with
            return message

        if RESPONSE not in scope:
            self.heard.discard(port)
        self._open.add(port)
        try:
            await self.app(scope, hear, send)
        finally:
            self._open.discard(port)


def _goes_on(exchange: Any) -> bool:
    return not (exchange.complete or exchange.gone) or (exchange.task is not None and not exchange.task.done())


class Source:
    """One response, and how much of it the script has seen."""

    def __init__(self, exchange: Exchange, line: Any, *, modern: bool) -> None:
        self.exchange, self.modern = exchange, modern
        self.port = exchange.port
        self.message = line
        self.taken = 0

    @property
    def id(self) -> Any:
        return self.message.get("id") if isinstance(self.message, dict) else None

    @property
    def listens(self) -> bool:
        return isinstance(self.message, dict) and self.message.get("method") == "subscriptions/listen"

    @property
    def rest(self) -> list[Any]:
        return self.exchange.messages[self.taken :]

    def may_carry(self, message: Any) -> bool:
        """Whether a message belongs here."""
        if isinstance(message, list):
            return isinstance(self.message, list)
        method = message.get("method", "")
        if self.message is None:
            return method.endswith(_CHANGES)
        if not method:
            wanted = [self.message] if isinstance(self.message, dict) else self.message
            return message["id"] is None or any(message["id"] == each.get("id") for each in wanted)
        if self.listens:
            return bool(message["params"]["_meta"][PREFIX + "subscriptionId"] == self.id)
        return not method.endswith(_CHANGES)

    def check_status(self) -> None:
        exchange = self.exchange
        if exchange.type == "text/event-stream" or not exchange.messages:
            assert exchange.status in (200, 202), exchange
        elif isinstance(exchange.json, dict) and "error" in exchange.json:
            code = exchange.json["error"]["code"]
            table = _MODERN_STATUS if self.modern else _LEGACY_STATUS
            allowed = (200, 400) if self.modern and code == -32602 else (table.get(code, 200),)
            assert exchange.status in allowed, exchange
        else:
            assert exchange.status == 200, exchange


class Player:
    def __init__(self, script: Script, name: str, server: Served, watched: Watched) -> None:
        self._script, self._name, self._server, self._watched = script, name, server, watched
        self._checker = Checker(script)
        self._session: Session | None = None
        self._sources: list[Source] = []
        self._seen: dict[str, int] = {}
        self._skip = False

    def play(self) -> None:
        for step in self._script.steps:
            match step:
                case Send(line, _):
                    self._skip = self._is_elsewhere(line)
                    if not self._skip:
                        self._send(fill(line, self._checker.kept))
                case Expect() if not self._skip:
                    self._expect(step)
                case Quiet():
                    self._check_quiet(step)
                case _:
                    pass

    def leave(self) -> None:
        """Hang up everywhere, and end the session."""
        if self._session is not None:
            assert self._session.delete().finish().status == 204
        for source in self._sources:
            source.exchange.close()

    def _is_elsewhere(self, line: str) -> bool:
        for stem, part, number in ELSEWHERE:
            if stem == self._name and part in line:
                self._seen[part] = self._seen.get(part, 0) + 1
                if self._seen[part] == number:
                    return True
        return False

    # -- sending

    def _send(self, line: str) -> None:
        message = _read(line)
        cancelled = self._in_flight(message)
        if cancelled is not None:
            cancelled.exchange.close()
            self._server.until(lambda: cancelled.port not in self._watched.open, "the end of a cancelled request")
        elif _is_modern(message):
            self._post(message, self._server.send("POST", "/mcp", modern_headers(message), line.encode()), modern=True)
        elif isinstance(message, dict) and message.get("method") == "initialize" and "id" in message:
            self._initialize(message, line)
        elif self._session is None:
            self._refused(line)
        else:
            self._post(message, self._session.post(line.encode()), modern=False)

    def _post(self, message: Any, exchange: Exchange, *, modern: bool) -> None:
        source = Source(exchange, message, modern=modern)
        self._server.until(lambda: source.port in self._watched.heard, "the hearing of a request")
        batches = self._session is not None and self._session.version == "2025-03-26"
        if _wants_answer(message) or (isinstance(message, list) and not batches):
            self._sources.append(source)
        else:
            exchange.finish()
            assert (exchange.status, exchange.body) == (202, b""), exchange

    def _initialize(self, message: Any, line: str) -> None:
        session = self._session or Session(self._server)
        headers = session.headers if session.id else []
        exchange = self._server.send("POST", "/mcp", headers, line.encode()).finish()
        self._sources.append(Source(exchange, message, modern=False))
        if "result" in exchange.json:
            session.version = exchange.json["result"]["protocolVersion"]
            if not session.id:
                session.id = exchange.headers["mcp-session-id"]
                self._session = session
                self._sources.append(Source(session.get().begin(), None, modern=False))
        assert "mcp-session-id" not in exchange.headers or exchange.headers["mcp-session-id"] == session.id

    def _refused(self, line: str) -> None:
        """There is no session yet."""
        exchange = self._server.send("POST", "/mcp", (), line.encode()).finish()
        assert exchange.status == 400, exchange
        assert exchange.json["id"] is None
        assert exchange.json["error"]["code"] in (-32600, -32700)
        assert "mcp-session-id" not in exchange.headers
        self._skip = True

    def _in_flight(self, message: Any) -> Source | None:
        """The modern request that a cancel is about."""
        if not isinstance(message, dict) or message.get("method") != "notifications/cancelled" or "id" in message:
            return None
        id = (message.get("params") or {}).get("requestId")
        running = [it for it in self._sources if it.modern and not it.exchange.ended and not it.exchange.lost]
        return next((it for it in running if it.id == id and type(it.id) is type(id)), None)

    # -- expecting

    def _expect(self, step: Expect) -> None:
        deadline = time.monotonic() + SECONDS
        left = list(step.values)
        while left:
            found = next((value for value in left if self._take(value)), None)
            if found is not None:
                left.remove(found)
            elif not self._read_more(deadline - time.monotonic()):
                came = "\n  ".join(json.dumps(it, ensure_ascii=False) for each in self._sources for it in each.rest)
                wanted = "\n  ".join(json.dumps(value, ensure_ascii=False) for value in left)
                raise AssertionError(f"line {abs(step.number)} expects\n  {wanted}\nand there came\n  {came}")

    def _take(self, value: Any) -> bool:
        for source in self._sources:
            for message in source.rest[:1]:
                trial = dict(self._checker.kept)
                if source.may_carry(message) and matches(value, message, trial):
                    self._checker.kept.update(trial)
                    source.taken += 1
                    source.check_status()
                    return True
        return False

    def _read_more(self, seconds: float) -> bool:
        live = [it.exchange for it in self._sources if not it.exchange.ended and not it.exchange.lost]
        ready = select([it.wire for it in live], [], [], max(0.0, seconds))[0]
        for exchange in live:
            if exchange.wire in ready:
                exchange.read(0)
        return bool(ready)

    def _check_quiet(self, step: Quiet) -> None:
        self._server.settle()
        while self._read_more(0):
            pass
        for source in self._sources:
            assert not source.rest, f"line {step.number}: nothing should have come, but\n  {source.rest}"
            if source.exchange.ended:
                source.check_status()
        self._sources = [it for it in self._sources if not it.exchange.ended and not it.exchange.lost]


def _read(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line


def _is_modern(message: Any) -> bool:
    if not isinstance(message, dict) or "method" not in message:
        return False
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return message["method"] in _MODERN_ONLY or (isinstance(meta, dict) and any(key.startswith(PREFIX) for key in meta))


def _wants_answer(message: Any) -> bool:
    if isinstance(message, list):
        return not message or any(isinstance(each, list) or _wants_answer(each) for each in message)
    if not isinstance(message, dict):
        return True
    return not ("method" in message and "id" not in message) and not ("result" in message or "error" in message)
