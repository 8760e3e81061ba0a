"""The requirements on how a client declares itself and begins a connection, in both eras.

The checklist with the tests of each duty is `tests/spec/client.py`. Here: what a client says of itself, and how a
connection begins. `test_messages.py` has what follows, `http/test_duties.py` what is only so over HTTP.
"""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path
from typing import Any

import pytest

from client.scripted import heard, run, script, until
from longshore.client import Client, negotiate
from longshore.errors import ClientError, ConnectError

PREFIX = "io.modelcontextprotocol/"
LOGGED = """
def log():
    for m in asks():
        mark("wire", json.dumps(m))
        yield m
def serve(m):
    if m.get("method") == "server/discover" and MODERN: meet(m)
    elif not usual(m): return True
"""
BOTH = pytest.mark.parametrize("speaks", ["legacy", "modern"])


def connect_to(folder: Path, speaks: str, code: str, **options: Any) -> Client:
    """A client of a server that writes down what it hears. `serve` answers what every server of the era answers."""
    head = f"MODERN = {speaks == 'modern'}\n" + LOGGED
    return Client(script(folder, head + textwrap.dedent(code)), **{"era": speaks, "timeout": 10.0, **options})


def wire(folder: Path, method: str | None = None) -> list[Any]:
    return [m for m in heard(folder / "wire") if method in (None, m.get("method"))]


PLAIN = "for m in log(): serve(m) and 'id' in m and reply(m, DONE)"

# -- every modern request says who asks

EVERYTHING = """
    SUB = "io.modelcontextprotocol/subscriptionId"
    CAPABILITIES.update(tools={"listChanged": True}, completions={})
    tool = dict(TOOL, name="read", annotations={"readOnlyHint": True})
    form = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    question = {"method": "elicitation/create", "params": form}
    for m in log():
        params = m.get("params", {})
        match m.get("method"), params.get("name"):
            case "server/discover", _: meet(m)
            case "tools/list", _:
                reply(m, {"tools": []} if "cursor" in params else {"tools": [tool], "nextCursor": "2"})
            case "subscriptions/listen", _:
                wanted = params["notifications"]
                notify("notifications/subscriptions/acknowledged", _meta={SUB: m["id"]}, notifications=wanted)
            case "tools/call", "ask" if "inputResponses" not in params:
                reply(m, {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "s"})
            case "tools/call", "read" if not os.path.exists(os.path.join(os.path.dirname(__file__), "died")):
                mark("died")
                os._exit(1)
            case "tools/call", _: reply(m, DONE)
            case "prompts/get", _: reply(m, {"messages": []})
            case "resources/read", _: reply(m, {"contents": []})
            case "completion/complete", _: reply(m, {"completion": {"values": []}})
"""


async def test_every_modern_request_carries_revision_client_and_capabilities(tmp_path: Path) -> None:
    me = {"name": "tester", "version": "7"}
    options: dict[str, Any] = {"on_elicit": lambda _: True, "client_info": me, "log_level": "error"}
    async with connect_to(tmp_path, "modern", EVERYTHING, **options) as client:
        await client.list_tools()
        await client.call_tool("x", meta={"example.com/a": 1})
        await client.call_tool("x", on_progress=lambda *_: None)
        await client.call_tool("ask")
        await client.call_tool("read")  # in which the server dies, so it is asked again
        await client.request("tools/call", {"name": "x", "_meta": {}})
        await client.set_log_level("info")
        await client.get_prompt("p")
        await client.read_resource("a:b")
        await client.complete("p", "a", "")
        async with client.watch(tools=True):
            await client.ping()
    requests = [m for m in wire(tmp_path) if "id" in m]
    assert [m["params"].get("name") for m in requests].count("ask") == 2
    assert [m["params"].get("name") for m in requests].count("read") == 2
    for m in requests:
        meta = m["params"]["_meta"]
        assert meta[PREFIX + "protocolVersion"] == "2026-07-28", m
        assert meta[PREFIX + "clientCapabilities"] == {"elicitation": {"form": {}, "url": {}}}, m
        assert meta[PREFIX + "clientInfo"] == me, m
    assert {m["method"] for m in requests} == {
        *("server/discover", "tools/list", "tools/call", "prompts/get", "resources/read", "completion/complete"),
        "subscriptions/listen",
    }
    assert [m["params"]["_meta"].get("example.com/a") for m in requests].count(1) == 1


