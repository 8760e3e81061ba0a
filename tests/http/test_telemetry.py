"""What a server over HTTP records, in every sink: none shows one of forty secrets. And the numbers for Prometheus."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from asgi import configured

from longshore import Server, ToolError
from longshore.telemetry.events import expand
from longshore.telemetry.history import read_history
from longshore.telemetry.records import LimitReached, ProcessStarted, Refused, SessionClosed, SessionOpened
from posting import Session, bearer, call, encode, modern, modern_headers, request
from redaction.canaries import HEX, UPPER, canary
from serving import Served, eventually, serve
from telemetry.collector import Collector, attributes, collecting

_BASE64 = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
_PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{canary(300, 64)}\n{canary(301, 64)}\n-----END RSA PRIVATE KEY-----"


def _jwt() -> str:
    head, body = (
        base64.urlsafe_b64encode(text).decode().rstrip("=") for text in (b'{"alg":"HS256"}', b'{"sub":"ann"}')
    )
    return f"{head}.{body}.{canary(40, 43)}"


SECRETS = [
    # A text with {} for the secret, and the secret.
    ("{}", f"sk-proj-{canary(1, 40)}"),
    ("{}", f"sk-ant-api03-{canary(2, 60)}"),
    ("{}", f"AKIA{canary(3, 16, UPPER)}"),
    ("AWS_SECRET_ACCESS_KEY={}", canary(4, 40, _BASE64)),
    ("{}", f"ghp_{canary(5, 36)}"),
    ("{}", f"github_pat_{canary(6, 60)}"),
    ("{}", f"glpat-{canary(7, 20)}"),
    ("{}", f"xoxb-{canary(8, 30)}"),
    ("{}", f"AIza{canary(9, 35)}"),
    ("{}", f"ya29.{canary(10, 60)}"),
    ("{}", f"GOCSPX-{canary(11, 28)}"),
    ("{}", f"gsk_{canary(12, 52)}"),
    ("{}", f"hf_{canary(13, 34)}"),
    ("{}", f"sk_live_{canary(14, 24)}"),
    ("{}", f"whsec_{canary(15, 32)}"),
    ("{}", f"npm_{canary(16, 36)}"),
    ("{}", f"pypi-{canary(17, 80)}"),
    ("{}", f"dapi{canary(18, 32, HEX)}"),
    ("{}", f"hvs.{canary(19, 24)}"),
    ("{}", f"SG.{canary(20, 22)}.{canary(21, 43)}"),
    ("{}", f"key-{canary(22, 32, HEX)}"),
    ("{}", f"SK{canary(23, 32, HEX)}"),
    ("{}", f"dop_v1_{canary(24, 64, HEX)}"),
    ("{}", f"shpat_{canary(25, 32, HEX)}"),
    ("{}", f"tskey-{canary(26, 30)}"),
    ("{}", f"dckr_pat_{canary(27, 27)}"),
    ("{}", f"AGE-SECRET-KEY-1{canary(28, 58, UPPER)}"),
    ("{}", f"0123456789:AA{canary(29, 33)}"),
    ("{}", _jwt()),
    ("{}", _PEM),
    ("password={}", "hunter2-horse9"),
    ('"password": "{}"', "correcthorsebattery"),
    ("postgres://ann:{}@db.example/app", canary(31, 16)),
    ("Authorization: Bearer {}", canary(32, 40)),
    ("Authorization: Basic {}", base64.b64encode(b"ann:correct horse battery").decode()),
    ("https://x.example/?access_token={}", canary(33, 32)),
    ("api_key = '{}'", canary(34, 32)),
    ("SharedAccessKey={}", canary(35, 43, _BASE64) + "="),
    ("{}", "$2b$12$" + canary(36, 53)),
    ("client_secret: {}", canary(37, 40)),
]


def test_there_are_forty_different_ones() -> None:
    assert len({secret for _, secret in SECRETS}) == 40


class Sinks(NamedTuple):
    """A server with every sink there is, and where each of them writes."""

    server: Server
    served: Served
    folder: Path
    collector: Collector

    def ask(self, message: Any, *headers: tuple[str, str], path: str = "/mcp") -> int:
        usual = [] if path != "/mcp" else modern_headers(message)
        return self.served.send("POST", path, [*usual, *headers], encode(message)).finish().status

    def everything(self, stderr: str) -> dict[str, bytes]:
        """What every sink holds, once all of them have written what they were given."""
        ring = self.server.recorder.ring
        assert ring is not None
        last = ring.last
        sinks = self.server._runtime._sinks
        assert sinks is not None
        eventually(lambda: all(feeder._written >= last for feeder in sinks.feeders), "the sinks have written all")
        assert not any(feeder.dropped for feeder in sinks.feeders)
        records = [each for event in ring.since(0).events for each in expand(event, 0.0)]
        metrics = self.served.send("GET", "/metrics", [bearer(OWNER)]).finish()
        assert metrics.status == 200
        return {
            "stderr": stderr.encode(),
            "file": (self.folder / "log.jsonl").read_bytes(),
            "history": b"".join(each.read_bytes() for each in self.folder.glob("history.sqlite*")),
            "otlp": b"".join(self.collector.raw),
            "metrics": metrics.raw,
            "ring": msgspec.json.encode(records),
        }


OWNER = "owner-" + canary(50, 30)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


def _declare(app: Server) -> None:
    @app.tool(run="inline")
    def echo(text: str, more: dict[str, str] | None = None) -> str:
        return text

    @app.tool
    async def later(text: str) -> dict[str, str]:
        return {"found": text}

    @app.tool
    def refuse(text: str) -> str:
        raise ToolError(f"can't: {text}")

    @app.tool(run="inline")
    def burst(text: str) -> str:
        raise RuntimeError(f"at {text}")

    @app.tool
    def environment(name: str) -> str:
        raise RuntimeError("its environment was " + os.environ[name])

    @app.resource("note://{+path}")
    def note(path: str) -> str:
        return path


def _send_everywhere(sinks: Sinks, text: str, number: int) -> None:
    """A text as argument, key, result, error, exception, path, name, id, header, `_meta` and client."""
    for tool in ("echo", "later", "refuse", "burst"):
        sinks.ask(modern(call(tool, {"text": text}, id=f"{tool}{number}")), bearer(OWNER))
    sinks.ask(modern(call("echo", {"text": "x", "more": {text: text, "password": text}})), bearer(OWNER))
    sinks.ask(modern(call("echo", {"text": encode({"nested": text}).decode()})), bearer(OWNER))
    sinks.ask(modern(call("echo", {"txet": text})), bearer(OWNER))
    sinks.ask(modern(call("environment", {"name": f"CANARY_{number}"})), bearer(OWNER))
    sinks.ask(modern(call(text, {})), bearer(OWNER))
    sinks.ask(modern(request(text)), bearer(OWNER))
    sinks.ask(modern(request("ping", id=text)), bearer(OWNER))
    sinks.ask(modern(request("resources/read", {"uri": f"note://{text}"})), bearer(OWNER))
    sinks.ask(modern(call("echo", {"text": "x"}, traceparent=text, baggage=text, x=text)), bearer(OWNER))
    one_line = text.replace("\n", "").encode("ascii", "ignore").decode()
    sinks.ask(modern(call("echo", {"text": "x"})), bearer(one_line))
    sinks.ask(modern(call("echo", {"text": "x"})), bearer(OWNER), ("Cookie", f"longshore={one_line}"))
    sinks.ask({}, bearer(OWNER), path=f"/nothing/{re.sub('[^A-Za-z0-9_.-]', '-', one_line)}")
    hello = request(
        "initialize",
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": text, "version": text}},
    )
    sinks.served.send("POST", "/mcp", [bearer(OWNER)], encode(hello)).finish()


@pytest.mark.parametrize("values", [False, True])
def test_no_sink_shows_a_secret(
    values: bool, tmp_path: Path, collector: Collector, capfd: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    for number, (form, secret) in enumerate(SECRETS):
        monkeypatch.setenv(f"CANARY_{number}", form.replace("{}", secret))
    app = Server("canaries")
    _declare(app)
    toml = f"""
        [server]
        log_level = "debug"
        [auth]
        token = "{OWNER}"
        [telemetry]
        values = {str(values).lower()}
        ring = 100_000
        file = "{tmp_path / "log.jsonl"}"
        history = "{tmp_path / "history.sqlite"}"
        otlp = "{collector.url}"
    """
    with serve(configured(app, tmp_path, toml), own=True) as served:
        sinks = Sinks(app, served, tmp_path, collector)
        for number, (form, secret) in enumerate(SECRETS):
            _send_everywhere(sinks, form.replace("{}", secret), number)
        found = sinks.everything(capfd.readouterr().err)
    for sink, written in found.items():
        assert len(written) > 1000, f"nothing was written to {sink}"
        shown = [secret for _, secret in SECRETS if secret.encode() in written or encode(secret)[1:-1] in written]
        assert shown == [], f"in {sink}"
        assert OWNER.encode() not in written, sink
    assert (b'"arguments"' in found["file"]) is values
    assert (b'"result"' in found["file"]) is values


# -- what is recorded


def test_each_event_of_a_session_is_recorded_once(tmp_path: Path) -> None:
    app = Server("events")
    _declare(app)
    records: list[Any] = []
    app.listen(records.append)
    with serve(configured(app, tmp_path), own=True) as served:
        session = Session(served).open()
        assert session.call("echo", text="x")
        assert session.delete().finish().status == 204
        eventually(lambda: any(isinstance(each, SessionClosed) for each in records))
        assert served.send("GET", "/nothing").finish().status == 404
        assert served.send("POST", "/mcp", [("Host", "evil.com")], b"{}").finish().status == 421
    opened = [each for each in records if isinstance(each, SessionOpened)]
    closed = [each for each in records if isinstance(each, SessionClosed)]
    refused = [(each.why, each.status) for each in records if isinstance(each, Refused)]
    assert len(opened) == len(closed) == 1
    assert opened[0].session == closed[0].session != session.id
    assert (opened[0].transport, opened[0].principal, opened[0].dialect) == ("http", "local", "mcp")
    of_call = [each for each in records if getattr(each, "tool", "") == "echo"]
    assert {each.session for each in of_call} == {opened[0].session}
    assert [type(each).__name__ for each in of_call] == [
        "RequestReceived",
        "ToolInvoked",
        "ToolCompleted",
        "RequestCompleted",
    ]
    assert refused == [("http", 404), ("http", 421)]


def test_a_limit_is_recorded_with_its_key(tmp_path: Path) -> None:
    app = Server("limits")
    _declare(app)
    records: list[Any] = []
    app.listen(records.append)
    with serve(configured(app, tmp_path, rate=1, burst=1), own=True) as served:
        for _ in range(2):
            message = modern(call("echo", {"text": "x"}))
            served.send("POST", "/mcp", modern_headers(message), encode(message)).finish()
    assert [each.limit for each in records if isinstance(each, LimitReached)] == ["http.rate"]
    assert not [each for each in records if isinstance(each, ProcessStarted)]


def _samples(text: str, name: str) -> dict[str, float]:
    """The samples of one metric, by their labels."""
    lines = [line.rpartition(" ") for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
    return {labels.removeprefix(name): float(value) for labels, _, value in lines}


def test_requests_are_counted_by_outcome_and_in_histograms(tmp_path: Path) -> None:
    app = Server("counted")
    _declare(app)
    with serve(configured(app, tmp_path), own=True) as served:
        for tool, count in (("echo", 3), ("refuse", 2), ("nobody", 1)):
            for _ in range(count):
                message = modern(call(tool, {"text": "four"}))
                served.send("POST", "/mcp", modern_headers(message), encode(message)).finish()
        text = served.send("GET", "/metrics").finish().body.decode()
    assert _samples(text, "longshore_requests_total") == {
        '{method="tools/call",outcome="ok"}': 3,
        '{method="tools/call",outcome="failed"}': 2,
        '{method="tools/call",outcome="refused"}': 1,
    }
    assert _samples(text, "longshore_tool_seconds_count") == {'{tool="echo"}': 3, '{tool="refuse"}': 2}
    buckets = _samples(text, "longshore_request_seconds_bucket")
    assert list(buckets.values()) == sorted(buckets.values()), "each bucket holds those below it"
    assert buckets['{method="tools/call",le="+Inf"}'] == 6
    assert _samples(text, "longshore_request_seconds_sum")['{method="tools/call"}'] > 0
    assert _samples(text, "longshore_answer_tokens_total")['{tool="echo"}'] > 3 * 20
    assert _samples(text, "longshore_refusals_total") == {'{why="unknown_tool",status=""}': 1}
    assert _samples(text, "longshore_telemetry_dropped_total") == {'{sink="metrics"}': 0}


def test_names_that_nobody_has_declared_do_not_become_labels(tmp_path: Path) -> None:
    app = Server("bounded")
    _declare(app)
    with serve(configured(app, tmp_path), own=True) as served:
        session = Session(served).open()
        for number in range(200):
            session.post(request(f"odd/{number}")).finish()
            session.post(call(f"odd_{number}")).finish()
        text = served.send("GET", "/metrics").finish().body.decode()
    assert "odd" not in text
    assert _samples(text, "longshore_requests_total")['{method="unknown",outcome="refused"}'] == 200


def test_spans_arrive_at_a_collector(tmp_path: Path, collector: Collector) -> None:
    app = Server("traced", version="1.2.3")
    _declare(app)
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    toml = f'[telemetry]\notlp = "{collector.url}"\nhistory = "{tmp_path / "h.sqlite"}"\n'
    with serve(configured(app, tmp_path, toml), own=True) as served:
        meta = {"traceparent": f"00-{trace}-{span}-01", "tracestate": "congo=t61rcWkgMzE"}
        for tool in ("echo", "refuse"):
            message = modern(call(tool, {"text": "x"}, id=tool, **meta))
            served.send("POST", "/mcp", modern_headers(message), encode(message)).finish()
        session = Session(served).open()
        assert session.call("later", text="y")
        eventually(lambda: len(collector.spans) >= 4, "the spans have arrived")
    spans = {each.name: each for each in collector.spans}
    first, failed, own = spans["tools/call echo"], spans["tools/call refuse"], spans["tools/call later"]
    assert first.trace_id.hex() == failed.trace_id.hex() == trace
    assert first.parent_span_id.hex() == span
    assert first.span_id.hex() != span
    assert first.trace_state == "congo=t61rcWkgMzE"
    assert own.trace_id.hex() != trace
    assert own.parent_span_id == b""
    assert first.end_time_unix_nano >= first.start_time_unix_nano > 1_700_000_000 * 10**9
    assert failed.status.code == 2
    assert attributes(first)["mcp.method.name"] == "tools/call"
    assert attributes(first)["gen_ai.tool.name"] == "echo"
    assert attributes(first)["jsonrpc.request.id"] == "echo"
    assert attributes(collector.resources[0])["service.name"] == "traced"
    recorded = [each for _, each in read_history(str(tmp_path / "h.sqlite"))]
    (done,) = [each for each in recorded if type(each).__name__ == "RequestCompleted" and each.id == "echo"]
    assert done.trace_context.span_id == first.span_id.hex()
