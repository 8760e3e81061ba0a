"""SyncClient: in a script, a thread, a notebook; interrupted; closed by another thread."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from client.scripted import nothing_left, script
from longshore import Client, Context, Server
from longshore.client import SyncClient
from longshore.errors import BadAnswer, CallTimeout, ClientError, ConnectError, ConnectionLost, ServerError, ToolFailed
from waiting import PATIENCE, eventually, is_alive

SOMETIMES = """
mark('pids', str(os.getpid()))
for m in asks():
    mark('methods', m.get('method'))
    if not usual(m) and m["params"].get("name") != "never": reply(m, DONE)
"""


def connect_to(folder: Path, code: str = SOMETIMES, **options: Any) -> SyncClient:
    return SyncClient(script(folder, code), **{"era": "legacy", "timeout": 10.0, **options})


def started(folder: Path) -> list[int]:
    path = folder / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def make_server() -> Server:
    app = Server("sync")

    @app.tool(effects="read", run="inline")
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @app.tool
    async def steps(ctx: Context) -> str:
        """Tell how far it is."""
        for n in range(3):
            await ctx.progress(n, 3)
        return "done"

    @app.resource("test://x")
    async def thing() -> str:
        """A thing."""
        return "it"

    @app.prompt
    async def poem(about: str) -> str:
        """A poem."""
        return f"write about {about}"

    return app


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_everything_once(era: str) -> None:
    with nothing_left(), SyncClient(make_server(), era=era) as client:
        assert [tool.name for tool in client.list_tools()] == ["add", "steps"]
        assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"
        assert client.call_tool("add", {"a": 1, "b": 2}, returns=int) == 3
        assert client.read_resource("test://x")[0].text == "it"
        assert client.get_prompt("poem", {"about": "sea"}).messages[0].content.text == "write about sea"  # type: ignore[union-attr]
        assert [each.uri for each in client.list_resources()] == ["test://x"]
        assert client.list_templates() == []
        assert [each.name for each in client.list_prompts()] == ["poem"]
        seen: list[float] = []
        assert client.call_tool("steps", on_progress=lambda at, *_: seen.append(at)).text == "done"
        assert seen == [0, 1, 2]
        client.ping()
        assert client.server.name == "sync"
        assert client.request("tools/list")["tools"]
        assert client.problems == []
        with pytest.raises(ToolFailed):
            client.call_tool("add", {"a": "x", "b": 1})
        with pytest.raises(ServerError):
            client.read_resource("test://y")
        with pytest.raises(BadAnswer):
            client.call_tool("add", {"a": 1, "b": 2}, returns=list[str])


def test_a_child(tmp_path: Path) -> None:
    with nothing_left():
        client = connect_to(tmp_path)
        for _ in range(3):
            with client:
                assert client.call_tool("x").text == "done"
                with pytest.raises(CallTimeout):
                    client.call_tool("never", timeout=0.2)
            with pytest.raises(ConnectError, match="not open; write `with SyncClient"):
                client.call_tool("x")
            client.close()
    assert "notifications/cancelled" in (tmp_path / "methods").read_text()


def test_a_failed_open_leaves_nothing(tmp_path: Path) -> None:
    with nothing_left():
        client = SyncClient(["no-such-program"])
        for _ in range(3):
            with pytest.raises(ConnectError, match="no program"):
                client.open()
        with pytest.raises(ConnectError, match="not open"):
            client.ping()


def test_inside_a_running_loop(tmp_path: Path) -> None:
    """As in a notebook, whose cells run on a loop."""

    async def cell() -> None:
        with connect_to(tmp_path) as client:
            assert client.call_tool("x").text == "done"

    with nothing_left():
        asyncio.run(cell())


def test_from_several_threads_at_once(tmp_path: Path) -> None:
    code = "for m in calls(): reply(m, text(m['params']['name']))"
    wrong: list[Any] = []
    with nothing_left(), connect_to(tmp_path, code) as client:

        def work(n: int) -> None:
            for k in range(50):
                found = client.call_tool(f"{n}-{k}").text
                if found != f"{n}-{k}":
                    wrong.append(found)

        workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(PATIENCE)
        assert not any(worker.is_alive() for worker in workers)
    assert not wrong


WAITS = {
    "for an answer": (SOMETIMES, lambda client: client.call_tool("never", timeout=None)),
    "for a new connection": (
        """
died = os.path.exists(os.path.join(os.path.dirname(__file__), "died"))
while died: time.sleep(1)
TOOL["annotations"] = dict(readOnlyHint=True)
for m in calls():
    mark("died")
    os._exit(1)
""",
        lambda client: (client.list_tools(), client.call_tool("x", timeout=None)),
    ),
    "for a handler": (
        """
