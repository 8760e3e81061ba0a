"""Configuration on a live server: which layer wins, and a change that takes effect while the client stays."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from waiting import eventually

from .conftest import Workshop
from .peer import LONGSHORE, Peer, modern, request, text_of

TOOLS = """
    from longshore import Context, Server, Toolset, tool
    app = Server("configured")

    @app.tool
    async def left(ctx: Context) -> str:
        return str(round(ctx.remaining))

    @app.tool
    async def other() -> str:
        return "here"

    @app.tool
    async def long() -> str:
        return "x" * 1000

    class Weather(Toolset):
        @tool
        async def forecast(self, ctx: Context) -> str:
            return str(round(ctx.remaining))

        @tool
        async def history(self) -> str:
            return "old"

        @tool(group="admin")
        async def forget(self) -> str:
            return "forgotten"

    app.add_toolset(Weather())
"""


def write_project(workshop: Workshop, text: str) -> None:
    """In one step, as editors do: a half-written file would be a broken one."""
    path = workshop.write(text, "longshore.part")
    os.replace(path, workshop.folder / "longshore.toml")


def await_change(peer: Peer) -> None:
    """Send requests until the server has told of a changed list: it looks at its files before each."""

    def told() -> bool:
        peer.ask(request("ping", "ping"))
        return any(frame.get("method") == "notifications/tools/list_changed" for frame in peer.seen[seen:])

    seen = len(peer.seen)
    eventually("word of the change", told)


def started(workshop: Workshop, *options: str) -> Peer:
    peer = workshop.serve(TOOLS, *options)
    peer.start()
    return peer


def names(peer: Peer) -> set[str]:
    return {tool["name"] for tool in peer.ask(request("list", "tools/list"))["result"]["tools"]}


def problems(peer: Peer) -> list[dict[str, Any]]:
    return [json.loads(line) for line in peer.stderr.splitlines() if line.startswith("{")]


def test_tools_and_toolsets_can_be_disabled_and_timed(workshop: Workshop) -> None:
    write_project(
        workshop,
        """
        [tools.other]
        enabled = false
        [tools.long]
        result_bytes = 100
        [toolsets.weather]
        enabled = false
        timeout = 70
        [tools.forecast]
        enabled = true
        """,
    )
    peer = started(workshop)
    assert names(peer) == {"left", "long", "forecast"}
    for tool in ("other", "history"):
        refused = peer.call(tool, id=tool)
        assert refused["error"]["code"] == -32602
        assert "no tool" in refused["error"]["message"]
    assert text_of(peer.call("forecast")) == "70"
    assert "[cut: 900 bytes more" in text_of(peer.call("long"))
    assert problems(peer) == []


def test_a_list_follows_the_current_configuration_file(workshop: Workshop) -> None:
    write_project(workshop, "[server]\ntimeout = 50\n")
    peer = started(workshop)
    peer.call("left")
    for enabled in ("false", "true", "false", "true"):
        write_project(workshop, f"[tools.other]\nenabled = {enabled}\n")
        assert ("other" in names(peer)) is (enabled == "true")


def test_a_change_takes_effect_while_the_client_stays(workshop: Workshop) -> None:
    write_project(workshop, "[server]\ntimeout = 50\n")
    peer = started(workshop)
    assert "other" in names(peer)
    assert text_of(peer.call("left")) == "50"
    write_project(
        workshop, "[server]\ntimeout = 60\n[tools.other]\nenabled = false\n[tools.long]\nresult_bytes = 100\n"
    )
    await_change(peer)
    assert "other" not in names(peer)
    assert "[cut: 900 bytes more" in text_of(peer.call("long", id="cut"))
    assert peer.call("other")["error"]["code"] == -32602
    assert text_of(peer.call("left", id=2)) == "60"
    (workshop.folder / "longshore.toml").unlink()
    await_change(peer)
    assert text_of(peer.call("other", id=3)) == "here"
    assert text_of(peer.call("left", id=4)) == "30"
    assert "[cut" not in text_of(peer.call("long", id="whole"))
    assert problems(peer) == []


def test_the_form_of_schemas_follows_the_file(workshop: Workshop) -> None:
    def schemas(peer: Peer) -> list[bool]:
        return ["input_schema" in tool for tool in peer.ask(request("list", "tools/list"))["result"]["tools"]]

    peer = started(workshop, "--schemas", "brooklyn")
    assert all(schemas(peer))
    write_project(workshop, "[server]\ntimeout = 50\n")
    peer = started(workshop)
    assert not any(schemas(peer))
    write_project(workshop, '[server]\ntimeout = 50\nschemas = "brooklyn"\n')
    await_change(peer)
    assert all(schemas(peer))


def test_a_listen_is_notified_of_a_reload(workshop: Workshop) -> None:
    write_project(workshop, "[server]\ntimeout = 50\n")
    peer = workshop.serve(TOOLS)
    peer.send(modern(request("listen", "subscriptions/listen", notifications={"toolsListChanged": True})))
    peer.notice("notifications/subscriptions/acknowledged")
    write_project(workshop, "[tools.other]\nenabled = false\n")
    heard = peer.notice("notifications/tools/list_changed")
    assert heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "listen"


@pytest.mark.parametrize("broken", ["[server\n", "[server]\ntimout = 3\n", '[tools.left]\ntimeout = "soon"\n'])
def test_a_broken_file_changes_nothing_but_the_log(workshop: Workshop, broken: str) -> None:
    write_project(workshop, "[server]\ntimeout = 50\n[tools.other]\nenabled = false\n")
    peer = started(workshop)
    assert text_of(peer.call("left")) == "50"
    write_project(workshop, broken)
    eventually("a line in the log", lambda: peer.ask(request("ping", "ping")) and problems(peer))
    (said,) = problems(peer)
    assert said["level"] == "error"
    assert "so the old one holds" in said["text"]
    assert "longshore.toml:" in said["text"]
    assert text_of(peer.call("left", id=2)) == "50"
    assert "other" not in names(peer)
    write_project(workshop, "[server]\ntimeout = 70\n")
    await_change(peer)
    assert text_of(peer.call("left", id=3)) == "70"


def test_a_file_that_comes_later_is_noticed_once_something_ran_on_the_loop(workshop: Workshop) -> None:
    peer = started(workshop)
    assert text_of(peer.call("left")) == "30"
    write_project(workshop, "[server]\ntimeout = 80\n[tools.other]\nenabled = false\n")
    await_change(peer)
    assert text_of(peer.call("left", id=2)) == "80"


def test_tables_for_tools_that_are_not_there_are_warned_of_once(workshop: Workshop) -> None:
    write_project(
        workshop,
        "[tools.lefd]\ntimeout = 3\n[toolsets.wether]\nenabled = false\n[tools.left]\ntimeout = 9\n"
        '[toolsets.weather]\ngroups = ["admin", "amdin"]\n',
    )
    peer = started(workshop)
    assert "forget" in names(peer)
    eventually("the warnings", lambda: len(problems(peer)) == 3)
    texts = [said["text"] for said in problems(peer)]
    assert "longshore.toml:2: tools.lefd: no such tool; did you mean left?" in texts
    assert "longshore.toml:4: toolsets.wether: no such toolset; did you mean weather?" in texts
    group = 'no tool has the group "amdin"; did you mean admin?'
    assert f"longshore.toml:8: toolsets.weather.groups: {group}" in texts
    assert {said["level"] for said in problems(peer)} == {"warning"}
    assert text_of(peer.call("left")) == "9"
    assert len(problems(peer)) == 3


def test_settings_that_need_a_restart_are_reported(workshop: Workshop) -> None:
    write_project(workshop, "[server]\ntimeout = 50\n")
    peer = started(workshop)
    names(peer)
    write_project(workshop, "[server]\ntimeout = 60\n[limits]\nrunning = 8\n")
    eventually("the warning", lambda: peer.ask(request("ping", "ping")) and problems(peer))
    (said,) = problems(peer)
    assert "at the next start" in said["text"]
    assert text_of(peer.call("left")) == "60"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\ntimout = 3\n", "longshore.toml:2: server.timout: no such key; did you mean timeout?"),
        ("[server\n", "longshore.toml:1: "),
    ],
)
def test_a_broken_file_at_the_start_is_a_line_and_exit_code_2(workshop: Workshop, text: str, said: str) -> None:
    write_project(workshop, text)
    done = workshop.run([*LONGSHORE, "serve"], data=b"")
    assert done.returncode == 2
    assert done.stdout == b""
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_run_reads_the_configuration_too(workshop: Workshop) -> None:
    import sys

    write_project(workshop, "[server]\ntimeout = 44\n")
    path = workshop.write(TOOLS + "\n    app.run()\n")
    peer = workshop.spawn(sys.executable, str(path))
    peer.start()
    assert text_of(peer.call("left")) == "44"


def test_run_shows_a_broken_file_as_a_line_and_exit_code_2(workshop: Workshop) -> None:
    import sys

    write_project(workshop, "[server]\ntimout = 44\n")
    path = workshop.write(TOOLS + "\n    app.run()\n")
    done = workshop.run([sys.executable, str(path)], data=b"")
    assert b"did you mean timeout?" in done.stderr
    assert done.stdout == b""
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)


OPTIONS = """
    from msgspec import Struct
    from longshore import Folder, Server, Size, Toolset, tool
    app = Server("optional")

    class NotesOptions(Struct, frozen=True):
        folder: Folder = "notes"
        most_bytes: Size = 10

    class Notes(Toolset):
        Options = NotesOptions
        def __init__(self, options: NotesOptions) -> None:
            self.options = options
        @tool(run="inline")
        def where(self) -> str:
            return f"{self.options.folder} {self.options.most_bytes} {app.config.server.roots}"

    class Other(Toolset):
        @tool(run="inline")
        def other(self) -> str: return ""

    app.add_toolset(Notes)
    app.add_toolset(Other)
