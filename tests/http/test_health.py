"""GET /health: whether the process can do its work."""

from __future__ import annotations

import asyncio
import http.client
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from asgi import HOST, WAIT_SECONDS, Answer, configured, opened, request

from longshore import Limits, Server
from serving import serve

AUTH = '[auth]\ntoken = "a-secret-token-0123456789abcdef"'


def get(app: Any, method: str = "GET") -> Answer:
    async def main() -> Answer:
        async with opened(app):
            return await request(app, method, "/health")

    return asyncio.run(main())


def sqlite(folder: Path) -> dict[str, str]:
    return {"store": f"sqlite:///{folder}/sessions.db"}


@pytest.mark.parametrize("stored", [False, True])
def test_a_server_that_works_says_so(tmp_path: Path, stored: bool) -> None:
    app = configured(Server("x"), tmp_path, **(sqlite(tmp_path) if stored else {}))
    answer = get(app)
    assert (answer.status, answer.json()) == (200, {"status": "ok"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"


def test_it_needs_no_credential_and_tells_no_secret(tmp_path: Path) -> None:
    app = configured(Server("x", version="7.7.7"), tmp_path, AUTH)
    answer = get(app)
    assert (answer.status, answer.body) == (200, b'{"status":"ok"}')


def test_a_store_that_does_not_answer_is_named_but_not_described(tmp_path: Path) -> None:
    app = configured(Server("x"), tmp_path, **sqlite(tmp_path))

    async def main() -> Answer:
        async with opened(app):
            await app.store.close()
            return await request(app, "GET", "/health")

    answer = asyncio.run(main())
    assert (answer.status, answer.json()) == (503, {"status": "failing", "failed": ["store"]})
    assert str(tmp_path).encode() not in answer.body


def test_a_store_that_hangs_is_waited_for_no_longer_than_it_should_and_forgiven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.transports.http.routes.CHECK_SECONDS", 0.1)
    monkeypatch.setattr("longshore.transports.http.routes.FRESH_SECONDS", 0.0)
    app = configured(Server("x"), tmp_path, **sqlite(tmp_path))

    async def main() -> tuple[Answer, Answer]:
        async with opened(app):
            other = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
            other.execute("BEGIN EXCLUSIVE")
            locked = await request(app, "GET", "/health")
            other.execute("ROLLBACK")
            other.close()
            async with asyncio.timeout(WAIT_SECONDS):
                while (answer := await request(app, "GET", "/health")).status != 200:
                    pass
            return locked, answer

    locked, free = asyncio.run(main())
    assert (locked.status, locked.json()["failed"]) == (503, ["store"])
    assert free.json() == {"status": "ok"}


def test_many_who_ask_share_one_look(tmp_path: Path) -> None:
    app = configured(Server("x"), tmp_path, **sqlite(tmp_path))
    looks = 0
    check = app.store.check

    async def count() -> None:
        nonlocal looks
        looks += 1
        await check()

    app.store.check = count

    async def main() -> list[Answer]:
        async with opened(app):
            together = await asyncio.gather(*(request(app, "GET", "/health") for _ in range(20)))
            return [*together, await request(app, "GET", "/health")]

    answers = asyncio.run(main())
    assert {answer.status for answer in answers} == {200}
    assert looks == 1


def test_a_server_without_a_free_thread_is_not_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.transports.http.routes.FRESH_SECONDS", 0.0)
    server = Server("x", limits=Limits(abandoned=1))
    release = threading.Event()

    @server.tool(timeout=0.05)
    def block() -> str:
        release.wait(WAIT_SECONDS)
        return ""

    app = configured(server, tmp_path)

    async def main() -> tuple[Answer, Answer, Answer]:
        async with opened(app):
            before = await request(app, "GET", "/health")
            assert (await request(app, "POST", "/tools/block")).status == 504
            stuck = await request(app, "GET", "/health")
            release.set()
            async with asyncio.timeout(WAIT_SECONDS):
                while (after := await request(app, "GET", "/health")).status != 200:
                    await asyncio.sleep(0)
            return before, stuck, after

    before, stuck, after = asyncio.run(main())
    assert (before.status, stuck.status, after.status) == (200, 503, 200)
    assert stuck.json()["failed"] == ["threads"]


@pytest.mark.parametrize(
    ("running", "parked", "status", "said"),
    [(1, 0, 200, "ok"), (2, 0, 200, "busy"), (2, 2, 200, "busy"), (2, 3, 503, "busy")],
)
def test_a_server_whose_places_are_taken_is_busy(
    tmp_path: Path, running: int, parked: int, status: int, said: str
) -> None:
    """It works, so nobody should start it again; but where a call would be refused, none should be sent."""
    server = Server("x", limits=Limits(running=2, parked=3))

    @server.tool(timeout=False)
    async def hold() -> str:
        await asyncio.Event().wait()
        return ""

    app = configured(server, tmp_path, rate=0)
    executor = app.engine.executor

    async def main() -> Answer:
        async with opened(app), asyncio.TaskGroup() as group:
            for _ in range(running + parked):
                group.create_task(request(app, "POST", "/tools/hold"))
            async with asyncio.timeout(WAIT_SECONDS):
                while (executor.running, executor.queued) != (running, parked):
                    await asyncio.sleep(0)
            answer = await request(app, "GET", "/health")
            executor.stop_all("the test is over")
            return answer

    answer = asyncio.run(main())
    assert (answer.status, answer.json()) == (status, {"status": said})
    assert ("retry-after" in answer.headers) == (status == 503)


def test_a_server_that_stops_says_so(tmp_path: Path) -> None:
    app = configured(Server("x"), tmp_path)

    async def main() -> Answer:
        async with opened(app):
            await app.shut(0)
            return await request(app, "GET", "/health")

    answer = asyncio.run(main())
    assert (answer.status, answer.json()) == (503, {"status": "stopping"})


def test_other_methods_are_refused(tmp_path: Path) -> None:
    answer = get(configured(Server("x"), tmp_path), "POST")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_a_probe_over_a_real_socket(tmp_path: Path) -> None:
    with serve(configured(Server("x"), tmp_path)) as site:
        client = http.client.HTTPConnection(HOST, site.port, timeout=WAIT_SECONDS)
        for method, body in (("GET", b'{"status":"ok"}'), ("HEAD", b"")):
            client.request(method, "/health")
            answer = client.getresponse()
            assert (answer.status, answer.read()) == (200, body)
        client.close()