for m in modern_calls():
    question = dict(method="elicitation/create", params=dict(message="?", requestedSchema={}))
    reply(m, dict(resultType="input_required", inputRequests=dict(q=question)))
""",
        lambda client: client.call_tool("x", timeout=None),
    ),
    "for changes": (SOMETIMES, lambda client: first_change(client)),
}


def first_change(client: SyncClient) -> Any:
    with client.watch(tools=True) as changes:
        return next(iter(changes))


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.usefixtures("hurried")
def test_closing_in_one_thread_ends_the_wait_in_another(tmp_path: Path, name: str) -> None:
    code, wait = WAITS[name]
    waits = threading.Event()

    async def think(_: Any) -> None:
        waits.set()
        await asyncio.sleep(1000)

    ends: list[BaseException] = []

    def work() -> None:
        try:
            wait(client)
        except BaseException as end:
            ends.append(end)

    with nothing_left():
        era = "modern" if "modern" in code else "legacy"
        client = connect_to(tmp_path, code, on_elicit=think, era=era, timeout=None)
        client.open()
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        match name:
            case "for a handler":
                assert waits.wait(PATIENCE)
            case "for a new connection":
                eventually("that it died", (tmp_path / "died").exists)
                worker.join(0.4)
            case "for an answer":
                eventually("the call", lambda: "tools/call" in (tmp_path / "methods").read_text())
            case _:
                worker.join(0.2)
        client.close()
        worker.join(5)
        assert not worker.is_alive(), "it waits for ever"
    assert len(ends) == 1
    assert isinstance(ends[0], ClientError), repr(ends[0])


def test_a_plain_handler_may_use_its_client(tmp_path: Path) -> None:
    """It runs on a thread of its own, as the client does."""
    code = """
        for m in calls():
            if m["params"]["name"] == "inner":
                reply(m, DONE)
                continue
            ask("q", "elicitation/create", message="?", requestedSchema=dict(properties=dict(said={})))
            for other in asks():
                if "method" not in other: break
                reply(other, DONE)
            reply(m, text(json.dumps(other["result"])))
    """
    with nothing_left():
        client = connect_to(tmp_path, code, on_elicit=lambda _: client.call_tool("inner").text)
        with client:
            assert client.call_tool("x", returns=dict[str, Any]) == {"action": "accept", "content": {"said": "done"}}


TOLD = {
    "on_log": "notify('notifications/message', level='info', data='x')",
    "on_progress": "notify('notifications/progress', progressToken=m['params']['_meta']['progressToken'], progress=1)",
}


@pytest.mark.parametrize("name", TOLD)
def test_callbacks_on_the_clients_thread_cannot_use_the_sync_client(tmp_path: Path, name: str) -> None:
    raised: list[Exception] = []

    def told(*_: Any) -> None:
        try:
            client.call_tool("x")
        except Exception as problem:
            raised.append(problem)

    with nothing_left():
        code = f"for m in calls(): {TOLD[name]}; reply(m, DONE)"
        client = connect_to(tmp_path, code, **({name: told} if name == "on_log" else {}))
        with client:
            assert client.call_tool("x", **({name: told} if name == "on_progress" else {})).text == "done"
            eventually("that it was told", lambda: raised)
    [problem] = raised
    assert isinstance(problem, ConnectError)
    assert "use Client and async def" in str(problem)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_handler_that_waits_for_a_person_does_not_hold_up_a_close(tmp_path: Path, era: str) -> None:
    """As `input()` does, which nothing can end."""
    begun, leave = threading.Event(), threading.Event()

    def elicit(_: Any) -> bool:
        begun.set()
        return leave.wait(PATIENCE)

    code = """
for m in calls(): ask("q", "elicitation/create", message="?", requestedSchema={})
"""
    ends: list[BaseException] = []

    def work() -> None:
        try:
            client.call_tool("x", timeout=None)
        except BaseException as end:
            ends.append(end)

    with nothing_left():
        client = connect_to(tmp_path, code if era == "legacy" else WAITS["for a handler"][0], on_elicit=elicit, era=era)
        client.open()
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        assert begun.wait(PATIENCE)
        client.close()
        assert not leave.is_set()
        worker.join(PATIENCE)
        assert [isinstance(end, ClientError) for end in ends] == [True], ends
        leave.set()


def test_a_handler_that_blocks_the_clients_thread_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.sync.CLOSE_SECONDS", 0.2)
    monkeypatch.setattr("longshore.client.sync._END_SECONDS", 0.1)
    begun, leave = threading.Event(), threading.Event()

    def log(_: Any) -> None:
        begun.set()
        leave.wait(PATIENCE)

    def call() -> None:
        with suppress(ClientError):
            client.call_tool("x")

    with nothing_left():
        client = connect_to(tmp_path, f"for m in calls(): {TOLD['on_log']}", on_log=log)
        client.open()
        worker = threading.Thread(target=call, daemon=True)
        worker.start()
        assert begun.wait(PATIENCE)
        with pytest.raises(CallTimeout, match=r"closed within 0\.2 s: a handler of yours"):
            client.close()
        client.close()
        leave.set()
        worker.join(PATIENCE)
        assert not worker.is_alive(), "what was begun is done as soon as it can be"


@pytest.mark.parametrize("raised", [KeyError("x"), SystemExit(3), StopIteration()], ids=repr)
def test_an_exception_of_a_threaded_handler_is_reported(tmp_path: Path, raised: BaseException) -> None:
    def elicit(_: Any) -> None:
        raise raised

    with nothing_left(), connect_to(tmp_path, WAITS["for a handler"][0], on_elicit=elicit, era="modern") as client:
        assert client.connected
        with pytest.raises(ClientError, match=type(raised).__name__):
            client.call_tool("x")


def test_ctrl_c_cancels_the_call_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "client.py"
    path.write_text("""
