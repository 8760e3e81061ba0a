"""A client in both eras, frame by frame, so that a test says one thing once and sees it on either wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from longshore import Server
from longshore.protocol.peer import Principal
from memory_link import Memory

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS = (LEGACY, MODERN)
ALL = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
PATIENCE = 60.0
"""Seconds that any wait may take before the test fails."""

Answer = Callable[[str, dict[str, Any]], Any]
"""From a key and the request to the result of it."""


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


DECLINE: dict[str, Any] = {"action": "decline"}


def run(main: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(PATIENCE):
            return await main

    return asyncio.run(bounded())


class Client:
    """One peer of a server in memory."""

    def __init__(
        self,
        app: Server,
        era: str = MODERN,
        capabilities: dict[str, Any] | None = None,
        principal: str = "local",
    ) -> None:
        self.link = Memory(app.engine)
        self.link.principal = Principal(principal)
        self.era = era
        self.capabilities = ALL if capabilities is None else capabilities
        self.asked: list[dict[str, Any]] = []
        """Every request that was put to us, as `{"method": …, "params": …}`."""
        self._next = 0
        if era != MODERN:
            self._shake_hands()

    @property
    def modern(self) -> bool:
        return self.era == MODERN

    def _shake_hands(self) -> None:
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": self.era, "capabilities": self.capabilities, "clientInfo": info}
        self.put({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})
        self.put({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert self.link.pending() == 1
        reply = self.link._frames.get_nowait()
        assert json.loads(reply)["result"]["protocolVersion"] == self.era

    # -- frames

    def put(self, message: Any) -> None:
        self.link.put(json.dumps(message).encode())

    async def get(self) -> Any:
        async with asyncio.timeout(PATIENCE):
            return json.loads(await self.link.get())

    def send(self, method: str, params: dict[str, Any]) -> int:
        """Send a request, with the envelope if the era has one. Its id."""
        self._next += 1
        if self.modern:
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            }
            params = {**params, "_meta": meta}
        self.put({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    async def request(self, method: str, **params: Any) -> Any:
        """Send a request; the next frame must be its answer."""
        id = self.send(method, params)
        reply = await self.get()
        assert reply.get("id") == id, reply
        return reply

    # -- calls

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> Any:
        """A `tools/call` of one round, whatever comes back."""
        return await self.request("tools/call", name=name, arguments=arguments or {}, **more)

    async def converse(self, method: str, params: dict[str, Any], answer: Answer) -> Any:
        """A request with all its rounds, each question answered by `answer`. The last reply."""
        if not self.modern:
            return await self._converse_by_requests(self.send(method, params), answer)
        reply = await self.request(method, **params)
        while reply.get("result", {}).get("resultType") == "input_required":
            requests = reply["result"]["inputRequests"]
            self.asked += requests.values()
            responses = {key: answer(key, asked) for key, asked in requests.items()}
            state = reply["result"]["requestState"]
            reply = await self.request(method, **params, inputResponses=responses, requestState=state)
        return reply

    async def _converse_by_requests(self, id: int, answer: Answer) -> Any:
        while True:
            frame = await self.get()
            if frame.get("id") == id and "method" not in frame:
                return frame
            self.asked.append({"method": frame["method"], "params": frame["params"]})
            self.put({"jsonrpc": "2.0", "id": frame["id"], "result": answer(key_of(frame), frame)})

    async def tool(self, name: str, arguments: dict[str, Any], answer: Answer) -> Any:
        """A tool call with all its rounds. Its result."""
        reply = await self.converse("tools/call", {"name": name, "arguments": arguments}, answer)
        return reply["result"]


def key_of(frame: Any) -> str:
    """The key of a question in the handshake era: the one field of its form."""
    properties = frame["params"].get("requestedSchema", {}).get("properties", {})
    return next(iter(properties), "")


def text(result: Any) -> str:
    return "".join(block["text"] for block in result["content"])


def failed(result: Any) -> str:
    """The text of a result that must be an error."""
    assert result["isError"] is True, result
    return text(result)
