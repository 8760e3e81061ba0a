"""A reader that stops: memory stays where it is, and when the reader goes on, nothing was lost or doubled."""

from __future__ import annotations

import os
import select
import time
from collections import Counter
from pathlib import Path

import pytest

from waiting import PATIENCE, eventually

from .conftest import Workshop
from .peer import Peer, call, encode, failed, request, resident_bytes, text_of

MOST_GROWN = 32 << 20
"""Over what the server had when `initialize` was answered, with small frames."""
FRAMES_MORE = 4
"""With large ones, so many times the largest more: one that is read, arguments, an answer, and a call beside it."""
FLOOD_SECONDS = 4.0
FLOOD_BYTES = 200 << 20
STUCK_SECONDS = 0.7
"""When the pipe takes nothing for this long, the server has stopped reading."""
PAYLOAD = "x" * 100_000
SOME = 16
"""So many payloads that the pipe to us can't take them, but the two pipes together can."""

ECHOES = """
    import asyncio, os, time
    from longshore import Context, Server
    app = Server("echoes")

    @app.tool(run="inline")
    def inline(text: str) -> str:
        return text

    @app.tool(name="async")
    async def later(text: str) -> str:
        return text

    @app.tool
    async def suspending(text: str) -> str:
        await asyncio.sleep(0)
        return text

    @app.tool
    def thread(text: str) -> str:
        return text

    @app.tool
    async def slow_async(text: str) -> str:
        await asyncio.sleep(0.1)
        return text

    @app.tool
    def slow_thread(text: str) -> str:
        time.sleep(0.1)
        return text

    @app.tool
    async def gated_async(text: str) -> str:
        while not os.path.exists("gate"):
            await asyncio.sleep(0.02)
        return text

    @app.tool
    def gated_thread(text: str) -> str:
        while not os.path.exists("gate"):
            time.sleep(0.02)
        return text

    @app.tool(run="inline")
    def status() -> list[int]:
        executor = app.engine.executor
        return [executor.running, executor.queued, len(executor.live)]
"""
KINDS = ["inline", "async", "suspending", "thread", "slow_async", "slow_thread"]


class Flood:
    """Sends calls for as long as the pipe takes them, and watches the server's memory."""

    def __init__(self, peer: Peer, tool: str, payload: str = PAYLOAD) -> None:
        assert peer.process.stdin is not None
        self.peer = peer
        message = request(0, "no/method", text=payload) if tool == "unknown" else call(0, tool, text=payload)
        self.frame = encode(message)
        self.fd = peer.process.stdin.fileno()
        self.sent = 0
        self.rest = memoryview(b"")
        self.peak = 0

    def pour(self, total: int, seconds: float) -> None:
        os.set_blocking(self.fd, False)
        end = time.monotonic() + seconds
        budget = total
        while budget > 0 and time.monotonic() < end:
            self.peak = max(self.peak, resident_bytes(self.peer.pid))
            if not select.select([], [self.fd], [], STUCK_SECONDS)[1]:
                break
            if not self.rest:
                self.rest = memoryview(self.frame.replace(b'"id": 0', b'"id": %d' % self.sent, 1))
                self.sent += 1
            try:
                written = os.write(self.fd, self.rest)
            except BlockingIOError:
                continue
            budget -= written
            self.rest = self.rest[written:]
        self.peak = max(self.peak, resident_bytes(self.peer.pid))

    def finish(self) -> None:
        """Send the rest of a frame that the pipe took only half of, reading meanwhile."""
        end = time.monotonic() + PATIENCE
        while self.rest and time.monotonic() < end:
            try:
                self.rest = self.rest[os.write(self.fd, self.rest) :]
            except BlockingIOError:
                self.peer._read(0.01)
        os.set_blocking(self.fd, True)
        assert not self.rest


