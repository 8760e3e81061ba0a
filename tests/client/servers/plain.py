"""A server of the handshake era in a few lines, without any framework. Tests put their own loop behind it.

It is the beginning of a script, not a module: `odd.script` writes it out with what a test adds, which is nearly always
a loop over `calls()`, the requests that are not answered here as any good server would answer them.
"""

import json
import os
import sys
import time  # noqa: F401 - for what follows
from collections.abc import Iterator
from typing import Any

TOOL = {"name": "x", "inputSchema": {"type": "object"}}
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}, "logging": {}, "completions": {}}
DONE = {"content": [{"type": "text", "text": "done"}]}


def raw(data: bytes) -> None:
    """Write bytes as they are."""
    while data:
        data = data[os.write(1, data) :]


def send(message: Any) -> None:
    raw(json.dumps(message).encode() + b"\n")


def reply(m: Any, result: Any) -> None:
    send({"jsonrpc": "2.0", "id": m["id"], "result": result})


def refuse(m: Any, code: int = -32601, text: str = "no such method", **more: Any) -> None:
    send({"jsonrpc": "2.0", "id": m["id"], "error": {"code": code, "message": text, **more}})


def notify(method: str, **params: Any) -> None:
    send({"jsonrpc": "2.0", "method": method, "params": params})


def ask(id: Any, method: str, **params: Any) -> None:
    send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def text(words: str) -> Any:
    return {"content": [{"type": "text", "text": words}]}


def complain(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def mark(name: str, words: str = "") -> None:
    """Leave a line in a file beside the script, for the test to see."""
    with open(os.path.join(os.path.dirname(__file__), name), "a") as file:
        file.write(words + "\n")


def asks() -> Iterator[Any]:
    """Every message that comes, until the input ends."""
    while line := sys.stdin.readline():
        yield json.loads(line)


def greet(m: Any, **more: Any) -> None:
    """The answer to the handshake."""
    info = {"name": "odd", "version": "1"}
    version = m["params"]["protocolVersion"]
    reply(m, {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": info, **more})


def meet(m: Any, **more: Any) -> None:
    """The answer to a modern client's probe."""
    label = {"io.modelcontextprotocol/serverInfo": {"name": "odd", "version": "1"}}
    reply(m, {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES, "_meta": label, **more})


def usual(m: Any) -> bool:
    """Answer what every server answers."""
    match m.get("method"):
        case "initialize":
            greet(m)
        case "server/discover":
            refuse(m)
        case "ping" | "logging/setLevel":
            reply(m, {})
        case "tools/list":
            reply(m, {"tools": [TOOL]})
        case _:
            return "id" not in m
    return True


def calls() -> Iterator[Any]:
    """The requests that a test is about."""
    for m in asks():
        if not usual(m):
            yield m


def modern_calls() -> Iterator[Any]:
    """The same of a server of the modern era."""
    for m in asks():
        if m.get("method") == "server/discover":
            meet(m)
        elif "id" in m and (m.get("method") == "initialize" or not usual(m)):
            yield m
