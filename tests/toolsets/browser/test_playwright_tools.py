"""Playwright MCP's names, as a client sees them, in a real browser."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from longshore import Client, Server
from longshore.toolsets.browser.options import BrowserOptions
from longshore.toolsets.browser.tools import BrowserTools
from longshore.toolsets.discovery.tools import Discovery
from talk import result

from .browsing import Site
from .test_tools import app, ask, browsing, refusal

ALIASES = {
    "browser_navigate_back": "browser_navigate",
    "browser_wait_for": "browser_wait",
    "browser_take_screenshot": "browser_screenshot",
    "browser_console_messages": "browser_console",
    "browser_network_requests": "browser_network",
    "browser_network_request": "browser_network",
    "browser_fill_form": "browser_fill",
    "browser_press_key": "browser_act",
    "browser_hover": "browser_act",
    "browser_handle_dialog": "browser_act",
    "browser_file_upload": "browser_files",
}
TOOLS = {"browser_type", "browser_select_option", "browser_drag", "browser_resize"}

FORM = """<title>Form</title><output></output>
<form action="/receipt"><label>Name <input name="name" onkeydown="keys.textContent += event.key"></label>
<label>Key <input type="password" name="key"></label>
<label>Toys <select name="toys" multiple><option value="1">Ball<option>Kite<option>Top</select></label>
<label>Size <select name="size"><option>S<option>M</select></label>
<label><input type="checkbox" name="terms" checked> Terms</label>
<label><input type="radio" name="pay" value="card"> Card</label>
<label>Amount <input type="range" name="amount" max="10"></label><button>Send</button></form>
<p id="keys"></p><div id="menu" onmouseover="this.textContent = 'Opened'">Menu</div>
<button id="ask" onclick="this.textContent = prompt('Who?') ?? 'nobody'">Ask</button>
<div id="from" draggable="true" ondragstart="event.dataTransfer.setData('text', 'cargo')">From</div>
<div id="to" ondragover="event.preventDefault()" ondrop="this.textContent = event.dataTransfer.getData('text')">To</div>
<input type="file" id="file" hidden onchange="menu.textContent = this.files[0].name">
<button onclick="file.click()">Choose</button>"""


@asynccontextmanager
async def on_form() -> AsyncIterator[tuple[Client, Site, dict[str, str]]]:
    """A client on the page, and the refs of its elements by name."""
    async with browsing() as (client, site):
        site.pages["/form"] = FORM
        shown = await ask(client, "navigate", url=site.url("/form"))
        yield client, site, {name: ref for ref, name in re.findall(r"(e\d+) [\w,]+ ([^=\n]+?)(?: = .*)?\n", shown)}


async def value(client: Client, script: str) -> str:
    return (await ask(client, "evaluate", script=script)).split("\n")[1]


def test_the_names_can_be_called_and_are_in_no_list() -> None:
    server = app()
    tools = server.engine.tools
    assert not any(tools[name].listed for name in TOOLS)
    found = {alias: tool.name for tool in tools.values() for alias in tool.aliases if alias.startswith("browser_")}
    assert found == ALIASES
    listed = {tool["name"] for tool in result(server, "tools/list")["tools"]}
    assert len(listed) == 16 and not listed & (TOOLS | set(ALIASES))


async def test_a_text_is_entered_in_place_of_another_and_submitted() -> None:
    async with on_form() as (client, _, refs):
        await ask(client, "type", target=refs["Name"], text="Bob", element="the name")
        assert " = Ann\n" in await ask(client, "type", ref=refs["Name"], text="Ann")
        assert "/receipt?name=Ann" in await ask(client, "type", target="[name=name]", text="Ann", submit=True)


async def test_a_text_is_typed_key_by_key_and_a_secret_is_not_shown() -> None:
    async with on_form() as (client, _, refs):
        await ask(client, "type", target=refs["Name"], text="Hi you", slowly=True)
        assert await value(client, "keys.textContent") == '"Hi you"'
        assert "hunter2" not in await ask(client, "type", target=refs["Key"], text="hunter2", slowly=True)
        assert await value(client, "document.querySelector('[name=key]').value === 'hunter2'") == "true"


async def test_several_options_are_selected_by_text_or_value() -> None:
    async with on_form() as (client, _, refs):
        said = await ask(client, "select_option", target=refs["Toys"], values=["1", "Top"])
        assert "Selected 1, Top" in said
        script = "[...document.querySelectorAll('[name=toys] option:checked')].map(e => e.text)"
        assert await value(client, script) == '["Ball","Top"]'
        assert '"Ball", "Kite", "Top"' in await refusal(client, "select_option", target=refs["Toys"], values=["Doll"])
        assert "values" in await refusal(client, "select_option", target=refs["Toys"], values=[])


async def test_a_form_is_filled_by_target_or_by_name() -> None:
    async with on_form() as (client, _, refs):
        fields = [
            {"name": "Name", "type": "textbox", "value": "Ann"},
            {"name": "size", "type": "combobox", "target": refs["Size"], "value": "M"},
            {"name": "terms", "type": "checkbox", "target": "[name=terms]", "value": "false"},
            {"name": "Card", "type": "radio", "ref": refs["Card"], "element": "pay by card", "value": "true"},
            {"name": "amount", "type": "slider", "target": refs["Amount"], "value": "7"},
        ]
        await ask(client, "fill_form", fields=fields)
        filled = await value(client, "new URLSearchParams(new FormData(document.forms[0])).toString()")
        assert filled == '"name=Ann&key=&size=M&pay=card&amount=7"'
        assert "a target or a name" in await refusal(client, "fill_form", fields=[{"value": "x"}])


@pytest.mark.parametrize(("key", "seen"), [("a", "a"), ("ArrowLeft", "ArrowLeft"), (" ", " "), ("Shift+A", "ShiftA")])
async def test_a_key_is_pressed(key: str, seen: str) -> None:
    async with on_form() as (client, _, refs):
        await ask(client, "click", ref=refs["Name"])
        await ask(client, "press_key", key=key)
        assert await value(client, "keys.textContent") == f'"{seen}"'
        assert "there is no key" in await refusal(client, "press_key", key="Fire")


async def test_the_mouse_is_moved_over_an_element() -> None:
    async with on_form() as (client, _, refs):
        assert "Opened" in await ask(client, "hover", target="#menu", element="the menu")
        assert "Hovered over button" in await ask(client, "hover", ref=refs["Ask"])
        assert "give the element as target" in await refusal(client, "hover", element="the menu")


async def test_an_element_is_dragged_to_another() -> None:
    async with on_form() as (client, _, __):
        await ask(client, "drag", startElement="a", startTarget="#from", endElement="b", endTarget="#to")
        assert await value(client, "document.querySelector('#to').textContent") == '"cargo"'
        assert "#no" in await refusal(client, "drag", startRef="#from", endRef="#no")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [({"accept": True, "promptText": "Bob"}, "Bob"), ({"accept": True}, ""), ({"accept": False}, "nobody")],
)
async def test_the_next_dialog_is_answered(answer: dict[str, Any], shown: str) -> None:
    async with on_form() as (client, _, refs):
        assert "next dialog" in await ask(client, "handle_dialog", **answer)
        await ask(client, "click", ref=refs["Ask"])
        assert await value(client, "ask.textContent") == f'"{shown}"'


async def test_files_are_given_to_the_dialog_that_a_click_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photo.png").write_bytes(b"png")
    async with on_form() as (client, _, refs):
        await ask(client, "click", ref=refs["Choose"])
        assert "photo.png" in await ask(client, "file_upload", paths=[str(tmp_path / "photo.png")])
        assert "outside" in await refusal(client, "file_upload", paths=["/etc/passwd"])
        assert "needs no cancelling" in await refusal(client, "file_upload")


async def test_a_picture_is_taken_as_png_unless_said_otherwise() -> None:
    async with on_form() as (client, _, refs):
        for arguments, begin in (
            ({"fullPage": True, "scale": "css"}, b"\x89PNG"),
            ({"type": "jpeg", "target": refs["Ask"], "element": "a button", "filename": "x.jpeg"}, b"\xff\xd8"),
        ):
            answer = await client.call_tool("browser_take_screenshot", arguments)
            assert [type(block).__name__ for block in answer.content] == ["Text", "Image", "ResourceLink"]
            assert answer.content[1].data.startswith(begin)


async def test_pages_go_back_and_are_waited_for() -> None:
    async with on_form() as (client, site, _):
        await ask(client, "navigate", url=site.url())
        assert "Form" in await ask(client, "navigate_back")
        await ask(client, "evaluate", script="setTimeout(() => menu.textContent = 'Ready', 300)")
        assert "Ready" in await ask(client, "wait_for", text="Ready", textGone="Menu")
        assert "Waited 0.1 s" in await ask(client, "wait_for", time=0.1)
        assert "give a time" in await refusal(client, "wait_for")
        assert "30" in await refusal(client, "wait_for", time=31)


async def test_a_time_is_added_to_the_limit_of_a_text() -> None:
    async with on_form() as (client, _, __):
        await ask(client, "evaluate", script="setTimeout(() => menu.textContent = 'Ready', 500)")
        assert "Ready" in await ask(client, "wait_for", time=0.1, text="Ready")


async def test_console_and_network_are_listed() -> None:
    async with browsing() as (client, site):
        await ask(client, "navigate", url=site.url())
        assert "error careful" in await ask(client, "console_messages", level="error", all=True)
        assert "no messages" not in await ask(client, "console_messages")
        assert f"GET {site.url()} Document 200" in await ask(client, "network_requests", static=False)
        assert "no requests" in await ask(client, "network_requests", filter="/api/")
        shown = await ask(client, "network_request", index=1)
        assert "Upgrade-Insecure-Requests" in shown and "<title>Shop" in shown
        assert "<title>Shop" not in await ask(client, "network_request", index=1, part="response-headers")
        assert "not a pattern" in await refusal(client, "network_requests", filter="/api/.*user")


async def test_pages_are_resized_those_to_come_too() -> None:
    async with on_form() as (client, site, _):
        assert await ask(client, "resize", width=600, height=400) == "the pages of b1 are 600 x 400 pixels"
        assert await value(client, "[innerWidth, innerHeight]") == "[600,400]"
        await ask(client, "tabs", action="new", url=site.url())
        assert await value(client, "[innerWidth, innerHeight]") == "[600,400]"
        assert "width" in await refusal(client, "resize", width=20, height=400)


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        ({"target": "e12", "element": "Add button"}, 'give the element as ref: "e12"'),
        ({"target": "f1e2", "doubleClick": True}, 'give the element as ref: "f1e2"'),
        ({"target": "#buy", "button": "right", "modifiers": ["Shift"]}, "give the element as ref or selector"),
    ],
)
async def test_a_click_on_a_target_says_that_an_element_is_a_ref(arguments: dict[str, Any], fix: str) -> None:
    async with Client(app()) as client:
        assert fix in await refusal(client, "click", **arguments)


async def test_tool_help_explains_them_with_their_own_parameters() -> None:
    server = Server("browser")
    server.add_toolset(BrowserTools(BrowserOptions()))
    server.add_toolset(Discovery(server))
    async with Client(server) as client:
        for name, parameter in (("browser_drag", "endTarget"), ("browser_wait_for", "textGone")):
            assert parameter in (await client.call_tool("tool_help", {"name": name})).text