@pytest.mark.parametrize("tool", KINDS)
def test_memory_is_bounded_while_the_output_is_not_read(workshop: Workshop, tool: str) -> None:
    peer = workshop.serve(ECHOES)
    peer.start()
    base = resident_bytes(peer.pid)
    flood = Flood(peer, tool)
    flood.pour(FLOOD_BYTES, FLOOD_SECONDS)
    grown = flood.peak - base
    assert grown <= MOST_GROWN, f"{grown / 1e6:.1f} MB more after {flood.sent} calls"
    flood.finish()
    answers = {n: peer.answer(n) for n in range(flood.sent)}
    assert peer.ask(request("ping", "ping"))["result"] == {}
    assert Counter(f["id"] for f in peer.seen).most_common(1)[0][1] == 1, "an id was answered twice"
    for answer in answers.values():
        assert "busy" in text_of(answer) if failed(answer) else text_of(answer) == PAYLOAD
    assert not failed(answers[0])
    eventually("nothing in flight", lambda: peer.call("status")["result"]["structuredContent"]["result"] == [0, 0, 0])
    assert resident_bytes(peer.pid) - base <= MOST_GROWN


@pytest.mark.parametrize("size", [1_000, 250_000, 1 << 20, 16 << 20])
@pytest.mark.parametrize("tool", ["inline", "gated_async", "gated_thread", "unknown"])
def test_memory_is_bounded_at_every_size_of_frames(workshop: Workshop, tool: str, size: int) -> None:
    """Calls that end all at once are the worst: what they were given and what they answer is there together."""
    peer = workshop.serve(ECHOES)
    peer.start()
    base = resident_bytes(peer.pid)
    flood = Flood(peer, tool, "x" * (size - 200))
    flood.pour(max(40 << 20, 5 * size), FLOOD_SECONDS)
    (workshop.folder / "gate").touch()
    eventually("it rests", lambda: done_chatting(peer))
    grown = peak_bytes(peer.pid) - base
    assert grown <= MOST_GROWN + FRAMES_MORE * size, f"{grown / 1e6:.1f} MB more after {flood.sent} frames"


