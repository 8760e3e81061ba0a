"""The lifespan of a server in memory: opened once before the first call, and closed after the last connection."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any

import pytest

from longshore import Client, Context, RegistrationError, Server
from longshore.errors import LifespanFailed
from longshore.server.lifespan import Lifespan
from posting import ask_modern, call
from serving import serve
from talk import WAIT_SECONDS, converse, text
from talk import Client as Peer


class Database:
    """What a lifespan opens."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def name(self) -> str:
        return "the database"


def server(events: list[str], *, fails: int = 0, **options: Any) -> Server:
    """A server whose lifespan fails so many times, with a tool of each way of running, a resource and a prompt."""
    left = [fails]

    @asynccontextmanager
    async def open_state(app: Server) -> AsyncGenerator[Database]:
        await asyncio.sleep(0)
        if left[0]:
            left[0] -= 1
            raise OSError("the database is down")
        events.append(f"open {app.name}")
        async with asyncio.timeout(WAIT_SECONDS):  # a timeout must be left by the task that has entered it
            yield Database()
        events.append("close")

    app = Server("shop", lifespan=open_state, **options)

    @app.tool
    def blocking(ctx: Context[Database]) -> str:
        return ctx.lifespan.name()

    @app.tool(run="inline")
    def quick(ctx: Context[Database]) -> str:
        return ctx.lifespan.name()

    @app.tool(run="inline")
    def direct() -> str:
        return events[-1]

    @app.tool
    async def slow(ctx: Context[Database]) -> str:
        return ctx.lifespan.name()

    @app.resource("shop://state")
    def state(ctx: Context[Database]) -> str:
        return ctx.lifespan.name()

    @app.prompt
    def ask(ctx: Context[Database]) -> str:
        return ctx.lifespan.name()

    return app


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, WAIT_SECONDS))


@pytest.mark.parametrize("tool", ["blocking", "quick", "slow"])
def test_a_handler_gets_what_the_lifespan_yields(tool: str) -> None:
    events: list[str] = []

    async def script() -> None:
        async with Client(server(events)) as client:
            assert (await client.call_tool(tool)).text == "the database"
            assert events == ["open shop"]

    run(script())
    assert events == ["open shop", "close"]


def test_resources_and_prompts_get_it_too() -> None:
    async def script() -> None:
        async with Client(server([])) as client:
            assert (await client.read_resource("shop://state"))[0].text == "the database"
            assert "the database" in str(await client.get_prompt("ask"))

    run(script())


def test_concurrent_calls_and_clients_share_one_state() -> None:
    events: list[str] = []
    app = server(events)

    async def script() -> None:
        async with Client(app) as one, Client(app) as other:
            await asyncio.gather(*(each.call_tool("slow") for each in (one, other) for _ in range(3)))

    run(script())
    assert events == ["open shop", "close"]


def test_the_next_connection_after_the_last_opens_it_again() -> None:
    events: list[str] = []
    app = server(events)

    async def script() -> str:
        async with Client(app) as client:
            return (await client.call_tool("direct")).text

    assert [run(script()), run(script())] == ["open shop", "open shop"]
    assert events == ["open shop", "close"] * 2


def test_a_client_in_memory_learns_why_the_lifespan_failed_and_the_next_one_may_succeed() -> None:
    events: list[str] = []
    app = server(events, fails=1)

    async def script() -> str:
        async with Client(app) as client:
            return (await client.call_tool("quick")).text

    with pytest.raises(LifespanFailed, match="OSError: the database is down"):
        run(script())
    assert run(script()) == "the database"
    assert events == ["open shop", "close"]


@asynccontextmanager
async def exits_on_the_loop(_: Server) -> AsyncGenerator[None]:
    sys.exit("no database")
    yield


@contextmanager
def exits_on_a_thread(_: Server) -> Generator[None]:
    sys.exit("no database")
    yield


@asynccontextmanager
async def fails_in_a_group(_: Server) -> AsyncGenerator[None]:
    raise BaseExceptionGroup("no database", [SystemExit()])
    yield


@pytest.mark.parametrize("open_state", [exits_on_the_loop, exits_on_a_thread, fails_in_a_group])
def test_a_lifespan_that_exits_has_failed_to_open(open_state: Any) -> None:
    app = Server("t", lifespan=open_state)

    async def script() -> None:
        async with Client(app):
            pass

    with pytest.raises(LifespanFailed, match=r"the lifespan did not open: .*no database"):
        run(script())


@pytest.mark.parametrize("plain", [True, False])
def test_a_lifespan_that_exits_when_it_closes_is_reported(plain: bool) -> None:
    @contextmanager
    def on_a_thread(_: Server) -> Generator[None]:
        yield
        sys.exit(7)

    @asynccontextmanager
    async def on_the_loop(_: Server) -> AsyncGenerator[None]:
        yield
        sys.exit(7)

    app = Server("t", lifespan=on_a_thread if plain else on_the_loop)
    problems: list[str] = []
    app.listen(lambda record: problems.append(str(record)))

    async def script() -> None:
        async with Client(app):
            pass

    run(script())
    assert any("the lifespan did not close in order" in each for each in problems)


def test_the_failure_of_a_lifespan_shows_no_secret() -> None:
    @asynccontextmanager
    async def open_state(_: Server) -> AsyncGenerator[None]:
        raise OSError("can't reach postgres://shop:Kx93hTq2vLw8@db/shop")
        yield

    async def script() -> None:
        async with Client(Server("t", lifespan=open_state)):
            pass

    with pytest.raises(LifespanFailed, match="can't reach postgres://shop:") as caught:
        run(script())
    assert "Kx93hTq2vLw8" not in str(caught.value)


