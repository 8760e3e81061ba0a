"""Toolsets that are declared from an index and imported at the first call."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from longshore import ConfigError, RegistrationError, Server
from longshore.config import Config, ToolsetConfig
from longshore.registry.tool import Entry
from longshore.registry.toolset_index import COPIED, LOADED, IndexedEntry
from talk import ERAS, NEWEST, Client, Refused, call, converse, result, text

from .shelf import SOURCE, write

DERIVED = {
    "limit",
    "plain",
    "direct",
    "result_bytes",
    "guarded",
    "needed",
    "meter",
    "calls",
    "failures",
    "completions",
    "offered",
    "shown",
    "waits",
    "wrapped",
}
"""Fields that are counted, or follow from others and the configuration."""
MADE = {"toolset", "template", "scopes", "describe", "asked", "parameters"}
"""Fields that are made from something else in the index."""
REFUSED = {"headers", "raw", "checks"}
"""Fields that no toolset of an index may have, or that its tools have by default."""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Server]:
    monkeypatch.syspath_prepend(str(tmp_path))
    name, index = write(tmp_path)
    app = Server("lazy")
    app.add_indexed(index)
    return name, app


def eager(name: str) -> Server:
    app = Server("lazy")
    app.add_toolset(__import__(name).Shelf(app))
    return app


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
def test_lists_are_those_of_the_code_and_import_nothing(shelf: tuple[str, Server], method: str, revision: str) -> None:
    name, app = shelf
    found = result(app, method, revision=revision)
    assert name not in sys.modules
    assert found == result(eager(name), method, revision=revision)


def test_an_imported_entry_is_that_of_the_code(shelf: tuple[str, Server]) -> None:
    name, app = shelf
    call(app, "twice", {"number": 4})
    real = eager(name)
    assert list(app.engine.tools) == list(real.engine.tools)
    for mine, other in zip(app.catalog.entries(), real.catalog.entries(), strict=True):
        for field in (*COPIED, "scopes", "keeps_frame", "typed_result", "plain", "direct", "guarded", "limit"):
            assert getattr(mine, field) == getattr(other, field), (mine.name, field)


def test_every_field_of_an_entry_is_in_the_index_or_known_to_come_later() -> None:
    assert set(Entry.__struct_fields__) == {*COPIED, *LOADED} | DERIVED | MADE | REFUSED
    assert set(COPIED) | {"scopes", "asks", "choices", "record"} == set(IndexedEntry.__struct_fields__)


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("twice", {"number": 4}, "8"),
        ("double", {"number": 4}, "8"),
        ("put", {"text": "a book"}, "a book"),
        ("add", {"a": 1, "b": 2}, "3"),
        ("add_text", {"sum": "1+2"}, "3"),
        ("wait", {}, "done"),
    ],
)
def test_the_first_call_decodes_its_arguments_after_the_import(
    shelf: tuple[str, Server], tool: str, arguments: dict[str, Any], answer: str, revision: str
) -> None:
    _, app = shelf
    assert [text(call(app, tool, arguments, revision)) for _ in range(2)] == [answer, answer]


def test_wrong_arguments_of_the_first_call_are_explained(shelf: tuple[str, Server]) -> None:
    _, app = shelf
    answer = call(app, "twice", {"nummer": 4})
    assert answer["isError"] and "did you mean number?" in text(answer)


def test_after_the_import_an_inline_tool_is_called_directly(shelf: tuple[str, Server]) -> None:
    _, app = shelf
    entry = app.engine.tools["twice"]
    assert not entry.direct
    call(app, "twice", {"number": 4})
    assert app.engine.tools["twice"] is entry and entry.direct and entry.limit == 7


def test_a_resource_is_read_after_the_import(shelf: tuple[str, Server]) -> None:
    _, app = shelf
    assert result(app, "resources/read", {"uri": "shelf://atlas/page"})["contents"][0]["text"] == "page of atlas"


def test_a_prompt_is_made_after_the_import(shelf: tuple[str, Server]) -> None:
    _, app = shelf
    found = result(app, "prompts/get", {"name": "tidy", "arguments": {"order": "size"}})
    assert found["messages"][0]["content"]["text"] == "tidy by size"


def test_wrong_arguments_of_the_first_prompt_are_refused(shelf: tuple[str, Server]) -> None:
    _, app = shelf
    with pytest.raises(Refused, match="order"):
        result(app, "prompts/get", {"name": "tidy", "arguments": {"order": "weight"}})


def test_arguments_are_completed_without_the_import(shelf: tuple[str, Server]) -> None:
    name, app = shelf
    ref = {"ref": {"type": "ref/prompt", "name": "tidy"}, "argument": {"name": "order", "value": "s"}}
    assert result(app, "completion/complete", ref)["completion"]["values"] == ["size"]
    assert name not in sys.modules


def test_answers_that_come_with_the_first_call_reach_the_question(shelf: tuple[str, Server]) -> None:
    _, app = shelf
    given = {"ok": {"action": "accept", "content": {"ok": True}}}

    async def script(client: Client) -> dict[str, Any]:
        client.capabilities = {"elicitation": {}}
        return await client.request("tools/call", {"name": "choose", "arguments": {}, "inputResponses": given})

    assert text(converse(app, script, NEWEST)) == "chose True"


def test_concurrent_first_calls_import_and_make_the_toolset_once(shelf: tuple[str, Server]) -> None:
    name, app = shelf

    async def script(client: Client) -> list[dict[str, Any]]:
        ids = [client.send("tools/call", {"name": "twice", "arguments": {"number": n}}) for n in range(20)]
        return [await client.response(id) for id in ids]

    answers = converse(app, script)
    assert [text(each["result"]) for each in answers] == [str(2 * n) for n in range(20)]
    assert len(sys.modules[name].MADE) == 1
    assert sys.modules[name].MADE[0].app is app


def test_the_import_is_no_change_of_a_list(shelf: tuple[str, Server]) -> None:
    _, app = shelf

    async def script(client: Client) -> list[dict[str, Any]]:
        await client.call_tool("twice", number=1)
        await client.request("tools/list")
        return client.notes

    assert converse(app, script) == []


def test_a_call_that_is_cancelled_during_the_import_gets_no_answer(shelf: tuple[str, Server]) -> None:
    _, app = shelf

    async def script(client: Client) -> set[Any]:
        first = client.send("tools/call", {"name": "twice", "arguments": {"number": 1}})
        client.notify("notifications/cancelled", {"requestId": first})
        await client.call_tool("twice", number=2)
        return set(client.answers)

    assert converse(app, script) == set()


def test_a_client_that_leaves_during_the_import_does_not_hold_up_the_next(shelf: tuple[str, Server]) -> None:
    _, app = shelf

    async def script(client: Client) -> None:
        client.send("tools/call", {"name": "twice", "arguments": {"number": 1}})

    converse(app, script)
    assert text(call(app, "twice", {"number": 4})) == "8"


def test_a_missing_library_fails_the_call_with_what_to_install_until_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "heavy_library.py").write_text("")
    _, index = write(tmp_path, "import heavy_library\n" + SOURCE.replace("\n    ", "\n"), extra="heavy")
    (tmp_path / "heavy_library.py").unlink()
    del sys.modules["heavy_library"]
    app = Server("lazy")
    app.add_indexed(index)
    answer = call(app, "twice", {"number": 4})
    assert answer["isError"]
    assert text(answer) == (
        "the toolset 'shelf' can't be loaded: the module 'heavy_library' is not installed; "
        "pip install 'longshore[heavy]' and call again, no restart is needed"
    )
    (tmp_path / "heavy_library.py").write_text("")
    assert text(call(app, "twice", {"number": 4})) == "8"


def test_code_that_differs_from_its_index_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    name, index = write(tmp_path)
    path = tmp_path / f"{name}.py"
    path.write_text(path.read_text().replace("def put", "def push"))
    app = Server("lazy")
    app.add_indexed(index)
    problems: list[Any] = []
    app.listen(problems.append)
    assert call(app, "twice", {"number": 4})["isError"]
    assert "write the index again" in str(problems)


def test_a_toolset_is_started_after_its_import_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    hooks = """
        async def start(self) -> None: self.log.append("start")
        def stop(self) -> None: self.log.append("stop")