# -- what is declared

OFFERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "a person": ({"on_elicit": lambda _: True}, {"elicitation": {"form": {}, "url": {}}}),
    "a model": ({"on_sample": lambda _: "hi"}, {"sampling": {}}),
    "a model with tools": ({"on_sample": lambda _: "hi", "sample_tools": True}, {"sampling": {"tools": {}}}),
    "tools without a model": ({"sample_tools": True}, {}),
    "folders": ({"roots": ["/a"]}, {"roots": {"listChanged": True}}),
    "no folders": ({"roots": []}, {"roots": {"listChanged": True}}),
    "an extension": ({"extensions": {"com.example/x": {"a": 1}}}, {"extensions": {"com.example/x": {"a": 1}}}),
    "no extension": ({"extensions": {}}, {}),
}


@BOTH
@pytest.mark.parametrize(("given", "declared"), OFFERS.values(), ids=list(OFFERS))
def test_only_given_handlers_are_declared(
    tmp_path: Path, speaks: str, given: dict[str, Any], declared: dict[str, Any]
) -> None:
    async def test() -> None:
        async with connect_to(tmp_path, speaks, PLAIN, **given) as client:
            await client.call_tool("x")

    run(test)
    if speaks == "legacy":
        [hello] = wire(tmp_path, "initialize")
        assert hello["params"].keys() == {"protocolVersion", "capabilities", "clientInfo"}
        assert hello["params"]["protocolVersion"] == "2025-11-25"
        assert hello["params"]["capabilities"] == declared
    else:
        for m in wire(tmp_path):
            found = m["params"]["_meta"][PREFIX + "clientCapabilities"]
            assert found.keys() == declared.keys()
            assert "roots" in declared or found == declared


@BOTH
async def test_changed_roots_are_notified_in_the_handshake_era(tmp_path: Path, speaks: str) -> None:
    code = """
        for m in log():
            if serve(m) and m.get("method") == "tools/call":
                if MODERN or m["params"]["name"] == "x":
                    reply(m, DONE)
                    continue
                ask("r", "roots/list")
                reply(m, text(json.dumps(json.loads(sys.stdin.readline())["result"])))
    """
    async with connect_to(tmp_path, speaks, code, roots=["/before"]) as client:
        await client.set_roots(["/after"])
        await client.call_tool("x")
        if speaks == "legacy":
            assert (await client.call_tool("which")).text == '{"roots": [{"uri": "file:///after"}]}'
    async with connect_to(tmp_path, speaks, code) as client:
        with pytest.raises(ClientError, match="not offered"):
            await client.set_roots(["/after"])
    told = wire(tmp_path, "notifications/roots/list_changed")
    assert len(told) == (1 if speaks == "legacy" else 0)
    assert all("id" not in m for m in told)


# -- the handshake


@pytest.mark.parametrize("wish", ["legacy", "auto", "2024-11-05"])
async def test_nothing_is_sent_before_the_handshake_is_over(tmp_path: Path, wish: str) -> None:
    """Also to a server that takes its time, by a client that is in a hurry."""
    code = """
        import select
        def lines():
            data = b""
            while byte := os.read(0, 1):  # no more than that, so that what is left can be seen
                data += byte
                if byte == b"\\n":
                    yield json.loads(data)
                    data = b""
        for m in lines():
            mark("wire", json.dumps(m))
            if m.get("method") == "initialize":
                early = select.select([0], [], [], 0.3)[0]
                mark("early", str(len(early)))
            serve(m) and reply(m, DONE)
    """
    options: dict[str, Any] = {"log_level": "info", "on_change": lambda _: None, "roots": ["/"]}
    client = connect_to(tmp_path, "legacy", code, **{**options, "era": wish})
    opening = asyncio.ensure_future(client.open())
    await asyncio.sleep(0)
    calls = [asyncio.ensure_future(client.call_tool("x")) for _ in range(5)]
    await opening
    await asyncio.gather(*calls)
    await client.close()
    methods = [m["method"] for m in wire(tmp_path) if m["method"] != "server/discover"]
    assert methods[:2] == ["initialize", "notifications/initialized"]
    assert methods.count("initialize") == methods.count("notifications/initialized") == 1
    assert methods.count("tools/call") == 5
    assert (tmp_path / "early").read_text().split() == ["0"]
    assert wire(tmp_path)[0]["method"] == ("server/discover" if wish == "auto" else "initialize")


