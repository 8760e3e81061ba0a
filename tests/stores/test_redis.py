"""The Redis store: its keys, and its behaviour while Redis is down."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis.asyncio

from longshore.errors import StoreError
from longshore.stores import Store, open_store
from longshore.stores import redis as ours
from services import RedisServer, make_certificate

from .place import RedisPlace, run, until

PASSWORD = "hunter2/with@odd:signs"
ESCAPED = "hunter2%2Fwith%40odd%3Asigns"


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    try:
        yield store
    finally:
        await store.close()


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[RedisServer]:
    server = RedisServer(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with serving(tmp_path) as made:
        yield made


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what gets no answer. What does, as in a test's set-up, may need longer on a busy machine: see `succeeds`."""
    monkeypatch.setattr(ours, "SECONDS", 0.3)


async def succeeds(use: object) -> None:
    """Again and again, until it does."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(StoreError):
                return await use()
            await asyncio.sleep(0.01)


async def error_of(awaitable: object) -> str:
    with pytest.raises(StoreError) as caught:
        await awaitable
    return str(caught.value)


# Keys in Redis.


def test_every_name_begins_with_ours_and_expires(redis_url: str) -> None:
    place = RedisPlace(redis_url)

    async def body() -> None:
        await place.empty()
        async with opened(redis_url) as store:
            await store.set("session:1", b"v", 60)
            await store.add("nonce:1", b"v", 600)
            await store.touch("session:1", 90)
            await store.append("log:1", b"v", 60, 5)
            await store.check()
            names = await place.names()
            assert all(name.startswith(b"longshore:") for name in names)
            async with redis.asyncio.Redis.from_url(redis_url) as client:
                for name in names:
                    assert 0 < await client.pttl(name) <= 600_000, name
                assert 80_000 < await client.pttl("longshore:index:session:") <= 90_000
                await store.touch("session:1", 10)  # the index may outlive its last key, but not much
                assert 80_000 < await client.pttl("longshore:index:session:") <= 90_000
            await place.pass_time(601)
            assert await place.names() == set()

    run(body())


def test_a_write_removes_expired_keys_from_the_index(redis_url: str) -> None:
    place = RedisPlace(redis_url)

    async def body() -> None:
        await place.empty()
        async with opened(redis_url) as store, redis.asyncio.Redis.from_url(redis_url) as client:
            await asyncio.gather(*(store.set(f"s:{n}", b"v", 10) for n in range(500)))
            await store.set("s:long", b"v", 1000)
            await place.pass_time(20)
            assert await client.zcard("longshore:index:s:") == 501
            await store.touch("s:long", 1000)
            assert await client.zcard("longshore:index:s:") == 1

    run(body())


def test_an_evicted_value_is_not_found(redis_url: str) -> None:
    async def body() -> None:
        await RedisPlace(redis_url).empty()
        async with opened(redis_url) as store, redis.asyncio.Redis.from_url(redis_url) as client:
            await store.set("s:1", b"v", 10)
            await store.set("s:2", b"v", 20)
            await client.delete("longshore:value:s:1")
            assert await store.find("s:") == {"s:2": b"v"}

    run(body())


def test_a_store_uses_two_connections(server: RedisServer) -> None:
    async def body() -> None:
        async with opened(server.url) as store, redis.asyncio.Redis.from_url(server.url) as client:
            await store.listen("t", lambda _: None)
            await asyncio.gather(*(store.set(f"s:{n}", b"v", 60) for n in range(2000)))
            assert len(await client.client_list()) == 3

    run(body())


def test_the_subscription_ends_with_the_last_listener(server: RedisServer) -> None:
    async def body() -> None:
        async with opened(server.url) as store, redis.asyncio.Redis.from_url(server.url) as client:
            stops = [await store.listen(f"t{n % 10}", lambda _: None) for n in range(20)]
            assert len(await client.pubsub_channels()) == 1
            for stop in stops:
                stop()
            heard: list[bytes] = []
            await store.listen("t1", heard.append)
            await store.post("t1", b"m")
            await until(lambda: heard)

    run(body())


def test_another_database_is_another_store(server: RedisServer) -> None:
    async def body() -> None:
        async with opened(server.url) as zero, opened(server.url[:-1] + "5") as five:
            heard: list[bytes] = []
            await zero.listen("t", heard.append)
            await five.set("s:1", b"v", 60)
            await five.post("t", b"not for you")
            await zero.post("t", b"for you")
            await until(lambda: heard)
            assert heard == [b"for you"]
            assert await zero.get("s:1") is None

    run(body())


# While Redis is down.


def test_every_operation_reports_that_redis_is_down(server: RedisServer) -> None:
    server.stop()

    async def body() -> None:
        async with opened(server.url) as store:
            text = f"store {server.url}: Redis can't be reached (Connection refused); start it, or correct http.store"
            for use in (store.get("s:1"), store.check(), store.post("t", b"m"), store.listen("t", print)):
                assert await error_of(use) == text
            failed = await asyncio.gather(*(store.set(f"s:{n}", b"v", 60) for n in range(100)), return_exceptions=True)
            assert {str(error) for error in failed} == {text}
            assert len(set(map(id, failed))) == 100

    run(body())


def test_an_unknown_host_is_reported() -> None:
    async def body() -> None:
        async with opened("redis://no-such-host.invalid:1234") as store:
            assert (await error_of(store.check())).startswith(
                "store redis://no-such-host.invalid:1234/0: Redis can't be reached ("
            )

    run(body())


def test_the_store_recovers_when_redis_restarts(server: RedisServer) -> None:
    async def body() -> None:
        async with opened(server.url) as store, opened(server.url) as other:
            heard: list[bytes] = []
            await store.listen("t", heard.append)
            for turn in range(3):
                await succeeds(lambda: store.set("s:1", b"v", 60))
                server.stop()
                await error_of(store.get("s:1"))
                await error_of(other.append("l:1", b"v", 60, 5))
                server.start()
                await succeeds(store.check)
                assert await store.get("s:1") is None  # this one keeps nothing on disk
                message = b"%d" % turn

                async def heard_again(message: bytes = message) -> None:
                    await other.post("t", message)
                    if message not in heard:
                        raise StoreError("", "not yet", "")

                await succeeds(heard_again)
            second: list[bytes] = []
            await store.listen("t", second.append)
            await succeeds(other.check)
            await other.post("t", b"end")
            await until(lambda: second[-1:] == heard[-1:] == [b"end"])  # a repeated b"2" may have come late

    run(body())


def test_cut_connections_are_made_again(server: RedisServer) -> None:
    """A proxy may cut idle connections."""

    async def body() -> None:
        async with opened(server.url) as store, redis.asyncio.Redis.from_url(server.url) as client:
            heard: list[bytes] = []
            await store.listen("t", heard.append)
            for n in range(5):
                position = await store.append("l:1", b"v", 60, 100)
                assert position == n + 1
                me = await client.client_id()
                for each in await client.client_list():
                    if int(each["id"]) != me:
                        await client.client_kill_filter(_id=each["id"])
                await succeeds(store.check)
            async with asyncio.timeout(20):
                while b"m" not in heard:
                    await succeeds(lambda: store.post("t", b"m"))
                    await asyncio.sleep(0.01)

    run(body())


@pytest.mark.usefixtures("hasty")
def test_operations_time_out_while_redis_is_stopped(server: RedisServer) -> None:
    """A late answer must not be taken for that to a later question."""

    async def body() -> None:
        async with opened(server.url) as store:
            await asyncio.gather(*(succeeds(lambda n=n: store.set(f"s:{n}", b"%d" % n, 600)) for n in range(50)))
            await succeeds(lambda: store.listen("t", lambda _: None))
            for _ in range(3):
                server.send_signal(signal.SIGSTOP)
                reads = [asyncio.ensure_future(store.get(f"s:{n}")) for n in range(50)]
                text = f"store {server.url}: Redis can't be reached (no answer within 0.3 s)"
                failed = await asyncio.gather(*reads, return_exceptions=True)
                assert all(str(error).startswith(text) for error in failed), failed
                server.send_signal(signal.SIGCONT)
                values = await asyncio.gather(*(succeeds(lambda n=n: store.get(f"s:{n}")) for n in range(50)))
                assert values == [b"%d" % n for n in range(50)]

    run(body())


@pytest.mark.usefixtures("hasty")
def test_a_second_listener_is_refused_while_redis_is_stopped(server: RedisServer) -> None:
    async def body() -> None:
        async with opened(server.url) as store:
            await succeeds(lambda: store.listen("t", lambda _: None))
            server.send_signal(signal.SIGSTOP)
            assert "no answer within 0.3 s" in await error_of(store.listen("u", print))
            assert "u" not in store._listeners
            server.send_signal(signal.SIGCONT)
            await succeeds(lambda: store.listen("u", print))

    run(body())


def test_a_silent_connection_is_pinged_and_dropped(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "QUIET_SECONDS", 0.05)

    async def body() -> None:
        async with opened(server.url) as store, redis.asyncio.Redis.from_url(server.url) as client:
            heard: list[bytes] = []
            await store.listen("t", heard.append)
            pings = 0
            while pings < 3:  # answered: the connection stays
                pings = (await client.info("commandstats")).get("cmdstat_ping", {}).get("calls", 0)
            (before,) = [each["id"] for each in await client.client_list() if int(each["sub"])]
            server.send_signal(signal.SIGSTOP)
            confirmed = store._subscribed
            await until(lambda: store._subscribed is not confirmed)  # not answered: given up
            server.send_signal(signal.SIGCONT)
            async with asyncio.timeout(20):
                while not heard:
                    await succeeds(lambda: store.post("t", b"m"))
                    await asyncio.sleep(0.01)
            assert [each["id"] for each in await client.client_list() if int(each["sub"])] != [before]

    run(body())


@pytest.mark.usefixtures("hasty")
def test_closing_works_while_redis_is_stopped(server: RedisServer) -> None:
    async def body() -> None:
        store = open_store(server.url)
        await succeeds(lambda: store.listen("t", lambda _: None))
        server.send_signal(signal.SIGSTOP)
        waiting = [asyncio.ensure_future(store.set(f"s:{n}", b"v", 60)) for n in range(600)]
        await asyncio.sleep(0)
        await store.close()
        for each in waiting:
            await error_of(each)
        assert (await error_of(store.get("s:1"))).endswith("the store is closed; open a new one")
        assert (await error_of(store.listen("t", print))).endswith("the store is closed; open a new one")
        server.send_signal(signal.SIGCONT)

    run(body())


def test_operations_in_flight_complete_when_the_store_is_closed(redis_url: str) -> None:
    async def body() -> None:
        await RedisPlace(redis_url).empty()
        store = open_store(redis_url)
        waiting = [asyncio.ensure_future(store.append("l:1", b"v", 60, 5000)) for _ in range(1000)]
        await asyncio.sleep(0)
        await store.close()
        await store.close()
        assert [await each for each in waiting] == list(range(1, 1001))

    run(body())


# Refusals of Redis.


def test_wrong_and_missing_passwords_are_reported(tmp_path: Path) -> None:
    with serving(tmp_path, "--requirepass", PASSWORD) as server:
        good = server.url.replace("//", f"//:{ESCAPED}@")
        wrong = server.url.replace("//", "//someone:hunter3@")

        async def body() -> None:
            async with opened(good) as store:
                await store.check()
                await store.listen("t", lambda _: None)
            async with opened(server.url) as store:
                text = f"store {server.url}: Redis asks for a password; put it into http.store: redis://:password@host"
                assert await error_of(store.check()) == text
                assert await error_of(store.listen("t", print)) == text
            async with opened(wrong) as store:
                text = f"store {server.url}: Redis does not accept this user and password; correct them in http.store"
                assert await error_of(store.check()) == text
                assert await error_of(store.listen("t", print)) == text
            server.stop()
            async with opened(good) as store:
                said = [await error_of(store.check()), await error_of(store.listen("t", print))]
                assert not any("hunter" in text for text in said)

        run(body())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--replicaof", "127.0.0.1", "1"], "Redis is a replica that takes no writes; name the primary in http.store"),
        (["--maxmemory", "1"], "Redis is out of memory; raise its maxmemory"),
        (
            ["--user", "default", "on", "nopass", "~*", "+@read", "+ping"],
            "Redis does not let this user do what a store needs",
        ),
        (["--rename-command", "EVAL", ""], "Redis refuses a command; see whether it is Redis 5 or newer"),
    ],
    ids=["replica", "memory", "rights", "command"],
)
def test_refusals_of_redis_are_explained(tmp_path: Path, options: list[str], said: str) -> None:
    with serving(tmp_path, *options) as server:

        async def body() -> None:
            async with opened(server.url) as store:
                text = await error_of(store.set("s:secret", b"hunter2", 60))
                assert text.startswith(f"store {server.url}: {said}")
                assert "hunter2" not in text
                assert "s:secret" not in text

        run(body())


class TlsServer(RedisServer):
    @property
    def url(self) -> str:
        return f"rediss://127.0.0.1:{self.port}/0"

    def _address(self) -> list[str]:
        return ["--tls-port", str(self.port), "--port", "0"]

    def _answers(self) -> bool:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as bare, context.wrap_socket(bare):
                return True
        except OSError:
            return False


def test_tls_with_a_trusted_certificate_works(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    options = ("--tls-cert-file", str(cert), "--tls-key-file", str(key), "--tls-auth-clients", "no")
    server = TlsServer(tmp_path, *options)
    server.start()

    async def body() -> None:
        async with opened(f"{server.url}?ssl_ca_certs={cert}") as store:
            await store.check()
            heard: list[bytes] = []
            await store.listen("t", heard.append)
            await store.post("t", b"m")
            await until(lambda: heard)
        async with opened(server.url) as store:
            text = f"store {server.url}: Redis can't be reached (its certificate is not valid: self-signed certificate)"
            assert (await error_of(store.check())).replace("self signed", "self-signed").startswith(text)
        async with opened(server.url.replace("rediss:", "redis:")) as store:
            assert "Redis can't be reached (" in await error_of(store.check())

    try:
        run(body())
    finally:
        server.stop()


@pytest.mark.usefixtures("hasty")
def test_tls_to_a_plain_server_is_reported(server: RedisServer) -> None:
    async def body() -> None:
        async with opened(server.url.replace("redis:", "rediss:")) as store:
            assert "Redis can't be reached (" in await error_of(store.check())

    run(body())