"""
    name, index = write(tmp_path, SOURCE + hooks)
    app = Server("lazy")
    app.add_indexed(index)
    assert text(call(app, "twice", {"number": 4})) == "8"
    app.remove_toolset("shelf")
    assert sys.modules[name].MADE[0].log == ["start", "stop"]


def test_a_toolset_that_is_never_called_is_never_imported_nor_stopped(shelf: tuple[str, Server]) -> None:
    name, app = shelf
    app.remove_toolset("shelf")
    assert result(app, "tools/list")["tools"] == []
    assert name not in sys.modules


def test_only_the_named_toolsets_of_an_index_are_added(shelf: tuple[str, Server], tmp_path: Path) -> None:
    name, _ = shelf
    app = Server("chosen")
    app.add_indexed(str(tmp_path / f"{name}.json"), "another")
    assert app.catalog.toolsets == {}


def test_the_name_of_another_tool_is_refused(shelf: tuple[str, Server], tmp_path: Path) -> None:
    name, _ = shelf
    app = Server("taken")
    app.tool(name="put", description="Put something.")(lambda: "x")
    with pytest.raises(RegistrationError, match="there is a tool 'put' already"):
        app.add_indexed(str(tmp_path / f"{name}.json"))


def test_a_second_toolset_of_one_name_is_refused_with_the_place_of_the_first(
    shelf: tuple[str, Server], tmp_path: Path
) -> None:
    name, app = shelf
    with pytest.raises(RegistrationError, match=f"a toolset named 'shelf' is there already: {name}:Shelf"):
        app.add_indexed(str(tmp_path / f"{name}.json"))


def test_a_tool_with_a_header_has_no_place_in_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    source = SOURCE.replace("text: str)", 'text: Annotated[str, Header("Text")])').replace("Ask,", "Ask, Header,")
    with pytest.raises(RegistrationError, match="repeats an argument in a header"):
        write(tmp_path, source)


def test_help_and_search_import_nothing(shelf: tuple[str, Server]) -> None:
    from longshore.toolsets.discovery import Discovery

    name, app = shelf
    app.add_toolset(Discovery(app))
    assert "take one out" in text(call(app, "tool_help", {"name": "put"}))
    assert text(call(app, "list_tools", {"search": "twice much"})).startswith("twice [shelf]")
    status = call(app, "server_status")["structuredContent"]["toolsets"][0]
    assert status == {"name": "shelf", "tools": 4, "open": False, "details": {}}
    assert name not in sys.modules


def test_a_reload_imports_it_first(shelf: tuple[str, Server], tmp_path: Path) -> None:
    name, app = shelf
    path = tmp_path / f"{name}.py"
    # Of another length: within a second, Python tells an edited module from the compiled one by its size only.
    path.write_text(path.read_text().replace("number * 2", "number + number + number"))
    app.reload("shelf")
    assert text(call(app, "twice", {"number": 4})) == "12"


def test_the_import_does_not_block_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module waits, while it is imported, for something that only the loop can do."""
    monkeypatch.syspath_prepend(str(tmp_path))
    gate = tmp_path / "gate"
    gate.touch()
    waiting = f"""
    import os, time
    while not os.path.exists({str(gate)!r}):
        time.sleep(0.001)
    """
    _, index = write(tmp_path, waiting + SOURCE)
    gate.unlink()
    app = Server("lazy")
    app.add_indexed(index)

    async def script(client: Client) -> str:
        id = client.send("tools/call", {"name": "twice", "arguments": {"number": 4}})
        await client.request("tools/list")
        gate.touch()
        async with asyncio.timeout(60):
            return text((await client.response(id))["result"])

    assert converse(app, script) == "8"


