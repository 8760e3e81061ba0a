"""Toolsets hear of watched resources over HTTP, in the process that has the client's stream, and of their ends."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from asgi import configured

from longshore import Limits, Server, ToolError, Toolset, resource
from posting import Session, modern, post_modern, request
from serving import Served, serve

BOTH = ["start", "+files://a", "-files://a", "stop"]


class Files(Toolset):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.events: list[str] = []

    async def start(self) -> None:
        self.events.append("start")

    async def stop(self) -> None:
        self.events.append("stop")

    async def watched(self, uri: str) -> None:
        self.events.append(f"+{uri}")

    async def unwatched(self, uri: str) -> None:
        self.events.append(f"-{uri}")

    @resource("files://{path}")
    def read(self, path: str) -> str:
        return path


def make(folder: Path, limits: Limits | None = None, **settings: Any) -> tuple[Any, Files]:
    server, files = Server("t", limits=limits), Files()
    server.add_toolset(files)
    return configured(server, folder, **settings), files


def subscribe(session: Session, uri: str = "files://a") -> None:
    assert session.ask("resources/subscribe", {"uri": uri})["result"] == {}


def begun(served: Served, files: Files) -> None:
    served.until(lambda: files.events == BOTH[:2], "the watch")


def ended(served: Served, files: Files) -> None:
    served.until(lambda: files.events == BOTH[:3], "its end")


@pytest.mark.parametrize("own", [False, True])
def test_a_listen_whose_connection_breaks(tmp_path: Path, own: bool) -> None:
    app, files = make(tmp_path)
    with serve(app, own=own) as served:
        params = {"notifications": {"resourceSubscriptions": ["files://a"]}}
        stream = post_modern(served, modern(request("subscriptions/listen", params))).begin()
        begun(served, files)
        stream.drop()
        ended(served, files)


def test_a_session_that_its_client_deletes(tmp_path: Path) -> None:
    app, files = make(tmp_path)
    with serve(app) as served:
        session = Session(served).open()
        subscribe(session)
        begun(served, files)
        session.delete().finish()
        ended(served, files)


def test_a_session_that_is_unloaded_to_make_room(tmp_path: Path) -> None:
    app, files = make(tmp_path, Limits(live_sessions=1))
    with serve(app) as served:
        session = Session(served).open()
        subscribe(session)
        begun(served, files)
        Session(served).open()
        ended(served, files)
        session.get().begin()  # it is loaded again, and its stream is here
        served.until(lambda: files.events == ["start", "+files://a", "-files://a", "+files://a"], "the watch again")


def test_the_end_of_the_server_comes_before_the_stop(tmp_path: Path) -> None:
    app, files = make(tmp_path)
    with serve(app) as served:
        subscribe(Session(served).open())
        begun(served, files)
    assert files.events == BOTH


def test_the_process_with_the_stream_hears_what_the_client_asks_another(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/sessions.db"
    with ExitStack() as open:
        (first, files), (second, others) = make(tmp_path, store=store), make(tmp_path, store=store)
        home, other = open.enter_context(serve(first)), open.enter_context(serve(second))
        session = Session(home).open()
        session.get().begin()
        session.server = other
        subscribe(session)
        begun(home, files)
        assert session.ask("resources/unsubscribe", {"uri": "files://a"})["result"] == {}
        ended(home, files)
        assert others.events == []


class Guarded(Files):
    def check_watch(self, uri: str) -> None:
        if uri != "files://a":
            raise ToolError("not this one")


def test_a_subscription_that_its_toolset_refuses(tmp_path: Path) -> None:
    server, files = Server("t"), Guarded()
    server.add_toolset(files)
    with serve(configured(server, tmp_path)) as served:
        session = Session(served).open()
        assert session.ask("resources/subscribe", {"uri": "files://b"})["error"]["code"] == -32002
        subscribe(session)
        begun(served, files)
        session.delete().finish()
        ended(served, files)
