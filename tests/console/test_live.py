"""The stream of the console: records, calls, sessions, frames; and pages that are slow or dead."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

from console.site import OTHER, TOKEN, Site, events, eventually, opened, rows
from longshore.console.live import MOST_ROWS, MOST_STREAMS
from longshore.console.wire_log import AT_ONCE, SHOWN_CHARACTERS, WAITING, WireLog
from longshore.telemetry.events import RequestInfo, Source
from longshore.telemetry.history import History
from longshore.telemetry.records import Problem


def shown_calls(site: Site) -> list[Any]:
    """The calls in flight, as a page gets them once there are any."""
    stream = site.stream()
    stream.wait(lambda it: any(each["calls"] for each in events(it, "state")))
    stream.drop()
    return next(each["calls"] for each in reversed(events(stream, "state")) if each["calls"])  # type: ignore[no-any-return]


def test_an_overview_says_what_runs_here(site: Site) -> None:
    overview = site.get("overview").json
    assert (overview["name"], overview["version"]) == ("shop", "3.1")
    assert overview["tools"] == 3
    assert overview["mcp"] == "/mcp"
    assert overview["auth"] == {"required": True}
    assert "2026-07-28" in overview["revisions"]


def test_a_page_gets_the_records_from_before_and_those_that_follow(tmp_path: Path) -> None:
    with opened(tmp_path) as site:
        assert site.call("add", a=1, b=2).finish().status == 200
        stream = site.stream("records=1")
        stream.wait(lambda it: any(row.get("tool") == "add" for row in rows(it)))
        site.call("fail").finish()
        stream.wait(lambda it: any(row.get("tool") == "fail" for row in rows(it)))
        [added] = [row for row in rows(stream) if row.get("tool") == "add"]
        [failed] = [row for row in rows(stream) if row.get("tool") == "fail" and row["kind"] == "tool_completed"]
        assert (added["kind"], added["outcome"], failed["outcome"]) == ("tool_completed", "ok", "failed")
        assert added["tokens_in"] > 0
        assert added["tokens_out"] > 0
        assert added["principal"] == "token"
        assert [row["n"] for row in rows(stream)] == sorted({row["n"] for row in rows(stream)}), "each once, in order"


def test_without_records_a_page_gets_the_state_alone(site: Site) -> None:
    stream = site.stream()
    stream.wait(lambda it: events(it, "state"))
    site.call("add", a=1, b=2).finish()
    assert events(stream.drain(), "records") == []
    stream.close()


def test_a_call_in_flight_is_shown_with_its_progress_and_can_be_cancelled(site: Site) -> None:
    waiting = site.call("wait", note="half way there")
    stream = site.stream()
    stream.wait(lambda it: any(each["calls"] for each in events(it, "state")))
    state = next(each for each in reversed(events(stream, "state")) if each["calls"])
    [shown] = state["calls"]
    assert (shown["tool"], shown["principal"], shown["transport"]) == ("wait", "token", "http")
    assert shown["progress"] == {"done": 1, "total": 4, "message": "half way there"}
    assert state["tools_running"] == {"browser": 0, "filesystem": 0, "terminal": 0, "other": 1}
    assert site.post(f"calls/{shown['key']}/cancel", {}).json == {}
    answer = waiting.finish()
    assert b"stopped by the operator" in answer.body
    stream.wait(lambda it: not events(it, "state")[-1]["calls"])
    assert site.post(f"calls/{shown['key']}/cancel", {}).status == 404
    stream.close()


def test_the_operator_may_cancel_a_call_of_anybody(site: Site) -> None:
    waiting = site.call("wait", OTHER)
    [shown] = shown_calls(site)
    assert shown["principal"] == "other"
    assert site.post(f"calls/{shown['key']}/cancel", {}).status == 200
    assert b"stopped by the operator" in waiting.finish().body


def test_a_call_keeps_its_key_while_no_page_is_open(site: Site) -> None:
    """A page that connects again must not be told that a call has ended which runs."""
    waiting = site.call("wait")
    [before] = shown_calls(site)
    site.server.until(lambda: site.console._live.pages == 0, "the end of the page")
    [after] = shown_calls(site)
    assert after["key"] == before["key"]
    assert site.post(f"calls/{before['key']}/cancel", {}).status == 200
    waiting.finish()


def test_usage_counts_calls_failures_and_tokens(tmp_path: Path) -> None:
    with opened(tmp_path) as site:
        for _ in range(4):
            site.call("add", a=1, b=2).finish()
        site.call("fail").finish()
        eventually(lambda: sum(each["calls"] for each in site.get("usage").json["tools"]) == 5, "the counts")
        tools = {each["name"]: each for each in site.get("usage").json["tools"]}
        assert (tools["add"]["calls"], tools["add"]["failures"]) == (4, 0)
        assert (tools["fail"]["calls"], tools["fail"]["failures"]) == (1, 1)
        assert 0 < tools["add"]["p50_ms"] <= tools["add"]["p95_ms"] <= tools["add"]["max_ms"]
        assert tools["add"]["tokens_out"] > 0


def test_older_records_come_from_the_ring(tmp_path: Path) -> None:
    with opened(tmp_path) as site:
        for _ in range(5):
            site.call("add", a=1, b=2).finish()
        site.call("fail").finish()
        latest = site.get("history?limit=2").json
        assert latest["from"] == "ring"
        assert [row["tool"] for row in latest["records"]] == ["fail", "add"]
        older = site.get(f"history?limit=10&tool=add&before={latest['records'][1]['n']}").json["records"]
        assert len(older) == 4
        assert [row["tool"] for row in site.get("history?outcome=failed").json["records"]] == ["fail"]
        assert site.get("history?limit=x").status == 400
        assert site.get("history?limit=0").status == 400


def test_older_records_come_from_the_history_where_there_is_one(tmp_path: Path) -> None:
    place = tmp_path / "history.sqlite3"
    info = RequestInfo(Source("http", "s", "token", "mcp"), 1, "tools/call", "old_tool", "2026-07-28", None, 40)
    history = History(str(place), 1e9, 1 << 20)
    history.write([(1, 4, info, 1.0, 1.0, 2.0, "ok", 80, b"")], 1.7e9)
    history.close()
    with opened(tmp_path, f'[telemetry]\nhistory = "{place}"\n') as site:
        found = site.get("history?tool=old_tool").json
        assert found["from"] == "history"
        [row] = found["records"]
        assert (row["tool"], row["outcome"], row["bytes_out"], row["seconds"]) == ("old_tool", "ok", 80, 1.0)


# -- the wire


def test_frames_are_shown_only_while_a_page_asks_for_them(site: Site) -> None:
    tap = site.app.engine.tap
    assert tap.watchers == ()
    stream = site.stream("wire=1")
    site.server.until(lambda: tap.watchers, "the tap")
    site.call("add", a=40, b=2).finish()
    stream.wait(lambda it: len([f for each in events(it, "wire") for f in each["frames"]]) >= 2)
    received, sent = [frame for each in events(stream, "wire") for frame in each["frames"]][:2]
    assert (received["direction"], sent["direction"]) == ("in", "out")
    assert '"name":"add"' in received["text"].replace(" ", "")
    assert "42" in sent["text"]
    assert received["bytes"] > 0
    stream.drop()
    site.server.until(lambda: tap.watchers == (), "the end of the tap")


def test_secrets_are_removed_from_frames(site: Site) -> None:
    stream = site.stream("wire=1")
    site.server.until(lambda: site.app.engine.tap.watchers, "the tap")
    secret = "ghp_" + "a8Kd93mZqLw02XvBn47RtYuIo56PsDfGhJkl"  # the form of a token of GitHub
    site.call("wait", note=secret).drop()
    stream.wait(lambda it: events(it, "wire"))
    assert secret.encode() not in stream.body
    stream.drop()


def test_a_long_frame_is_cut(site: Site) -> None:
    stream = site.stream("wire=1")
    site.server.until(lambda: site.app.engine.tap.watchers, "the tap")
    site.call("fail", note="word " * 10_000).finish()
    stream.wait(lambda it: events(it, "wire"))
    [frame] = [f for each in events(stream, "wire") for f in each["frames"] if f["direction"] == "in"]
    assert len(frame["text"]) <= SHOWN_CHARACTERS + 1
    assert frame["bytes"] > 50_000
    stream.drop()


def test_frames_that_a_page_does_not_take_are_bounded_and_counted(site: Site) -> None:
    async def flood() -> tuple[int, int]:
        log = WireLog(site.app.engine.tap)
        log.open()
        try:
            for number in range(WAITING + 7):
                site.app.engine.tap.show("in", None, b'{"n":%d}' % number)
            first = await log.read()
            assert first is not None
            return first["dropped"], len(first["frames"])
        finally:
            log.close()

    assert site.server.do(flood) == (7, AT_ONCE)


def test_the_server_does_other_work_between_frames(site: Site) -> None:
    async def read() -> int:
        log = WireLog(site.app.engine.tap)
        log.open()
        for _ in range(AT_ONCE):
            site.app.engine.tap.show("in", None, b"{}")
        reading, turns = asyncio.create_task(log.read()), 0
        while not reading.done():
            await asyncio.sleep(0)
            turns += 1
        log.close()
        return turns

    assert site.server.do(read) >= AT_ONCE


# -- slow and dead pages


def test_a_slow_page_gets_larger_gaps_that_are_counted(tmp_path: Path) -> None:
    with opened(tmp_path, "[telemetry]\nring = 1000\n") as site:
        stream = site.stream("records=1")
        stream.wait(lambda it: events(it, "state"))
        recorder = site.app.engine.recorder

        def fill() -> None:
            for number in range(5000):
                recorder.emit(Problem("info", f"event {number}", 0.0))

        site.server.look(fill)
        stream.wait(lambda it: any(row.get("message") == "event 4999" for row in rows(it)))
        dropped = sum(each["dropped"] for each in events(stream, "records"))
        counted = [row for row in rows(stream) if row.get("message", "").startswith("event")]
        assert len(counted) + dropped == 5000
        assert len(counted) <= MOST_ROWS


def test_a_page_that_does_not_read_holds_no_queue(tmp_path: Path) -> None:
    """The server writes the next batch when the page has taken the last: what waits for it stays in the ring."""
    with opened(tmp_path) as site:
        connection = site.server.connect(buffer=4096)
        headers = [("Authorization", f"Bearer {TOKEN}")]
        connection.send("GET", "/console/api/stream?records=1&wire=1", headers)
        site.server.until(lambda: site.console._live.pages == 1, "the page")
        for _ in range(600):
            site.call("fail", note="x" * 2000).finish()
        connections = site.server._listener.connections  # type: ignore[union-attr]
        held = site.server.look(lambda: max(each._transport.get_write_buffer_size() for each in connections))  # type: ignore[attr-defined]
        assert held < 4 << 20
        connection.close()
        site.server.until(lambda: site.console._live.pages == 0, "the end of the page")


def test_a_dead_page_frees_everything(tmp_path: Path) -> None:
    with opened(tmp_path) as site:
        waiting = site.call("wait")
        streams = [site.stream("records=1&wire=1") for _ in range(3)]
        for stream in streams:
            stream.wait(lambda it: any(each["calls"] for each in events(it, "state")))
            stream.drop()
        live = site.console._live
        site.server.until(lambda: live.pages == 0, "the end of the pages")
        assert site.app.engine.tap.watchers == ()
        waiting.drop()
        site.server.until(lambda: not site.app.engine.executor.live, "the end of the call")
        gc.collect()


def test_more_pages_than_there_may_be_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as site:
        streams = [site.stream() for _ in range(MOST_STREAMS)]
        answer = site.get("stream")
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        for stream in streams:
            stream.drop()


def test_the_stream_ends_with_the_server(tmp_path: Path) -> None:
    with opened(tmp_path) as site:
        stream = site.stream("records=1")
        stream.wait(lambda it: events(it, "state"))
        site.server.do(lambda: site.app.shut(0))
        stream.wait(lambda it: it.ended, "the end of the stream")


def test_behind_another_server_the_stream_is_the_same(tmp_path: Path) -> None:
    with opened(tmp_path, own=False) as site:
        stream = site.stream("records=1")
        site.call("add", a=1, b=2).finish()
        stream.wait(lambda it: any(row.get("tool") == "add" for row in rows(it)))
        stream.drop()
        site.server.until(lambda: site.console._live.pages == 0, "the end of the page")


def test_without_records_the_stream_has_none(tmp_path: Path) -> None:
    with opened(tmp_path, "[telemetry]\nrecords = false\n") as site:
        stream = site.stream("records=1")
        stream.wait(lambda it: events(it, "state"))
        site.call("add", a=1, b=2).finish()
        assert site.get("overview").json["records"] is False
        assert events(stream.drain(), "records") == []
        assert site.get("history").json["records"] == []
        stream.drop()