def peak_bytes(pid: int) -> int:
    """The most that a process ever had resident."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("\nVmHWM:")[2].split()[0]) << 10


def test_memory_is_bounded_when_calls_never_end(workshop: Workshop) -> None:
    """Every place is taken and 12 MiB are held; all else is refused, for ever, while the peer goes on."""
    source = ECHOES + (
        """
    @app.tool(timeout=False)
    async def numbers(values: list[float], text: str) -> str:
        await asyncio.Event().wait()
    """
    )
    peer = workshop.serve(source)
    peer.start()
    peer.call("inline", text=PAYLOAD)
    base = peak = resident_bytes(peer.pid)
    many = [0.5] * 25_000  # 125 KB as JSON, eight times that as a list
    refused = 0
    for n in range(600):
        peer.send(call(n, "numbers", values=many, text=""))
        while peer._read(0):
            pass
        peak = max(peak, resident_bytes(peer.pid))
    assert peer.ask(request("ping", "ping"))["result"] == {}
    refused = sum(1 for frame in peer.seen if "busy" in str(frame.get("result", "")))
    running, parked, _ = peer.call("status")["result"]["structuredContent"]["result"]
    assert running == 64
    assert 30 < parked < 1024
    assert running + parked + refused == 600
    # What 64 running calls were given is theirs: 25,000 floats of 32 bytes each, in a list. The rest is ours.
    assert peak - base - 64 * (32 + 8) * 25_000 <= MOST_GROWN


@pytest.mark.parametrize("phase", ["blocking", "loop"])
def test_a_peer_that_closed_its_side_and_does_not_read_is_not_waited_for(workshop: Workshop, phase: str) -> None:
    peer = workshop.serve(ECHOES, "--eof-grace", "0.3")
    peer.start()
    if phase == "loop":
        peer.call("async", text="")
    peer.send(*(call(n, "inline", text=PAYLOAD) for n in range(SOME)))
    peer.close_input()
    assert peer.process.wait(PATIENCE) == 0
    assert peer.stderr == ""


@pytest.mark.parametrize("phase", ["blocking", "loop"])
def test_a_peer_that_closed_its_side_and_reads_late_gets_all(workshop: Workshop, phase: str) -> None:
    peer = workshop.serve(ECHOES)
    peer.start()
    if phase == "loop":
        peer.call("async", text="")
    peer.send(*(call(n, "inline", text=PAYLOAD) for n in range(SOME)))
    peer.close_input()
    assert all(text_of(peer.answer(n)) == PAYLOAD for n in range(SOME))
    assert peer.wait() == 0


def test_an_end_of_input_ends_the_process_while_the_output_is_not_read(workshop: Workshop) -> None:
    peer = workshop.serve(ECHOES, "--eof-grace", "0.3")
    peer.start()
    Flood(peer, "async").pour(FLOOD_BYTES, FLOOD_SECONDS)
    assert peer.process.stdin is not None
    peer.process.stdin.close()
    assert peer.process.wait(PATIENCE) == 0


# -- notifications

CHATTY = """
    import asyncio
    from longshore import Context, Server
    app = Server("chatty")

    def chat(ctx: Context, what: str, times: int) -> str:
        if what == "progress":
            for n in range(times):
                ctx.progress(n, times, "working on it, and it takes a while")
        else:
            for n in range(times):
                ctx.info(f"{n}: working on it, and it takes a while")
        return "done"

    app.tool(name="thread", timeout=False)(chat)
    app.tool(name="inline", run="inline")(chat)

    @app.tool(name="async", timeout=False)
    async def chat_without_pause(ctx: Context, what: str, times: int) -> str:
        return chat(ctx, what, times)

    @app.tool(timeout=False)
    async def pausing(ctx: Context, what: str, times: int) -> str:
        for n in range(times // 1000):
            chat(ctx, what, 1000)
            await asyncio.sleep(0)
        return "done"
"""
EVENTS = 1_000_000


@pytest.mark.parametrize("what", ["progress", "log"])
@pytest.mark.parametrize("tool", ["thread", "async", "pausing"])
def test_a_flood_of_notifications_to_a_stalled_reader_is_bounded(workshop: Workshop, tool: str, what: str) -> None:
    peer = workshop.serve(CHATTY)
    peer.start()
    message = call("flood", tool, what=what, times=EVENTS)
    message["params"]["_meta"] = {"progressToken": "flood"}
    warm = call("warm", tool, what=what, times=2000)
    warm["params"]["_meta"] = {"progressToken": "warm"}
    assert text_of(peer.ask(warm)) == "done"
    base = resident_bytes(peer.pid)
    peer.send(message)
    end, peak = time.monotonic() + FLOOD_SECONDS, base
    while time.monotonic() < end and not done_chatting(peer):
        peak = max(peak, resident_bytes(peer.pid))
        time.sleep(0.01)
    assert peak - base <= MOST_GROWN, f"{(peak - base) / 1e6:.1f} MB more"
    assert text_of(peer.answer("flood")) == "done"
    flood = [f for f in peer.seen if f.get("params", {}).get("progressToken") == "flood"]
    steps = [f["params"]["progress"] for f in flood]
    assert steps == sorted(set(steps)), "progress only grows"
    if what == "progress" and tool != "pausing":
        assert steps[-1] == EVENTS - 1, "the last word is never lost"
    if what == "log":
        last = [f for f in peer.seen if f.get("method") == "notifications/message"][-1]
        assert last["params"]["data"].startswith(f"{EVENTS - 1 if tool != 'pausing' else 999}:")


def done_chatting(peer: Peer) -> bool:
    """The server sleeps: it has done all that it can without us."""
    with open(f"/proc/{peer.pid}/stat", "rb") as file:
        before = file.read().rpartition(b")")[2].split()
    time.sleep(0.05)
    with open(f"/proc/{peer.pid}/stat", "rb") as file:
        after = file.read().rpartition(b")")[2].split()
    return before[11:13] == after[11:13]  # no processor time was used meanwhile


def test_a_cancelled_call_sends_no_more_notifications(workshop: Workshop) -> None:
    peer = workshop.serve(
        """
        import asyncio
        from longshore import Context, Server
        app = Server("cancelled")

        @app.tool
        async def work(ctx: Context) -> str:
            try:
                n = 0
                while True:
                    n += 1
                    ctx.progress(n)
                    await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                for late in range(100):
                    ctx.progress(n + late + 1)
                    ctx.info("late")
                raise
        """
    )
    peer.start()
    message = call(1, "work")
    message["params"]["_meta"] = {"progressToken": 1}
    peer.send(message)
    peer.notice("notifications/progress")
    peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    peer.ask(request(2, "ping"))
    count = len(peer.seen)
    peer.ask(request(3, "ping"))
    assert len(peer.seen) == count + 1
    assert not any(frame.get("method") == "notifications/message" for frame in peer.seen)
