"""2024-11-05: a stream that is the session, and messages that are POSTed beside it."""

from __future__ import annotations

from typing import Any

import pytest

from longshore import Limits
from longshore.transports.http.cluster import ClusterMessage
from longshore.transports.http.sse_2024 import _caller_key
from posting import Json, call, encode, notice, request
from serving import Exchange, Served

from .fixture import rigged


class Old:
    """A client of that time."""

    def __init__(self, server: Served, *, buffer: int = 0) -> None:
        self.server = server
        self.stream = server.connect(buffer=buffer).send("GET", "/sse", [("Accept", "text/event-stream")])
        self.stream.wait(lambda it: it.events)
        first = self.stream.events[0]
        assert (first.kind, first.id) == ("endpoint", "")
        self.path = first.data

    def post(self, message: Any) -> Exchange:
        body = message if isinstance(message, bytes) else encode(message)
        return self.server.send("POST", self.path, (), body).finish()

    def open(self, **capabilities: Any) -> Old:
        info = {"name": "old", "version": "1"}
        params = {"protocolVersion": "2024-11-05", "capabilities": capabilities, "clientInfo": info}
        assert self.ask(request("initialize", params, "init"))["result"]["protocolVersion"] == "2024-11-05"
        assert self.post(notice("notifications/initialized")).status == 202
        return self

    def ask(self, message: Json) -> Any:
        answer = self.post(message)
        assert (answer.status, answer.body) == (202, b"")
        self.stream.wait(lambda it: any(each.get("id") == message["id"] for each in self.messages))
        return next(each for each in self.messages if each.get("id") == message["id"])

    @property
    def messages(self) -> list[Any]:
        return [event.message for event in self.stream.events[1:]]


def test_everything_is_answered_on_the_stream() -> None:
    with rigged() as (_, server):
        old = Old(server).open()
        for n, tool in enumerate(("echo", "later", "threaded")):
            assert old.ask(call(tool, {"text": tool}, n))["result"]["content"][0]["text"] == tool
        old.ask(call("count", {"to": 3}, 9, progressToken="t"))
        assert [it["params"]["progress"] for it in old.messages if "progress" in it.get("method", "")] == [1, 2, 3]
        assert old.ask(request("no/such", id="x"))["error"]["code"] == -32601
        assert all(event.kind == "message" and not event.id for event in old.stream.events[1:])


def test_notices_and_questions_come_on_the_stream_too() -> None:
    with rigged() as (_, server):
        old = Old(server).open(sampling={})
        old.ask(request("resources/subscribe", {"uri": "note://a"}, 1))
        old.ask(call("touch", {"uri": "note://a"}, 2))
        old.ask(call("grow", {}, 3))
        methods = [it["method"] for it in old.messages if "method" in it]
        assert methods == ["notifications/resources/updated", "notifications/tools/list_changed"]
        assert old.post(call("title", {}, 4)).status == 202
        old.stream.wait(lambda it: "sampling/createMessage" in it.events[-1].data)
        question = old.messages[-1]
        said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Ropes"}}
        assert old.post({"jsonrpc": "2.0", "id": question["id"], "result": said}).status == 202
        old.stream.wait(lambda it: '"id":4' in it.events[-1].data)
        assert old.messages[-1]["result"]["content"][0]["text"] == "Ropes"


def test_who_hangs_up_ends_the_session_and_its_calls() -> None:
    with rigged() as (rig, server):
        old = Old(server).open()
        assert old.post(call("hold")).status == 202
        server.until(lambda: rig.befell["held"])
        old.stream.drop()
        server.until(lambda: rig.befell["cancelled"])
        server.until(lambda: not rig.app.sse.open)
        assert old.post(call("echo")).status == 404
        assert server.look(lambda: len(rig.links)) == 0


@pytest.mark.parametrize("id", ["", "?sessionId=", "?sessionId=x", "?sessionId=x.y", "?sessionId={worker}.y", "?x=1"])
def test_an_unknown_session_is_not_found(id: str) -> None:
    with rigged() as (rig, server):
        path = "/messages" + id.format(worker=rig.app.cluster.id)
        assert server.send("POST", path, (), encode(call("echo"))).finish().status == 404


