"""Which tools a server offers by their tags, and which a caller may know of by its scopes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longshore import Server, Toolset, tool
from longshore.config import load
from posting import Session, ask_modern, bearer, modern, post_modern, request
from posting import call as calling
from serving import Served, serve
from talk import ERAS, Client, Refused, call, converse, listed, result


class Notes(Toolset):
    @tool(run="inline", tags=["notes", "read"])
    def look(self) -> str:
        """Look at the notes."""
        return "looked"

    @tool(run="inline", tags=["notes", "write"])
    def change(self) -> str:
        """Change the notes."""
        return "changed"


def server(**settings: Any) -> Server:
    app = Server("t")

    @app.tool(run="inline")
    def plain() -> str:
        return "plain"

    app.add_toolset(Notes())
    app.config = load(settings, environ={}, cwd="/")
    return app


def names(app: Server) -> list[str]:
    return [each["name"] for each in result(app, "tools/list")["tools"]]


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        ({}, ["plain", "look", "change"]),
        ({"server.tags": ["read"]}, ["look"]),
        ({"server.tags": ["read", "write"]}, ["look", "change"]),
        ({"server.exclude_tags": ["write"]}, ["plain", "look"]),
        ({"server.tags": ["notes"], "server.exclude_tags": ["write"]}, ["look"]),
        ({"server.tags": ["read"], "tools.plain.enabled": True}, ["plain", "look"]),
        ({"server.tags": ["notes"], "toolsets.notes.enabled": False}, []),
        ({"server.tags": []}, []),
    ],
)
def test_tags_choose_which_tools_are_on_offer(settings: dict[str, Any], offered: list[str]) -> None:
    assert names(server(**settings)) == offered


def test_a_tool_that_its_tags_leave_out_is_unknown_and_the_error_says_how_to_turn_it_on() -> None:
    app = server(**{"server.tags": ["read"]})
    with pytest.raises(Refused, match=r"no tool 'change': it is off; \[tools.change\] enabled = true turns it on"):
        call(app, "change")


def test_changed_tags_are_announced() -> None:
    app = server()

    async def script(client: Client) -> list[str]:
        app.engine.reconfigure(load({"server.tags": ["read"]}, environ={}, cwd="/"))
        await client.heard("notifications/tools/list_changed")
        return [each["name"] for each in (await client.request("tools/list"))["tools"]]

    assert converse(app, script) == ["look"]


def test_a_tag_that_no_tool_has_is_reported_with_the_nearest() -> None:
    from longshore import config

    found = load({"server.tags": ["raed"], "server.exclude_tags": ["write"]}, environ={}, cwd="/")
    [warning] = config.unmatched(found, [], [], tags=["read", "write"])
    assert warning == '--tags: server.tags: no tool has the tag "raed"; did you mean read?'


# -- by scope


def secret_server(folder: Path, **options: Any) -> Server:
    """A server with a tool for everyone and one for those who may write; `ann` may, `bob` may not."""
    scopes = {"ann": ["write"], "bob": ["read"]}
    tables = [f'[tokens.{name}]\ntoken = "{name * 8}"\nscopes = {json.dumps(each)}\n' for name, each in scopes.items()]
    (folder / "longshore.toml").write_text("[server]\nhide_forbidden = true\n" + "".join(tables))
    app = Server("t", **options)

    @app.tool(run="inline")
    def look() -> str:
        """Look at the notes."""
        return "looked"

    @app.tool(run="inline", scopes=["write"])
    def change() -> str:
        """Change the notes."""
        return "changed"

    return app


def asked(served: Served, name: str, message: dict[str, Any]) -> Any:
    return post_modern(served, modern(message), bearer(name * 8)).finish()


def test_a_caller_lists_only_the_tools_that_it_may_call_and_finds_no_others(tmp_path: Path) -> None:
    app = secret_server(tmp_path)
    with serve(app.asgi(config_path=str(tmp_path / "longshore.toml"))) as served:
        for name, offered in (("ann", ["look", "change"]), ("bob", ["look"]), ("ann", ["look", "change"])):
            found = ask_modern(served, request("tools/list"), bearer(name * 8)).json["result"]["tools"]
            assert [each["name"] for each in found] == offered
            session = Session(served, headers=[bearer(name * 8)]).open()
            assert [each["name"] for each in session.ask("tools/list")["result"]["tools"]] == offered
        assert asked(served, "ann", calling("change")).json["result"]["content"][0]["text"] == "changed"
        hidden, unknown = asked(served, "bob", calling("change")), asked(served, "bob", calling("chango"))
        assert hidden.status == unknown.status
        assert hidden.json["error"]["message"] == "no tool 'change'"
        assert unknown.json["error"]["message"] == "no tool 'chango'"
        assert asked(served, "ann", calling("chango")).json["error"]["message"].endswith("did you mean 'change'?")


def test_the_rest_routes_show_a_caller_the_same(tmp_path: Path) -> None:
    app = secret_server(tmp_path)
    with serve(app.asgi(config_path=str(tmp_path / "longshore.toml"))) as served:
        for name, offered in (("ann", {"look", "change"}), ("bob", {"look"})):
            headers = [bearer(name * 8)]
            tools = served.send("GET", "/tools", headers).finish().json["tools"]
            assert {each["name"] for each in tools} == offered
            paths = served.send("GET", "/openapi.json", headers).finish().json["paths"]
            assert set(paths) == {"/tools", *(f"/tools/{each}" for each in offered)}
        refused = served.send("POST", "/tools/change", [bearer("bob" * 8), ("Content-Type", "application/json")], b"{}")
        assert refused.finish().status == 404


def test_tools_that_find_others_do_not_find_hidden_ones(tmp_path: Path) -> None:
    app = secret_server(tmp_path, catalog="search")
    with serve(app.asgi(config_path=str(tmp_path / "longshore.toml"))) as served:

        def said(caller: str, tool: str, **arguments: Any) -> str:
            return str(asked(served, caller, calling(tool, arguments)).json["result"]["content"][0]["text"])

        assert "change" in said("ann", "search_tools", query="change the notes")
        found = said("bob", "search_tools", query="change the notes")
        assert "look" in found and "change()" not in found
        assert "no tool 'change'" in said("bob", "call_tool", name="change")
        assert said("ann", "call_tool", name="change") == "changed"


def test_discovery_does_not_show_hidden_tools(tmp_path: Path) -> None:
    from longshore.toolsets.discovery.tools import Discovery

    app = secret_server(tmp_path)
    app.add_toolset(Discovery(app))
    with serve(app.asgi(config_path=str(tmp_path / "longshore.toml"))) as served:

        def said(caller: str, tool: str, **arguments: Any) -> str:
            return str(asked(served, caller, calling(tool, arguments)).json["result"]["content"][0]["text"])

        assert "change [" in said("ann", "list_tools")
        assert "change [" not in said("bob", "list_tools")
        assert "Change the notes" in said("ann", "tool_help", name="change")
        assert "no tool 'change'" in said("bob", "tool_help", name="change")


@pytest.mark.parametrize("revision", ERAS)
def test_on_stdio_and_without_a_token_nothing_is_hidden(revision: str) -> None:
    app = server(**{"server.hide_forbidden": True})

    @app.tool(scopes=["write"])
    def scoped() -> str:
        return "scoped"

    assert listed(app, "scoped", revision)["name"] == "scoped"
