"""2024-11-05: the stream is in one process, and messages are POSTed to the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from posting import call, encode, notice, request
from serving import Exchange, Pairs

from .processes import Process, Site, until

Pair = tuple[Process, Process]


class Old:
    """A client of 2024-11-05."""

    def __init__(self, process: Process, headers: Pairs = ()) -> None:
        self.headers = list(headers)
        self.stream = process.send("GET", "/sse", [*headers, ("Accept", "text/event-stream")])
        self.stream.wait(lambda it: it.events)
        self.address = self.stream.events[0].data

    def post(self, process: Process, message: Any, headers: Pairs | None = None) -> Exchange:
        sent = self.headers if headers is None else headers
        answer = process.send("POST", self.address, sent, encode(message)).finish()
        answer.close()
        return answer

    def initialize(self, process: Process) -> None:
        info = {"name": "old", "version": "1"}
        params = {"protocolVersion": "2024-11-05", "capabilities": {"sampling": {}}, "clientInfo": info}
        assert self.post(process, request("initialize", params, 0)).status == 202
        assert self.messages(1)[0]["result"]["protocolVersion"] == "2024-11-05"
        assert self.post(process, notice("notifications/initialized")).status == 202

    def messages(self, count: int) -> list[Any]:
        self.stream.wait(lambda it: len(it.events) > count, f"message {count}")
        return [event.message for event in self.stream.events[1:]]


def test_messages_reach_the_stream_from_the_other_process(pair: Pair) -> None:
    a, b = pair
    client = Old(a)
    client.initialize(b)
    assert client.post(b, call("process", {}, 1)).status == 202
    assert client.messages(2)[1]["result"]["content"][0]["text"] == str(a.pid)
    assert client.post(b, call("title", {}, 2)).status == 202
    question = client.messages(3)[2]
    assert question["method"] == "sampling/createMessage"
    answer = {"role": "assistant", "content": {"type": "text", "text": "Pier"}, "model": "m"}
    assert client.post(b, {"jsonrpc": "2.0", "id": question["id"], "result": answer}).status == 202
    assert client.messages(4)[3]["result"]["content"][0]["text"] == "Pier"
    assert client.post(b, request("resources/subscribe", {"uri": "note://old"}, 3)).status == 202
    assert client.messages(5)[4]["result"] == {}
    b.do("touch", uri="note://old")
    assert client.messages(6)[5]["params"]["uri"] == "note://old"


def test_a_stream_that_has_ended_is_unknown_in_both(pair: Pair) -> None:
    client = Old(pair[0])
    client.initialize(pair[1])
    client.stream.drop()
    for process in pair:
        until(lambda process=process: client.post(process, request("ping")).status == 404, "the end of the stream")
        forged = client.address[:-4] + "AAAA"
        assert process.send("POST", forged, (), encode(request("ping"))).finish().status == 404


def test_the_stream_of_another_caller_is_unknown_in_both(fresh: Site, tmp_path: Path) -> None:
    config = tmp_path / "longshore.toml"
    config.write_text("".join(f'[tokens.{name}]\ntoken = "{name * 8}"\n' for name in ("alice", "bob")))
    a, b = fresh.start(config_path=str(config))
    alice, bob = ([("Authorization", f"Bearer {name * 8}")] for name in ("alice", "bob"))
    client = Old(a, alice)
    client.initialize(b)
    for process in (a, b):
        assert client.post(process, request("ping", None, 5), bob).status == 404
        assert client.post(process, request("ping", None, 6), []).status == 401
    assert client.post(b, request("ping", None, 7)).status == 202
    assert client.messages(2)[1]["id"] == 7
