"""A toolset hears when the first client begins to watch one of its resources, and when the last has ceased."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from longshore import RegistrationError, Server, ToolError, Toolset, resource, tool
from longshore.client import Client as RealClient
from talk import ERAS, NEWEST, Client, Refused, converse, until

eras = pytest.mark.parametrize("revision", ERAS)


class Files(Toolset):
    """Notes what it is told."""

    name = "files"

    def __init__(self) -> None:
        self.events: list[str] = []

    async def watched(self, uri: str) -> None:
        self.events.append(f"+{uri}")

    async def unwatched(self, uri: str) -> None:
        self.events.append(f"-{uri}")

    @resource("files://{path}")
    def read(self, path: str) -> str:
        return path


def serve(files: Toolset | None = None) -> tuple[Server, Any]:
    app, files = Server("t"), files or Files()
    app.add_toolset(files)
    app.resource("other://x")(lambda: "x")
    return app, files


async def watch(client: Client, *uris: str) -> int:
    """Begin to watch; returns what ends it."""
    if client.modern:
        id = client.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": list(uris)}})
        await client.heard("notifications/subscriptions/acknowledged")
        return id
    for uri in uris:
        await client.request("resources/subscribe", {"uri": uri})
    return 0


async def unwatch(client: Client, id: int, *uris: str) -> None:
    if client.modern:
        client.notify("notifications/cancelled", {"requestId": id})
    for uri in uris if not client.modern else ():
        await client.request("resources/unsubscribe", {"uri": uri})


@eras
def test_the_hooks_are_called_for_the_first_and_the_last_watcher(revision: str) -> None:
    app, files = serve()

    async def script(first: Client) -> None:
        second = Client(app, ERAS[1 - ERAS.index(revision)])
        await second.open()
        one = await watch(first, "files://a")
        await until(lambda: files.events == ["+files://a"])
        two = await watch(second, "files://a", "files://b", "other://x")
        await until(lambda: files.events == ["+files://a", "+files://b"])
        await unwatch(first, one, "files://a")
        await unwatch(first, one, "files://a")  # once more, which changes nothing
        await first.request("tools/list")
        assert files.events == ["+files://a", "+files://b"]
        await unwatch(second, two, "files://a", "files://b")
        await until(lambda: sorted(files.events[2:]) == ["-files://a", "-files://b"])
        second.close()

    converse(app, script, revision)
    assert len(files.events) == 4


@eras
def test_a_client_that_goes_watches_nothing(revision: str) -> None:
    app, files = serve()

    async def script(client: Client) -> None:
        other = Client(app, revision)
        await other.open()
        await watch(other, "files://a")
        await until(lambda: files.events == ["+files://a"])
        other.close()
        await until(lambda: files.events == ["+files://a", "-files://a"])

    converse(app, script, revision)


def test_a_second_handshake_ends_the_watches_of_the_first() -> None:
    app, files = serve()

    async def script(client: Client) -> None:
        await watch(client, "files://a")
        await until(lambda: files.events == ["+files://a"])
        await client.open()
        await until(lambda: files.events == ["+files://a", "-files://a"])

    converse(app, script)


def test_a_slow_hook_delays_the_others_and_what_has_passed_by_then_is_left_out() -> None:
    async def script(client: Client) -> None:
        gate = asyncio.Event()

        class Slow(Files):
            async def watched(self, uri: str) -> None:
                await gate.wait()
                await super().watched(uri)

        slow = Slow()
        client.app.add_toolset(slow)
        await watch(client, "files://a")
        await watch(client, "files://b")
        await unwatch(client, 0, "files://a", "files://b")
        await watch(client, "files://c")
        assert slow.events == []
        gate.set()
        await until(lambda: len(slow.events) == 3)
        assert sorted(slow.events) == ["+files://a", "+files://c", "-files://a"]
        assert slow.events.index("+files://a") < slow.events.index("-files://a")

    converse(Server("t"), script)


def test_plain_functions_run_on_a_thread_one_at_a_time() -> None:
    class Blocking(Toolset):
        name = "files"

        def __init__(self) -> None:
            self.events: list[tuple[str, bool]] = []

        def watched(self, uri: str) -> None:
            self.events.append(("+" + uri, threading.current_thread() is threading.main_thread()))

        def unwatched(self, uri: str) -> None:
            self.events.append(("-" + uri, threading.current_thread() is threading.main_thread()))

        @resource("files://{path}")
        def read(self, path: str) -> str:
            return path

    app, files = serve(Blocking())

    async def script(client: Client) -> None:
        await watch(client, "files://a")
        await until(lambda: len(files.events) == 1)
        await unwatch(client, 0, "files://a")
        await until(lambda: len(files.events) == 2)

    converse(app, script)
    assert files.events == [("+files://a", False), ("-files://a", False)]


def test_an_error_in_a_hook_is_logged_and_reaches_no_client() -> None:
    class Broken(Files):
        async def watched(self, uri: str) -> None:
            raise OSError("no inotify")

    app, files = serve(Broken())
    records: list[Any] = []
    app.listen(records.append)

    async def script(client: Client) -> None:
        await watch(client, "files://a")
        texts = lambda: [each.text for each in records if hasattr(each, "text")]  # noqa: E731
        await until(lambda: texts() == ["the toolset 'files' failed at watched('files://a')"])
        await unwatch(client, 0, "files://a")
        await until(lambda: files.events == ["-files://a"])

    converse(app, script)


class Opened(Files):
    """Has state."""

    async def start(self) -> None:
        self.events.append("start")

    async def stop(self) -> None:
        self.events.append("stop")

    @tool
    def use(self) -> str:
        return "used"


def test_a_watch_starts_the_toolset_and_its_end_comes_before_the_stop() -> None:
    app, files = serve(Opened())

    async def run() -> None:
        async with RealClient(app) as client:
            await client.watch(uris=["files://a"]).__aenter__()
            await until(lambda: len(files.events) == 2)

    asyncio.run(run())
    assert files.events == ["start", "+files://a", "-files://a", "stop"]


@eras
def test_a_toolset_that_is_removed_hears_the_end_before_it_stops(revision: str) -> None:
    app, files = serve(Opened())

    async def script(client: Client) -> None:
        await watch(client, "files://a")
        await until(lambda: len(files.events) == 2)
        app.remove_toolset("files")
        await until(lambda: len(files.events) == 4)

    converse(app, script, revision)
    assert files.events == ["start", "+files://a", "-files://a", "stop"]


def test_a_toolset_that_can_not_start_hears_nothing() -> None:
    class Shut(Files):
        async def start(self) -> None:
            raise ToolError("no disk")

    app, files = serve(Shut())
    records: list[Any] = []
    app.listen(records.append)

    async def script(client: Client) -> None:
        await watch(client, "files://a")
        await until(lambda: any("failed at watched" in getattr(each, "text", "") for each in records))
        await unwatch(client, 0, "files://a")
        await client.request("tools/list")

    converse(app, script)
    assert files.events == []


def test_a_resource_that_was_watched_before_its_toolset_came() -> None:
    app, files = Server("t"), Files()

    async def script(client: Client) -> None:
        await watch(client, "files://a")
        app.add_toolset(files)
        await until(lambda: files.events == ["+files://a"])

    app.resource("other://x")(lambda: "x")
    converse(app, script, NEWEST)


def test_a_hook_of_the_wrong_arity_is_refused_at_registration() -> None:
    class Wrong(Toolset):
        def watched(self) -> None: ...  # type: ignore[override]

    with pytest.raises(RegistrationError, match=r"watched is called with 1 argument \(uri\)"):
        Server("t").add_toolset(Wrong())


class Guarded(Files):
    """Only `files://open…` may be watched."""

    def check_watch(self, uri: str) -> None:
        if uri == "files://broken":
            raise ValueError("a bug")
        if not uri.startswith("files://open"):
            raise ToolError("not this one")


class GuardedLater(Files):
    async def check_watch(self, uri: str) -> None:
        await asyncio.sleep(0)
        Guarded().check_watch(uri)


@pytest.mark.parametrize("toolset", [Guarded, GuardedLater])
def test_a_toolset_refuses_watches(toolset: type[Files]) -> None:
    refused = ["files://secret", "files://broken"]
    for revision in ERAS:
        app, files = serve(toolset())

        async def script(client: Client, files: Any = files) -> None:
            if client.modern:
                wanted = [*refused, "files://open", "other://x"]
                client.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": wanted}})
                note = await client.heard("notifications/subscriptions/acknowledged")
                assert note["params"]["notifications"] == {"resourceSubscriptions": ["files://open", "other://x"]}
            for uri in refused if not client.modern else ():
                with pytest.raises(Refused) as problem:
                    await client.request("resources/subscribe", {"uri": uri})
                assert problem.value.code == -32002
            if not client.modern:
                await watch(client, "files://open", "other://x")
            await until(lambda: files.events == ["+files://open"])

        converse(app, script, revision)


def test_a_listen_that_is_cancelled_while_its_toolset_decides_is_not_opened() -> None:
    class Slow(Files):
        async def check_watch(self, uri: str) -> None:
            self.events.append(f"?{uri}")
            await asyncio.Event().wait()

    app, files = serve(Slow())

    async def script(client: Client) -> None:
        id = client.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["files://a"]}})
        await until(lambda: files.events == ["?files://a"])
        client.notify("notifications/cancelled", {"requestId": id})
        await client.request("tools/list")
        await until(lambda: not app.engine.executor.live)
        assert not app.engine.subscriptions.listens

    converse(app, script, NEWEST)
