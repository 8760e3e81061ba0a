"""Which tools are offered and listed: unlisted tools, groups, toolsets that are off, changes at run time."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Literal

import pytest

from longshore import RegistrationError, Server, Text, Tool, Toolset, prompt, resource, tool
from longshore.config import Config, ServerConfig, ToolConfig, ToolsetConfig
from longshore.protocol.content import CallResult
from longshore.toolsets.discovery import Discovery
from talk import ERAS, WAIT_SECONDS, Client, Refused, call, converse, result, talk, text


class Notes(Toolset):
    @tool
    def add(self) -> str:
        return "added"

    @tool(group="admin", aliases=["wipe"])
    def purge(self) -> str:
        """Delete all notes."""
        return "purged"

    @tool(listed=False)
    def read_all(self) -> str:
        """Read all notes at once."""
        return "all"


class Mail(Toolset):
    enabled = False

    @tool
    def send(self) -> str:
        return "sent"

    @tool(group="admin")
    def drop(self) -> str:
        return "dropped"


def server(**toolsets: ToolsetConfig) -> Server:
    app = Server("t")
    app.add_toolset(Notes())
    app.add_toolset(Mail())
    app.config = Config(toolsets=toolsets)
    return app


def names(app: Server) -> list[str]:
    return [each["name"] for each in result(app, "tools/list")["tools"]]


def refusal(app: Server, name: str) -> str:
    with pytest.raises(Refused) as caught:
        call(app, name)
    assert caught.value.code == -32602
    return caught.value.message


# -- unlisted tools


def raw_server() -> Server:
    app = Server("t")
    app.add_tool(
        Tool(name="read_all", input_schema={"type": "object"}, listed=False), lambda _, __: CallResult([Text("all")])
    )
    return app


@pytest.mark.parametrize("app", [server(), raw_server()], ids=["typed", "raw"])
@pytest.mark.parametrize("revision", ERAS)
def test_an_unlisted_tool_can_be_called_and_is_not_listed(app: Server, revision: str) -> None:
    assert text(call(app, "read_all", {}, revision)) == "all"
    assert "read_all" not in [each["name"] for each in result(app, "tools/list", revision=revision)["tools"]]


def test_no_error_suggests_an_unlisted_tool() -> None:
    assert refusal(server(), "read_al") == "no tool 'read_al'"
    assert refusal(server(), "ad") == "no tool 'ad'; did you mean 'add'?"


def test_discovery_lists_only_listed_tools_and_explains_all() -> None:
    app = server()
    app.add_toolset(Discovery(app))
    assert "It has 5 tools: notes (1), discovery (4)" in text(call(app, "hello"))
    assert call(app, "server_status")["structuredContent"]["tools"] == 5
    assert "read_all" not in text(call(app, "list_tools"))
    assert text(call(app, "list_tools", {"search": "notes at once"})) == "no tool fits; try fewer words"
    assert text(call(app, "tool_help", {"name": "read_all"})).startswith("read_all: Read all notes at once.")
    assert text(call(app, "tool_help", {"name": "read_al"})) == "no tool 'read_al'; list_tools shows all"


# -- tools and toolsets that are off


@pytest.mark.parametrize(
    ("toolsets", "offered"),
    [
        ({}, ["add"]),
        ({"notes": ToolsetConfig(groups=["admin"])}, ["add", "purge"]),
        ({"mail": ToolsetConfig(enabled=True)}, ["add", "send"]),
        ({"mail": ToolsetConfig(groups=["admin"])}, ["add"]),
        ({"mail": ToolsetConfig(enabled=True, groups=["admin"])}, ["add", "send", "drop"]),
    ],
)
def test_groups_and_toolsets_that_are_off_are_offered_if_they_are_configured(
    toolsets: dict[str, ToolsetConfig], offered: list[str]
) -> None:
    assert names(server(**toolsets)) == offered


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("purge", 'it is off; [toolsets.notes] groups = ["admin"] turns it on'),
        ("wipe", "it is now 'purge', which is off; [toolsets.notes] groups = [\"admin\"] turns it on"),
        ("send", "it is off; [toolsets.mail] enabled = true turns it on"),
        ("drop", 'it is off; [toolsets.mail] enabled = true, groups = ["admin"] turns it on'),
    ],
)
def test_a_call_of_a_tool_that_is_off_is_refused_with_the_setting_that_turns_it_on(name: str, how: str) -> None:
    assert refusal(server(), name) == f"no tool {name!r}: {how}"


def test_a_tool_that_its_own_table_disables_is_refused_with_that_key() -> None:
    app = server()
    app.config = Config(tools={"add": ToolConfig(enabled=False)})
    assert refusal(app, "add") == "no tool 'add': it is off; [tools.add] enabled = true turns it on"


def test_a_grouped_tool_without_a_toolset_is_enabled_by_its_own_table() -> None:
    app = Server("t")
    app.tool(name="a.b", group="admin")(lambda: "done")
    assert refusal(app, "a.b") == "no tool 'a.b': it is off; [tools.\"a.b\"] enabled = true turns it on"
    on = Server("t")
    on.tool(name="a.b", group="admin")(lambda: "done")
    on.config = Config(tools={"a.b": ToolConfig(enabled=True)})
    assert text(call(on, "a.b")) == "done"


@pytest.mark.parametrize("options", [{"listed": "no"}, {"group": 3}])
def test_options_of_another_type_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match=r"listed='no' is neither|group=3 is no text"):
        Server("t").tool(name="x", **options)(lambda: "")


# -- changes at run time


@pytest.mark.parametrize("revision", ERAS)
def test_a_toolset_can_be_disabled_and_enabled_from_any_thread_and_clients_are_notified(revision: str) -> None:
    async def script(client: Client) -> None:
        app = client.app
        if client.modern:
            client.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        for change, listed in ((app.disable, []), (app.enable, ["add"])):
            await asyncio.to_thread(change, "notes")
            await client.heard("notifications/tools/list_changed")
            assert [each["name"] for each in (await client.request("tools/list"))["tools"]] == listed
        await asyncio.to_thread(app.enable, "purge")
        await client.heard("notifications/tools/list_changed")
        assert text(await client.call_tool("purge")) == "purged"

    converse(server(), script, revision)


class Files(Toolset):
    @resource("file://{path}")
    def file(self, path: str) -> str:
        return "secret"

    @resource("file://readme")
    def readme(self) -> str:
        return "read me"

    @prompt
    def tidy(self, order: Literal["size", "age"] = "size") -> str:
        return f"tidy by {order}"


def with_files(**sections: Any) -> Server:
    app = Server("t")
    app.add_toolset(Files())
    app.config = Config(**sections)
    return app


@pytest.mark.parametrize(
    "sections", [{"toolsets": {"files": ToolsetConfig(enabled=False)}}, {"server": ServerConfig(toolsets=[])}]
)
@pytest.mark.parametrize("revision", ERAS)
def test_the_resources_and_prompts_of_a_toolset_that_is_off_are_off_too(
    sections: dict[str, Any], revision: str
) -> None:
    app = with_files(**sections)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "file://readme"}),
        ("resources/read", {"uri": "file://x"}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "tidy"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "tidy"}, "argument": {"name": "order", "value": ""}},
        ),
    ]
    assert [each["error"]["code"] for each in talk(app, *asked, revision=revision)] == [-32601] * len(asked)


def test_a_toolset_that_is_disabled_at_run_time_takes_its_resources_and_prompts_with_it() -> None:
    async def script(client: Client) -> None:
        client.app.disable("files")
        for method in ("notifications/prompts/list_changed", "notifications/resources/list_changed"):
            await client.heard(method)
        with pytest.raises(Refused):
            await client.request("resources/read", {"uri": "file://x"})
        client.app.enable("files")
        [contents] = (await client.request("resources/read", {"uri": "file://x"}))["contents"]
        assert contents["text"] == "secret"
        client.app.engine.reconfigure(Config(toolsets={"files": ToolsetConfig(enabled=False)}))
        with pytest.raises(Refused):
            await client.request("prompts/get", {"name": "tidy"})

    converse(with_files(), script)


def test_a_change_of_nothing_notifies_nobody() -> None:
    async def script(client: Client) -> None:
        client.app.enable("notes")
        client.app.disable("mail")
        await client.request("tools/list")
        assert client.notes == []

    converse(server(), script)


def test_a_disabled_toolset_finishes_its_calls_and_is_not_stopped() -> None:
    entered, release, stopped = threading.Event(), threading.Event(), threading.Event()

    class Slow(Toolset):
        def stop(self) -> None:
            stopped.set()

        @tool
        def wait(self) -> str:
            entered.set()
            assert release.wait(WAIT_SECONDS)
            return "done"

    async def script(client: Client) -> None:
        id = client.send("tools/call", {"name": "wait", "arguments": {}})
        assert await asyncio.to_thread(entered.wait, WAIT_SECONDS)
        client.app.disable("slow")
        with pytest.raises(Refused, match=r"it is off; app.enable\('wait'\) turns it on"):
            await client.call_tool("wait")
        release.set()
        assert text((await client.response(id))["result"]) == "done"
        assert not stopped.is_set()

    app = Server("t")
    app.add_toolset(Slow())
    converse(app, script)


def test_a_setting_at_run_time_wins_over_the_configuration_until_that_changes() -> None:
    app = server(notes=ToolsetConfig(enabled=False))
    app.enable("notes")
    app.disable("add")
    app.enable("send")
    assert names(app) == ["send"]
    app.enable("notes")  # replaces what was set of its tools
    assert names(app) == ["add", "send"]
    app.engine.reconfigure(Config(toolsets={"notes": ToolsetConfig(groups=["admin"])}))
    assert names(app) == ["add", "purge"]


def test_a_disabled_toolset_also_loses_tools_that_their_own_tables_enable() -> None:
    app = server()
    app.config = Config(tools={"add": ToolConfig(enabled=True)})
    app.disable("notes")
    assert names(app) == []
    app.enable("notes")
    assert names(app) == ["add"]


def test_what_is_disabled_before_the_start_stays_off_when_the_configuration_is_loaded() -> None:
    app = server()
    app.disable("add")
    app.config = Config()
    assert names(app) == []


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    for change in (server().enable, server().disable):
        with pytest.raises(KeyError, match="no tool or toolset 'note'; did you mean 'notes'"):
            change("note")
