"""GET /metrics: the numbers, as Prometheus reads them."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from asgi import WAIT_SECONDS, Answer, configured, opened, request

from longshore import Server, ToolError

JSON = {"content-type": "application/json"}
AUTH = '[auth]\ntoken = "a-secret-token-0123456789abcdef"'

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (\S+)")
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def parse(text: str) -> dict[tuple[str, str], float]:
    """Every sample by its name and labels. Fails where the format would."""
    assert text.endswith("\n")
    samples: dict[tuple[str, str], float] = {}
    helped: list[str] = []
    typed: dict[str, str] = {}
    current = ""
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            current = line.split(" ")[2]
            assert current not in helped, f"{current} comes in two places"
            helped.append(current)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert (name, kind in ("counter", "gauge", "histogram")) == (current, True)
            typed[name] = kind
        else:
            found = _SAMPLE.fullmatch(line)
            assert found, line
            name, labels, value = found.groups("")
            family = re.sub("_(bucket|sum|count)$", "", name) if typed[current] == "histogram" else name
            assert family == current
            assert name.endswith("_total") == (typed[current] == "counter")
            assert (name, labels) not in samples
            samples[name, labels] = float(value)
    return samples


def shop() -> Server:
    server = Server("shop", version="1.2.3")

    @server.tool(run="inline")
    def greet() -> str:
        return "hello"

    @server.tool
    def fail() -> str:
        raise ToolError("closed")

    @server.tool
    def idle() -> str:
        return ""

    return server


async def scrape(app: Any) -> dict[tuple[str, str], float]:
    answer = await request(app, "GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parse(answer.body.decode())


def tool(samples: dict[tuple[str, str], float], name: str) -> tuple[float, float]:
    label = f'tool="{name}"'
    return samples["longshore_tool_calls_total", label], samples["longshore_tool_failures_total", label]


def test_calls_and_failures_are_counted_by_tool(tmp_path: Path) -> None:
    app = configured(shop(), tmp_path)

    async def main() -> dict[tuple[str, str], float]:
        async with opened(app):
            for name in ("greet", "greet", "fail"):
                await request(app, "POST", f"/tools/{name}")
            return await scrape(app)

    samples = asyncio.run(main())
    assert tool(samples, "greet") == (2, 0)
    assert tool(samples, "fail") == (1, 1)
    assert tool(samples, "idle") == (0, 0)
    assert samples["longshore_calls_total", ""] == 3
    assert samples["longshore_workers", ""] == 1
    assert samples["process_start_time_seconds", ""] > 1_700_000_000
    assert samples["process_resident_memory_bytes", ""] >= 0


def test_what_runs_and_who_is_there_is_counted(tmp_path: Path) -> None:
    server = shop()
    started, go_on = asyncio.Event(), asyncio.Event()

    @server.tool
    async def work() -> str:
        started.set()
        await go_on.wait()
        return ""

    app = configured(server, tmp_path)
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }

    async def main() -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
        async with opened(app):
            assert (await request(app, "POST", "/mcp", JSON, json.dumps(hello).encode())).status == 200
            call = asyncio.create_task(request(app, "POST", "/tools/work"))
            await asyncio.wait_for(started.wait(), WAIT_SECONDS)
            during = await scrape(app)
            go_on.set()
            await call
            return during, await scrape(app)

    during, after = asyncio.run(main())
    assert (during["longshore_calls_running", ""], after["longshore_calls_running", ""]) == (1, 0)
    assert (during["longshore_calls_live", ""], after["longshore_calls_live", ""]) == (1, 0)
    assert during["longshore_sessions", ""] == 1


def test_labels_are_escaped(tmp_path: Path) -> None:
    name = 'a "shop"\nin C:\\new'
    app = configured(Server(name, version="1"), tmp_path)

    async def main() -> dict[tuple[str, str], float]:
        async with opened(app):
            return await scrape(app)

    [labels] = [labels for metric, labels in asyncio.run(main()) if metric == "longshore_info"]
    found = re.search(r'server="((?:[^"\\]|\\.)*)"', labels)
    assert found
    assert re.sub(r"\\.", lambda escape: _ESCAPES[escape[0]], found[1]) == name


# -- several processes


def pair(folder: Path) -> tuple[Any, Any]:
    store = f"sqlite:///{folder}/sessions.db"
    return configured(shop(), folder, store=store), configured(shop(), folder, store=store)


def test_whichever_is_asked_answers_for_all_and_never_less_than_before(tmp_path: Path) -> None:
    one, two = pair(tmp_path)

    async def main() -> None:
        async with opened(one), opened(two):
            asked = 0
            for turn, (caller, asked_one) in enumerate([(one, one), (one, two), (two, one), (two, two), (one, two)]):
                await request(caller, "POST", "/tools/greet")
                await scrape(caller)  # its numbers would be in the store with its next heartbeat at the latest
                asked = turn + 1
                samples = await scrape(asked_one)
                assert tool(samples, "greet") == (asked, 0)
                assert samples["longshore_workers", ""] == 2

    asyncio.run(main())


def test_a_heartbeat_carries_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.transports.http.cluster.next_tick", lambda now: now + 0.01)
    one, two = pair(tmp_path)

    async def main() -> None:
        async with opened(one), opened(two):
            await request(one, "POST", "/tools/fail")
            async with asyncio.timeout(WAIT_SECONDS):
                while tool(await scrape(two), "fail") != (1, 1):
                    pass

    asyncio.run(main())


def test_a_process_that_ended_counts_no_longer(tmp_path: Path) -> None:
    one, two = pair(tmp_path)

    async def main() -> dict[tuple[str, str], float]:
        async with opened(one):
            async with opened(two):
                await request(two, "POST", "/tools/greet")
                assert tool(await scrape(two), "greet") == (1, 0)
            return await scrape(one)

    samples = asyncio.run(main())
    assert samples["longshore_workers", ""] == 1
    assert tool(samples, "greet") == (0, 0)


def test_numbers_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)

    async def main() -> dict[tuple[str, str], float]:
        async with opened(one):
            await one.store.set("worker:strange", b"\xc1", 60)
            newer = {"started": 1.0, "sums": {"longshore_calls_total": 1, "unknown": 2}, "unknown": 3}
            await one.store.set("worker:newer", msgspec.msgpack.encode(newer), 60)
            return await scrape(one)

    samples = asyncio.run(main())
    assert samples["longshore_workers", ""] == 2
    assert samples["longshore_calls_total", ""] == 1


def test_a_store_that_fails_gives_no_half_a_sum(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)

    async def main() -> Answer:
        async with opened(one):
            await one.store.close()
            return await request(one, "GET", "/metrics")

    assert asyncio.run(main()).status == 503


# -- who may


def test_a_credential_is_needed_where_one_is_asked_for(tmp_path: Path) -> None:
    app = configured(shop(), tmp_path, AUTH)
    bearer = {"authorization": "Bearer a-secret-token-0123456789abcdef"}

    async def main() -> list[int]:
        async with opened(app):
            answers = [await request(app, "GET", "/metrics", headers) for headers in ({}, bearer)]
            return [answer.status for answer in answers]

    assert asyncio.run(main()) == [401, 200]


def test_other_methods_are_refused(tmp_path: Path) -> None:
    app = configured(shop(), tmp_path)

    async def main() -> Answer:
        async with opened(app):
            return await request(app, "POST", "/metrics")

    answer = asyncio.run(main())
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_the_page_names_every_metric(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/http-endpoints.md").read_text().partition("## Metrics")[2]
    rows = "".join(line for line in page.splitlines() if line.startswith("| `"))
    app = configured(shop(), tmp_path)

    async def main() -> str:
        async with opened(app):
            return (await request(app, "GET", "/metrics")).body.decode()

    metrics = re.findall(r"^# TYPE (\S+)", asyncio.run(main()), re.MULTILINE)
    assert set(re.findall(r"`([a-z_]+)(?:\{[a-z_,]+\})?`", rows)) == set(metrics)
