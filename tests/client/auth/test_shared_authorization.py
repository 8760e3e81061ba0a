"""Authorizations that requests share, and their end when clients close."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from longshore.client import Client
from longshore.client.auth import JwtBearer, MemoryStorage
from longshore.errors import AuthorizationError, CallTimeout
from longshore.single_flight import SingleFlight

from .conftest import login, run, talk
from .oauth_servers import AuthorizationServer, ProtectedServer, Reply, follow, running


def test_each_waiter_gets_its_own_copy_of_the_error(authority: AuthorizationServer, server: ProtectedServer) -> None:
    async def work() -> list[Any]:
        auth = JwtBearer("forged")
        clients = [Client(server.mcp, auth=auth, era="2025-11-25", timeout=15) for _ in range(3)]
        found = await asyncio.gather(*(client.open() for client in clients), return_exceptions=True)
        await asyncio.gather(*(client.close() for client in clients))
        return found

    found = run(work)
    assert all(isinstance(each, AuthorizationError) for each in found) and len({id(each) for each in found}) == 3
    assert authority.count("/token") == 1


def test_closing_does_not_lose_a_refresh_token(authority: AuthorizationServer, server: ProtectedServer) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    authority.tokens.clear()
    entered, leave = threading.Event(), threading.Event()

    def slow() -> None:
        entered.set()
        leave.wait(10)

    authority.before_token = slow

    async def work() -> None:
        client = Client(server.mcp, auth=login(storage=storage), era="2025-11-25", timeout=10)
        opening = asyncio.ensure_future(client.open())
        assert await asyncio.to_thread(entered.wait, 10)
        asyncio.get_running_loop().call_later(0.05, leave.set)  # while it is being closed
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await client.close()

    run(work)
    authority.before_token = lambda: None
    assert talk(server, login(storage=storage)) == ["hello"]
    assert authority.count("/authorize") == 1


def test_closing_cancels_a_renewal_that_hangs(
    authority: AuthorizationServer, server: ProtectedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.client.auth.flow.CLOSE_SECONDS", 0.1)
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    authority.tokens.clear()
    entered, leave = threading.Event(), threading.Event()

    def hang() -> None:
        entered.set()
        leave.wait(15)

    authority.before_token = hang

    async def work() -> None:
        client = Client(server.mcp, auth=login(storage=storage), era="2025-11-25", timeout=10)
        opening = asyncio.ensure_future(client.open())
        assert await asyncio.to_thread(entered.wait, 10)
        opening.cancel()
        await asyncio.wait([opening])
        await client.close()

    try:
        run(work)
        assert not leave.is_set()
    finally:
        leave.set()


def test_a_login_for_another_server_stops_no_deadline(authority: AuthorizationServer, server: ProtectedServer) -> None:
    other = ProtectedServer(authority)
    hangs = threading.Event()

    def never(message: dict[str, Any]) -> Reply:
        hangs.wait(15)
        return Reply(202)

    async def work() -> None:
        waits = asyncio.Event()

        async def person(url: str) -> str:
            if other.mcp.partition("/mcp")[0].rpartition(":")[2] in url.partition("resource=")[2]:
                waits.set()
                await asyncio.Event().wait()
            return await follow(url)

        auth = login(redirect=person)
        client = Client(server.mcp, auth=auth, era="2025-11-25", timeout=0.5, reconnect=False)
        second = Client(other.mcp, auth=auth, era="2025-11-25", timeout=0.5)
        await client.open()
        opening = asyncio.ensure_future(second.open())
        await waits.wait()
        assert auth.credentials_for(other.mcp).waiting and not auth.credentials_for(server.mcp).waiting
        server.answer = never  # type: ignore[method-assign]
        with pytest.raises(CallTimeout):
            async with asyncio.timeout(10):
                await client.call_tool("hello")
        opening.cancel()
        await asyncio.wait([opening])
        hangs.set()
        await second.close()
        await client.close()

    with running(other):
        try:
            run(work)
        finally:
            hangs.set()


SLOW = """
import asyncio, sys, threading
from longshore.client import Client
from longshore.client.auth import JwtBearer

async def main():
    auth = JwtBearer(lambda: threading.Event().wait(60) or "x")
    client = Client(sys.argv[1], auth=auth, era="2025-11-25", timeout=0.5)
    try:
        await client.open()
    except Exception as problem:
        print(type(problem).__name__)
    await client.close()

asyncio.run(main())
"""


def test_a_blocking_user_function_does_not_keep_the_process_alive(server: ProtectedServer) -> None:
    command = [sys.executable, "-W", "error", "-c", SLOW, server.mcp]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_an_exception_of_a_user_function_is_the_cause(authority: AuthorizationServer, server: ProtectedServer) -> None:
    def breaks(*_: Any) -> str:
        raise LookupError("vault")

    with pytest.raises(AuthorizationError, match="broke off with LookupError") as caught:
        talk(server, JwtBearer(breaks))
    assert isinstance(caught.value.__cause__, LookupError)
    with pytest.raises(AuthorizationError, match="redirect= raised LookupError") as caught:
        talk(server, login(redirect=breaks))
    assert isinstance(caught.value.__cause__, LookupError)


@pytest.mark.parametrize("raised", [SystemExit(3), StopIteration()], ids=repr)
def test_a_user_function_that_raises_system_exit_ends_the_authorization(
    server: ProtectedServer, raised: BaseException
) -> None:
    def ends(*_: Any) -> str:
        raise raised

    with pytest.raises(AuthorizationError, match=f"broke off with {type(raised).__name__}"):
        talk(server, JwtBearer(ends))
    with pytest.raises(AuthorizationError, match=f"redirect= raised {type(raised).__name__}"):
        talk(server, login(redirect=ends))


def test_finished_work_is_not_joined() -> None:
    """Between the end of a task and its callback, a caller that joined it would loop without end."""

    async def work() -> list[Any]:
        flights, gate = SingleFlight[str, None](), asyncio.get_running_loop().create_future()
        seen: list[Any] = []

        async def flight() -> None:
            await gate

        async def late() -> None:
            await gate
            seen.append(flights.running(""))

        first = asyncio.ensure_future(flights.run("", flight))
        while flights.running("") is None:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        second = asyncio.ensure_future(late())
        await asyncio.sleep(0)
        gate.set_result(None)
        await asyncio.gather(first, second)
        return seen

    assert run(work) == [None]