def test_a_plain_context_manager_is_entered_and_left_off_the_loop() -> None:
    threads: list[Any] = []

    @contextmanager
    def open_state(_: Server) -> Generator[str]:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        threads.append("open")
        yield "plain"
        threads.append("close")

    app = Server("t", lifespan=open_state)

    @app.tool(run="inline")
    def look(ctx: Context[str]) -> str:
        return ctx.lifespan

    async def script() -> None:
        async with Client(app) as client:
            assert (await client.call_tool("look")).text == "plain"

    run(script())
    assert threads == ["open", "close"]


@pytest.mark.parametrize(
    ("kind", "said"), [(StopIteration, "enter raised StopIteration"), (SystemExit, r"it called sys\.exit\(None\)")]
)
def test_whatever_a_plain_context_manager_raises_is_reported(kind: type[BaseException], said: str) -> None:
    class State(AbstractContextManager[None]):
        def __enter__(self) -> None:
            raise kind

        def __exit__(self, *_: object) -> None: ...

    async def script() -> None:
        async with Client(Server("t", lifespan=lambda _: State())):
            pass

    with pytest.raises(LifespanFailed, match=said):
        run(script())


def test_a_lifespan_that_is_opened_while_another_one_closes_stays_open() -> None:
    closing, gates = asyncio.Event(), [asyncio.Event(), asyncio.Event()]

    @asynccontextmanager
    async def open_state(_: object) -> AsyncGenerator[asyncio.Event]:
        gate = gates.pop()
        try:
            yield gate
        finally:
            closing.set()
            await gate.wait()

    async def script() -> None:
        lifespan = Lifespan(open_state, None, WAIT_SECONDS, lambda *_: None, lambda: None)
        await lifespan.open()
        first = lifespan.value
        ended = asyncio.create_task(lifespan.close(WAIT_SECONDS))
        await closing.wait()
        await lifespan.open()
        first.set()
        await ended
        assert lifespan.is_open and lifespan.needs_closing and lifespan.value is not first
        lifespan.value.set()
        await lifespan.close(WAIT_SECONDS)
        assert not lifespan.is_open

    run(script())


def test_a_lifespan_that_does_not_end_is_cancelled_and_reported() -> None:
    ended: list[str] = []

    @asynccontextmanager
    async def open_state(_: Server) -> AsyncGenerator[None]:
        yield
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    app = Server("t", lifespan=open_state, lifespan_seconds=0.01)
    problems: list[str] = []
    app.listen(lambda record: problems.append(str(record)))

    async def script() -> None:
        async with Client(app):
            pass

    run(script())
    assert ended == ["cancelled"]
    assert any("the lifespan was not closed within 0.0 s" in each for each in problems)


def test_a_server_without_a_lifespan_says_how_to_give_it_one() -> None:
    app = Server("t")
    seen: list[str] = []

    @app.tool
    def look(ctx: Context) -> str:
        with pytest.raises(AttributeError) as problem:
            _ = ctx.lifespan
        seen.append(str(problem.value))
        return "ok"

    async def script() -> None:
        async with Client(app) as client:
            await client.call_tool("look")

    run(script())
    assert seen == ["this server has no lifespan: give it one, Server(…, lifespan=open_state)"]


def test_what_is_no_context_manager_is_refused_with_the_fix() -> None:
    async def open_state(_: Server) -> AsyncGenerator[None]:
        yield

    app = Server("t", lifespan=open_state)  # type: ignore[arg-type]

    async def script() -> None:
        async with Client(app):
            pass

    with pytest.raises(LifespanFailed, match="put @asynccontextmanager of contextlib above it"):
        run(script())
    with pytest.raises(RegistrationError, match="can't be called"):
        Server("t", lifespan=7)  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="no number of seconds"):
        Server("t", lifespan=open_state, lifespan_seconds=0)  # type: ignore[arg-type]


# -- over HTTP


def test_an_asgi_app_opens_it_at_its_start_and_closes_it_at_its_end() -> None:
    events: list[str] = []
    app = server(events)
    with serve(app.asgi(port=0)) as served:
        assert events == ["open shop"]
        assert ask_modern(served, call("quick")).json["result"]["content"][0]["text"] == "the database"
    assert events == ["open shop", "close"]


def test_calls_wait_for_the_state_and_fail_plainly_if_it_can_not_be_opened() -> None:
    app = server(events := [], fails=1)

    async def script(client: Peer) -> list[dict[str, Any]]:
        answers = [await client.call_tool("direct")]
        both = [client.send("tools/call", {"name": name}) for name in ("direct", "blocking")]
        answers += [(await client.response(id))["result"] for id in both]
        assert app.engine.policy.lifespan
        await app.engine.policy.lifespan.close(WAIT_SECONDS)
        return answers

    refused, direct, blocking = converse(app, script)
    assert refused["isError"]
    assert text(refused) == "the server could not open what its tools need; its log says why"
    assert (text(direct), text(blocking)) == ("open shop", "the database")
    assert events == ["open shop", "close"]


def test_an_asgi_server_is_told_that_the_start_has_failed() -> None:
    app = server([], fails=1).asgi()
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    run(app({"type": "lifespan"}, receive, send))
    text = "the lifespan did not open: OSError: the database is down"
    assert sent == [{"type": "lifespan.startup.failed", "message": text}]
