"""How many source files one warm `tools/call` crosses, counted by benchmarks/path.py from a real trace."""

from __future__ import annotations

from benchmarks.path import TARGETS, trace_http, trace_stdio


def test_a_call_on_stdio_crosses_few_files() -> None:
    files = trace_stdio()
    assert {"transports/stdio.py", "wire/framing.py", "server/engine.py", "registry/results.py"} <= set(files)
    assert len(files) <= TARGETS["stdio"], files


def test_a_call_over_http_reaches_the_engine_and_the_tool() -> None:
    files = trace_http()
    assert {"server/engine.py", "protocol/http_headers.py", "registry/function.py"} <= set(files)
    assert len(files) <= TARGETS["HTTP 2026-07-28"], files
