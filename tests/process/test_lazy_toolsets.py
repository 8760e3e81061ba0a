"""Toolsets of an index in a live process: a start and a list import none of them, the first call needs no asyncio."""

from __future__ import annotations

import json
import sys

from tests.waiting import eventually

from .conftest import Workshop
from .peer import LONGSHORE, call, encode, initialize, request, text_of
from .test_cold_start import modules_at_initialize

TOOLS = """
    import os, sys
    with open("imported", "a") as file:
        file.write("once\\n")
    from longshore import Toolset, tool

    class Lazy(Toolset):
        def __init__(self, app) -> None: ...

        @tool(run="inline")
        def at_once(self) -> bool:
            return "asyncio" in sys.modules

        @tool
        def on_a_thread(self) -> bool:
            return "asyncio" in sys.modules

        @tool
        async def as_a_task(self) -> bool:
            return "asyncio" in sys.modules
"""
INDEXER = """
    from longshore import Server
    from longshore.toolsets.index import write_index
    with open("index.json", "wb") as file:
        file.write(write_index(Server("indexer"), {"behind:Lazy": ""}))
"""
SERVER = """
    from longshore import Server
    app = Server("lazy")
    app.add_indexed("index.json")
"""


def prepare(workshop: Workshop) -> str:
    """The path of a server whose index has been written."""
    workshop.write(TOOLS, "behind.py")
    done = workshop.run([sys.executable, str(workshop.write(INDEXER, "indexer.py"))])
    assert done.returncode == 0, done.stderr.decode()
    (workshop.folder / "imported").unlink()
    return str(workshop.write(SERVER))


def imports(workshop: Workshop) -> int:
    path = workshop.folder / "imported"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_start_imports_nothing_of_the_toolset(workshop: Workshop) -> None:
    loaded = modules_at_initialize(workshop, "serve", prepare(workshop))
    assert "longshore.registry.toolset_index" in loaded and "behind" not in loaded


def test_the_built_in_server_starts_without_its_toolsets_and_what_their_schemas_need(workshop: Workshop) -> None:
    loaded = modules_at_initialize(workshop, "serve")
    toolsets = {name for name in loaded if name.startswith("longshore.toolsets")}
    assert not toolsets and "longshore.schema.types" not in loaded


def test_a_list_imports_nothing_of_the_toolset(workshop: Workshop) -> None:
    done = workshop.run([*LONGSHORE, "serve", prepare(workshop)], initialize(), request(1, "tools/list"))
    tools = json.loads(done.stdout.splitlines()[1])["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["at_once", "on_a_thread", "as_a_task"]
    assert imports(workshop) == 0


def test_first_calls_at_once_import_it_once_and_only_a_task_needs_asyncio(workshop: Workshop) -> None:
    path = prepare(workshop)
    names = ["at_once", "on_a_thread", "as_a_task", "at_once"]
    done = workshop.run(
        [*LONGSHORE, "serve", path], data=encode(initialize(), *(call(id, name) for id, name in enumerate(names)))
    )
    answers = {each["id"]: each for each in map(json.loads, done.stdout.splitlines())}
    assert [answers[id]["result"].get("isError") for id in range(4)] == [None] * 4
    assert text_of(answers[2]) == "true"
    assert imports(workshop) == 1 and done.stderr == b""


def test_the_first_call_of_an_inline_tool_is_answered_without_asyncio(workshop: Workshop) -> None:
    """Though the import takes longer than a call may: asyncio is not imported beside it."""
    prepare(workshop)
    workshop.write("\n    import time\n    time.sleep(0.1)\n" + TOOLS, "behind.py")
    patient = """
    import longshore.transports.stdio as stdio
    stdio.THREAD_SECONDS, stdio.IMPORT_SECONDS = 0, 30
"""
    path = workshop.write(patient + SERVER)
    done = workshop.run([*LONGSHORE, "serve", str(path)], initialize(), call(1, "at_once"))
    assert text_of(json.loads(done.stdout.splitlines()[1])) == "false"


def test_a_task_runs_after_the_import_and_the_server_reads_on(workshop: Workshop) -> None:
    prepare(workshop)
    peer = workshop.serve(SERVER)
    peer.start()
    assert text_of(peer.call("as_a_task", 1)) == "true"
    assert text_of(peer.call("on_a_thread", 2)) == "true"
    assert imports(workshop) == 1


def test_it_is_imported_while_the_client_is_silent(workshop: Workshop) -> None:
    prepare(workshop)
    peer = workshop.serve(SERVER)
    peer.start()
    assert len(peer.ask(request(1, "tools/list"))["result"]["tools"]) == 3
    eventually("the import without a call", lambda: imports(workshop) == 1)
    assert text_of(peer.call("on_a_thread", 2)) == "true"
    assert imports(workshop) == 1


def test_an_import_that_fails_while_the_client_is_silent_is_reported_by_the_call(workshop: Workshop) -> None:
    prepare(workshop)
    workshop.write(TOOLS + "\n    import no_such_library\n", "behind.py")
    peer = workshop.serve(SERVER)
    peer.start()
    eventually("the import without a call", lambda: imports(workshop) == 1)
    assert "the module 'no_such_library' is not installed" in text_of(peer.call("at_once", 1))
    assert peer.ask(request(2, "ping"))["result"] == {}