"""


def test_flags_choose_toolsets_roots_and_options(workshop: Workshop) -> None:
    write_project(workshop, "[toolsets.notes]\nfolder = 'x'\nmost_bytes = '1MB'\n")
    folder = workshop.folder
    for name in ("a", "b"):
        (folder / name).mkdir()
    flags = ["--toolsets", "notes", "--root", "a", f"--root={folder}/b", "--set", "toolsets.notes.folder=here"]
    peer = workshop.serve(OPTIONS, *flags)
    peer.start()
    assert names(peer) == {"where"}
    assert text_of(peer.call("where")) == f"{folder}/here 1000000 ['{folder}/a', '{folder}/b']"


@pytest.mark.parametrize("transport", [[], ["--http"]])
def test_wrong_options_are_reported_before_anything_starts(workshop: Workshop, transport: list[str]) -> None:
    path = str(workshop.write(OPTIONS))
    flags = ["--toolsets", "nots", "--root", "", "--set", "toolsets.notes.most_bytes=10M", "--set=limits.rnning=1"]
    done = workshop.run([*LONGSHORE, "serve", path, *transport, *flags], data=b"")
    assert done.returncode == 2
    assert sorted(done.stderr.decode().splitlines()) == [
        '--root: expected a list of paths, got "" in it',
        '--toolsets: expected a list of notes or other, got "nots" in it; did you mean notes?',
        "limits.rnning: no such key; did you mean running?",
        'toolsets.notes.most_bytes: expected bytes (a number, or a text such as "10MB" or "10MiB"), got "10M"',
    ]


def test_changed_options_follow_at_the_next_start(workshop: Workshop) -> None:
    write_project(workshop, "[toolsets.notes]\nmost_bytes = 1\n")
    peer = workshop.serve(OPTIONS)
    peer.start()
    assert names(peer) == {"where", "other"}
    write_project(workshop, "[toolsets.notes]\nmost_bytes = 2\n[tools.other]\nenabled = false\n")
    await_change(peer)
    assert text_of(peer.call("where")).split()[1] == "1"
    [problem] = problems(peer)
    assert "toolsets' options" in json.dumps(problem) and "follow at the next start" in json.dumps(problem)


SHOWN = {"search_tools", "call_tool"}


def call_named(peer: Peer, name: str) -> str:
    asked = request("named", "tools/call", name="call_tool", arguments={"name": name})
    return text_of(peer.ask(asked))


@pytest.mark.parametrize("way", ["flag", "variable", "file"])
def test_a_servers_tools_are_listed_in_the_form_that_is_configured(workshop: Workshop, way: str) -> None:
    if way == "variable":
        workshop.env["LONGSHORE_SERVER_CATALOG"] = "search"
    elif way == "file":
        write_project(workshop, '[server]\ncatalog = "search"\n')
    peer = started(workshop, *(["--catalog", "search"] if way == "flag" else []))
    assert names(peer) == SHOWN
    assert call_named(peer, "other") == "here"
    assert text_of(peer.call("other", id=2)) == "here"


def test_the_form_of_the_catalogue_is_switched_while_a_client_is_connected(workshop: Workshop) -> None:
    write_project(workshop, "[server]\ntimeout = 50\n")
    peer = started(workshop)
    every = names(peer)
    assert len(every) == 5
    write_project(workshop, '[server]\ncatalog = "search"\npinned = ["left", "lefd"]\n')
    await_change(peer)
    assert names(peer) == {"left", *SHOWN}
    assert call_named(peer, "forecast") == "30"
    (said,) = [each for each in problems(peer) if "pinned" in each["text"]]
    assert said["text"] == 'longshore.toml:3: server.pinned: no tool "lefd"; did you mean left?'
    write_project(workshop, "[server]\ntimeout = 50\n")
    await_change(peer)
    assert names(peer) == every


def test_a_form_whose_names_are_taken_is_refused_and_the_old_one_holds(workshop: Workshop) -> None:
    write_project(workshop, "[server]\ntimeout = 50\n")
    peer = workshop.serve(f'{TOOLS}\n    @app.tool\n    async def call_tool() -> str:\n        return "mine"\n')
    peer.start()
    assert "left" in names(
        peer
    )  # until tools are listed or called, a client that never pauses delays what is not urgent
    write_project(workshop, '[server]\ncatalog = "search"\n')
    eventually("a line in the log", lambda: peer.ask(request("ping", "ping")) and problems(peer))
    (said,) = problems(peer)
    assert "there is a tool 'call_tool' already" in said["text"]
    assert text_of(peer.call("call_tool")) == "mine"
    assert "left" in names(peer)
