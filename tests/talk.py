"""The client's side of a test: frames to a server in the same process, and what comes back.

talk(app, ("tools/list", {}), ("tools/call", {"name": "add"}), revision="2025-06-18")   # the two responses
call(app, "add", {"a": 1})                                                              # one tool's result
converse(app, script)                                                                   # `await script(client)`
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from longshore import Server
from longshore.protocol.revisions import NAMES
from memory_link import Memory

PREFIX = "io.modelcontextprotocol/"
OLDEST, NEWEST_LEGACY, NEWEST = NAMES[0], NAMES[3], NAMES[4]
ERAS = (NEWEST_LEGACY, NEWEST)
WAIT_SECONDS = 60.0
"""The longest that any test waits for anything."""

Params = dict[str, Any]
T = TypeVar("T")


class Refused(Exception):
    """A JSON-RPC error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class Client:
    """One peer of one revision. Notifications gather in `notes`, in the order in which they came."""

    def __init__(self, app: Server, revision: str = NEWEST_LEGACY) -> None:
        self.app, self.revision = app, revision
        self.notes: list[dict[str, Any]] = []
        self.capabilities: dict[str, Any] = {}
        self.answers: dict[Any, dict[str, Any]] = {}
        self._ids = itertools.count(1)
        self._memory = Memory(app.engine)

    @property
    def modern(self) -> bool:
        return self.revision == NEWEST

    async def open(self) -> dict[str, Any]:
        """Shake hands, where the revision has a handshake."""
        if self.modern:
            return await self.request("server/discover")
        info = {"name": "tests", "version": "1"}
        params = {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": info}
        result = await self.request("initialize", params)
        self.notify("notifications/initialized")
        return result

    def send(self, method: str, params: Params | None = None, meta: dict[str, Any] | None = None) -> int:
        """Send a request and return its id."""
        id = next(self._ids)
        params = dict(params or {})
        envelope = {
            PREFIX + "protocolVersion": self.revision,
            PREFIX + "clientCapabilities": self.capabilities,
            PREFIX + "clientInfo": {"name": "tests", "version": "1"},
        }
        meta = (envelope if self.modern else {}) | (meta or {})
        if meta:
            params["_meta"] = meta
        self._put({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def notify(self, method: str, params: Params | None = None) -> None:
        self._put({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    async def response(self, id: int) -> dict[str, Any]:
        """The whole response to a request; what comes before it is kept. The loop gets its turn even if it is there."""
        await asyncio.sleep(0)
        while id not in self.answers:
            await self._next()
        return self.answers.pop(id)

    async def request(
        self, method: str, params: Params | None = None, meta: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """A request's result; raises Refused for an error."""
        answer = await self.response(self.send(method, params, meta))
        if "error" in answer:
            raise Refused(answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    async def call_tool(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def heard(self, method: str) -> dict[str, Any]:
        """The next notification of a kind, taken out of `notes`."""
        while True:
            for note in self.notes:
                if note["method"] == method:
                    self.notes.remove(note)
                    return note
            await self._next()

    async def _next(self) -> None:
        message = json.loads(await asyncio.wait_for(self._memory.get(), WAIT_SECONDS))
        assert message["jsonrpc"] == "2.0"
        if "id" in message and "method" not in message:
            assert message["id"] not in self.answers, "answered twice"
            self.answers[message["id"]] = message
        else:
            self.notes.append(message)

    def _put(self, message: dict[str, Any]) -> None:
        self._memory.put(json.dumps(message).encode())

    def close(self) -> None:
        self._memory.close()


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something is so."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():
            await asyncio.sleep(0)


def converse(app: Server, script: Callable[[Client], Awaitable[T]], revision: str = NEWEST_LEGACY) -> T:
    """Run a script with an open client. Nothing of it outlives the call."""

    async def run() -> T:
        client = Client(app, revision)
        await client.open()
        try:
            return await asyncio.wait_for(script(client), 4 * WAIT_SECONDS)
        finally:
            client.close()

    return asyncio.run(run())


def talk(app: Server, *requests: tuple[str, Params], revision: str = NEWEST_LEGACY) -> list[dict[str, Any]]:
    """Send requests one after the other, and return their whole responses."""

    async def script(client: Client) -> list[dict[str, Any]]:
        return [await client.response(client.send(method, params)) for method, params in requests]

    return converse(app, script, revision)


def result(app: Server, method: str, params: Params | None = None, revision: str = NEWEST_LEGACY) -> dict[str, Any]:
    """One request's result; raises Refused for an error."""
    [answer] = talk(app, (method, params or {}), revision=revision)
    if "error" in answer:
        raise Refused(answer["error"])
    found: dict[str, Any] = answer["result"]
    return found


def call(app: Server, tool: str, arguments: Any = None, revision: str = NEWEST_LEGACY) -> dict[str, Any]:
    """One tool call's result."""
    return result(app, "tools/call", {"name": tool, "arguments": {} if arguments is None else arguments}, revision)


def text(result: dict[str, Any]) -> str:
    """The text of a result that has one text block and nothing else."""
    [block] = result["content"]
    assert block["type"] == "text"
    found: str = block["text"]
    return found


def listed(app: Server, name: str, revision: str = NEWEST) -> dict[str, Any]:
    """A tool as tools/list shows it."""
    [found] = [tool for tool in result(app, "tools/list", revision=revision)["tools"] if tool["name"] == name]
    return dict(found)