def test_class_attributes_that_decide_at_the_start_are_known_before_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    name, index = write(tmp_path, SOURCE + "        stateful, enabled, stop_seconds = True, False, 2.5\n")
    app = Server("lazy")
    app.add_indexed(index)
    toolset: Any = app.catalog.toolsets["shelf"].toolset
    assert (toolset.stateful, toolset.enabled, toolset.stop_seconds) == (True, False, 2.5)
    assert name not in sys.modules


def test_scopes_are_known_before_the_import(shelf: tuple[str, Server]) -> None:
    _, app = shelf
    assert app.engine.tools["put"].scopes == {"shelf:write"} and app.engine.tools["put"].guarded


# -- options and availability

LIGHT = """
    from msgspec import Struct

    class Options(Struct, frozen=True, kw_only=True):
        key: str
        depth: int = 1

    def find_out(self) -> str | None:
        return None if self.options.depth else "no depth; set toolsets.shelf.depth"
"""
CONFIGURED = """
    from {light} import Options, find_out
    from longshore import Server, Toolset, resource, tool

    class Shelf(Toolset):
        name = "shelf"
        Options = Options
        available = find_out

        def __init__(self, options: Options, app: Server) -> None:
            self.options, self.app = options, app

        def watched(self, uri: str) -> None:
            self.app.resource_changed(uri)

        @tool
        def show(self) -> str:
            \"\"\"Show the key.\"\"\"
            return self.options.key

        @resource("shelf://key")
        def key(self) -> str:
            return self.options.key
"""


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Server]:
    monkeypatch.syspath_prepend(str(tmp_path))
    light = f"light_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{light}.py").write_text(textwrap.dedent(LIGHT))
    name, index = write(tmp_path, CONFIGURED.replace("{light}", light))
    app = Server("lazy")
    app.add_indexed(index)
    return name, app


