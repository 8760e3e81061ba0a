"""The wire log shows the frames of each transport."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from console.site import Site, events, opened
from longshore.console.wire_log import WAITING, WAITING_BYTES, WireLog
from longshore.server.frame_tap import FrameTap
from posting import call, encode, modern
from serving import Exchange

CONFIG = """
[http]
lines = true

[auth]
mode = "optional"
"""


def frames(stream: Exchange, transport: str) -> list[tuple[str, Any]]:
    """The direction and the message of each frame of a transport."""
    found = [frame for each in events(stream, "wire") for frame in each["frames"]]
    return [(each["direction"], json.loads(each["text"])) for each in found if each["transport"] == transport]


def watch(site: Site) -> Exchange:
    """A stream of the wire that is open."""
    stream = site.stream("wire=1")
    site.server.until(lambda: site.app.engine.tap.watchers, "the tap")
    return stream


def test_lines_are_shown_in_both_directions(tmp_path: Path) -> None:
    with opened(tmp_path, CONFIG) as site:
        stream = watch(site)
        with socket.create_connection(("127.0.0.1", site.server.port), 20) as wire:
            wire.sendall(encode(modern(call("add", {"a": 40, "b": 2}, 7))) + b"\n")
            assert b"42" in wire.recv(1 << 16)
        stream.wait(lambda it: len(frames(it, "lines")) >= 2)
        (came, request), (went, answer) = frames(stream, "lines")
        assert (came, request["params"]["name"]) == ("in", "add")
        assert (went, answer["id"]) == ("out", 7)
        stream.drop()


def test_http_with_sse_is_shown_in_both_directions(tmp_path: Path) -> None:
    with opened(tmp_path, CONFIG) as site:
        stream = watch(site)
        old = site.server.send("GET", "/sse", [("Accept", "text/event-stream")]).begin()
        old.wait(lambda it: b"/messages?sessionId=" in it.body)
        address = old.body.decode().partition("data: ")[2].split()[0]
        ping = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
        assert (
            site.server.send("POST", address, [("Content-Type", "application/json")], encode(ping)).finish().status
            == 202
        )
        stream.wait(lambda it: len(frames(it, "sse")) >= 2)
        assert frames(stream, "sse") == [("in", ping), ("out", {"jsonrpc": "2.0", "id": 3, "result": {}})]
        old.drop()
        stream.drop()


@pytest.mark.parametrize(("size", "kept"), [(1, WAITING), (WAITING_BYTES // 100, 100), (WAITING_BYTES // 100 + 1, 99)])
def test_frames_wait_for_a_slow_page_up_to_a_number_and_a_size(
    size: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.console.wire_log._KEPT_BYTES", WAITING_BYTES)
    tap = FrameTap()
    log = WireLog(tap)
    log.open()
    for _ in range(WAITING + 1):
        tap.show("in", None, b"1" * size)
    numbers: list[int] = []
    dropped = 0
    while found := asyncio.run(log.read()):
        numbers += [each["n"] for each in found["frames"]]
        dropped += found["dropped"]
    assert (len(numbers), dropped, numbers[-1]) == (kept, WAITING + 1 - kept, WAITING + 1)
    log.close()