import sys
from longshore.client import SyncClient
with SyncClient(sys.argv[1:], era="legacy") as client:
    print("up", flush=True)
    try:
        client.call_tool("never")
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(client.call_tool("x").text, flush=True)
    client.call_tool("never")
""")
    command = [sys.executable, str(path), *script(tmp_path, SOMETIMES)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"

    def calls() -> int:
        return (tmp_path / "methods").read_text().count("tools/call")

    eventually("the call", lambda: calls() == 1)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == b"interrupted\n"
    assert process.stdout.readline() == b"done\n", "the client is as good as before"
    assert "notifications/cancelled" in (tmp_path / "methods").read_text()
    eventually("the last call", lambda: calls() == 3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGINT
    assert err.decode().strip().endswith("KeyboardInterrupt")
    assert "Event loop is closed" not in err.decode()
    assert "never retrieved" not in err.decode()
    eventually("the child's end", lambda: not any(map(is_alive, started(tmp_path))))


def test_a_lost_server_is_a_plain_exception(tmp_path: Path) -> None:
    with nothing_left(), connect_to(tmp_path, "for m in calls(): complain('bye'); sys.exit(3)") as client:
        with pytest.raises(ConnectionLost, match="exit code 3") as caught:
            client.call_tool("x")
        assert "| bye" in str(caught.value)


@pytest.mark.parametrize("mode", ["inline", "thread", "async"])
def test_the_traceback_of_a_failing_tool_is_printed_and_masked_in_the_answer(
    mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = Server("shop")

    def divide(by: int) -> int:
        """Divide a secret."""
        return len("secret") // by

    async def divide_later(by: int) -> int:
        """Divide a secret."""
        return divide(by)

    app.tool(name="divide", run=None if mode == "async" else mode)(divide_later if mode == "async" else divide)  # type: ignore[arg-type]
    with SyncClient(app) as client:
        answer = client.call_tool("divide", {"by": 0}, check=False).text
    printed = capsys.readouterr().err
    assert "ZeroDivisionError" not in answer
    assert printed.count("ZeroDivisionError: integer division") == 1
    assert 'return len("secret") // by' in printed
    assert "longshore/server" not in printed, "no frames of the framework"
    assert answer.rsplit(" ", 1)[1] in printed, "the number that the answer names"


def test_two_loops_share_one_server() -> None:
    app = Server("demo")
    inside, go_on = threading.Event(), threading.Event()

    @app.tool
    async def where() -> int:
        return threading.get_ident()

    @app.tool
    async def slow() -> str:
        inside.set()
        await asyncio.get_running_loop().run_in_executor(None, go_on.wait, 10)
        return "slow"

    with SyncClient(app) as first, SyncClient(app) as second:
        answers: list[str] = []
        waiting = threading.Thread(target=lambda: answers.append(first.call_tool("slow").text))
        waiting.start()
        assert inside.wait(10)
        home = second.call_tool("where", returns=int)
        assert first.call_tool("where", returns=int) == home
        go_on.set()
        waiting.join(10)
        assert answers == ["slow"]


def test_a_sync_client_does_not_wait_for_its_own_loop() -> None:
    app = Server("demo")

    @app.tool
    async def hello() -> str:
        """Greet."""
        return "hello"

    async def test() -> None:
        async with Client(app) as client:
            assert (await client.call_tool("hello")).text == "hello"
            with pytest.raises(ConnectError, match=r"this very event loop.*use Client and await"):
                SyncClient(app).open()
            elsewhere = await asyncio.to_thread(ask)
            assert elsewhere == "hello"

    def ask() -> str:
        with SyncClient(app) as client:
            return client.call_tool("hello").text

    asyncio.run(test())