def test_what_is_no_message_is_refused_and_the_rest_is_answered_on_the_stream() -> None:
    with rigged(Limits(frame_bytes=5000)) as (_, server):
        old = Old(server).open()
        before = len(old.messages)
        for body, status in ((b"{", 400), (b"", 400), (b"7", 400), (b" " * 5001, 413)):
            assert old.post(body).status == status, body
        headers = [("Content-Type", "text/plain")]
        assert server.send("POST", old.path, headers, encode(call("echo"))).finish().status == 415
        assert old.ask({"jsonrpc": "2.0", "id": "bad", "method": 7})["error"]["code"] == -32600
        assert len(old.messages) == before + 1
        for verb, path, allowed in (("POST", "/sse", "GET"), ("GET", old.path, "POST"), ("DELETE", "/sse", "GET")):
            answer = server.send(verb, path, (), b"{}" if verb == "POST" else None).finish()
            assert (answer.status, answer.headers["allow"]) == (405, allowed)
        assert server.send("GET", "/sse", [("Accept", "application/json")]).finish().status == 406


def test_streams_are_bounded() -> None:
    with rigged(Limits(sessions=2)) as (rig, server):
        first, _ = Old(server), Old(server)
        refused = server.send("GET", "/sse").finish()
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        first.stream.drop()
        server.until(lambda: len(rig.app.sse.open) == 1)
        assert Old(server).open().ask(request("ping", id=1))["result"] == {}


def test_a_silent_stream_shows_signs_of_life() -> None:
    with rigged(Limits(keep_alive_seconds=0.01)) as (_, server):
        Old(server).stream.wait(lambda it: it.comments >= 3)


def test_answers_do_not_pile_up_for_a_client_that_reads_none() -> None:
    with rigged(Limits(output_bytes=50_000)) as (rig, server):
        old = Old(server, buffer=4096).open()
        session = next(iter(rig.app.sse.open.values()))
        statuses: list[int] = []
        while 503 not in statuses and len(statuses) < 5000:
            statuses.append(old.post(call("echo", {"text": "x" * 40_000})).status)
            assert server.look(lambda: session.events.bytes) < 100_000
        assert set(statuses) == {202, 503}
        sent = statuses.count(202)
        old.stream.wait(lambda it: it.body.count(b"\r\n\r\n") == sent + 2)  # and once it reads, it gets every one
        assert old.post(request("ping", id=1)).status == 202


def test_a_call_that_came_by_another_process_while_its_reader_was_behind_is_answered_when_it_has_read() -> None:
    """Such a one can't be refused any more: whoever took it has said 202."""
    with rigged(Limits(output_bytes=50_000)) as (rig, server):
        old = Old(server, buffer=4096).open()
        id, session = next(iter(rig.app.sse.open.items()))
        whose = server.look(lambda: _caller_key(session.principal))
        for n in range(5000):
            if server.look(lambda: session.congested):
                break
            assert old.post(call("echo", {"text": "x" * 40_000}, n)).status in (202, 503)
        late = whose + b"\n" + encode(call("later", {"text": "late"}, "late"))
        server.look(lambda: rig.app.sse.handle_relayed(ClusterMessage("another", "old", id, late)))
        assert server.look(lambda: len(rig.executor.live)) == 1
        old.stream.wait(lambda it: b'"id":"late"' in it.body, "the answer")


def test_the_end_of_the_server_answers_what_ran_and_ends_the_stream() -> None:
    with rigged() as (rig, server):
        old = Old(server).open()
        assert old.post(call("hold", id="held")).status == 202
        server.until(lambda: rig.befell["held"])
        server.do(lambda: rig.app.shut(0))
        old.stream.finish()
        assert "shut down" in old.messages[-1]["result"]["content"][0]["text"]
        assert old.post(call("echo")).status in (404, 503)
        refused = server.send("GET", "/sse").finish()
        assert (refused.status, refused.json["error"]["message"]) == (503, "the server is shutting down")
