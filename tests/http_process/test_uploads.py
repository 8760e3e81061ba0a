"""Unfinished bodies hold a bounded memory together: what finds no room waits, then is refused; nobody is locked out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from longshore import Limits
from longshore.transports.http.uploads import SMALL_BYTES, PendingUpload, Uploads
from posting import call, encode, modern, modern_headers
from serving import Connection, Exchange, eventually

from .bare import Bare, closes_with, echo, listen
from .serverproc import ServerProcess, start

LONG = 600.0
MOST = 1 << 20
ROOM = MOST - MOST // 4
"""What large bodies may take of it."""


def upload(size: int, received: int = 1, address: str = "a") -> PendingUpload:
    return PendingUpload(address, size, received, lambda: None)


def uploads(most: int = MOST) -> Uploads:
    return Uploads(Limits(upload_bytes=most))


# -- counting


@pytest.mark.parametrize(("size", "waits"), [(ROOM - 1, False), (ROOM, False), (ROOM + 1, True)])
def test_large_bodies_take_three_quarters_and_not_a_byte_more(size: int, waits: bool) -> None:
    all, first, second = uploads(), upload(ROOM // 2), upload(size - ROOM // 2)
    assert all.enter(first) and all.enter(second)
    assert second.waits is waits
    assert all.held == (ROOM // 2 + 1 if waits else size)
    all.leave(first)
    assert not second.waits and all.held == second.size
    all.leave(second)
    assert all.held == 0


@pytest.mark.parametrize(("size", "room"), [(SMALL_BYTES - 1, True), (SMALL_BYTES, True), (SMALL_BYTES + 1, False)])
def test_small_bodies_take_the_rest_and_then_find_no_room(size: int, room: bool) -> None:
    all = uploads(4 * SMALL_BYTES)
    assert all.enter(upload(3 * SMALL_BYTES))
    assert all.enter(upload(1)) and all.enter(upload(size - 1)) is room


def test_a_body_that_waits_counts_with_what_has_come_of_it() -> None:
    all = uploads()
    assert all.enter(upload(ROOM))
    assert all.enter(upload(ROOM, MOST // 4))
    assert all.held == MOST
    assert not all.enter(upload(ROOM, 1))


def test_a_body_larger_than_the_room_is_let_in_alone() -> None:
    all, large = uploads(), upload(2 * MOST)
    assert all.enter(large) and not large.waits
    other = upload(2 * MOST)
    assert all.enter(other) and other.waits


def test_addresses_take_turns() -> None:
    all, first = uploads(), upload(ROOM)
    crowd, single = [upload(ROOM) for _ in range(3)], upload(ROOM, address="b")
    for each in (first, *crowd, single):
        assert all.enter(each)
    order = [first]
    for _ in range(4):
        all.leave(order[-1])
        order.append(next(each for each in (*crowd, single) if not each.waits and each.counted))
    assert order == [first, crowd[0], single, crowd[1], crowd[2]]


# -- connections


def head(size: int) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size


def begun(server: Bare, size: int, sent: int) -> Exchange:
    """A body of which so much has come, and was counted."""
    before = server.look(lambda: server.listener.uploads.held)
    answer = server.say(head(size) + b"x" * sent)
    eventually(lambda: server.look(lambda: server.listener.uploads.held) > before, "the upload")
    return answer


def test_a_body_that_finds_no_room_in_time_is_refused() -> None:
    with listen(echo, upload_bytes=MOST, upload_seconds=0.2, body_seconds=LONG) as server:
        held = begun(server, ROOM, 100)
        late = begun(server, ROOM, 100)
        assert closes_with(late, 503)
        assert late.headers["retry-after"] == "1"
        held.wire.sendall(b"x" * (ROOM - 100))
        assert held.finish().status == 200


def test_a_body_that_waits_is_read_on_when_there_is_room() -> None:
    with listen(echo, upload_bytes=MOST) as server:
        held, late = begun(server, ROOM, 100), begun(server, ROOM, 100)
        assert server.serves()
        held.wire.sendall(b"x" * (ROOM - 100))
        assert held.finish().status == 200
        late.wire.sendall(b"x" * (ROOM - 100))
        assert len(late.finish().json["body"]) == ROOM


def test_a_chunked_body_is_small_until_it_is_not() -> None:
    piece = b"%x\r\n%b\r\n" % (SMALL_BYTES, b"x" * SMALL_BYTES)
    with listen(echo, upload_bytes=MOST, frame_bytes=ROOM) as server:
        answer = server.say(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        eventually(lambda: server.look(lambda: server.listener.uploads.held) == SMALL_BYTES, "the small one")
        answer.wire.sendall(piece)
        eventually(lambda: server.look(lambda: server.listener.uploads.held) == ROOM, "the large one")
        answer.wire.sendall(b"0\r\n\r\n")
        assert answer.finish().status == 200
        assert server.look(lambda: server.listener.uploads.held) == 0


@pytest.mark.parametrize("early", [True, False])
def test_while_others_wait_a_slow_body_has_its_time_and_no_more(early: bool) -> None:
    """The time is ours here. The slow one brings enough for the deadline of bodies, and the other one is not blamed."""
    with listen(echo, upload_bytes=MOST, body_seconds=LONG, upload_seconds=10 * LONG, body_bytes=1) as server:
        server.look(server.listener.end)
        slow, late = begun(server, ROOM, 100), begun(server, ROOM, 100)
        now = int(server.listener.now)  # whole seconds: sums of them are exact
        for seconds in (0.0, LONG - 1 if early else LONG):
            slow.wire.sendall(b"x")
            server.serves()  # so that it was read
            server.look(lambda seconds=seconds: [each.check(now + seconds) for each in [*server.listener.connections]])
        if early:
            slow.wire.sendall(b"x" * (ROOM - 102))
            assert slow.finish().status == 200
        else:
            assert slow.finish().status == 503
        late.wire.sendall(b"x" * (ROOM - 100))
        assert late.finish().status == 200


# -- a process

SOURCE = """
from longshore import Server

