"""The views as a whole: no serious finding of axe-core, no sideways scrolling, all by keyboard, settings, the wire."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.services import skip

from console.page.console_page import READY, ConsolePage
from console.page.harbour import TOKEN, make_server, serve_console
from longshore import CallResult, Text, Tool
from serving import Served
from toolsets.browser.page import TestPage

AXE = Path(__file__).parents[3] / ".interop" / "node" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = {
    "tools": ".welcome",
    "tools/shapes": ".run-panel",
    "resources": ".entries a",
    "resources/ship%3A%2F%2F%7Bname%7D%2Fpapers": ".run-panel",
    "prompts/greet": ".run-panel",
    "live": ".live tbody tr",
    "wire": ".frame",
    "settings": ".setting",
    "lint": ".client, .settings-box",
    "context": ".context .empty",
}


def needs_axe() -> str:
    if not AXE.is_file():
        text = "axe-core is not installed; run `make test` or `sh scripts/interop`"
        if os.environ.get("CI"):
            pytest.fail(text)
        skip(text)
    return AXE.read_text()


def busy(console: ConsolePage) -> None:
    """Have something to show in each view."""
    console.call_tool("add", {"a": 1, "b": 2})
    console.call_tool("sink", {"ship": "Fram"})
    console.open_tool("shapes")
    console.write_arguments({"text": "Oslo", "objects": [{"n": 1}], "map": {"a": 1}, "choice": {"side": 2}})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_has_no_serious_finding(console: ConsolePage, scheme: str) -> None:
    source = needs_axe()
    console.media(prefers_color_scheme=scheme)
    busy(console)
    console.page.run(console.page.tab.page.call("Runtime.evaluate", {"expression": source}))  # type: ignore[union-attr]
    found = {}
    for view in VIEWS:
        show(console, view)
        if view == "tools/shapes":
            console.call()
        result = console.js(
            "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map("
            "v => [v.impact, v.id, v.nodes.map(n => n.target.join(' ') + ': ' + n.any.map(a => a.message))]))"
        )
        serious = [each for each in result if each[0] in ("serious", "critical")]
        if serious:
            found[view] = serious
    assert not found, json.dumps(found, indent=1)


def show(console: ConsolePage, view: str) -> None:
    if view == "wire":
        console.open("wire", ".wire")
        console.until("document.querySelector('.wire').isConnected && document.querySelector('.filters') !== null")
        console.call_tool("add", {"a": 1, "b": 2})
    console.open(view, VIEWS[view])


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_no_view_scrolls_sideways(console: ConsolePage, width: int) -> None:
    busy(console)
    console.window(width, 740)
    wide = {}
    for view in VIEWS:
        show(console, view)
        if view == "tools/shapes":
            console.call()
        scrolls = console.js(
            "[document.documentElement, ...document.querySelectorAll('main, .detail, .entries')]"
            ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.className || e.tagName)"
        )
        if scrolls:
            wide[view] = scrolls
    assert not wide


def test_a_tool_is_found_called_and_cancelled_by_keyboard_alone(console: ConsolePage) -> None:
    console.open("tools", ".entries a")
    console.press("/", *"wait")
    console.until("document.querySelectorAll('.entries a').length === 1", "one tool")
    console.press("ArrowDown", "Enter")
    console.until("document.querySelector('.tool-name')?.textContent === 'wait_for_tide'")
    for _ in range(20):
        console.press("Tab")
        if console.js("document.activeElement.matches('[data-name=label] textarea')"):
            break
    console.press("Control+a", *"low")
    console.press("Control+Enter")
    console.until("document.querySelector('.run-panel .danger:not([hidden])') !== null", "the running call")
    console.until("document.querySelector('.run-panel .status').textContent.includes('for low')", "its progress")
    for _ in range(20):
        if console.js("document.activeElement.textContent === 'Cancel'"):
            break
        console.press("Tab")
    console.press("Enter")
    console.until("document.querySelector('.run-panel .status').textContent.startsWith('Cancelled')")


def test_arrows_move_through_the_list_and_one_entry_is_in_the_tab_order(console: ConsolePage) -> None:
    console.open("tools", ".entries a")
    console.click("input[type=search]")
    console.press("ArrowDown", "ArrowDown", "End", "ArrowUp")
    links = "[...document.querySelectorAll('.entries a')]"
    assert console.js(f"{links}.indexOf(document.activeElement) === {links}.length - 2")
    assert console.js(f"{links}.filter(a => a.tabIndex === 0).length") == 1


def test_the_skip_link_goes_to_the_content(console: ConsolePage) -> None:
    console.js("document.activeElement.blur()")
    console.press("Tab")
    assert console.js("document.activeElement.className") == "skip"
    console.press("Enter")
    assert console.js("document.activeElement.id") == "main"


def test_colours_follow_the_system_until_the_user_chooses(console: ConsolePage) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light = console.js(background)
    console.media(prefers_color_scheme="dark")
    dark = console.js(background)
    assert light != dark
    console.fill("#theme", "Light")
    assert console.js(background) == light
    console.reload()
    assert console.js(background) == light


def test_the_menu_of_a_phone_opens_and_closes(console: ConsolePage) -> None:
    console.window(360, 740)
    console.click(".menu-button")
    assert console.js("document.querySelector('.menu-button').ariaExpanded") == "true"
    console.click("[data-view=settings]")
    console.until("document.querySelector('.settings') !== null")
    assert console.js("document.querySelector('.menu-button').ariaExpanded") == "false"
    console.click(".menu-button")
    console.press("Escape")
    assert console.js("document.querySelector('.menu-button').ariaExpanded") == "false"


def test_frames_of_the_wire_are_searched_filtered_paused_and_cleared(console: ConsolePage) -> None:
    console.open("wire", ".wire")
    console.until("fetch('/mcp').then(() => true)")
    console.eventually(lambda: console.call_tool("add", {"a": 20, "b": 22}) and console.has(".frame"), "frames")
    console.until("document.querySelector('.frames').textContent.includes('tools/call  add')", "the call")
    console.fill(".filters input", '"a":20')
    console.until("[...document.querySelectorAll('.direction')].every(each => each.textContent.includes('in'))")
    console.fill(".filters input", "")
    console.fill("select[aria-label=Direction]", "out")
    console.until("[...document.querySelectorAll('.direction')].every(each => each.textContent.includes('out'))")
    console.click(".filters button:nth-of-type(1)")
    before = console.text(".wire [role=status]")
    console.call_tool("add", {"a": 1, "b": 1})
    assert console.text(".wire [role=status]") == before
    console.click(".filters button:nth-of-type(1)")
    console.until(f"document.querySelector('.wire [role=status]').textContent !== {json.dumps(before)}", "new frames")

    def is_cleared() -> bool:  # a frame of the last call may come after the click
        console.click(".filters button:nth-of-type(2)")
        return console.has(".wire .empty")

    console.eventually(is_cleared, "an empty log")


def test_a_setting_is_written_with_comments_kept_and_is_effective(console: ConsolePage, folder: Path) -> None:
    console.open("settings", ".setting")
    timeout = "[data-key='server.timeout'] input"
    console.fill(timeout, "7")
    console.until("document.querySelector('.save-bar .status').textContent === '1 change'")
    console.click(".save-bar .main")
    console.until("document.querySelector('.good-box')?.textContent.startsWith('Saved')", "the answer")
    file = (folder / "longshore.toml").read_text()
    assert "# The harbour's own file." in file
    assert "timeout = 7 # seconds" in file
    assert "longshore.toml" in console.text("[data-key='server.timeout'] .facts")


def test_a_tool_is_switched_off_and_on_again(console: ConsolePage) -> None:
    console.open("settings", ".setting")
    on = "[data-key='tools.sink.enabled'] select"
    console.js("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    console.fill(on, "off")
    console.click(".save-bar .main")
    console.until("document.querySelector('.good-box') !== null", "the answer")
    assert "it is off" in console.call_tool("sink", {"ship": "x"})
    console.js("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    console.click("[data-key='tools.sink.enabled'] button")
    console.click(".save-bar .main")
    console.eventually(lambda: "moor it first" in console.call_tool("sink", {"ship": "x"}), "the tool")


def test_a_wrong_setting_is_said_at_its_field_and_nothing_is_written(console: ConsolePage, folder: Path) -> None:
    before = (folder / "longshore.toml").read_text()
    console.open("settings", ".setting")
    console.fill("[data-key='server.timeout'] input", "soon")
    console.click(".save-bar .main")
    console.until("document.querySelector(\"[data-key='server.timeout'] .problem\").textContent !== ''", "the problem")
    assert (folder / "longshore.toml").read_text() == before


def test_a_file_that_was_changed_meanwhile_is_read_again_and_the_changes_are_kept(
    console: ConsolePage, folder: Path
) -> None:
    file = folder / "longshore.toml"
    console.open("settings", ".setting")
    console.fill("[data-key='server.timeout'] input", "11")
    file.write_text(file.read_text() + "# written by an editor\n")
    console.click(".save-bar .main")
    console.until("document.querySelector('.settings .problem-box button') !== null", "the refusal")
    assert "11" not in file.read_text()
    console.click(".settings .problem-box button")
    console.until("document.querySelector('.settings .problem-box') === null", "the new reading")
    console.until("document.querySelector('.setting.edited') !== null", "the change, still there")
    console.click(".save-bar .main")
    console.until("document.querySelector('.good-box') !== null", "the answer")
    assert "timeout = 11" in file.read_text()
    assert "# written by an editor" in file.read_text()


def test_a_key_that_a_variable_or_the_program_sets_is_locked_with_the_reason(console: ConsolePage) -> None:
    console.open("settings", ".setting")
    assert console.js("document.querySelector(\"[data-key='auth.token'] input\").disabled")
    assert "locked" in console.text("[data-key='auth.token'] .lock")


def test_the_border_is_coloured_only_while_tools_of_a_kind_run(console: ConsolePage) -> None:
    shown = console.js("""import('/console/usage_border.js').then(({ showUsage }) => {
        const border = document.getElementById('usage');
        showUsage(['browser', 'terminal', 'other']);
        const running = [border.dataset.kinds, border.classList.contains('shown')];
        showUsage(['other']);
        return [...running, border.classList.contains('shown')];
    })""")
    assert shown == ["browser terminal", True, False]
    console.media(prefers_reduced_motion="reduce")
    assert console.js("getComputedStyle(document.getElementById('usage')).animationName") == "none"


def test_a_call_in_flight_is_read_and_cancelled_on_a_phone(console: ConsolePage) -> None:
    console.window(360, 740)
    console.open_tool("wait_for_tide")
    console.click(".run-panel .run")
    console.open("live", ".live")
    row = "[...document.querySelectorAll('[aria-label=\"Calls in flight\"] tbody tr:first-child > *')]"
    console.until(f"{row}.length === 5 && {row}[2].textContent.includes('3 of 10')", "the call and its progress")
    boxes = console.js(f"{row}.map(each => each.getBoundingClientRect()).map(({{left, right}}) => [left, right])")
    assert all(right <= boxes[4][0] + 1 for _, right in boxes[:4]), "the button covers nothing"
    assert boxes[4][1] <= 360
    console.click("button[aria-label='Cancel wait_for_tide']")
    console.until("document.querySelector('[aria-label=\"Calls in flight\"] .empty') !== null", "the end of the call")


def test_the_live_view_says_what_it_cannot_show(browser: TestPage, tmp_path: Path) -> None:
    with serve_console(make_server(**{"telemetry.records": False, "http.workers": 2}), tmp_path) as served:
        console = ConsolePage(browser, served.port)
        console.window(1280)
        console.sign_in(TOKEN)
        console.until(READY, "the console")
        console.open("live", ".live")
        notes = console.js("[...document.querySelectorAll('.live .note')].map(each => each.textContent)")
        assert [note.split(" ")[0] for note in notes] == ["Records", "The"]
        assert "telemetry.records" in notes[0]
        assert "2 processes" in notes[1]
        console.leave()


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[Served]:
    """A server with 300 tools of long names, and a long result."""
    app = make_server()

    async def long_text(arguments: object, context: object) -> CallResult:
        return CallResult([Text("A line of a long result. " * 40_000)])

    for number in range(300):
        name = f"a_tool_with_a_long_name_that_does_not_fit_into_the_list_{number:03}"
        app.add_tool(Tool(name=name, input_schema={"type": "object"}, description="Long. " * 200), long_text)
    with serve_console(app, tmp_path) as served:
        yield served


def test_many_tools_long_names_and_long_results_fit(browser: TestPage, crowded: Served) -> None:
    console = ConsolePage(browser, crowded.port)
    console.window(360, 740)
    console.media()
    console.sign_in(TOKEN)
    console.until(READY, "the console")
    console.open("tools", ".entries a")
    assert console.js("document.querySelectorAll('.entries a').length") > 300
    console.fill("input[type=search]", "list_299")
    console.click(".entries a")
    console.until("document.querySelector('.run-panel') !== null")
    console.call()
    console.until("document.querySelector('.output pre.text') !== null", "the result")
    assert console.js("document.querySelector('.output pre.text').textContent.length") <= 100_001
    assert console.js("document.documentElement.scrollWidth") == 360
