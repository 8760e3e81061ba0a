"""2026-07-28 over HTTP: statuses, headers, the choice between JSON and a stream, hanging up, listens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from longshore import Limits
from posting import MODERN, PREFIX, ask_modern, call, encode, modern, notice, post_modern, request
from serving import ABSENT, Exchange

from .fixture import BOTH, rigged

pytestmark = BOTH

ENVELOPE = {PREFIX + "protocolVersion": MODERN, PREFIX + "clientCapabilities": {}}
TOKEN = {"progressToken": "t"}
SLOW = Limits(stream_after_seconds=0.02)


def meta(**changes: Any) -> dict[str, Any]:
    """A request whose envelope is changed; None leaves a member out."""
    own = ENVELOPE | {PREFIX + name: value for name, value in changes.items()}
    return request("tools/list", {"_meta": {key: value for key, value in own.items() if value is not None}}, "m")


# -- §12.4, the status table: what is sent, headers beside or in place of its own, status, code, id

GOOD = modern(request("tools/list", id="m"))
REFUSED: dict[str, tuple[Any, list[tuple[str, str]], int, int, Any]] = {
    "bad JSON": (b'{"jsonrpc":', [("MCP-Protocol-Version", MODERN)], 400, -32700, None),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', [("MCP-Protocol-Version", MODERN)], 400, -32700, 1),
    "too deep": (b"[" * 1000, [("MCP-Protocol-Version", MODERN)], 400, -32700, None),
    "empty": (b"", [("MCP-Protocol-Version", MODERN)], 400, -32700, None),
    "blank": (b" \r\n", [("MCP-Protocol-Version", MODERN)], 400, -32700, None),
    "no request": (b'{"jsonrpc":"2.0","id":1}', [("MCP-Protocol-Version", MODERN)], 400, -32600, 1),
    "no JSON-RPC": (b'{"id":1,"method":"x"}', [("MCP-Protocol-Version", MODERN)], 400, -32600, 1),
    "an array": (encode([GOOD]), [("MCP-Protocol-Version", MODERN)], 400, -32600, None),
    "a response": ({"jsonrpc": "2.0", "id": 1, "result": {}}, [("MCP-Protocol-Version", MODERN)], 400, -32600, None),
    "a number": (b"7", [("MCP-Protocol-Version", MODERN)], 400, -32600, None),
    "id true": (encode(GOOD | {"id": True}), [("MCP-Protocol-Version", MODERN)], 400, -32600, None),
    "id null": (encode(GOOD | {"id": None}), [("MCP-Protocol-Version", MODERN)], 400, -32600, None),
    "no envelope": (request("tools/list", id="m"), [], 400, -32602, "m"),
    "no params": (request("tools/list", {}, "m"), [], 400, -32602, "m"),
    "no version": (meta(protocolVersion=None), [], 400, -32602, "m"),
    "no capabilities": (meta(clientCapabilities=None), [], 400, -32602, "m"),
    "version of another type": (meta(protocolVersion=7), [], 400, -32602, "m"),
    "capabilities of another type": (meta(clientCapabilities=[]), [], 400, -32602, "m"),
    "client of another type": (meta(clientInfo="me"), [], 400, -32602, "m"),
    "_meta of another type": (request("tools/list", {"_meta": 7}, "m"), [], 400, -32602, "m"),
    "params of another type": (request("tools/list", id="m") | {"params": [1]}, [], 400, -32602, "m"),
    "version header absent": (GOOD, [("MCP-Protocol-Version", ABSENT)], 400, -32020, "m"),
    "version header differs": (GOOD, [("MCP-Protocol-Version", "2025-11-25")], 400, -32020, "m"),
    "version header unknown": (GOOD, [("MCP-Protocol-Version", "v999")], 400, -32020, "m"),
    "version header twice": (
        GOOD,
        [("MCP-Protocol-Version", MODERN), ("MCP-Protocol-Version", MODERN)],
        400,
        -32020,
        "m",
    ),
    "method header absent": (GOOD, [("Mcp-Method", ABSENT)], 400, -32020, "m"),
    "method header differs": (GOOD, [("Mcp-Method", "tools/call")], 400, -32020, "m"),
    "method header in capitals": (GOOD, [("Mcp-Method", "TOOLS/LIST")], 400, -32020, "m"),
    "method header twice": (GOOD, [("Mcp-Method", "tools/list"), ("mcp-method", "tools/list")], 400, -32020, "m"),
    "name header absent": (modern(call("echo")), [("Mcp-Name", ABSENT)], 400, -32020, 1),
    "name header differs": (modern(call("echo")), [("Mcp-Name", "fail")], 400, -32020, 1),
    "name header in capitals": (modern(call("echo")), [("Mcp-Name", "ECHO")], 400, -32020, 1),
    "uri header differs": (
        modern(request("resources/read", {"uri": "note://a"})),
        [("Mcp-Name", "note://b")],
        400,
        -32020,
        1,
    ),
    "prompt header differs": (modern(request("prompts/get", {"name": "greet"})), [("Mcp-Name", "x")], 400, -32020, 1),
    "version not known": (modern(request("tools/list", id="m"), version="v999.0.0"), [], 400, -32022, "m"),
    "version of the other era": (modern(request("tools/list", id="m"), version="2025-11-25"), [], 400, -32022, "m"),
    "a capability is missing": (modern(call("refund", {"order": "A"})), [], 400, -32021, 1),
    "method not there": (modern(request("no/such", id="m")), [], 404, -32601, "m"),
    "method of a notification": (modern(request("notifications/cancelled", id="m")), [], 404, -32601, "m"),
    "unknown tool": (modern(call("nobody")), [], 200, -32602, 1),
    "bad cursor": (modern(request("tools/list", {"cursor": "x"}, "m")), [], 200, -32602, "m"),
    "missing resource": (modern(request("resources/read", {"uri": "none://"}, "m")), [], 200, -32602, "m"),
    "no name": (modern(request("tools/call", {}, "m")), [], 200, -32602, "m"),
}
REMOVED = ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")


def send(server: Any, message: Any, headers: list[tuple[str, str]]) -> Exchange:
    if isinstance(message, bytes):
        return server.send("POST", "/mcp", headers, message).finish()
    return post_modern(server, message, *headers).finish()


def test_every_refusal_has_its_status_its_code_and_the_id_of_its_request() -> None:
    with rigged() as (rig, server):
        wrong = []
        for name, (message, headers, *expected) in REFUSED.items():
            answer = send(server, message, headers)
            came = [answer.status, answer.json["error"]["code"], answer.json["id"]]
            if came != expected:
                wrong.append(f"{name}: {came}, not {expected}: {answer.json['error']['message']}")
        assert not wrong, "\n".join(wrong)
        assert rig.befell == {}
        assert server.look(rig.stored) == 0


@pytest.mark.parametrize("method", REMOVED)
def test_what_the_modern_era_has_not_is_not_found(method: str) -> None:
    with rigged() as (rig, server):
        version = {"protocolVersion": "2025-11-25", "level": "info", "uri": "note://a"}
        answer = ask_modern(server, request(method, version, "m"))
        assert (answer.status, answer.json["error"]["code"], answer.json["id"]) == (404, -32601, "m")
        assert "mcp-session-id" not in answer.headers
        bare = post_modern(server, request(method, version, "m")).finish()  # by its headers alone
        expected = (404, -32601) if method == "initialize" else (400, -32602)
        assert (bare.status, bare.json["error"]["code"]) == expected
        assert "mcp-session-id" not in bare.headers
        assert server.look(lambda: set(rig.links)) == set()


def test_a_handshake_with_a_version_that_nobody_knows_is_refused() -> None:
    with rigged() as (rig, server):
        for message, code in ((request("initialize", id="m"), -32602), (modern(request("initialize", id="m")), -32020)):
            answer = post_modern(server, message, ("MCP-Protocol-Version", "v999")).finish()
            assert (answer.status, answer.json["error"]["code"]) == (400, code)
        assert server.look(lambda: (rig.stored(), len(rig.links))) == (0, 0)


def test_the_ladder_is_climbed_in_order() -> None:
    """Envelope, then headers, then version, then method, then parameters: the first that fails is told."""
    with rigged() as (_, server):
        wrong = modern(request("no/such", {"cursor": 7}, "m"), version="v999")
        no_envelope = request("no/such", id="m")
        rungs: list[tuple[Any, list[tuple[str, str]], int]] = [
            (no_envelope, [("Mcp-Method", "other")], -32602),
            (wrong, [("Mcp-Method", "other")], -32020),
            (wrong, [], -32022),
            (modern(request("no/such", {"cursor": 7}, "m")), [], -32601),
            (modern(request("tools/list", {"cursor": 7}, "m")), [], -32602),
        ]
        for message, headers, code in rungs:
            assert post_modern(server, message, *headers).finish().json["error"]["code"] == code


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_get_and_delete_are_not_of_this_era(verb: str) -> None:
    with rigged() as (_, server):
        version = ("MCP-Protocol-Version", MODERN)
        for headers in ([], [version], [version, ("Mcp-Session-Id", "x")]):
            answer = server.send(verb, "/mcp", headers).finish()
            assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("method", ["notifications/cancelled", "notifications/initialized", "notifications/anything"])
def test_a_notification_is_taken_and_dropped(method: str) -> None:
    with rigged() as (rig, server):
        held = post_modern(server, modern(call("hold", id=1)))
        server.until(lambda: rig.befell["held"])
        for headers in ([], [("Mcp-Method", "something/else")]):
            answer = post_modern(server, modern(notice(method, {"requestId": 1})), *headers).finish()
            assert (answer.status, answer.body, "content-type" in answer.headers) == (202, b"", False)
        assert server.look(lambda: rig.executor.running) == 1  # a stranger's cancel takes nothing back
        server.look(rig.gate.set)
        assert held.finish().json["result"]["content"][0]["text"] == "released"


def test_a_session_id_and_a_last_event_id_mean_nothing() -> None:
    with rigged() as (rig, server):
        answer = ask_modern(server, call("echo", {"text": "x"}), ("Mcp-Session-Id", "none"), ("Last-Event-ID", "a-1"))
        assert answer.status == 200
        assert "mcp-session-id" not in answer.headers
        stream = ask_modern(server, call("count", {"to": 2}, **TOKEN), ("Mcp-Session-Id", "none"))
        assert [event.id for event in stream.events] == ["", "", ""]
        assert all(event.retry is None for event in stream.events)
        assert server.look(rig.stored) == 0


def test_header_names_have_any_case_and_values_may_have_blanks_around_them() -> None:
    with rigged() as (_, server):
        message = modern(call("echo", {"text": "x"}))
        headers = [("mcp-protocol-version", f" {MODERN} "), ("MCP-METHOD", "tools/call\t"), ("mcp-NAME", "  echo ")]
        assert post_modern(server, message, *headers).finish().status == 200
        assert post_modern(server, message, ("Mcp-Name", "=?base64?ZWNobw==?=")).finish().status == 200
        assert post_modern(server, message, ("Mcp-Name", "=?base64?ZWNobw?=")).finish().status == 400


# -- JSON or a stream


def test_an_answer_is_json_unless_something_is_said_before_it() -> None:
    with rigged() as (_, server):
        for tool in ("echo", "later", "threaded", "fail"):
            assert ask_modern(server, call(tool, **TOKEN)).type == "application/json"
        for tool in ("count", "count_inline"):
            quiet = ask_modern(server, call(tool, {"to": 3}))
            assert quiet.json["result"]["content"][0]["text"] == "counted to 3"
            loud = ask_modern(server, call(tool, {"to": 3}, **TOKEN))
            assert loud.type == "text/event-stream"
            assert loud.headers["x-accel-buffering"] == "no"
            assert loud.headers["cache-control"] == "no-cache, no-transform"
            assert [it.get("method") for it in loud.messages] == [*["notifications/progress"] * 3, None]
            assert loud.messages[-1]["result"]["content"][0]["text"] == "counted to 3"


BOTH, JSON_ONLY, STREAM_ONLY, NEITHER = (True, True), (True, False), (False, True), (False, False)
ACCEPTS = {
    ABSENT: BOTH,
    "": BOTH,
    "*/*": BOTH,
    "application/json, text/event-stream": BOTH,
    "text/event-stream;q=0.5, application/json; q=0.1": BOTH,
    "application/*, text/*": BOTH,
    "application/json": JSON_ONLY,
    "application/json, text/event-stream;q=0": JSON_ONLY,
    "*/*, text/event-stream; q=0.0": JSON_ONLY,
    "text/event-stream": STREAM_ONLY,
    "text/*": STREAM_ONLY,
    "application/json;q=0, text/event-stream": STREAM_ONLY,
    "text/html": NEITHER,
    "application/json;q=0": NEITHER,
    "*/*;q=0": NEITHER,
    "application/jsonp, text/event-streams": NEITHER,
}


def test_what_the_client_accepts_decides() -> None:
    with rigged() as (_, server):
        for accept, (json_ok, stream_ok) in ACCEPTS.items():
            header = ("Accept", accept)
            plain = ask_modern(server, call("later", {"text": "x"}), header)
            loud = ask_modern(server, call("count", {"to": 2}, **TOKEN), header)
            if not (json_ok or stream_ok):
                assert (plain.status, loud.status) == (406, 406), accept
                continue
            assert plain.type == ("application/json" if json_ok else "text/event-stream"), accept
            assert loud.type == ("text/event-stream" if stream_ok else "application/json"), accept
            assert len(loud.messages) == (3 if stream_ok else 1), accept
            assert plain.messages[-1]["result"]["content"][0]["text"] == "x"
            listen = ask_modern(server, request("subscriptions/listen", {"notifications": []}), header)
            assert listen.status == (200 if stream_ok else 406), (accept, listen)


def test_who_takes_streams_only_still_learns_by_the_status_that_a_request_is_refused() -> None:
    with rigged() as (_, server):
        only = ("Accept", "text/event-stream")
        assert ask_modern(server, request("no/such"), only).status == 404
        assert ask_modern(server, call("refund", {"order": "A"}), only).status == 400
        assert post_modern(server, request("tools/list"), only).finish().status == 400


def test_a_call_that_takes_its_time_becomes_a_stream_and_is_answered_there() -> None:
    with rigged(SLOW) as (rig, server):
        slow = post_modern(server, modern(call("hold"))).begin()
        assert (slow.status, slow.type, slow.messages) == (200, "text/event-stream", [])
        server.look(rig.gate.set)
        assert slow.finish().messages[0]["result"]["content"][0]["text"] == "released"


def test_who_takes_json_only_waits_for_it_however_long_it_takes() -> None:
    with rigged(SLOW) as (rig, server):
        slow = post_modern(server, modern(call("hold")), ("Accept", "application/json"))
        other = post_modern(server, modern(call("hold"))).begin()  # by now the first had its time, too
        assert other.type == "text/event-stream"
        server.look(rig.gate.set)
        assert slow.finish().json["result"]["content"][0]["text"] == "released"
        other.finish()


def test_a_silent_stream_shows_signs_of_life() -> None:
    with rigged(Limits(stream_after_seconds=0.01, keep_alive_seconds=0.01)) as (rig, server):
        slow = post_modern(server, modern(call("hold")))
        slow.wait(lambda it: it.comments >= 3)
        listen = post_modern(server, modern(request("subscriptions/listen", {"notifications": {}}, 2)))
        listen.wait(lambda it: it.comments >= 3)
        server.look(rig.gate.set)
        assert len(slow.finish().messages) == 1
        assert len(listen.messages) == 1


# -- hanging up


@pytest.mark.parametrize("tool", ["hold", "hold_loudly", "spin"])
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "*/*"])
def test_who_hangs_up_takes_the_request_back(tool: str, accept: str) -> None:
    with rigged(SLOW) as (rig, server):
        message = modern(call(tool, **TOKEN))
        held = post_modern(server, message, ("Accept", accept))
        server.until(lambda: rig.befell["held"] + rig.befell["spun"])
        if "json" not in accept:
            held.begin()
        held.drop()
        server.until(lambda: rig.befell["cancelled"], "the tool's hearing of it")
        assert server.look(lambda: (list(rig.executor.live), rig.executor.running)) == ([], 0)
        assert ask_modern(server, call("echo")).status == 200


def test_who_hangs_up_on_a_parked_call_frees_its_place() -> None:
    with rigged(Limits(running=1)) as (rig, server):
        first = post_modern(server, modern(call("hold")))
        server.until(lambda: rig.befell["held"])
        second = post_modern(server, modern(call("hold")))
        server.until(lambda: rig.executor.queued == 1)
        second.drop()
        server.until(lambda: rig.executor.queued == 0)
        server.look(rig.gate.set)
        assert first.finish().status == 200
        assert rig.befell["held"] == 1


# -- listens


def listen(**wanted: Any) -> dict[str, Any]:
    return modern(request("subscriptions/listen", {"notifications": wanted}, "sub"))


def test_a_listen_is_acknowledged_hears_what_it_asked_for_and_ends_with_its_client() -> None:
    with rigged() as (rig, server):
        ear = post_modern(server, listen(toolsListChanged=True, resourceSubscriptions=["note://a"]))
        ear.wait(lambda it: it.messages)
        for tool, arguments in (("grow", {}), ("touch", {"uri": "note://b"}), ("touch", {"uri": "note://a"})):
            assert ask_modern(server, call(tool, arguments)).type == "application/json"
        ear.wait(lambda it: len(it.messages) == 3)
        assert [it["method"].removeprefix("notifications/") for it in ear.messages] == [
            "subscriptions/acknowledged",
            "tools/list_changed",
            "resources/updated",
        ]
        assert all(it["params"]["_meta"] == {PREFIX + "subscriptionId": "sub"} for it in ear.messages)
        assert not any(event.id for event in ear.events)
        ear.drop()
        server.until(lambda: not rig.listens, "the end of the listen")


def test_listens_end_with_their_result_when_the_server_does() -> None:
    with rigged() as (rig, server):
        ears = [post_modern(server, listen(toolsListChanged=True)) for _ in range(3)]
        for ear in ears:
            ear.wait(lambda it: it.messages)
        server.do(lambda: rig.app.shut(0))
        for ear in ears:
            last = ear.finish().messages[-1]
            assert (last["id"], last["result"]["resultType"]) == ("sub", "complete")
            assert last["result"]["_meta"][PREFIX + "subscriptionId"] == "sub"
            assert len(ear.messages) == 2
        refused = ask_modern(server, call("echo"))
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert json.loads(refused.body)["id"] is None


def test_listens_are_bounded() -> None:
    with rigged(Limits(listens=2)) as (rig, server):
        ears = [post_modern(server, listen(toolsListChanged=True)).begin() for _ in range(2)]
        third = post_modern(server, listen(toolsListChanged=True)).finish()
        assert (third.status, third.json["error"]["code"]) == (200, -32602)
        ears[0].drop()
        server.until(lambda: len(rig.listens) == 1)
        assert post_modern(server, listen()).begin().type == "text/event-stream"
