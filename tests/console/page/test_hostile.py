"""What servers, tools and callers may say is text; who may see and change what is decided by the token."""

from __future__ import annotations

import json
from http.client import HTTPConnection

import pytest

from console.page.console_page import READY, ConsolePage
from console.page.harbour import EVIL, TOKEN, VIEWER
from serving import Served

SEEN = "document.getElementById('main').textContent.includes(%s)" % json.dumps(EVIL)  # noqa: UP031


def assert_harmless(console: ConsolePage) -> None:
    assert console.js("window.pwned ?? null") is None
    assert not console.js("[...document.querySelectorAll('[onerror], script:not([src])')].length")
    assert not console.js("[...document.querySelectorAll('a')].some(a => a.protocol === 'javascript:')")


def test_names_and_descriptions_are_text(console: ConsolePage) -> None:
    console.open_tool("evil")
    assert console.js(SEEN)
    assert console.text(".form .label span") == EVIL
    assert_harmless(console)


def test_results_logs_progress_and_links_are_text(console: ConsolePage) -> None:
    console.open_tool("evil")
    console.call()
    assert EVIL in console.text(".output")
    assert EVIL in console.text(".logs")
    assert not console.has(".output a")
    console.click(".raw summary")
    assert EVIL in console.text(".raw")
    assert_harmless(console)


def test_resources_and_prompts_are_text(console: ConsolePage) -> None:
    console.open("resources/book%3A%2F%2Ftoday", ".run-panel")
    console.call()
    assert EVIL in console.text(".output")
    console.open("prompts/greet", ".tool-name")
    console.fill("[data-name=ship] textarea", EVIL)
    console.call()
    assert EVIL in console.text(".output")
    assert_harmless(console)


def test_frames_of_the_wire_and_records_are_text(console: ConsolePage) -> None:
    console.open("wire", ".wire")
    console.call_tool("evil", {EVIL: EVIL})
    console.until("document.querySelectorAll('.frame').length > 0", "frames")
    open_all = "document.querySelectorAll('.frames details').forEach(each => { each.open = true; })"
    console.until(f"({open_all}, {SEEN})", "the frame's text")
    console.open("live", ".live")
    console.until("document.querySelector('[aria-label=\"Usage by tool\"] tbody tr') !== null", "usage")
    assert_harmless(console)


def test_an_address_that_somebody_made_up_shows_its_name_as_text(console: ConsolePage) -> None:
    console.open("tools/" + EVIL.replace("/", "%2F"), ".detail .empty")
    assert EVIL in console.text(".detail .empty")
    assert_harmless(console)


def test_inline_scripts_and_foreign_addresses_are_forbidden_by_the_policy(console: ConsolePage) -> None:
    add = "const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s)"
    console.js(f"(() => {{ {add} }})()")
    assert console.js("window.pwned ?? null") is None
    assert console.js("fetch('http://localhost:1/').then(() => 'sent', problem => problem.name)") == "TypeError"
    assert (
        console.js(
            "(() => { const i = document.createElement('iframe'); i.src = '/console'; document.body.append(i);"
            " return new Promise(r => { i.onload = () => r(i.contentDocument?.body?.innerHTML ?? ''); }) })()"
        )
        == ""
    )


def test_the_token_is_removed_from_the_address_and_scripts_cannot_read_it(console: ConsolePage) -> None:
    found = console.js("[location.href, document.cookie, JSON.stringify(localStorage), history.length]")
    assert TOKEN not in json.dumps(found)


def test_without_a_token_the_page_asks_for_one_and_shows_no_data(console: ConsolePage) -> None:
    console.leave()
    console.page.run(console.page.tab.navigate(console.url))
    console.until("document.querySelector('.sign-in') !== null", "the sign-in")
    assert "Harbour office" not in console.text("body")
    console.fill("#token", "wrong-token")
    console.click(".sign-in button")
    console.until("document.querySelector('.problem-box')?.textContent.includes('does not accept')", "the refusal")
    console.fill("#token", TOKEN)
    console.click(".sign-in button")
    console.until(READY, "the console")


def test_a_wrong_token_in_the_address_is_refused_and_removed(console: ConsolePage) -> None:
    console.sign_in("wrong")
    console.until("document.querySelector('.sign-in') !== null", "the sign-in")
    assert "wrong" not in console.js("location.href")


def test_a_viewer_sees_and_can_change_nothing(console: ConsolePage) -> None:
    console.sign_in(VIEWER)
    console.until(READY, "the console")
    console.open("settings", ".setting")
    assert "your token may only look" in console.text(".settings .facts")
    assert not console.js(
        "[...document.querySelectorAll('.setting-control :is(input, select, textarea)')].some(each => !each.disabled)"
    )
    console.open("wire", ".wire .problem-box")
    send = "fetch('/console/api/settings', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'})"
    refused = console.js(f"{send}.then(response => response.status)")
    assert refused == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1"])
def test_a_page_of_another_origin_gets_no_data(served: Served, origin: str) -> None:
    connection = HTTPConnection("127.0.0.1", served.port, timeout=60)
    headers = {"Origin": origin, "Authorization": f"Bearer {TOKEN}"}
    connection.request("GET", "/console/api/overview", headers=headers)
    assert connection.getresponse().status == 403
    connection.close()
