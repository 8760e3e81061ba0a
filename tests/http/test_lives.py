"""An app that is served once more after its lifespan has ended: as good as new, with all that its store has kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from asgi import configured

from auth.issuer import Issuer, serving
from longshore import Limits, Server, Toolset, tool
from posting import Session
from serving import serve


class Counting(Toolset):
    """Is opened by its first call."""

    opened = 0

    def start(self) -> None:
        type(self).opened += 1

    def stop(self) -> None: ...

    @tool
    def count(self) -> str:
        """How often it was opened."""
        return str(self.opened)


class Extra(Toolset):
    """Comes later."""

    @tool(run="inline")
    def bonus(self) -> str:
        """There since just now."""
        return "bonus"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with serving() as found:
        yield found


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_app_can_have_several_lives(tmp_path: Path, kind: str, own: bool) -> None:
    server, Counting.opened = Server("x"), 0
    server.add_toolset(Counting())
    store = "memory://" if kind == "memory" else f"sqlite:///{tmp_path}/sessions.db"
    app = configured(server, tmp_path, store=store)
    for life in (1, 2, 3):
        with serve(app, own=own) as served:
            session = Session(served).open()
            stream = session.get().begin()
            assert session.call("count") == str(life)
            assert served.send("GET", "/health").finish().body == b'{"status":"ok"}'
            served.look(lambda: server.add_toolset(Extra()))
            stream.wait(lambda it: b"tools/list_changed" in it.body, "word of the new tool")
            served.look(lambda: server.remove_toolset("extra"))


def test_sessions_end_and_are_bounded_where_nothing_is_set(tmp_path: Path) -> None:
    app = configured(Server("x"), tmp_path)
    assert app.config.http.session_ttl == 1800
    assert (app.limits.sessions, Limits().sessions) == (10_000, 10_000)


@pytest.mark.parametrize("own", [False, True])
def test_a_session_in_a_file_outlives_the_app_that_made_it(tmp_path: Path, own: bool) -> None:
    server = Server("x")
    server.add_toolset(Counting())
    app = configured(server, tmp_path, store=f"sqlite:///{tmp_path}/sessions.db")
    with serve(app, own=own) as served:
        session = Session(served).open()
    with serve(app, own=own) as session.server:
        assert session.call("count")


def test_tokens_can_be_looked_up_in_every_life(tmp_path: Path, issuer: Issuer) -> None:
    issuer.tokens["opaque-token-0123456789"] = {"active": True, "sub": "ann", "aud": "https://mcp.example.com/mcp"}
    toml = f"""
[http]
public_url = "https://mcp.example.com"
[auth]
issuer = "https://login.example.com"
introspection_url = "{issuer.introspection}"
introspection_client = "longshore"
introspection_secret = "a-secret-between-us"
"""
    app = configured(Server("x"), tmp_path, toml)
    for _ in range(2):
        with serve(app) as served:
            answer = served.send("GET", "/tools", [("Authorization", "Bearer opaque-token-0123456789")]).finish()
            assert answer.status == 200, answer.body
