"""How long a server takes to end, with everything in flight that could hold it.

64 calls run: coroutines, a `def` in time.sleep(60), and one whose child process ignores SIGTERM. The promise is one
second, whatever the machine; there is no peer to compare with.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.load import Session

SOURCE = Path(__file__).parents[1] / "src"
PROMISED_SECONDS = 1.0
GIVE_UP_SECONDS = 20.0
CALLS = 64
SERVER = """
import asyncio, subprocess, sys, time
from longshore import Server
app = Server("mortal")
@app.tool(timeout=False)
async def wait() -> str:
    await asyncio.Event().wait()
    return ""
@app.tool(timeout=False)
def sleep() -> str:
    time.sleep(60)
    return ""
@app.tool(timeout=False)
def stubborn() -> str:
    subprocess.run([sys.executable, "-c", "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"])
    return ""
@app.tool(run="inline")
def running() -> int:
    return app.engine.executor.running
app.run()
"""


def frame(id: int, method: str, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


def time_one(path: str, signum: int | None) -> float:
    """Seconds from the signal (None: end of input, without its grace) to the end of the process."""
    environ = {**os.environ, "PYTHONPATH": str(SOURCE), "LONGSHORE_SERVER_EOF_GRACE": "0"}
    server = subprocess.Popen([sys.executable, path], stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, env=environ)
    assert server.stdin is not None and server.stdout is not None
    client = {"name": "bench", "version": "1"}
    server.stdin.write(frame(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client))
    for n, name in enumerate(["sleep", "stubborn", *["wait"] * (CALLS - 2)], 1):
        server.stdin.write(frame(n, "tools/call", name=name))
    server.stdin.flush()
    server.stdout.readline()
    for n in range(1000, 3000):
        server.stdin.write(frame(n, "tools/call", name="running"))
        server.stdin.flush()
        if json.loads(server.stdout.readline())["result"]["structuredContent"]["result"] == CALLS:
            break
    time.sleep(0.5)  # the child has to say that it ignores SIGTERM
    began = time.monotonic()
    if signum is None:
        server.stdin.close()
    else:
        server.send_signal(signum)
    try:
        server.wait(GIVE_UP_SECONDS)
    finally:
        server.kill()
    return time.monotonic() - began


def measure(session: Session) -> list[Claim]:
    claim = Claim("shutdown", f"Signal to end of process, {CALLS} calls in flight", "s")
    ways = {"SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT, "end of input, no grace": None}
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(SERVER)
        file.flush()
        for name, signum in ways.items():
            claim.add(name, [time_one(file.name, signum) for _ in range(session.pick(full=5, quick=2))])
    claim.targets = [Target(name, PROMISED_SECONDS) for name in ways]
    return [claim]


if __name__ == "__main__":
    sys.exit(main([measure]))
