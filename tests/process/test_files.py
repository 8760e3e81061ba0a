"""Folders and artifacts of a real process: what a start checks and loads, and questions before there is a loop."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from .conftest import Workshop
from .peer import LONGSHORE, Peer, call, initialize, modern, request, text_of
from .test_cold_start import modules_at_initialize

TOOLS = """
    from longshore import Context, ResourceLink, Server
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

    if __name__ == "__main__":
        app.run()
"""


def answer_roots(peer: Peer, *paths: Path) -> None:
    asked = peer.notice("roots/list")
    peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": path.as_uri()} for path in paths]}})


@pytest.mark.parametrize("tool", ["thread", "task"])
def test_the_first_call_of_a_process_asks_for_the_clients_roots(workshop: Workshop, tool: str) -> None:
    (workshop.folder / "part").mkdir()
    workshop.write('[server]\nroots = ["."]\n', "longshore.toml")
    peer = workshop.serve(TOOLS)
    peer.start(roots={"listChanged": True})
    peer.send(call(1, tool))
    answer_roots(peer, workshop.folder / "part")
    assert text_of(peer.answer(1)) == str((workshop.folder / "part").resolve())
    assert text_of(peer.call(tool)) == str((workshop.folder / "part").resolve())


def test_the_built_in_server_reads_and_writes_files_of_its_roots_only(workshop: Workshop) -> None:
    (workshop.folder / "part").mkdir()
    (workshop.folder / "secret").write_text("secret")
    peer = workshop.serve(None, "--root", str(workshop.folder / "part"))
    peer.start()
    assert text_of(peer.call("fs_write", path="a/b.txt", content="one\n")).startswith("wrote a/b.txt, 4 bytes")
    assert text_of(peer.call("fs_read", path="a/b.txt")).endswith("]\none")
    assert text_of(peer.call("fs_search", pattern="o.e")) == "a/b.txt\n1:one"
    assert "outside the folders" in text_of(peer.call("fs_read", path="../secret"))
    assert (workshop.folder / "part/a/b.txt").read_text() == "one\n"


@pytest.mark.parametrize("tool", ["thread", "task"])
def test_a_client_that_has_sent_everything_is_not_waited_for(workshop: Workshop, tool: str) -> None:
    workshop.write('[server]\nroots = ["."]\n', "longshore.toml")
    done = workshop.run([*LONGSHORE, "serve", str(workshop.write(TOOLS))], initialize(roots={}), call(1, tool))
    [answer] = [frame for line in done.stdout.splitlines() if (frame := json.loads(line)).get("id") == 1]
    assert text_of(answer) == str(workshop.folder.resolve())


def test_a_configured_root_that_is_no_folder_ends_the_start(workshop: Workshop) -> None:
    workshop.write('[server]\nroots = ["here", "nowhere"]\n', "longshore.toml")
    (workshop.folder / "here").mkdir()
    done = workshop.run([*LONGSHORE, "serve", str(workshop.write(TOOLS))], initialize())
    assert done.returncode != 0
    assert done.stdout == b""
    assert re.match(r"server.roots \(project longshore.toml:2\): '.*nowhere' is no folder", done.stderr.decode())


def test_configured_roots_are_the_folders(workshop: Workshop) -> None:
    workshop.write('[server]\nroots = ["here", "here/within"]\n', "longshore.toml")
    (workshop.folder / "here/within").mkdir(parents=True)
    peer = workshop.serve(TOOLS)
    assert text_of(peer.ask(modern(call(1, "thread")))) == str((workshop.folder / "here").resolve())


def test_a_process_that_is_started_in_the_root_folder_uses_a_workspace(workshop: Workshop) -> None:
    path = workshop.write(TOOLS)
    env = {**workshop.env, "XDG_DATA_HOME": str(workshop.folder / "data")}
    peer = Peer([*LONGSHORE, "serve", str(path), "--log-level", "notice"], Path("/"), env, stderr=path.with_name("log"))
    workshop.peers.append(peer)
    workspace = str(workshop.folder.resolve() / "data/longshore/workspace")
    assert text_of(peer.ask(modern(call(1, "thread")))) == workspace
    assert os.path.isdir(workspace)
    assert f"files are in {workspace}" in peer.stderr


def test_an_artifact_outlives_its_process(workshop: Workshop) -> None:
    [link] = workshop.serve(TOOLS).ask(modern(call(1, "save", text="kept")))["result"]["content"]
    reading = workshop.serve(TOOLS).ask(modern(request(1, "resources/read", uri=link["uri"])))
    assert reading["result"]["contents"][0]["text"] == "kept"


def test_a_tool_that_saves_artifacts_loads_nothing_for_them_at_the_start(workshop: Workshop) -> None:
    loaded = modules_at_initialize(workshop, "serve", str(workshop.write(TOOLS)))
    late = {
        "longshore.server.call_files", "longshore.server.client_roots", "longshore.sandbox.artifacts",
        "longshore.sandbox.roots", "longshore.registry.resource", "longshore.registry.token_budget", "hashlib",
    }  # fmt: skip
    assert not loaded & late
    assert "longshore.server.artifact_resource" in loaded


def test_without_such_a_tool_not_even_their_resource_is_made(workshop: Workshop) -> None:
    loaded = modules_at_initialize(workshop, "serve", "--toolsets", "discovery,filesystem")
    assert not {name for name in loaded if name.startswith(("longshore.sandbox", "longshore.server.artifact"))}
