"""The app in other people's apps: below a path, in two places, beside other routes, with and without a lifespan."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from longshore import Limits
from posting import Session, call, encode, modern, modern_headers, post_modern, request
from serving import Served, serve

from .fixture import UVICORN, Rig


async def hello(_: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


def works(server: Served, prefix: str) -> None:
    """MCP answers below a path, in every era."""
    for path in (f"{prefix}/mcp", f"{prefix}/mcp/", f"{prefix}/"):
        answer = post_modern(server, modern(call("echo", {"text": path})), path=path).finish()
        assert answer.json["result"]["content"][0]["text"] == path
        session = Session(server, path=path).open()
        stream = session.get().begin()
        assert session.call("later", text="x") == "x"
        assert session.delete().finish().status == 204
        stream.finish()
    old = server.send("GET", f"{prefix}/sse").wait(lambda it: it.events)
    address = old.events[0].data
    assert address.startswith(f"{prefix}/messages?sessionId=")
    assert server.send("POST", address, (), encode(request("ping", id=7))).finish().status == 202
    old.wait(lambda it: len(it.events) == 2)
    assert old.events[1].message["id"] == 7
    old.drop()
    assert server.send("GET", f"{prefix}/nowhere").finish().status == 404


@UVICORN
@pytest.mark.parametrize("prefix", ["", "/sub/path", "/ü"])
def test_it_can_be_mounted_below_any_path(prefix: str) -> None:
    rig = Rig()
    outer = Starlette(routes=[Route("/hello", hello), Mount(prefix or "/", rig.app)])
    with serve(outer, shut=[rig.app]) as server:
        assert server.send("GET", "/hello").finish().body == b"hello"
        works(server, prefix.replace("ü", "%C3%BC"))


@UVICORN
def test_it_can_be_mounted_in_two_places_that_share_their_sessions() -> None:
    rig = Rig()
    inner = Starlette(routes=[Mount("/deep", rig.app)])
    outer = Starlette(routes=[Mount("/a", rig.app), Mount("/b", inner), Route("/hello", hello)])
    with serve(outer, shut=[rig.app]) as server:
        works(server, "/a")
        works(server, "/b/deep")
        session = Session(server, path="/a/mcp").open()
        session.path = "/b/deep/mcp"
        assert session.call("echo", text="shared") == "shared"


class Marking(BaseHTTPMiddleware):
    """A middleware as people write them: it runs the app in a task of its own and wraps what it receives."""

    async def dispatch(self, request: Request, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers["x-marked"] = "yes"
        return response


@UVICORN
def test_it_works_behind_a_middleware() -> None:
    rig = Rig(Limits(stream_after_seconds=0.01))
    outer = Starlette(routes=[Mount("/", rig.app)], middleware=[Middleware(Marking)])
    with serve(outer, shut=[rig.app]) as server:
        works(server, "")
        loud = post_modern(server, modern(call("count", {"to": 2}, progressToken=1))).finish()
        assert (loud.headers["x-marked"], len(loud.messages)) == ("yes", 3)
        for tool in ("hold", "hold_loudly"):
            held = post_modern(server, modern(call(tool, progressToken=1)))
            server.until(lambda: rig.befell["held"])
            held.drop()
            server.until(lambda: rig.befell["cancelled"], "the tool's hearing of it")
            rig.befell.clear()
        server.until(lambda: not rig.executor.live)


@UVICORN
def test_two_servers_in_one_app_share_nothing() -> None:
    one, two = Rig(), Rig()
    outer = Starlette(routes=[Mount("/one", one.app), Mount("/two", two.app)])
    with serve(outer, shut=[one.app, two.app]) as server:
        session = Session(server, path="/one/mcp").open()
        session.path = "/two/mcp"
        assert session.post(call("echo")).finish().status == 404
        assert server.look(lambda: (one.stored(), two.stored())) == (1, 0)


def test_the_endpoint_may_have_another_path() -> None:
    rig = Rig(path="/tools/mcp", rest=False)
    with serve(rig.app) as server:
        answer = post_modern(server, modern(call("echo", {"text": "x"})), path="/tools/mcp").finish()
        assert answer.status == 200
        assert post_modern(server, modern(call("echo")), path="/mcp").finish().status == 404


# -- starting


@pytest.mark.parametrize("lifespan", ["on", "off"])
def test_it_starts_itself_where_nobody_starts_it(lifespan: str) -> None:
    rig = Rig()
    with serve(rig.app, lifespan=lifespan) as server:
        first = [post_modern(server, modern(call("later", {"text": str(n)}))) for n in range(20)]
        for n, exchange in enumerate(first):
            assert exchange.finish().json["result"]["content"][0]["text"] == str(n)
        assert Session(server).open().call("threaded", text="x") == "x"


def test_it_starts_on_the_loop_that_serves_wherever_it_was_made() -> None:
    async def make() -> Rig:
        rig = Rig()
        assert rig.server.engine is not None
        return rig

    rig = asyncio.run(make())
    with serve(rig.app) as server:
        assert Session(server).open().call("later", text="x") == "x"


def test_it_may_be_served_again_on_another_loop() -> None:
    """As in the tests of whoever mounts it, where each test has a loop of its own."""
    rig = Rig()
    for _ in range(2):
        rig.gate = asyncio.Event()
        with serve(rig.app, lifespan="off", shut=[], tidy=False) as server:
            assert post_modern(server, modern(call("later", {"text": "x"}))).finish().status == 200
            session = Session(server).open()
            assert session.call("threaded", text="x") == "x"
            assert session.call("later", text="x") == "x"
            held = post_modern(server, modern(call("hold")))
            server.until(lambda: rig.befell["held"])
            held.drop()
            server.until(lambda: rig.befell["cancelled"])
            rig.befell.clear()
    for _ in range(2):
        with serve(rig.app) as server:
            assert Session(server).open().call("later", text="x") == "x"


def test_it_hears_the_other_processes_on_another_loop_too(tmp_path: Path) -> None:
    rig = Rig(store=f"sqlite:///{tmp_path}/sessions.db")
    for _ in range(2):
        with serve(rig.app, lifespan="off", shut=[], tidy=False) as server:
            session = Session(server).open()
            assert session.ask("resources/subscribe", {"uri": "note://a"})["result"] == {}
            stream = session.get().wait(lambda it: it.events)
            session.call("touch", uri="note://a")
            stream.wait(lambda it: it.messages, "what went over the bus")
            stream.drop()
    with serve(rig.app):
        pass


@UVICORN
def test_the_lifespan_of_an_outer_app_may_start_and_shut_it() -> None:
    rig = Rig(grace=5.0)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await rig.app.start()
        yield
        await rig.app.shut(0)
        await rig.app.close()

    with serve(Starlette(routes=[Mount("/", rig.app)], lifespan=lifespan), shut=[]) as server:
        assert Session(server).open().call("echo", text="x") == "x"
    assert rig.app.stopping


@UVICORN
def test_its_own_lifespan_ends_what_runs_and_what_waits() -> None:
    """As under any ASGI server: told to end while calls run, it answers them and ends its streams."""
    rig = Rig(grace=0.0)
    heard: list[dict[str, Any]] = []

    async def main() -> None:
        inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        life = asyncio.create_task(rig.app({"type": "lifespan"}, inbox.get, outbox.put))
        await inbox.put({"type": "lifespan.startup"})
        assert (await outbox.get())["type"] == "lifespan.startup.complete"
        message = modern(call("hold"))
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        headers += [(name.lower().encode(), value.encode()) for name, value in modern_headers(message)]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "scheme": "http"}
        body: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        await body.put({"type": "http.request", "body": encode(message)})

        async def send(event: Any) -> None:
            heard.append(event)

        held = asyncio.create_task(rig.app(scope | {"server": ("127.0.0.1", 80)}, body.get, send))
        while not rig.befell["held"]:
            await asyncio.sleep(0)
        await inbox.put({"type": "lifespan.shutdown"})
        assert (await outbox.get())["type"] == "lifespan.shutdown.complete"
        await held
        await life

    asyncio.run(asyncio.wait_for(main(), 10))
    assert heard[0]["status"] == 200
    assert b"was shut down" in heard[1]["body"]


def test_a_websocket_is_refused() -> None:
    rig = Rig()
    upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
    with serve(rig.app) as server:
        answer = server.send("GET", "/mcp", [*upgrade, ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]).begin()
        assert answer.status in (403, 405)


def test_limits_of_the_author_hold() -> None:
    rig = Rig(Limits(frame_bytes=1000))
    with serve(rig.app) as server:
        assert post_modern(server, modern(call("echo", {"text": "x" * 1000}))).finish().status == 413
