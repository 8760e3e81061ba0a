"""2025-03-26 to 2025-11-25 over HTTP: sessions, versions, statuses, batches, the GET stream, DELETE."""

from __future__ import annotations

from typing import Any

import pytest

from longshore import Limits
from posting import HANDSHAKES, LEGACY, MODERN, Session, ask_modern, call, encode, notice, request
from serving import ABSENT

from .fixture import BOTH, rigged

pytestmark = BOTH

TOKEN = {"progressToken": "t"}
SLOW = Limits(stream_after_seconds=0.02)
each_version = pytest.mark.parametrize("version", HANDSHAKES)

# -- the handshake and its session


@each_version
def test_the_handshake_begins_a_session(version: str) -> None:
    with rigged() as (rig, server):
        session = Session(server, version).open()
        assert all(0x21 <= ord(each) <= 0x7E for each in session.id)
        assert len(session.id) >= 32
        assert session.call("echo", text="x") == "x"
        assert session.call("later", text="y") == "y"
        other = Session(server, version).open()
        assert other.id != session.id
        assert server.look(rig.stored) == 2


def test_a_handshake_never_answers_a_newer_version_than_there_is_a_handshake_for() -> None:
    with rigged() as (_, server):
        for asked, given in ((MODERN, LEGACY), ("2031-01-01", LEGACY), ("2024-11-05", "2024-11-05")):
            session = Session(server, asked)
            answer = session.initialize().finish()
            assert answer.json["result"]["protocolVersion"] == given
            assert "mcp-session-id" in answer.headers


def test_a_handshake_may_be_answered_as_a_stream_and_the_session_is_there() -> None:
    with rigged() as (_, server):
        session = Session(server)
        answer = session.initialize(None, ("Accept", "text/event-stream")).finish()
        assert answer.type == "text/event-stream"
        assert answer.messages[0]["result"]["protocolVersion"] == LEGACY
        session.id = answer.headers["mcp-session-id"]
        assert session.call("echo", text="x") == "x"


# -- §12.3: what is refused, with which status and code


def test_every_refusal_has_its_status() -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        echo, wrong = call("echo"), []
        refused: dict[str, tuple[Any, list[tuple[str, str]], int, int]] = {
            "no session": (echo, [("Mcp-Session-Id", ABSENT)], 400, -32600),
            "no session, a notification": (notice("x"), [("Mcp-Session-Id", ABSENT)], 400, -32600),
            "no session, a batch": ([echo], [("Mcp-Session-Id", ABSENT)], 400, -32600),
            "no session, a response": (
                {"jsonrpc": "2.0", "id": 1, "result": {}},
                [("Mcp-Session-Id", ABSENT)],
                400,
                -32600,
            ),
            "no session, an initialize without id": (
                notice("initialize", {"protocolVersion": LEGACY}),
                [("Mcp-Session-Id", ABSENT)],
                400,
                -32600,
            ),
            "no session, no JSON": (b"{", [("Mcp-Session-Id", ABSENT)], 400, -32700),
            "no session, nothing": (b"", [("Mcp-Session-Id", ABSENT)], 400, -32600),
            "unknown session": (echo, [("Mcp-Session-Id", "x" * 32)], 404, -32600),
            "session of strange bytes": (echo, [("Mcp-Session-Id", "\xff\xfe")], 404, -32600),
            "empty session": (echo, [("Mcp-Session-Id", "")], 404, -32600),
            "session twice": (echo, [("Mcp-Session-Id", session.id), ("Mcp-Session-Id", session.id)], 400, -32600),
            "bad JSON": (b'{"jsonrpc":', [], 400, -32700),
            "nothing": (b"  ", [], 400, -32700),
            "a number": (b"7", [], 400, -32600),
            "no request": ({"jsonrpc": "2.0", "id": 1}, [], 400, -32600),
            "a batch": ([echo], [], 400, -32600),
            "unknown version": (echo, [("MCP-Protocol-Version", "v999")], 400, -32602),
            "broken version": (echo, [("MCP-Protocol-Version", "2025-11-25,")], 400, -32602),
            "accepts neither": (echo, [("Accept", "text/html")], 406, -32600),
            "another kind": (echo, [("Content-Type", "text/plain")], 415, -32600),
            "unknown method": (request("no/such"), [], 200, -32601),
            "unknown tool": (call("nobody"), [], 200, -32602),
            "a modern method": (request("server/discover"), [], 200, -32602),
        }
        for name, (message, headers, status, code) in refused.items():
            answer = session.post(message, *headers).finish()
            came = answer.status, answer.json["error"]["code"]
            if came != (status, code):
                wrong.append(f"{name}: {came}, not {(status, code)}: {answer.json['error']['message']}")
        assert not wrong, "\n".join(wrong)
        assert server.look(rig.stored) == 1
        assert session.call("echo", text="still") == "still"


