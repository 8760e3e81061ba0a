"""A server on stdio that is right but for one thing, which its first argument names. Standard library only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

FAULT = sys.argv[1]


def write(message: Any) -> None:
    sys.stdout.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    sys.stdout.flush()


def tools() -> list[dict[str, Any]]:
    text = {"type": "string", "description": "A text."}
    schema = {"type": "object", "properties": {"text": text}, "required": ["text"], "additionalProperties": False}
    hints = {"readOnlyHint": True}
    found = [{"name": "say", "description": "Say a text.", "inputSchema": schema, "annotations": hints}]
    if FAULT == "schema":
        found.append({"name": "odd", "description": "Take anything.", "inputSchema": {"properties": {"x": True}}})
    return found


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    id, method = message.get("id"), message.get("method")
    if id is None:
        return None
    if FAULT == "any answer" and method not in ("initialize", "tools/list", None, "longshore/unknown"):
        return {"id": id, "result": {}}
    if method == "initialize":
        version = "2099-01-01" if FAULT == "version" else message["params"]["protocolVersion"]
        info = {"name": "broken", "version": "1"}
        return {"id": id, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "tools/list":
        return {"id": f"{id}!" if FAULT == "ids" else id, "result": {"tools": tools()}}
    code = -32600 if method is None else -32601
    return {"id": id, "error": {"code": code, "message": f"no method {method}"}}


def serve() -> None:
    while FAULT == "flood":
        sys.stdout.write("x" * 65536)
    if FAULT == "stdout":
        print("Server is starting…", flush=True)
    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            if FAULT == "malformed":
                raise
            write({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}})
            continue
        found = answer(message)
        if found is not None:
            write({"jsonrpc": "2.0", **found})


signal.signal(signal.SIGINT, signal.SIG_DFL)
if FAULT == "crash":
    raise RuntimeError("the database is locked")
if FAULT == "slow":
    with open(sys.argv[2], "rb") as pipe:  # as long as nobody writes to it
        pipe.read()
if FAULT == "silent":
    signal.pause()
if FAULT == "signal":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if FAULT == "child":
    quiet = subprocess.DEVNULL
    subprocess.Popen(["sleep", "1000"], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
serve()
if FAULT == "last words":
    sys.stdout.write("Bye!")
if FAULT == "end":
    signal.pause()
os._exit(0) if FAULT == "child" else sys.exit(0)
