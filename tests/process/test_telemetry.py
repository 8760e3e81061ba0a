"""Sinks of a server on stdio: what it wrote when it has ended, and that it ends as soon as without them."""

from __future__ import annotations

import json
import subprocess
import sys

from .conftest import Workshop
from .peer import encode, initialize

SERVER = """
    from longshore import Server

    app = Server("small")

    @app.tool(run="inline")
    def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    async def later(a: int) -> int:
        return a
"""


def call(id: int, tool: str, **arguments: int) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def test_everything_is_written_before_the_process_ends(workshop: Workshop) -> None:
    path = workshop.write(SERVER)
    (workshop.folder / "longshore.toml").write_text('[telemetry]\nfile = "log.jsonl"\nhistory = "history.sqlite"\n')
    done = subprocess.run(
        [sys.executable, "-m", "longshore", "serve", str(path)],
        cwd=workshop.folder,
        env=workshop.env,
        input=b"".join((encode(initialize()), encode(call(1, "add", a=1, b=2)), encode(call(2, "later", a=1)))),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert len(done.stdout.splitlines()) == 3
    lines = [json.loads(line) for line in (workshop.folder / "log.jsonl").read_text().splitlines()]
    assert [(line["type"], line["id"]) for line in lines if line["type"] == "request_completed"] == [
        ("request_completed", "init"),
        ("request_completed", 1),
        ("request_completed", 2),
    ]
    kinds = [line["type"] for line in lines]
    assert kinds.count("session_opened") == kinds.count("session_closed") == 1
    assert kinds[-1] == "session_closed"
    assert {line["transport"] for line in lines} == {"stdio"}
    assert (workshop.folder / "history.sqlite").exists()
