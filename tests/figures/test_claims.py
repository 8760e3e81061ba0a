"""What the benchmarks measure and say of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import cold_start, files, http, memory, sessions, shutdown, slow_peers
from benchmarks.claim import Claim
from benchmarks.environment import HERE
from benchmarks.load import LoadFailed, Samples, Session
from benchmarks.report import print_claim
from benchmarks.stdio_server import StdioServer


def samples(contestants: Any, **values: float) -> Samples:
    return Samples({contestant.name: [dict(values), dict(values)] for contestant in contestants})


def printed(claims: list[Claim], capsys: pytest.CaptureFixture[str]) -> str:
    for claim in claims:
        print_claim(claim)
    return capsys.readouterr().out


def test_a_cold_start_is_printed_to_initialize_and_to_the_first_answer(capsys: pytest.CaptureFixture[str]) -> None:
    measured = samples(cold_start.CONTESTANTS, initialize_ms=40.0, first_answer_ms=70.0)
    measured.by_name["floor"] = [{"initialize_ms": 30.0, "first_answer_ms": 35.0}] * 2
    claims = cold_start.claims(measured, rounds=1)
    assert [len(claim.figures) for claim in claims] == [5, 5]
    out = printed(claims, capsys)
    assert "spawn to initialize answered" in out
    assert "spawn to the first call's answer" in out
    assert "1.33 × floor                  ≤ 1.5      ok" in out
    assert "2 × floor                     ≤ 1.6      MISSED" in out


def test_memory_is_printed_after_initialize_and_after_1000_calls(capsys: pytest.CaptureFixture[str]) -> None:
    measured = samples(memory.COMPARED, rss_initialized_kb=15_000, rss_warm_kb=25_000)
    measured.by_name["mcp sync"] = [{"rss_initialized_kb": 70_000, "rss_warm_kb": 71_000}]
    out = printed(memory.claims(measured, rounds=2), capsys)
    assert "after initialize" in out
    assert "after 1,000 calls" in out
    assert "0.214 × mcp sync              ≤ 0.3      ok" in out
    assert "0.352 × mcp sync              ≤ 0.3      MISSED" in out


def test_the_load_generator_times_both_ends_of_a_cold_start(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    pipeload = tmp_path / "pipeload"
    subprocess.run([compiler, "-O1", "-o", pipeload, HERE / "pipeload.c"], check=True, timeout=50)
    command = [pipeload, "--polite", "--mode", "cold", "--timeout", "50", "--", sys.executable, HERE / "floor.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=55, check=True)
    sample = json.loads(done.stdout)
    assert sample["bad"] == 0
    assert 0 < sample["initialize_ms"] < sample["first_answer_ms"]


def test_claims_name_the_settings_that_are_not_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    expected = {"http.rate": "0", "limits.listens": "10000", "limits.handshakes": "10000"}
    assert slow_peers.SERVER.settings == expected
    assert http.INLINE.settings == http.ASYNC.settings == {"http.rate": "100000000", "http.burst": "100000000"}
    opened = [{"http.session_ttl": "20", "limits.handshakes": "20000"}, {}]
    assert [plan.server.settings for plan in sessions._plans(Session())] == opened
    assert shutdown.OVER_HTTP_SERVER.settings == {"http.grace": "0.2"}
    out = printed([Claim("slow", "Slow", "ms", settings=slow_peers.SERVER.settings)], capsys)
    assert "Not at its default: http.rate = 0, limits.listens = 10000, limits.handshakes = 10000." in out


@pytest.mark.parametrize("connections", http.CONNECTIONS)
def test_every_http_claim_has_them(connections: int) -> None:
    claims = [claim for claim in http._claims(http.Samples(), 1) if claim.name.endswith(f"_{connections}")]
    assert [claim.settings for claim in claims] == [http.INLINE.settings] * len(claims)
    assert claims


def test_a_server_is_asked_in_lines_and_the_tokens_of_its_whole_answer_are_counted(tmp_path: Path) -> None:
    with StdioServer([sys.executable, str(HERE / "floor.py")], folder=tmp_path, home=tmp_path) as server:
        answer = server.call("blob", size=400)
        assert answer.text == "x" * 400
        assert answer.tokens == (400 + len('{"content":[{"type":"text","text":""}],"isError":false}')) / 4
        assert answer.milliseconds > 0
        with pytest.raises(LoadFailed, match="blob: Expected `int`"):
            server.call("blob", size="many")
        with pytest.raises(LoadFailed, match="Unknown tool"):
            server.call("missing")


@pytest.mark.parametrize(("length", "over"), [(399, False), (400, False), (401, True)])
def test_an_answer_is_over_its_budget_beyond_four_characters_a_token(length: int, over: bool) -> None:
    assert files.is_over("\n" + "x" * (length - 2), 100) is over  # a line end has two characters in JSON
