"""A client of the fixture server, frame by frame, in both eras: in this process, and over HTTP.

async with connect("memory", MODERN) as peer:
    reply = await peer.request("tools/call", {"name": "test_simple_text"})
"""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx

from memory_link import Memory

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ALL: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
PREFIX = "io.modelcontextprotocol/"
PATIENCE = 60.0
"""Seconds that any wait may take before the test fails."""

HERE = Path(__file__).parent
Json = dict[str, Any]
Answer = Callable[[Json], Json]
"""From a question, `{"method": …, "params": …}`, to its result; an `{"error": …}` refuses it."""


def refuse_all(question: Json) -> Json:
    raise AssertionError(f"nothing should have been asked: {question}")


class Peer:
    """One client. What the server says unasked gathers in `notes`; what it asks, in `asked`."""

    def __init__(self, era: str, capabilities: Json) -> None:
        self.era, self.capabilities = era, capabilities
        self.inbox: asyncio.Queue[Json] = asyncio.Queue()
        self.notes: list[Json] = []
        self.asked: list[Json] = []
        self.answer: Answer = refuse_all
        self._replies: dict[int, Json] = {}
        self._ids = 0

    async def put(self, message: Json) -> None:
        """Send one message."""
        raise NotImplementedError

    @property
    def modern(self) -> bool:
        return self.era == MODERN

    async def open(self) -> None:
        if not self.modern:
            info = {"name": "tests", "version": "1"}
            params = {"protocolVersion": self.era, "capabilities": self.capabilities, "clientInfo": info}
            assert (await self.request("initialize", params))["result"]["protocolVersion"] == self.era
            await self.put({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def send(self, method: str, params: Json | None = None, meta: Json | None = None) -> int:
        """Send a request, with the envelope if the era has one. Its id."""
        self._ids += 1
        meta = dict(meta or {})
        if self.modern:
            meta |= {PREFIX + "protocolVersion": MODERN, PREFIX + "clientCapabilities": self.capabilities}
        params = {**(params or {}), **({"_meta": meta} if meta else {})}
        await self.put({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        return self._ids

    async def request(self, method: str, params: Json | None = None, meta: Json | None = None) -> Json:
        """A request and its reply, in one round."""
        id = await self.send(method, params, meta)
        while id not in self._replies:
            await self._take()
        return self._replies.pop(id)

    async def converse(self, method: str, params: Json, answer: Answer) -> Json:
        """A request with all its rounds, each question answered by `answer`. The last reply."""
        self.answer = answer
        reply = await self.request(method, params)
        while reply.get("result", {}).get("resultType") == "input_required":
            result = reply["result"]
            self.asked += result["inputRequests"].values()
            responses = {key: answer(question) for key, question in result["inputRequests"].items()}
            state = {"requestState": result["requestState"], "inputResponses": responses}
            reply = await self.request(method, {**params, **state})
        return reply

    async def call(self, tool: str, answer: Answer = refuse_all, meta: Json | None = None, **arguments: Any) -> Json:
        """A tool's result, after all its rounds. Questions and `meta` don't go together."""
        params = {"name": tool, "arguments": arguments}
        if meta is not None:
            return (await self.request("tools/call", params, meta))["result"]
        return (await self.converse("tools/call", params, answer))["result"]

    async def heard(self, method: str) -> Json:
        """The next notification of a kind, taken out of `notes`."""
        while True:
            for note in self.notes:
                if note["method"] == method:
                    self.notes.remove(note)
                    return note
            await self._take()

    async def _take(self) -> None:
        async with asyncio.timeout(PATIENCE):
            message = await self.inbox.get()
        if "method" not in message:
            self._replies[message["id"]] = message
        elif "id" not in message:
            self.notes.append(message)
        else:
            assert not self.modern, f"a request of the server's in the stateless era: {message}"
            self.asked.append(message)
            answer = self.answer(message)
            body = answer if "error" in answer else {"result": answer}
            await self.put({"jsonrpc": "2.0", "id": message["id"], **body})


class MemoryPeer(Peer):
    """A client in the server's own process."""

    def __init__(self, link: Memory, era: str, capabilities: Json) -> None:
        super().__init__(era, capabilities)
        self._link = link

    async def put(self, message: Json) -> None:
        self._link.put(json.dumps(message).encode())

    async def carry(self) -> None:
        """Bring the server's frames to the inbox."""
        while True:
            self.inbox.put_nowait(json.loads(await self._link.get()))


class HttpPeer(Peer):
    """A client over HTTP: one POST for each message, and in the handshake era a stream for what comes unasked."""

    def __init__(self, client: httpx.AsyncClient, url: str, era: str, capabilities: Json) -> None:
        super().__init__(era, capabilities)
        self._client, self._url = client, url
        self._session: dict[str, str] = {}
        self.tasks: dict[Any, asyncio.Task[None]] = {}
        """By the id of the request whose exchange it is."""

    async def open(self) -> None:
        await super().open()
        if not self.modern:
            ready = asyncio.Event()
            self.tasks["stream"] = asyncio.create_task(self._exchange("GET", None, {}, ready))
            async with asyncio.timeout(PATIENCE):
                await ready.wait()

    async def put(self, message: Json) -> None:
        params = message.get("params", {})
        headers = {"content-type": "application/json"}
        if self.modern:
            headers |= {"mcp-protocol-version": MODERN, "mcp-method": message["method"]}
            name = params.get("name", params.get("uri"))
            headers |= {} if name is None else {"mcp-name": name}
        task = asyncio.create_task(self._exchange("POST", message, headers, asyncio.Event()))
        self.tasks[message.get("id", task)] = task
        if "id" not in message or "method" not in message:
            await task  # accepted: whatever is sent next comes after it

    async def _exchange(self, method: str, message: Json | None, headers: dict[str, str], ready: asyncio.Event) -> None:
        headers = {"accept": "application/json, text/event-stream", **headers, **self._session}
        async with self._client.stream(method, self._url, json=message, headers=headers) as response:
            ready.set()
            if "mcp-session-id" in response.headers:
                session = response.headers["mcp-session-id"]
                self._session = {"mcp-session-id": session, "mcp-protocol-version": self.era}
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                async for line in response.aiter_lines():
                    if line.startswith("data:") and line[5:].strip():
                        self.inbox.put_nowait(json.loads(line[5:]))
                return
            body = await response.aread()
            if body:
                self.inbox.put_nowait(json.loads(body))

    async def hang_up(self, id: int) -> None:
        """End one exchange from our side."""
        self.tasks[id].cancel()
        await asyncio.gather(self.tasks[id], return_exceptions=True)


@asynccontextmanager
async def connect(where: str, era: str, capabilities: Json | None = None) -> AsyncIterator[Peer]:
    """A client that is ready: of a fresh server in memory, or of the one at an address."""
    able = ALL if capabilities is None else capabilities
    async with asyncio.timeout(4 * PATIENCE):
        opened = _connect_memory(fresh_app(), era, able) if where == "memory" else _connect_http(where, era, able)
        async with opened as peer:
            await peer.open()
            yield peer


def fresh_app() -> Any:
    """The fixture server, made anew."""
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    return runpy.run_path(str(HERE / "server.py"))["app"]


@asynccontextmanager
async def _connect_memory(app: Any, era: str, capabilities: Json) -> AsyncIterator[Peer]:
    link = Memory(app.engine)
    peer = MemoryPeer(link, era, capabilities)
    carrier = asyncio.create_task(peer.carry())
    try:
        yield peer
    finally:
        carrier.cancel()
        link.close()


@asynccontextmanager
async def _connect_http(url: str, era: str, capabilities: Json) -> AsyncIterator[Peer]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=4 * PATIENCE, limits=limits, trust_env=False) as client:
        peer = HttpPeer(client, url, era, capabilities)
        try:
            yield peer
        finally:
            for task in peer.tasks.values():
                task.cancel()
            done = await asyncio.gather(*peer.tasks.values(), return_exceptions=True)
            assert not [problem for problem in done if isinstance(problem, AssertionError)], done
