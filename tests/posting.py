"""MCP messages as HTTP requests, in both eras, the way a careful client sends them."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

from serving import Exchange, Pairs, Served

PREFIX = "io.modelcontextprotocol/"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
HANDSHAKES = ("2025-03-26", "2025-06-18", "2025-11-25")
VERSION_HEADER = "2025-06-18"
"""The first revision whose clients say it in a header."""

Json = dict[str, Any]


def encode(message: Any) -> bytes:
    return json.dumps(message).encode()


def request(method: str, params: Json | None = None, id: Any = 1) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}


def notice(method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def call(tool: str, arguments: Json | None = None, id: Any = 1, **meta: Any) -> Json:
    """A `tools/call`, with a progress token or whatever else goes into its `_meta`."""
    params: Json = {"name": tool, "arguments": arguments or {}}
    return request("tools/call", params | ({"_meta": meta} if meta else {}), id)


def modern(message: Json, *, version: str = MODERN, capabilities: Json | None = None, **meta: Any) -> Json:
    """The message with the envelope of its era; `logLevel="info"` and the like go into it."""
    params = dict(message.get("params") or {})
    envelope = {"protocolVersion": version, "clientCapabilities": capabilities or {}, **meta}
    own = {PREFIX + name: value for name, value in envelope.items()}
    return message | {"params": params | {"_meta": (params.get("_meta") or {}) | own}}


def header_value(text: str) -> str:
    """A text as a header may hold it."""
    plain = text.isascii() and text.isprintable() and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def bearer(token: str) -> tuple[str, str]:
    """The header that holds a token."""
    return "Authorization", f"Bearer {token}"


def modern_headers(message: Any) -> Pairs:
    """What the headers must repeat of a modern message."""
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta") if isinstance(params.get("_meta"), dict) else {}
    version, method = meta.get(PREFIX + "protocolVersion"), message.get("method")
    headers = [("MCP-Protocol-Version", version if isinstance(version, str) else MODERN)]
    if isinstance(method, str) and "id" in message:
        headers.append(("Mcp-Method", method))
    about = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(str(method), "")
    if isinstance(params.get(about), str):
        headers.append(("Mcp-Name", header_value(params[about])))
    return headers


def post_modern(server: Served, message: Json, *headers: tuple[str, str], path: str = "/mcp") -> Exchange:
    """POST a message that has its envelope, with the headers that go with it. Those given replace them."""
    given = {name.lower() for name, _ in headers}
    usual = [pair for pair in modern_headers(message) if pair[0].lower() not in given]
    return server.send("POST", path, [*usual, *headers], encode(message))


def ask_modern(server: Served, message: Json, *headers: tuple[str, str]) -> Exchange:
    """POST a request without its envelope, which it gets, and wait for the answer."""
    return post_modern(server, modern(message), *headers).finish()


class Session:
    """A session of the handshake era."""

    def __init__(self, server: Served, version: str = LEGACY, *, path: str = "/mcp", headers: Pairs = ()) -> None:
        self.server, self.version, self.path = server, version, path
        self.id = ""
        self.extra = list(headers)
        """Sent with everything: credentials."""
        self._ids = itertools.count(100)

    def open(self, capabilities: Json | None = None, *, ready: bool = True) -> Session:
        answer = self.initialize(capabilities).finish()
        assert answer.status == 200, answer
        [result] = answer.messages
        assert result["result"]["protocolVersion"] == self.version
        self.id = answer.headers["mcp-session-id"]
        if ready:
            assert self.post(notice("notifications/initialized")).finish().status == 202
        return self

    def initialize(self, capabilities: Json | None = None, *headers: tuple[str, str]) -> Exchange:
        info = {"name": "tests", "version": "1"}
        params = {"protocolVersion": self.version, "capabilities": capabilities or {}, "clientInfo": info}
        body = encode(request("initialize", params, "init"))
        return self.server.send("POST", self.path, [*self.extra, *headers], body)

    @property
    def headers(self) -> list[tuple[str, str]]:
        version = [("MCP-Protocol-Version", self.version)] if self.version >= VERSION_HEADER else []
        return [("Mcp-Session-Id", self.id), *version, *self.extra]

    def post(self, message: Any, *headers: tuple[str, str]) -> Exchange:
        """POST a message, or bytes as they are."""
        body = message if isinstance(message, bytes) else encode(message)
        given = {name.lower() for name, _ in headers}
        usual = [pair for pair in self.headers if pair[0].lower() not in given]
        return self.server.send("POST", self.path, [*usual, *headers], body)

    def ask(self, method: str, params: Json | None = None) -> Any:
        """One request's answer."""
        message = request(method, params, next(self._ids))
        answer = self.post(message).finish()
        assert answer.messages[-1]["id"] == message["id"], answer
        return answer.messages[-1]

    def call(self, tool: str, /, **arguments: Any) -> str:
        """The text of a tool's result."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        return "".join(block["text"] for block in result["content"])

    def get(self, last: str | None = None, *headers: tuple[str, str]) -> Exchange:
        """Open the stream, or take one up after an event."""
        resume = [] if last is None else [("Last-Event-ID", last)]
        return self.server.send("GET", self.path, [*self.headers, *resume, ("Accept", "text/event-stream"), *headers])

    def delete(self) -> Exchange:
        return self.server.send("DELETE", self.path, self.headers)
