"""Tools over plain REST."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
from asgi import HOST, WAIT_SECONDS, Answer, configured, opened, request

from longshore import Ask, CallResult, Context, Image, Limits, ResourceNotFound, Server, Text, Tool, ToolError
from longshore.protocol.dialect import FailureKind
from longshore.server.engine import Rates
from longshore.transports.http.rest import STATUSES
from serving import serve

JSON = {"content-type": "application/json"}
Config = Callable[..., Any]


def server(**options: Any) -> Server:
    app = Server("shop", version="1.2.3", **options)

    @app.tool
    def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    @app.tool(run="inline")
    def greet(name: str = "you") -> str:
        """Say hello."""
        return f"hello {name}"

    @app.tool
    def draw() -> Image:
        return Image(b"\x00\x01")

    @app.tool
    def fail() -> str:
        raise ToolError("the shop is closed")

    @app.tool
    def crash() -> str:
        raise RuntimeError("a secret of the server's")

    @app.tool
    def look(uri: str) -> str:
        raise ResourceNotFound(uri)

    @app.tool(timeout=0.05)
    async def hang() -> str:
        await asyncio.Event().wait()
        return ""

    @app.tool
    async def refund(ok: Annotated[bool, Ask("Really?")]) -> str:
        return "done"

    @app.tool(replay=True)
    async def order(ctx: Context) -> str:
        await ctx.elicit("How many?", int, key="n")
        return "done"

    @app.tool
    async def chat(ctx: Context) -> str:
        await ctx.progress(1, 2)
        await ctx.log("info", "half of it")
        return "all of it"

    @app.tool(scopes=["pay"])
    def pay() -> str:
        return "paid"

    raw = Tool(name="report", input_schema={"type": "object"})
    app.add_tool(raw, lambda arguments, _: CallResult([Text("no paper"), Text("no ink")], {"left": 0}, True))
    return app


@pytest.fixture
def asgi(tmp_path: Path) -> Config:
    """The app of a server, with nothing but what a test configures."""

    return lambda app, toml="", **settings: configured(app, tmp_path, toml, **settings)


def ask(http_app: Any, *requests: tuple[Any, ...]) -> list[Answer]:
    async def main() -> list[Answer]:
        async with opened(http_app):
            return [await request(http_app, *each) for each in requests]

    return asyncio.run(main())


def call(http_app: Any, name: str, body: bytes = b"{}", headers: dict[str, str] = JSON) -> Answer:
    return ask(http_app, ("POST", f"/tools/{name}", headers, body))[0]


# -- the list


def test_the_list_is_what_mcp_lists(asgi: Config) -> None:
    prefix, version = "io.modelcontextprotocol/", "2026-07-28"
    meta = {f"{prefix}protocolVersion": version, f"{prefix}clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    headers = {**JSON, "mcp-protocol-version": version, "mcp-method": "tools/list"}
    plain, mcp = ask(asgi(server()), ("GET", "/tools"), ("POST", "/mcp", headers, json.dumps(message).encode()))
    assert plain.status == 200
    assert plain.headers["content-type"] == "application/json"
    assert plain.json() == {"tools": mcp.json()["result"]["tools"]}


def test_the_list_follows_the_tools(asgi: Config) -> None:
    app = server()
    http_app = asgi(app)

    async def main() -> None:
        async with opened(http_app):
            first = await request(http_app, "GET", "/tools")
            app.remove_tool("add")
            second = await request(http_app, "GET", "/tools")
            gone = await request(http_app, "POST", "/tools/add", JSON, b'{"a": 1}')
        before, after = ({tool["name"] for tool in each.json()["tools"]} for each in (first, second))
        assert before - after == {"add"}
        assert gone.status == 404

    asyncio.run(main())


def test_an_unlisted_tool_is_in_no_list_and_can_be_called(asgi: Config) -> None:
    app = Server("x")
    app.tool(name="purge", listed=False)(lambda: "purged")
    listed, document, called, near = ask(
        asgi(app), ("GET", "/tools"), ("GET", "/openapi.json"), ("POST", "/tools/purge"), ("POST", "/tools/purg")
    )
    assert listed.json() == {"tools": []}
    assert list(document.json()["paths"]) == ["/tools"]
    assert called.json()["data"] == "purged"
    assert near.json()["error"]["message"] == "no tool 'purg'; GET /tools has them all"


def test_a_tool_that_is_off_is_refused_with_the_setting_that_turns_it_on(asgi: Config) -> None:
    app = Server("x")
    app.tool(name="purge", group="admin")(lambda: "purged")
    answer = call(asgi(app), "purge")
    assert answer.status == 404
    assert answer.json()["error"]["message"] == "no tool 'purge': it is off; [tools.purge] enabled = true turns it on"


# -- calls


def test_a_result_is_wrapped(asgi: Config) -> None:
    answer = call(asgi(server()), "add", b'{"a": 1}')
    body = answer.json()
    assert answer.status == 200
    assert body["success"] is True
    assert body["data"] == {"result": 3}
    assert body["content"] == [{"type": "text", "text": "3"}]
    assert body["executionTime"] > 0
    assert body["timestamp"].endswith("Z")
    assert body.keys() == {"success", "data", "content", "executionTime", "timestamp"}


def test_data_is_the_text_where_there_is_no_structure_and_null_where_there_is_neither(asgi: Config) -> None:
    app = Server("x")
    app.add_tool(Tool(name="lines", input_schema={"type": "object"}), lambda *_: CallResult([Text("a"), Text("b")]))
    app.add_tool(Tool(name="draw", input_schema={"type": "object"}), lambda *_: CallResult([Image(b"\x00\x01")]))
    lines, draw = ask(asgi(app), ("POST", "/tools/lines"), ("POST", "/tools/draw"))
    assert lines.json()["data"] == "a\nb"
    assert draw.json()["data"] is None
    assert draw.json()["content"] == [{"type": "image", "data": "AAE=", "mimeType": "image/png"}]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, b""),
        (JSON, b""),
        (JSON, b" \r\n"),
        ({"content-type": "application/x-www-form-urlencoded"}, b""),
        (JSON, b"{}"),
        ({"content-type": "application/json; charset=utf-8"}, b" {} "),
    ],
)
def test_no_body_is_no_arguments(asgi: Config, headers: dict[str, str], body: bytes) -> None:
    answer = call(asgi(server()), "greet", body, headers)
    assert (answer.status, answer.json()["content"][0]["text"]) == (200, "hello you")


def test_a_body_may_come_in_pieces(asgi: Config) -> None:
    http_app = asgi(server())

    async def main() -> Answer:
        async with opened(http_app):
            return await request(http_app, "POST", "/tools/add", JSON, b'{"a": 40, "b": 2}', pieces=5)

    assert asyncio.run(main()).json()["data"] == {"result": 42}


def test_a_tool_that_is_called_often_answers_the_same(asgi: Config) -> None:
    calls = [("POST", "/tools/greet", JSON, b'{"name": "%d"}' % n) for n in range(12)]
    answers = ask(asgi(server()), *calls)
    assert [each.json()["content"][0]["text"] for each in answers] == [f"hello {n}" for n in range(12)]


def test_progress_and_log_go_nowhere(asgi: Config) -> None:
    assert call(asgi(server()), "chat").json()["content"][0]["text"] == "all of it"


# -- failures


@pytest.mark.parametrize(
    ("name", "body", "status", "kind", "text"),
    [
        ("ad", b"{}", 404, "unknown_tool", "did you mean 'add'?"),
        ("", b"{}", 404, "unknown_tool", "GET /tools"),
        ("add/more", b"{}", 404, "unknown_tool", "no tool 'add/more'"),
        ("add", b"{}", 400, "invalid_arguments", "a: missing"),
        ("add", b'{"a": "x"}', 400, "invalid_arguments", "a:"),
        ("add", b'{"a": 1, "c": 1}', 400, "invalid_arguments", "c"),
        ("fail", b"{}", 500, "execution", "the shop is closed"),
        ("crash", b"{}", 500, "execution", "failed unexpectedly"),
        ("look", b'{"uri": "shop://x"}', 404, "not_found", "no resource 'shop://x'"),
        ("report", b"{}", 500, "execution", "no paper\nno ink"),
        ("hang", b"{}", 504, "timeout", "did not finish within 0.05 s"),
        ("refund", b"{}", 422, "question", "refund asks its caller a question"),
        ("order", b"{}", 422, "question", "order asks its caller a question"),
    ],
)
def test_a_failure_has_a_status_a_kind_and_a_text(
    asgi: Config, name: str, body: bytes, status: int, kind: str, text: str
) -> None:
    answer = call(asgi(server()), name, body)
    said = answer.json()
    assert (answer.status, said["success"], said["error"]["kind"]) == (status, False, kind)
    assert text in said["error"]["message"]
    assert "secret" not in said["error"]["message"]


def test_what_a_failed_tool_returned_is_there(asgi: Config) -> None:
    assert call(asgi(server()), "report").json()["data"] == {"left": 0}


NO_OBJECTS = [
    b"[]",
    b"null",
    b"1",
    b'"{}"',
    b"{",
    b"}",
    b'{"name": "x"',
    b'{"name": "x"}}',
    b'{"name": "x"} {}',
    b'{"name": "x"},"name":"fail"',
    b'{"name": "x"}},"id":2,"method":"ping","x":{"y":{}',
    b'{"name": "x",}',
    b"{'name': 'x'}",
    b'\xef\xbb\xbf{"name": "x"}',
    b'{"name": "\xff"}',
    b'{"name": "\\ud800"}',
    b'{"name": "\x00"}',
    b'{"name": NaN}',
    b'{"name": "x"}\x00',
    b'{"name": ' + b"[" * 200 + b"]" * 200 + b"}",
    b'{"name": ' + b"[" * 100_000,
]


@pytest.mark.parametrize("body", NO_OBJECTS, ids=lambda body: repr(body[:24]))
def test_a_body_that_is_no_object_is_refused_and_nothing_runs(asgi: Config, body: bytes) -> None:
    app = server()
    answer = call(asgi(app), "greet", body)
    assert (answer.status, answer.json()["error"]["kind"]) == (400, "invalid_arguments")
    assert app.engine.executor.calls == 0


def test_depth_is_limited_where_the_frame_is(asgi: Config) -> None:
    app = Server("x", limits=Limits(depth=10))
    app.add_tool(Tool(name="any", input_schema={"type": "object"}), lambda *_: CallResult([Text("ok")]))
    bodies = [b'{"x": ' + b"[" * levels + b"]" * levels + b"}" for levels in (6, 7, 8)]
    answers = ask(asgi(app), *(("POST", "/tools/any", JSON, body) for body in bodies))
    assert [each.status for each in answers] == [200, 200, 400]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=utf-16"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
)
def test_a_body_is_plain_json(asgi: Config, headers: dict[str, str]) -> None:
    answer = call(asgi(server()), "greet", b"{}", headers)
    assert (answer.status, answer.json()["error"]["kind"]) == (415, "media_type")


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(("over", "status"), [(-1, 200), (0, 200), (1, 413)])
def test_a_body_has_a_limit(asgi: Config, over: int, status: int, told: bool) -> None:
    app = Server("x", limits=Limits(frame_bytes=2000))
    app.add_tool(Tool(name="take", input_schema={"type": "object"}), lambda *_: CallResult([Text("ok")]))
    body = b'{"name": "' + b"x" * (2000 + over - 12) + b'"}'
    assert len(body) == 2000 + over
    headers = JSON | ({"content-length": str(len(body))} if told else {})
    http_app = asgi(app)

    async def main() -> Answer:
        async with opened(http_app):
            return await request(http_app, "POST", "/tools/take", headers, body, pieces=3)

    answer = asyncio.run(main())
    assert answer.status == status
    if status == 413:
        assert answer.json()["error"]["kind"] == "body_too_large"
        assert answer.headers["connection"] == "close"


def test_a_result_has_a_limit_too(asgi: Config) -> None:
    answer = call(asgi(server(limits=Limits(frame_bytes=2000))), "greet", b'{"name": "%s"}' % (b"x" * 1900))
    assert (answer.status, answer.json()["error"]["kind"]) == (500, "too_large")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/tools/add", "POST"),
        ("DELETE", "/tools/add", "POST"),
        ("POST", "/tools", "GET, HEAD"),
        ("PUT", "/openapi.json", "GET, HEAD"),
    ],
)
def test_another_method_is_told_which_there_are(asgi: Config, method: str, path: str, allow: str) -> None:
    [answer] = ask(asgi(server()), (method, path))
    assert (answer.status, answer.headers["allow"]) == (405, allow)
    assert answer.json()["error"]["kind"] == "method"


def test_too_many_calls_are_put_off(asgi: Config) -> None:
    http_app = asgi(server(), rate=1, burst=2)
    assert isinstance(http_app.engine.rates, Rates)
    http_app.engine.limit_rates(Rates(1, 2, lambda: 1000.0))
    answers = ask(http_app, *[("POST", "/tools/greet")] * 3)
    assert [each.status for each in answers] == [200, 200, 429]
    assert answers[2].headers["retry-after"] == "1"
    assert answers[2].json()["error"]["kind"] == "rate"


def test_a_full_server_is_busy(asgi: Config) -> None:
    app = Server("x", limits=Limits(running=1, parked=0))
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.tool
    async def work() -> str:
        started.set()
        await go_on.wait()
        return "done"

    http_app = asgi(app)

    async def main() -> tuple[Answer, Answer]:
        async with opened(http_app):
            first = asyncio.create_task(request(http_app, "POST", "/tools/work"))
            await asyncio.wait_for(started.wait(), WAIT_SECONDS)
            second = await request(http_app, "POST", "/tools/work")
            go_on.set()
            return await first, second

    first, second = asyncio.run(main())
    assert (first.status, second.status, second.headers["retry-after"]) == (200, 503, "1")
    assert second.json()["error"]["kind"] == "busy"


def test_a_server_that_stops_answers_what_runs_and_takes_nothing_new(asgi: Config) -> None:
    app = server()
    started = asyncio.Event()

    @app.tool
    async def work() -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    http_app = asgi(app)

    async def main() -> tuple[Answer, Answer]:
        async with opened(http_app):
            first = asyncio.create_task(request(http_app, "POST", "/tools/work"))
            await asyncio.wait_for(started.wait(), WAIT_SECONDS)
            await http_app.shut(0)
            return await first, await request(http_app, "POST", "/tools/greet")

    running, late = asyncio.run(main())
    assert (running.status, running.json()["error"]["kind"]) == (503, "cancelled")
    assert (late.status, late.json()["error"]["kind"]) == (503, "busy")
    assert (late.headers["retry-after"], late.headers["connection"]) == ("1", "close")


# -- who may


AUTH = """
[tokens.payer]
token = "token-of-the-payer-0123456789abcdef"
scopes = ["pay", "look"]
[tokens.looker]
token = "token-of-the-looker-0123456789abcdef"
scopes = ["look"]
"""


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer token-of-the-{name}-0123456789abcdef"}


def test_scopes_are_asked_for(asgi: Config) -> None:
    nobody, looker, payer = ask(
        asgi(server(), AUTH),
        ("POST", "/tools/pay"),
        ("POST", "/tools/pay", bearer("looker")),
        ("POST", "/tools/pay", bearer("payer")),
    )
    assert nobody.status == 401
    assert "www-authenticate" in nobody.headers
    assert looker.status == 403
    assert 'error="insufficient_scope"' in looker.headers["www-authenticate"]
    assert "pay" in looker.headers["www-authenticate"]
    assert looker.json()["error"] == {"kind": "permission", "message": "pay needs the scope pay"}
    assert payer.status == 200


def test_a_credential_is_needed_for_every_route(asgi: Config) -> None:
    paths = [("GET", "/tools"), ("GET", "/openapi.json"), ("POST", "/tools/greet")]
    assert [each.status for each in ask(asgi(server(), AUTH), *paths)] == [401] * 3
    assert [each.status for each in ask(asgi(server(), AUTH), *((*path, bearer("looker")) for path in paths))] == [
        200
    ] * 3


def test_pages_of_a_named_origin_may_read_the_answers(asgi: Config) -> None:
    page = {"origin": "https://app.example.com"}
    http_app = asgi(server(), origins=["https://app.example.com"])
    for answer in ask(http_app, ("GET", "/tools", page), ("POST", "/tools/add", page), ("PUT", "/tools", page)):
        assert answer.headers["access-control-allow-origin"] == "https://app.example.com"
    assert ask(asgi(server()), ("POST", "/tools/greet", page))[0].status == 403


def test_rest_can_be_switched_off(asgi: Config) -> None:
    http_app = asgi(server(), rest=False)
    answers = ask(http_app, ("GET", "/tools"), ("POST", "/tools/greet"), ("GET", "/openapi.json"))
    assert [each.status for each in answers] == [404] * 3


# -- hanging up


def hanging(ended: Callable[[], object]) -> tuple[Server, asyncio.Event | threading.Event]:
    app = Server("x")
    started = threading.Event()

    @app.tool(timeout=False)
    async def work() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended()
        return ""

    return app, started


def test_who_hangs_up_takes_the_call_back(asgi: Config) -> None:
    ended = asyncio.Event()
    app, started = hanging(ended.set)
    http_app = asgi(app)
    hang_up = asyncio.Event()

    async def main() -> Answer:
        async with opened(http_app):
            asked: Awaitable[Answer] = asyncio.create_task(request(http_app, "POST", "/tools/work", hang_up=hang_up))
            await asyncio.wait_for(asyncio.to_thread(started.wait, WAIT_SECONDS), WAIT_SECONDS)
            hang_up.set()
            await asyncio.wait_for(ended.wait(), WAIT_SECONDS)
            assert not app.engine.executor.live
            return await asked

    assert asyncio.run(main()).status == 499


def test_a_real_client_over_a_real_socket(asgi: Config) -> None:
    with serve(asgi(server())) as site:
        client = http.client.HTTPConnection(HOST, site.port, timeout=WAIT_SECONDS)
        client.request("POST", "/tools/add", json.dumps({"a": 1}), JSON)
        answer = client.getresponse()
        assert (answer.status, json.load(answer)["data"]) == (200, {"result": 3})
        client.request("HEAD", "/tools")
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
        client.request("POST", "/tools/%61dd", json.dumps({"a": 2}), JSON)
        assert json.load(client.getresponse())["data"] == {"result": 4}
        client.close()


# -- the page about it

PAGE = Path(__file__).parents[2] / "docs/http-endpoints.md"


def test_the_page_has_every_kind_with_its_status() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d{3}) \|", PAGE.read_text(), re.MULTILINE)
    assert {kind: int(status) for kind, status in rows} == STATUSES
    engine = set(get_args(FailureKind)) - {"not_initialized"}  # which a call that needs no handshake can't be
    assert engine <= STATUSES.keys()


def test_a_closed_socket_takes_the_call_back(asgi: Config) -> None:
    ended = threading.Event()
    app, started = hanging(ended.set)
    with serve(asgi(app)) as site:
        asked = site.send("POST", "/tools/work", body=b"")
        assert started.wait(WAIT_SECONDS)
        asked.drop()
        assert ended.wait(WAIT_SECONDS)
