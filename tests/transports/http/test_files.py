"""Folders and artifacts over HTTP: whose they are, in sessions and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longshore import Context, ResourceLink, Server
from posting import Session, ask_modern, call, modern, notice, request
from serving import Served, serve

from .test_principals import PEOPLE, bearer

TOOLS = ("thread", "task")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for name in ("a", "b", "cache"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "longshore.toml").write_text(f'[server]\nroots = ["{tmp_path}"]\n{PEOPLE}')
    app = Server("files")

    @app.tool
    def thread(ctx: Context) -> str:
        return " ".join(ctx.folders())

    @app.tool
    async def task(ctx: Context) -> str:
        return " ".join(await ctx.folders())

    @app.tool(artifacts=True)
    def save(text: str, ctx: Context) -> ResourceLink:
        return ctx.save_artifact("a.txt", text)

    with serve(app.asgi(config_path=str(tmp_path / "longshore.toml"))) as served:
        yield served


def ask_folders(session: Session, tool: str, *roots: Path) -> str:
    """A call that asks for the roots, which are answered by a POST."""
    asking = session.post(call(tool)).wait(lambda it: it.messages)
    question = asking.messages[0]
    assert question["method"] == "roots/list"
    answer = {"roots": [{"uri": path.as_uri()} for path in roots]}
    assert session.post({"jsonrpc": "2.0", "id": question["id"], "result": answer}).finish().status == 202
    found: str = asking.finish().messages[-1]["result"]["content"][0]["text"]
    return found


@pytest.mark.parametrize("tool", TOOLS)
def test_a_sessions_client_narrows_the_folders_until_its_roots_change(
    server: Served, tmp_path: Path, tool: str
) -> None:
    session = Session(server, headers=[bearer("alice")]).open({"roots": {"listChanged": True}})
    assert ask_folders(session, tool, tmp_path / "a") == str(tmp_path / "a")
    assert session.call(tool) == str(tmp_path / "a")
    assert session.post(notice("notifications/roots/list_changed")).finish().status == 202
    assert ask_folders(session, tool, tmp_path / "b") == str(tmp_path / "b")


@pytest.mark.parametrize("tool", TOOLS)
def test_a_request_without_a_session_gets_the_servers_own(server: Served, tmp_path: Path, tool: str) -> None:
    answer = ask_modern(server, modern(call(tool), capabilities={"roots": {}}), bearer("alice"))
    assert answer.json["result"]["content"][0]["text"] == str(tmp_path)


@pytest.mark.parametrize("era", ["session", "stateless"])
def test_an_artifact_is_read_by_its_own_principal_only(server: Served, era: str) -> None:
    def send(person: str, message: dict[str, Any]) -> Any:
        if era == "session":
            return Session(server, headers=[bearer(person)]).open().post(message).finish().json
        return ask_modern(server, modern(message), bearer(person)).json

    [link] = send("alice", call("save", {"text": "mine"}))["result"]["content"]
    reading = request("resources/read", {"uri": link["uri"]})
    assert send("alice", reading)["result"]["contents"][0]["text"] == "mine"
    id = link["uri"].split("/")[2]
    never = link["uri"].replace(id, "f" * len(id))
    theirs = send("bob", reading)["error"]
    made_up = send("bob", request("resources/read", {"uri": never}))["error"]
    assert theirs["code"] == made_up["code"]
    assert theirs["message"].replace(id, "f" * len(id)) == made_up["message"]
