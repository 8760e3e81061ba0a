"""Counts the source files that one warm `tools/call` crosses, from a trace of the serving thread.

python -m benchmarks.path

The server runs in its own process. The inline tool `begin` sets a profile function that notes the file of every Python
function called; then one call of `add` is made, and `end` returns the files. So the trace holds everything between
the bytes read and the bytes written. A file that only defines records or tables runs no code in a call.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

TARGETS = {"stdio": 10, "HTTP 2026-07-28": 14}
"""How many files each may cross at most."""
ROUNDS = 10
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}

SERVER = """
import os, sys
import longshore
from longshore import Server

app = Server("path")
package = os.path.dirname(longshore.__file__) + os.sep
files = {}

def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(package):
        files.setdefault(frame.f_code.co_filename[len(package):])

@app.tool(run="inline")
def begin() -> str:
    files.clear()
    sys.setprofile(note)
    return "begun"

@app.tool(run="inline")
def end() -> list[str]:
    sys.setprofile(None)
    return list(files)

@app.tool(run="inline")
def add(a: int, b: int) -> int:
    return a + b

app.run(http=len(sys.argv) > 1, port=0 if len(sys.argv) > 1 else None)
"""


def main() -> int:
    """Print the files of each transport. 1: a target is missed."""
    missed = 0
    for name, trace in (("stdio", trace_stdio), ("HTTP 2026-07-28", trace_http)):
        files = trace()
        print(f"{name}: {len(files)} files (at most {TARGETS[name]})")
        for file in files:
            print(f"  {file}")
        missed |= len(files) > TARGETS[name]
    return missed


def trace_stdio() -> list[str]:
    """The files of a call on stdio, in the order in which they are first entered."""
    with _serve() as server:
        assert server.stdin is not None and server.stdout is not None
        stdin, stdout = server.stdin, server.stdout

        def send(request: dict[str, Any]) -> dict[str, Any]:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
            return json.loads(stdout.readline())

        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "path", "version": "1"}}
        send({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params})
        return _trace(send, {})


def trace_http() -> list[str]:
    """The files of a call over HTTP, on a connection that is kept alive."""
    with _serve("http") as server:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "http://" in line)
        address = line[line.index("http://") + len("http://") :].split()[0]
        host, _, path = address.partition("/")
        connection = http.client.HTTPConnection(host, timeout=30)

        def send(request: dict[str, Any]) -> dict[str, Any]:
            headers = {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": request["method"],
                "Mcp-Name": request["params"]["name"],
            }
            connection.request("POST", f"/{path}", json.dumps(request), headers)
            return json.loads(connection.getresponse().read())

        try:
            return _trace(send, {"_meta": META})
        finally:
            connection.close()


def _trace(send: Callable[[dict[str, Any]], dict[str, Any]], params: dict[str, Any]) -> list[str]:
    def call(name: str, id: int, **arguments: Any) -> Any:
        request = {"name": name, "arguments": arguments, **params}
        return send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": request})["result"]

    traces: list[list[str]] = []
    for id in range(0, 3 * ROUNDS, 3):
        call("begin", id)
        call("add", id + 1, a=1, b=2)
        traces.append(call("end", id + 2)["structuredContent"]["result"])
    # The smallest: work that waits until the client is idle falls into one of them.
    return [file.replace(os.sep, "/") for file in min(traces, key=len)]


class _serve:
    """A server process, ended at the end of the block."""

    def __init__(self, *arguments: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        path = os.path.join(self._folder.name, "server.py")
        with open(path, "w") as file:
            file.write(SERVER)
        pipe = subprocess.PIPE
        environment = {**os.environ, "HOME": self._folder.name}
        self._process = subprocess.Popen(
            [sys.executable, path, *arguments],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe if arguments else None,
            text=True,
            env=environment,
            cwd=self._folder.name,
        )

    def __enter__(self) -> subprocess.Popen[str]:
        return self._process

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()


if __name__ == "__main__":
    sys.exit(main())
