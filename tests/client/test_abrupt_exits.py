"""Processes that end without closing their client: forgotten, interrupted, killed. No child may outlive them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from client.scripted import script
from waiting import PATIENCE, eventually, is_alive


def started(folder: Path) -> list[int]:
    path = folder / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


WITHOUT_CLOSING = """
import asyncio, sys
from longshore.client import Client, SyncClient
command = sys.argv[1:]
KIND
"""
KINDS = {
    "asyncio": """
async def main():
    client = Client(command, era="legacy")
    await client.open()
    print((await client.call_tool("x")).text, flush=True)
asyncio.run(main())
""",
    "asyncio, while calls wait": """
async def main():
    client = Client(command, era="legacy")
    await client.open()
    asyncio.ensure_future(client.call_tool("never"))
    print((await client.call_tool("x")).text, flush=True)
asyncio.run(main())
""",
    "sync": """
client = SyncClient(command, era="legacy")
client.open()
print(client.call_tool("x").text, flush=True)
""",
    "sync, then sys.exit": """
client = SyncClient(command, era="legacy")
client.open()
print(client.call_tool("x").text, flush=True)
sys.exit(0)
""",
    "sync, dropped": """
def work():
    client = SyncClient(command, era="legacy")
    client.open()
    print(client.call_tool("x").text, flush=True)
work()
import gc; gc.collect()
""",
}
SOMETIMES = """
mark('pids', str(os.getpid()))
for m in calls():
    if m["params"]["name"] == "x": reply(m, DONE)
"""


def start_client(folder: Path, body: str, *options: str, code: str = SOMETIMES) -> subprocess.Popen[bytes]:
    path = folder / "client.py"
    path.write_text(WITHOUT_CLOSING.replace("KIND", body))
    command = [sys.executable, *options, str(path), *script(folder, code)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("options", [(), ("-W", "error"), ("-X", "dev")], ids=["plainly", "-W error", "-X dev"])
@pytest.mark.parametrize("body", KINDS.values(), ids=list(KINDS))
def test_an_unclosed_client_leaves_no_child_and_no_output(tmp_path: Path, body: str, options: tuple[str, ...]) -> None:
    process = start_client(tmp_path, body, *options)
    out, err = process.communicate(timeout=PATIENCE)
    assert out == b"done\n"
    assert process.returncode == 0, err.decode()
    eventually("the child's end", lambda: not any(map(is_alive, started(tmp_path))))
    noise = err.decode()
    assert "Event loop is closed" not in noise
    if not options:
        assert noise == "", "who asks for warnings may get some, nobody else"


WAITING = """
async def main():
    async with Client(command, era="legacy") as client:
        print("up", flush=True)
        await client.call_tool("never")
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_child_of_a_client_that_was_killed_ends_by_itself(tmp_path: Path, number: int) -> None:
    process = start_client(tmp_path, WAITING)
    eventually("the child", lambda: started(tmp_path))
    assert process.stdout is not None and process.stdout.readline()
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    eventually("the child's end", lambda: not any(map(is_alive, started(tmp_path))))


def test_ctrl_c_while_a_call_waits(tmp_path: Path) -> None:
    """asyncio: the call is cancelled, the server told, the client closed."""
    code = "mark('pids', str(os.getpid()))\nfor m in asks():\n    mark('methods', m.get('method')); usual(m)"
    process = start_client(tmp_path, WAITING, code=code)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    eventually("the call", lambda: "tools/call" in (tmp_path / "methods").read_text())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (out, err) == (b"interrupted\n", b"")
    assert "notifications/cancelled" in (tmp_path / "methods").read_text()
    assert not any(map(is_alive, started(tmp_path)))
