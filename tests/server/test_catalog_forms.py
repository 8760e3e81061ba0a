"""The forms of the catalogue: which tools `tools/list` shows, by whose choice, and that all can be called in each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, get_args

import pytest

from longshore import RegistrationError, Server, Toolset, tool
from longshore.builtin import make
from longshore.config import Config, ServerConfig, ToolsetConfig, load
from longshore.config.sections import CatalogForm
from longshore.errors import ConfigError
from longshore.registry.function import CATALOG_FORMS
from longshore.telemetry.records import Problem
from longshore.toolsets.discovery import Discovery
from talk import ERAS, Client, Refused, call, converse, result, text

SEARCH = ["search_tools", "call_tool"]
CODE = ["search_tools", "tool_api", "run_code"]


class Notes(Toolset):
    @tool
    def add_note(self, words: str) -> str:
        """Write a note."""
        return f"added {words}"

    @tool
    def list_notes(self) -> str:
        """List all notes."""
        return "none"


class Mail(Toolset):
    @tool(aliases=["post_mail"])
    def send_mail(self, to: str) -> str:
        """Send a mail."""
        return f"sent to {to}"


class Code(Toolset):
    """In place of the toolset that runs code, which a sandbox may keep from running here."""

    name = "code"
    enabled = False
    reason: str | None = None

    def available(self) -> str | None:
        return self.reason

    @tool(catalog_forms=["code"])
    def run_code(self, code: str) -> str:
        """Run code."""
        return code


class CodeWithoutSandbox(Code):
    reason = "there is no sandbox here; install bubblewrap"


def server(code: type[Toolset] = Code, config: Config | None = None, **options: Any) -> Server:
    app = Server("t", **options)
    app.add_toolset(Notes())
    app.add_toolset(Mail())
    app.add_toolset(code())
    if config is not None:
        app.config = config
    return app


def names(app: Server, revision: str = ERAS[0]) -> list[str]:
    return [each["name"] for each in result(app, "tools/list", revision=revision)["tools"]]


def configured(**server: Any) -> Config:
    return Config(server=ServerConfig(**server))


def test_the_forms_are_the_same_everywhere() -> None:
    assert get_args(CatalogForm) == CATALOG_FORMS


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("form", "shown"),
    [("full", ["add_note", "list_notes", "send_mail"]), ("search", SEARCH), ("code", CODE)],
)
def test_a_form_shows_all_tools_or_those_that_find_and_call_them(
    form: CatalogForm, shown: list[str], revision: str
) -> None:
    for app in (server(catalog=form), server(config=configured(catalog=form))):
        assert sorted(names(app, revision)) == sorted(shown)


@pytest.mark.parametrize("form", ["full", "search", "code"])
def test_every_tool_can_be_called_by_its_name_in_every_form(form: CatalogForm) -> None:
    app = server(catalog=form)
    assert text(call(app, "add_note", {"words": "tea"})) == "added tea"
    assert text(call(app, "post_mail", {"to": "Ann"})) == "sent to Ann"


def test_the_built_in_server_takes_the_names_of_other_forms_in_form_full() -> None:
    app = make()
    assert len(names(app)) == 40
    assert not {*SEARCH, *CODE} & {*names(app)}
    assert "fs_read" in text(call(app, "search_tools", {"query": "read a file"}))
    assert "def fs_read" in text(call(app, "tool_api", {"names": ["fs_read"]}))
    assert text(call(app, "call_tool", {"name": "hello"})).startswith("This is longshore")


def test_pinned_tools_stay_listed() -> None:
    assert names(server(catalog="search", pinned=["send_mail"])) == ["send_mail", *SEARCH]
    config = configured(catalog="code", pinned=["list_notes", "no_such"])
    assert sorted(names(server(config=config))) == sorted(["list_notes", *CODE])


def test_the_configuration_overrides_the_author_where_it_sets_the_key(tmp_path: Path) -> None:
    path = tmp_path / "longshore.toml"
    path.write_text("[server]\ntimeout = 9\n")
    app = server(catalog="search", pinned=["send_mail"])
    app.config = load(None, path=str(path))
    assert names(app) == ["send_mail", *SEARCH]
    path.write_text('[server]\ncatalog = "full"\npinned = []\n')
    app.engine.reconfigure(load(None, path=str(path)))
    assert names(app) == ["add_note", "list_notes", "send_mail"]


def test_a_toolset_has_a_form_of_its_own() -> None:
    table = {"notes": ToolsetConfig(catalog="search")}
    assert names(server(config=Config(toolsets=table))) == ["send_mail", *SEARCH]
    table = {"mail": ToolsetConfig(catalog="full")}
    app = server(config=Config(server=ServerConfig(catalog="search"), toolsets=table))
    assert names(app) == ["send_mail", *SEARCH]
    table = {"notes": ToolsetConfig(catalog="search"), "mail": ToolsetConfig(catalog="code")}
    assert sorted(names(server(config=Config(toolsets=table)))) == sorted({*SEARCH, *CODE})


def test_one_mounted_server_may_be_in_another_form_than_the_rest(tmp_path: Path) -> None:
    def behind(name: str) -> Server:
        app = Server(name)
        app.tool(name="find", description="Find something.")(lambda: f"found by {name}")
        return app

    async def shown(client: Client) -> list[str]:
        return [each["name"] for each in (await client.request("tools/list"))["tools"]]

    async def call_found(client: Client) -> Any:
        listed = await shown(client)
        found = text(await client.call_tool("search_tools", query="find something", detail="name"))
        return listed, found, text(await client.call_tool("call_tool", name="shop_find"))

    def gate() -> Server:
        app = Server("gate")
        app.mount(behind("the shop"), prefix="shop", catalog="search")
        app.mount(behind("the map"), prefix="map")
        return app

    listed, found, answer = converse(gate(), call_found)
    assert sorted(listed) == sorted(["map_find", *SEARCH])
    assert set(found.split()) == {"shop_find", "map_find"}
    assert answer == "found by the shop"
    path = tmp_path / "longshore.toml"
    path.write_text('[toolsets.shop]\ncatalog = "full"\n[toolsets.map]\ncatalog = "search"\n')
    app = gate()
    app.config = load(None, path=str(path))
    assert sorted(converse(app, shown)) == sorted(["shop_find", *SEARCH])


def test_a_changed_form_applies_at_once_and_clients_are_notified() -> None:
    app = server(config=configured())

    async def script(client: Client) -> list[list[str]]:
        seen = []
        for form in ("search", "code", "full"):
            app.config = configured(catalog=form)  # what a server in memory reads
            app._runtime._add_form_toolsets(app.config)
            app.engine.reconfigure(app.config)
            await client.heard("notifications/tools/list_changed")
            seen.append(sorted(each["name"] for each in (await client.request("tools/list"))["tools"]))
        return seen

    assert converse(app, script) == [sorted(SEARCH), sorted(CODE), ["add_note", "list_notes", "send_mail"]]


def test_where_code_cant_run_form_code_is_form_search_and_the_log_says_why() -> None:
    app = server(CodeWithoutSandbox, configured(catalog="code"))
    logged = list[Any]()
    app.listen(logged.append)
    assert names(app) == SEARCH
    assert "run_code" not in app.engine.policy.instructions  # type: ignore[operator]
    with pytest.raises(Refused, match="unavailable: there is no sandbox here; install bubblewrap"):
        call(app, "run_code", {"code": "1"})
    app.engine.policy.report_unavailable(app.recorder)
    assert any("install bubblewrap" in each.text for each in logged if isinstance(each, Problem))


def test_code_is_run_only_while_form_code_is_in_use() -> None:
    with pytest.raises(Refused, match=r"it is off; \[server\] catalog = \"code\" turns it on"):
        call(server(catalog="search"), "run_code", {"code": "1"})
    assert text(call(server(catalog="code"), "run_code", {"code": "1"})) == "1"
    off = Config(server=ServerConfig(catalog="code"), toolsets={"code": ToolsetConfig(enabled=False)})
    assert names(server(config=off)) == SEARCH


def test_the_toolsets_of_a_form_need_not_be_among_those_that_are_chosen() -> None:
    app = server(config=configured(catalog="code", toolsets=["notes"]))
    assert sorted(names(app)) == sorted(CODE)
    assert text(call(app, "call_tool", {"name": "list_notes"})) == "none"
    with pytest.raises(Refused, match="no tool 'send_mail'"):
        call(app, "send_mail", {"to": "Ann"})


def test_names_that_the_author_uses_are_refused_with_the_reason() -> None:
    app = Server("t", catalog="search")
    app.tool(name="call_tool", description="Call a person.")(lambda: "")
    with pytest.raises(ConfigError, match=r"server\.catalog .*there is a tool 'call_tool' already"):
        app.engine  # noqa: B018
    app = Server("t")
    app.tool(name="call_tool", description="Call a person.")(lambda: "called")
    assert names(app) == ["call_tool"]
    assert text(call(app, "call_tool")) == "called"


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"Server\(catalog='serach'\) is unknown"):
        Server("t", catalog="serach")  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match=r"mount\(catalog='all'\) is unknown"):
        Server("t").mount(Server("u"), prefix="u", catalog="all")  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="catalog_forms"):
        Server("t").tool(catalog_forms=["full"])(lambda: "")  # type: ignore[list-item]


def test_instructions_and_hello_say_how_to_find_tools() -> None:
    app = Server("t", instructions="Be kind.", catalog="search")
    app.add_toolset(Discovery(app))
    about = "Not all tools are listed: search_tools finds others by what they do, and call_tool calls them."
    opened = converse(app, lambda client: client.request("ping"))
    assert opened == {}
    assert app.engine.policy.instructions == f"Be kind. {about}"
    assert text(call(app, "hello")).endswith(f"\n{about}")
    assert "It has 6 tools" in text(call(app, "hello"))
    app.engine.reconfigure(configured(catalog="full"))
    app = Server("t")
    app.add_toolset(Discovery(app))
    assert "search_tools" not in text(call(app, "hello"))


def test_the_status_leaves_out_toolsets_of_forms_that_are_not_in_use() -> None:
    def toolsets(app: Server) -> set[str]:
        return {each["name"] for each in call(app, "server_status")["structuredContent"]["toolsets"]}

    app = make()
    assert "catalog" not in toolsets(app)
    app = make()
    app.config = configured(catalog="search")
    assert "catalog" in toolsets(app)


def test_an_unknown_name_is_answered_with_the_nearest_and_with_the_tool_that_finds_one() -> None:
    with pytest.raises(Refused, match=r"did you mean 'add_note'\? search_tools finds tools by what they do"):
        call(server(catalog="search"), "add_not")
    with pytest.raises(Refused, match=r"no tool 'zzz'; search_tools finds tools"):
        call(server(catalog="search"), "zzz")


def test_adding_a_tool_at_run_time_shows_it_only_in_form_full() -> None:
    app = server(catalog="search")

    async def script(client: Client) -> str:
        app.tool(name="weather", description="Say how the weather will be.")(lambda: "sunny")
        await asyncio.sleep(0)
        found = text(await client.call_tool("search_tools", query="weather", detail="name"))
        assert [each["name"] for each in (await client.request("tools/list"))["tools"]] == SEARCH
        return found

    assert converse(app, script) == "weather"