app = Server("quay")

@app.tool
async def measure(text: str) -> int:
    return len(text)
"""
FRAME, UPLOADS = 4_000_000, 12_000_000
HOLDERS = 40
MARGIN = 30_000_000
"""What a process may grow by beside: buffers of forty connections, what malloc keeps, a message that is decoded."""
CONFIG = f"[limits]\nframe_bytes = {FRAME}\nupload_bytes = {UPLOADS}\nupload_seconds = 600.0\n"


def post(server: ServerProcess, size: int) -> tuple[bytes, bytes]:
    """The head and the body of a call with so long an argument."""
    message = modern(call("measure", {"text": "x" * size}))
    body = encode(message)
    headers = [*modern_headers(message), ("Host", f"127.0.0.1:{server.port}"), ("Content-Type", "application/json")]
    lines = [f"{name}: {value}" for name, value in [*headers, ("Content-Length", str(len(body)))]]
    return "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode(), body


def measured(server: ServerProcess, size: int) -> int:
    """The answer to a call whose head and body are sent apart."""
    connection = server.connect()
    for part in post(server, size):
        connection.write(part)
    answer = Exchange(connection.wire).finish()
    assert answer.status == 200, answer
    return int(answer.json["result"]["content"][0]["text"])


def resident_bytes(server: ServerProcess) -> int:
    return int(Path(f"/proc/{server.pid}/statm").read_text().split()[1]) * 4096


def counted_bytes(server: ServerProcess) -> int:
    page = server.send("GET", "/metrics").finish().body.decode()
    return int(float(re.findall(r"^longshore_upload_bytes (\S+)$", page, re.M)[0]))


class Holder:
    """A connection that sends its body as far as it is taken, but for the end."""

    def __init__(self, server: ServerProcess) -> None:
        self.connection: Connection = server.connect()
        head, body = post(server, FRAME - 1000)
        self.rest = memoryview(head + body[:-100])
        self.connection.wire.setblocking(False)

    def send(self) -> int:
        try:
            sent = self.connection.wire.send(self.rest)
        except BlockingIOError:
            return 0
        self.rest = self.rest[sent:]
        return sent


def test_a_process_takes_no_more_of_all_bodies_than_their_limit_and_serves_others_meanwhile() -> None:
    with start(SOURCE, config=CONFIG) as server:
        assert measured(server, 10) == 10
        before = resident_bytes(server)
        holders = [Holder(server) for _ in range(HOLDERS)]
        quiet = 0
        while quiet < 10:  # nothing was taken of any while ten others were served
            moved = sum(holder.send() for holder in holders)
            assert measured(server, 1000) == 1000
            quiet = 0 if moved else quiet + 1
        assert 0 < counted_bytes(server) <= UPLOADS
        assert resident_bytes(server) - before < UPLOADS + MARGIN < HOLDERS * FRAME
        for holder in holders:
            holder.connection.close()
        eventually(lambda: counted_bytes(server) == 0, "the end of all uploads")
        assert measured(server, FRAME - 1000) == FRAME - 1000


SLOW = """
import asyncio
from longshore import Server

app = Server("quay")
together = asyncio.Barrier(4)

@app.tool
async def measure(text: str) -> int:
    await together.wait()
    return len(text)
"""


def test_as_many_large_calls_run_at_once_as_uploads_may_hold() -> None:
    size = 10_000_000
    with start(SLOW) as server:
        exchanges: list[Exchange] = []
        for _ in range(4):
            connection = server.connect()
            for part in post(server, size):
                connection.write(part)
            exchanges.append(Exchange(connection.wire))
        assert [each.finish().json["result"]["content"][0]["text"] for each in exchanges] == [str(size)] * 4