def shelf_config(**options: Any) -> Config:
    return Config(toolsets={"shelf": ToolsetConfig(options=options)})


def test_a_toolset_is_asked_and_its_options_are_read_without_the_import(configured: tuple[str, Server]) -> None:
    name, app = configured
    app.config = shelf_config(key="brass")
    assert [each["name"] for each in result(app, "tools/list")["tools"]] == ["show"]
    assert name not in sys.modules
    assert text(call(app, "show")) == "brass"


def test_a_watch_imports_a_toolset_which_is_made_with_the_server(configured: tuple[str, Server]) -> None:
    _, app = configured
    app.config = shelf_config(key="brass")

    async def watch(client: Client) -> dict[str, Any]:
        await client.request("resources/subscribe", {"uri": "shelf://key"})
        return await client.heard("notifications/resources/updated")

    assert converse(app, watch)["params"] == {"uri": "shelf://key"}


def test_an_option_that_has_to_be_set_stops_the_start(configured: tuple[str, Server]) -> None:
    name, app = configured
    with pytest.raises(ConfigError, match=r"toolsets\.shelf\.key: has to be set, in \[toolsets\.shelf\]"):
        _ = app.engine
    assert name not in sys.modules


def test_an_unavailable_toolset_of_an_index_is_not_imported(configured: tuple[str, Server]) -> None:
    name, app = configured
    app.config = shelf_config(key="brass", depth=0)
    assert result(app, "tools/list")["tools"] == []
    with pytest.raises(Refused, match="the tool 'show' is unavailable: no depth; set"):
        call(app, "show")
    with pytest.raises(Refused, match="this server has no resources"):
        result(app, "resources/read", {"uri": "shelf://key"})
    assert name not in sys.modules


def test_a_call_before_any_list_says_that_the_toolset_of_an_index_is_unavailable(
    configured: tuple[str, Server],
) -> None:
    name, app = configured
    app.config = shelf_config(key="brass", depth=0)
    failed = call(app, "show")
    assert failed["isError"] and text(failed).startswith("the toolset 'shelf' is unavailable: no depth; set")
    assert name not in sys.modules


def test_a_start_does_not_ask_whether_a_toolset_of_an_index_can_run(configured: tuple[str, Server]) -> None:
    _, app = configured
    app.config = shelf_config(key="brass", depth=0)
    assert [entry.name for entry in app.engine.tools.values()] == ["show"]
    assert app.engine.listed_tools() == [] and app.engine.tools == {}


def test_one_that_is_enabled_later_without_its_options_says_what_to_set(configured: tuple[str, Server]) -> None:
    _, app = configured
    app.config = Config(toolsets={"shelf": ToolsetConfig(enabled=False)})
    assert result(app, "tools/list")["tools"] == []
    app.enable("shelf")
    with pytest.raises(Refused, match=r"the tool 'show' is unavailable: toolsets\.shelf\.key: has to be set"):
        call(app, "show")


def test_a_reload_reads_the_options_again(configured: tuple[str, Server]) -> None:
    _, app = configured
    app.config = shelf_config(key="brass")
    assert text(call(app, "show")) == "brass"
    app.reload("shelf")
    assert text(call(app, "show")) == "brass"


@pytest.mark.parametrize(
    "lines",
    [
        "        Options = type('Options', (Struct,), {'__module__': __name__})\n",
        "        def available(self) -> str | None:\n            return None\n",
    ],
    ids=["options", "available"],
)
def test_what_a_start_reads_is_not_in_the_module_of_the_toolset(
    lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RegistrationError, match="is in the toolset's module, so a start would import all"):
        write(tmp_path, "    from msgspec import Struct\n" + SOURCE + lines)