@each_version
def test_the_version_header_may_be_absent_or_any_that_has_a_handshake(version: str) -> None:
    with rigged() as (_, server):
        session = Session(server, version).open()
        for header in (ABSENT, *HANDSHAKES, f" {version}\t"):
            assert session.post(call("echo"), ("MCP-Protocol-Version", header)).finish().status == 200


def test_an_enveloped_request_is_modern_whatever_session_it_names() -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        answer = ask_modern(server, call("echo", {"text": "x"}), ("Mcp-Session-Id", session.id))
        assert answer.json["result"]["resultType"] == "complete"
        assert ask_modern(server, call("echo"), ("Mcp-Session-Id", "none")).status == 200
        assert server.look(rig.stored) == 1


def test_what_looks_like_an_envelope_in_an_argument_is_none() -> None:
    with rigged() as (_, server):
        session = Session(server).open()
        text = '"io.modelcontextprotocol/protocolVersion":"2026-07-28"'
        assert session.call("echo", text=text) == text


@each_version
def test_notifications_and_responses_are_accepted(version: str) -> None:
    with rigged() as (_, server):
        session = Session(server, version).open()
        for message in (
            notice("notifications/initialized"),
            notice("notifications/anything"),
            notice("notifications/cancelled", {"requestId": 99}),
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            {"jsonrpc": "2.0", "id": "longshore-1", "error": {"code": 1, "message": "x"}},
        ):
            answer = session.post(message).finish()
            assert (answer.status, answer.body, answer.type) == (202, b"", "")


# -- batches


def test_batches_are_answered_at_2025_03_26() -> None:
    with rigged() as (rig, server):
        session = Session(server, "2025-03-26").open()
        quick = session.post([call("echo", {"text": "a"}, 1), request("ping", id=2), notice("x")]).finish()
        assert quick.type == "application/json"
        assert [(it["id"], "result" in it) for it in quick.json] == [(1, True), (2, True)]
        slow = session.post([call("later", {"text": "a"}, 1), call("threaded", {"text": "b"}, 2)]).finish()
        assert sorted(it["id"] for it in slow.json) == [1, 2]
        loud = session.post([call("count", {"to": 2}, 1, **TOKEN), request("ping", id=2)]).finish()
        assert loud.type == "text/event-stream"
        assert [isinstance(it, list) for it in loud.messages] == [False, False, True]
        assert session.post([notice("x"), notice("y")]).finish().status == 202
        assert session.post(b" \r\n" + encode([request("ping", id=1)])).finish().json[0]["result"] == {}
        for body in (b"[]", encode([request("ping", id=n) for n in range(101)])):
            answer = session.post(body).finish()
            assert (answer.status, answer.json["error"]["code"]) == (400, -32600)
        assert server.look(lambda: dict(rig.sessions[session.id].session.rows)) == {}


def test_a_batch_that_cancels_one_call_and_begins_another_is_answered() -> None:
    with rigged() as (rig, server):
        session = Session(server, "2025-03-26").open()
        first = session.post(call("hold", id=1))
        server.until(lambda: rig.befell["held"] == 1)
        batch = session.post([notice("notifications/cancelled", {"requestId": 1}), call("hold", id=2)])
        server.until(lambda: rig.befell["held"] == 2)
        server.look(rig.gate.set)
        assert [it["id"] for it in batch.finish().json] == [2]
        assert first.finish().body == b""


def test_what_a_batch_changes_of_the_session_is_kept() -> None:
    with rigged() as (rig, server):
        session = Session(server, "2025-03-26").open()
        assert session.ask("resources/subscribe", {"uri": "note://0"})["result"] == {}
        changes = [request("resources/subscribe", {"uri": "note://2"}, 1)]
        changes.append(request("resources/unsubscribe", {"uri": "note://0"}, 2))
        session.post(b"\n" + encode(changes)).finish()
        server.look(lambda: rig.app.sessions.loaded.clear())
        stream = session.get().begin()
        session.call("touch", uri="note://0")
        session.call("touch", uri="note://2")
        stream.wait(lambda it: it.messages)
        assert [it["params"]["uri"] for it in stream.messages] == ["note://2"]


# -- JSON or a stream; hanging up


@each_version
def test_an_answer_is_json_unless_something_is_said_before_it(version: str) -> None:
    with rigged() as (_, server):
        session = Session(server, version).open()
        for tool in ("echo", "later", "threaded", "fail"):
            assert session.post(call(tool, **TOKEN)).finish().type == "application/json"
        for tool in ("count", "count_inline"):
            loud = session.post(call(tool, {"to": 2}, **TOKEN)).finish()
            assert loud.type == "text/event-stream"
            assert [it.get("method") for it in loud.messages] == [*["notifications/progress"] * 2, None]
            primed = [event for event in loud.events if not event.data]
            assert len(primed) == (1 if version == LEGACY else 0), "older clients choke on an event without data"


