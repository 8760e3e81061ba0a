"""Attacks by code: forged messages on its socket, and the attacks on the terminal's sandbox, by their ids."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sandbox.confined_commands import BYPASSES, SECRET
from tests.toolsets.terminal.started import command_lines, own_children, until
from tests.waiting import eventually

from longshore import Client
from longshore.errors import ConnectionLost, ToolFailed
from longshore.protocol.content import ResourceLink
from longshore.registry.token_budget import count_tokens
from longshore.sandbox.descendants import descendants
from serving import serve
from trusting import Trusting

from .codes import Counting, connected, failure, make_server, run

SEND = "import os, sys\nfd = int(sys.argv[1])\ndef send(data):\n    while data: data = data[os.write(fd, data):]\n"
"""Writes to the code's own socket, past the part of the server that runs there."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The server's only folder, beside one that is not."""
    folder = Path(os.path.realpath(tmp_path)) / "project"
    folder.mkdir()
    (folder.parent / "secret").write_text(SECRET)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    return folder


# -- the socket


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("b'garbage\\n'", "can't be read"),
        ("b'\\xff\\xfe\\n'", "can't be read"),
        ("b'[]\\n'", "can't be read"),
        ('b\'{"id": "x", "tool": "add"}\\n\'', "can't be read"),
        ("b'{\"id\": 1e99}\\n'", "can't be read"),
        ('b\'{"id": 1, "tool": "add", "args": \' + b\'[\' * 100_000 + b\'\\n\'', "can't be read"),
        ('b\'{"done": "<code 99>"}\\n\'', "only the server's own part"),
        ("b'x' * (17 << 20)", "more than 16 MiB"),
    ],
)
async def test_a_forged_message_ends_the_code_alone(data: str, said: str) -> None:
    async with connected() as client:
        assert said in await failure(client, f"{SEND}send({data})\nwhile True: pass")
        assert await run(client, "tools.add(1)") == "2"


async def test_code_that_says_itself_that_it_is_done_gets_what_it_printed() -> None:
    async with connected() as client:
        code = f'{SEND}print("early", flush=True)\nsend(b\'{{"done": "<code>"}}\\n\')\nwhile True: pass'
        assert await run(client, code) == "early"
        assert await run(client, "1") == "1"


async def test_more_calls_than_may_run_wait_and_none_is_lost() -> None:
    app = make_server()
    async with connected(app) as client:
        code = "import asyncio\nlen(await asyncio.gather(*[tools.greet(str(n)) for n in range(3000)]))"
        assert await run(client, code) == "3000"
        assert app.catalog.tools["greet"].calls == 3000


async def test_code_that_reads_no_answers_is_held_up_and_ends_at_its_limit() -> None:
    app = make_server()

    @app.tool(run="inline")
    def large() -> str:
        return "x" * 1_000_000

    async with connected(app) as client:
        # The first answer to a forged id ends the thread that listens.
        code = f'{SEND}for n in range(2000): send(b\'{{"id": -1, "tool": "large"}}\\n\')'
        assert "did not end within 3 s" in await failure(client, code, timeout_ms=3000)
        assert 0 < app.catalog.tools["large"].calls < 200
        assert await run(client, "1") == "1"


async def test_a_half_message_at_the_end_is_no_call() -> None:
    app = make_server()
    async with connected(app) as client:
        code = f'{SEND}send(b\'{{"id": 1, "tool": "add", "kwargs": {{"a": 1}}}}\')\nos._exit(0)'
        assert "ended" in await failure(client, code)
        assert app.catalog.tools["add"].calls == 0


# -- rights


async def test_code_has_the_scopes_of_its_caller(folder: Path, trust: Trusting) -> None:
    app = make_server()

    @app.tool(scopes=["items:write"])
    def order() -> str:
        return "ordered"

    path = folder / "longshore.toml"
    path.write_text(
        f'[tokens.ann]\ntoken = "{"a" * 32}"\nscopes = ["items:write"]\n'
        f'[tokens.bob]\ntoken = "{"b" * 32}"\nscopes = []\n[auth]\nmode = "required"\n'
    )
    trust(path)
    with serve(app.asgi(config_path=str(path), rate=0)) as served:
        async with Client(served.url, auth="a" * 32) as ann, Client(served.url, auth="b" * 32) as bob:
            assert await run(ann, "tools.order()") == "ordered"
            with pytest.raises(ToolFailed, match="items:write"):
                await run(bob, "tools.order()")
            await run(ann, "secret = 7", session="s")
            with pytest.raises(ToolFailed, match="NameError"):
                await run(bob, "secret", session="s")


async def test_calls_of_code_count_against_the_rate_of_its_caller() -> None:
    app = make_server()
    with serve(app.asgi(rate=1, burst=5)) as served:
        async with Client(served.url) as client:
            text = await failure(client, "for n in range(10): print(tools.add(n))")
            assert "it was called too often" in text and "5\n" in text and "\n7" not in text


# -- the terminal's attacks


@pytest.mark.parametrize("bypass", BYPASSES)
async def test_tm_2_code_changes_nothing_outside_of_the_folder(folder: Path, bypass: str) -> None:
    async with connected() as client:
        script = BYPASSES[bypass].replace("sources", "../secret")
        await client.call_tool("run_code", {"code": f"import subprocess\nsubprocess.run({script!r}, shell=True)"})
        assert (folder.parent / "secret").read_text() == SECRET


async def test_code_reads_nothing_outside_of_the_folder(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent / "secret")
    async with connected() as client:
        for path in ("../secret", str(folder.parent / "secret"), "link", "/etc/shadow"):
            assert "Error" in await failure(client, f"open({path!r}).read()")


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
async def test_code_has_no_network(kind: str) -> None:
    import socket

    with socket.socket(socket.AF_INET, getattr(socket, kind)) as listener:
        listener.bind(("127.0.0.1", 0))
        if kind == "SOCK_STREAM":
            listener.listen()
        listener.setblocking(False)
        code = (
            f"import socket\ns = socket.socket(socket.AF_INET, socket.{kind})\n"
            f"s.connect(('127.0.0.1', {listener.getsockname()[1]}))\ns.send(b'x')"
        )
        async with connected() as client:
            await client.call_tool("run_code", {"code": code}, check=False)
        with pytest.raises(BlockingIOError):
            listener.recv(10) if kind == "SOCK_DGRAM" else listener.accept()


async def test_tm_3_a_fork_bomb_is_contained_while_the_server_answers() -> None:
    before = own_children()  # other tests of this process may have some
    async with connected(make_server(processes=32)) as client:
        code = (
            "import os\nprint('bomb', flush=True)\nwhile True:\n    try:\n        os.fork()\n    except OSError: pass"
        )
        running = asyncio.ensure_future(failure(client, code, timeout_ms=2000))
        for _ in range(20):
            assert (await client.call_tool("add", {"a": 1})).text == "2"
        assert "did not end" in await running
        await until(lambda: len(own_children() - before) <= 1)


async def test_tm_3_a_memory_hog_is_contained() -> None:
    async with connected(make_server(memory=128 << 20)) as client:
        await failure(client, "kept = []\nwhile True: kept.append(bytearray(10_000_000))")
        assert await run(client, "1") == "1"


async def test_tm_4_runaway_output_is_cut() -> None:
    async with connected() as client:
        arguments = {"code": "while True: print('y' * 1000)", "timeout_ms": 1500}
        answer = await client.call_tool("run_code", arguments, check=False)
        assert answer.is_error and isinstance(answer.content[1], ResourceLink)
        assert count_tokens(answer.content[0].text) <= 6000 and "left out" in answer.content[0].text


async def test_tm_5_daemons_end_with_the_code() -> None:
    nap = f"sleep 60.{os.getpid()}"
    async with connected() as client:
        code = (
            f"import subprocess\nsubprocess.Popen({nap.split()}, start_new_session=True)\n"
            f"subprocess.run('(setsid {nap} &) &', shell=True)\nNone"
        )
        await run(client, code)
        await until(lambda: not command_lines(nap))


async def test_tm_6_code_has_no_input_of_ours() -> None:
    async with connected() as client:
        assert await run(client, "import sys\nlen(sys.stdin.read())") == "0"


async def test_tm_7_variables_and_processes_of_the_server_are_invisible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHORE_TEST_TOKEN", SECRET)
    async with connected() as client:
        code = (
            "import os, glob\nfound = [str(dict(os.environ))]\nfor path in glob.glob('/proc/*/environ'):\n"
            "    try: found.append(open(path).read())\n    except OSError: pass\n''.join(found)"
        )
        assert SECRET not in await run(client, code)
        await client.call_tool("run_code", {"code": f"import os\nos.kill({os.getpid()}, 9)"}, check=False)
        assert await run(client, "1") == "1"


async def test_tm_8_escapes_are_neutralised() -> None:
    async with connected() as client:
        assert "\x1b" not in await run(client, r"print('\x1b]52;c;cHdu\a\x1b[2J\x9b31m')")


SERVER = """
import sys
from longshore import Server
from longshore.toolsets.code.options import CodeOptions
from longshore.toolsets.code.tools import Code
app = Server("killed", catalog="code")
app.add_toolset(Code(CodeOptions(), app))
app.run()
"""


async def test_tm_5_code_ends_with_a_killed_server(folder: Path) -> None:
    nap = f"sleep 61.{os.getpid()}"
    path = folder / "server.py"
    path.write_text(SERVER)
    async with Client([sys.executable, str(path)]) as client:
        code = f"import subprocess\nsubprocess.Popen({nap.split()}, start_new_session=True)\nwhile True: pass"
        running = asyncio.ensure_future(client.call_tool("run_code", {"code": code}))
        await until(lambda: command_lines(nap))
        pid = int(subprocess.run(["pgrep", "-f", str(path)], capture_output=True, text=True).stdout.split()[0])
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ConnectionLost):
            await running
    eventually("the end of the code", lambda: not command_lines(nap))


async def test_code_that_is_killed_ends_its_calls() -> None:
    counting, name = Counting(), f"killed {os.getpid()}"
    set_name = f"import ctypes\nctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)\n"
    async with connected(make_server(counting)) as client:
        running = asyncio.ensure_future(failure(client, f"{set_name}tools.meet()"))
        await until(lambda: counting.begun)
        [process] = [pid for pid in descendants(os.getpid()) if _name_of(pid) == name]  # not the one in reserve
        os.kill(process, signal.SIGKILL)
        assert "SIGKILL" in await running
        await until(lambda: counting.cancelled == 1)


def _name_of(pid: int) -> str:
    """The name that a process has given itself; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
    except OSError:
        return ""