@pytest.mark.parametrize(
    ("probed", "how"),
    [
        *(("no", how) for how in ("timeout", "close", "cancel")),
        *(("refused", how) for how in ("close", "cancel")),
        *(("silent", how) for how in ("timeout", "close", "cancel")),
    ],
)
@pytest.mark.usefixtures("hurried")
async def test_a_handshake_is_never_cancelled(
    tmp_path: Path, probed: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(negotiate, "PROBE_SECONDS", 0.05 if probed == "silent" else 10.0)
    code = f"for m in log(): m['method'] == 'server/discover' and {probed == 'refused'} and refuse(m)"
    wish = "legacy" if probed == "no" else "auto"
    client = connect_to(tmp_path, "legacy", code, era=wish, timeout=1.0 if how == "timeout" else 10.0)
    opening = asyncio.ensure_future(client.open())
    await until("the handshake", lambda: wire(tmp_path, "initialize"))
    if how == "close":
        await client.close()
    elif how == "cancel":
        opening.cancel()
    with pytest.raises(asyncio.CancelledError if how == "cancel" else ClientError):
        await opening
    [hello] = wire(tmp_path, "initialize")
    assert hello["id"] not in [m["params"]["requestId"] for m in wire(tmp_path, "notifications/cancelled")]


async def test_a_ping_is_answered_with_nothing_at_any_time(tmp_path: Path) -> None:
    """Before the handshake is answered, and while a person thinks."""
    code = """
        for m in log():
            if m.get("method") == "initialize":
                ask("early", "ping")
                greet(m)
            elif serve(m) and m.get("method") == "tools/call":
                ask("q", "elicitation/create", message="?", requestedSchema={})
                ask(7, "ping", _meta={"a": 1})
                mark("wire", sys.stdin.readline().strip())
                mark("ponged")
                mark("wire", sys.stdin.readline().strip())
                reply(m, DONE)
    """

    async def think(_: Any) -> bool:
        await until("the ping was answered", (tmp_path / "ponged").exists)
        return True

    async with connect_to(tmp_path, "legacy", code, on_elicit=think) as client:
        await client.call_tool("x")
    answers = [m for m in wire(tmp_path) if "method" not in m]
    assert answers[:2] == [{"jsonrpc": "2.0", "id": id, "result": {}} for id in ("early", 7)]
    assert [m["id"] for m in answers[2:]] == ["q"]


# -- a server that refuses as only a modern one can is modern

REFUSALS = [
    (-32020, {}),
    (-32021, {"requiredCapabilities": {"sampling": {}}}),
    (-32022, {"supported": ["2026-07-28"], "requested": "2026-07-28"}),
    (-32022, {"supported": ["2025-11-25"], "requested": "2026-07-28"}),
    (-32022, {"supported": ["2031-01-01"], "requested": "2026-07-28"}),
    (-32022, None),
]


@pytest.mark.parametrize(("code", "data"), REFUSALS)
async def test_a_modern_refusal_leads_to_no_handshake(tmp_path: Path, code: int, data: Any) -> None:
    refusing = f"for m in log(): 'id' in m and refuse(m, {code}, 'not so', data={data!r})"
    with pytest.raises(ConnectError):
        await connect_to(tmp_path, "modern", refusing, era="auto").open()
    assert {m["method"] for m in wire(tmp_path)} == {"server/discover"}
    assert len(wire(tmp_path)) <= 3


@pytest.mark.parametrize(("code", "data"), REFUSALS[:3])
async def test_a_modern_refusal_followed_by_an_answer_connects(tmp_path: Path, code: int, data: Any) -> None:
    once = f"refuse(next(log()), {code}, 'not so', data={data!r})\n" + PLAIN
    async with connect_to(tmp_path, "modern", once, era="auto") as client:
        assert (await client.call_tool("x")).text == "done"
    assert [m["method"] for m in wire(tmp_path)] == ["server/discover", "server/discover", "tools/call"]
