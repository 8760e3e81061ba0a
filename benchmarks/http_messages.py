"""What is sent over HTTP in either era, and a connection that costs the generator little."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

PATH = "/mcp"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
ARGUMENTS, SUM = {"a": 20, "b": 22}, 42
CLIENT = {"name": "bench", "version": "1"}
BOTH = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
TIMEOUT = 30  # seconds for one answer

META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
MODERN_HEADERS = {**BOTH, "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "add"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(id: int, modern: bool) -> dict[str, Any]:
    """A `tools/call` of the one tool that every server has."""
    params: dict[str, Any] = {"name": "add", "arguments": ARGUMENTS}
    if modern:
        params["_meta"] = META
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def request(id: int, method: str, **params: Any) -> dict[str, Any]:
    """Any other request of the modern era."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}}


def request_headers(message: dict[str, Any]) -> dict[str, str]:
    """The headers that repeat a modern request."""
    name = message["params"].get("name")
    headers = {**BOTH, "MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
    return headers if name is None else {**headers, "Mcp-Name": name}


def session_headers(session: str) -> dict[str, str]:
    return {**BOTH, "MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": session}


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


class Unexpected(Exception):
    """An answer that no correct server gives; the message is the answer."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes = field(repr=False)


class Connection:
    """A kept-alive HTTP connection, without what http.client would spend on each request."""

    def __init__(self, port: int, receive: int = 0) -> None:
        """`receive` is how many bytes the system takes for who does not read; 0: as many as it likes."""
        self._socket = socket.socket()
        self._socket.settimeout(TIMEOUT)
        if receive:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self._socket.connect(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._host = f"127.0.0.1:{port}"
        self._buffer = b""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def post(self, message: dict[str, Any], headers: dict[str, str]) -> Answer:
        self.send("POST", headers, encode(message))
        return self._read()

    def ask(self, id: int, method: str, **params: Any) -> Any:
        """The result of a modern request."""
        message = request(id, method, **params)
        answer = self.post(message, request_headers(message))
        if answer.status != 200:
            raise Unexpected(f"{method} was answered {answer.status} {answer.body[:200]!r}")
        return json.loads(answer.body)["result"]

    def begin(self, verb: str, headers: dict[str, str], body: bytes | None = None) -> None:
        """Open a stream: its head and no more."""
        self.send(verb, headers, body)
        head = self._read_head()
        if head.status != 200 or head.headers.get("content-type") != "text/event-stream":
            raise Unexpected(f"a stream was answered {head.status} {head.headers}")

    def send(self, verb: str, headers: dict[str, str], body: bytes | None = None) -> None:
        lines = [f"{verb} {PATH} HTTP/1.1", f"Host: {self._host}"]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.write("\r\n".join([*lines, "", ""]).encode() + (body or b""))

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def open_session(self) -> str:
        """Shake hands; the new session's id."""
        answer = self.post(INITIALIZE, BOTH)
        session = answer.headers.get("mcp-session-id")
        if answer.status != 200 or session is None:
            raise Unexpected(f"initialize was answered {answer.status} {answer.body[:200]!r}")
        answer = self.post(INITIALIZED, session_headers(session))
        if answer.status != 202:
            raise Unexpected(f"notifications/initialized was answered {answer.status} {answer.body[:200]!r}")
        return session

    def check_call(self, id: int, modern: bool, headers: dict[str, str]) -> None:
        """One call whose answer is looked at whole."""
        answer = self.post(call(id, modern), headers)
        if answer.status != 200 or answer.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise Unexpected(f"a call was answered {answer.status} {answer.body[:200]!r}")
        message = json.loads(answer.body)
        result = message.get("result", {})
        texts = [content.get("text") for content in result.get("content", [])]
        right = message.get("id") == id and texts == [str(SUM)] and result.get("structuredContent") == {"result": SUM}
        if not right or result.get("isError"):
            raise Unexpected(f"the sum of {ARGUMENTS} came as {answer.body[:300]!r}")

    def _read(self) -> Answer:
        head = self._read_head()
        length = int(head.headers.get("content-length", "0"))
        while len(self._buffer) < length:
            self._receive()
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return Answer(head.status, head.headers, body)

    def _read_head(self) -> Answer:
        while b"\r\n\r\n" not in self._buffer:
            self._receive()
        head, _, rest = self._buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        self._buffer = rest
        return Answer(int(first.split()[1]), headers, b"")

    def _receive(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise Unexpected("the server closed the connection")
        self._buffer += data