def test_who_takes_json_only_hears_of_progress_on_the_sessions_own_stream() -> None:
    with rigged(SLOW) as (_, server):
        session = Session(server).open()
        answer = session.post(call("count", {"to": 2}, **TOKEN), ("Accept", "application/json")).finish()
        assert answer.json["result"]["content"][0]["text"] == "counted to 2"
        stream = session.get().wait(lambda it: len(it.messages) == 2)
        assert {it["method"] for it in stream.messages} == {"notifications/progress"}


@each_version
def test_a_call_that_takes_its_time_becomes_a_stream(version: str) -> None:
    with rigged(SLOW) as (rig, server):
        session = Session(server, version).open()
        slow = session.post(call("hold")).begin()
        assert slow.type == "text/event-stream"
        server.look(rig.gate.set)
        assert slow.finish().messages[0]["result"]["content"][0]["text"] == "released"


def test_who_hangs_up_takes_nothing_back() -> None:
    with rigged(SLOW) as (rig, server):
        session = Session(server).open()
        for accept in ("application/json", "text/event-stream", "*/*"):
            held = session.post(call("hold", id=accept), ("Accept", accept))
            server.until(lambda: rig.executor.running)
            held.drop()
            server.settle()
            server.until(lambda: rig.sessions[session.id].busy == 0, "the end of the request")
            assert server.look(lambda: rig.executor.running) == 1
            server.look(rig.gate.set)
            server.until(lambda: not rig.executor.live)
            server.look(rig.gate.clear)
        assert rig.befell == {"held": 3}
        assert session.call("echo", text="on") == "on"


def test_a_cancel_ends_a_request_without_an_answer() -> None:
    with rigged(SLOW) as (rig, server):
        session = Session(server).open()
        for accept in ("application/json", "text/event-stream"):
            held = session.post(call("hold", id="h"), ("Accept", accept))
            server.until(lambda: rig.executor.running)
            assert session.post(notice("notifications/cancelled", {"requestId": "h"})).finish().status == 202
            assert held.finish().messages == []
        assert rig.befell == {"held": 2, "cancelled": 2}


# -- questions


def test_a_question_is_asked_on_the_requests_own_stream_and_answered_by_a_post() -> None:
    with rigged() as (_, server):
        session = Session(server).open({"elicitation": {}, "sampling": {}})
        stream = session.get().begin()
        asking = session.post(call("refund", {"order": "A9"})).wait(lambda it: it.messages)
        question = asking.messages[0]
        assert question["method"] == "elicitation/create"
        answer = {"action": "accept", "content": {"ok": True}}
        assert session.post({"jsonrpc": "2.0", "id": question["id"], "result": answer}).finish().status == 202
        assert asking.finish().messages[-1]["result"]["content"][0]["text"] == "A9: True"
        assert stream.drain().messages == []


# -- the end of a session


def test_after_delete_there_is_no_session() -> None:
    with rigged(SLOW) as (rig, server):
        session = Session(server).open()
        stream = session.get().begin()
        held = session.post(call("hold"))
        loud = session.post(call("hold_loudly", id=2, **TOKEN)).begin()
        server.until(lambda: rig.befell["held"] == 2)
        gone = session.delete().finish()
        assert (gone.status, gone.body, "content-length" in gone.headers) == (204, b"", False)
        for exchange in (stream, held, loud):
            exchange.finish()
            assert not any("id" in it for it in exchange.messages)
        for exchange in (session.post(call("echo")), session.get(), session.delete(), session.post(notice("x"))):
            assert exchange.finish().status == 404
        assert rig.befell["cancelled"] == 2
        assert server.look(lambda: (rig.stored(), len(rig.sessions), len(rig.links), list(rig.executor.live))) == (
            *(0, 0, 0, []),
        )


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_get_and_delete_need_a_session(verb: str) -> None:
    with rigged() as (_, server):
        session = Session(server).open()
        without = server.send(verb, "/mcp").finish()
        assert (without.status, without.headers["allow"]) == (405, "POST")
        later = server.send(verb, "/mcp", [("Mcp-Session-Id", session.id), ("MCP-Protocol-Version", "v9")]).finish()
        assert (later.status, later.headers["allow"]) == (405, "POST")
        assert server.send(verb, "/mcp", [("Mcp-Session-Id", "unknown")]).finish().status == 404
        assert session.call("echo", text="there") == "there"
