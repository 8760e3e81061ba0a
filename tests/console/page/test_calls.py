"""Calls from the page: progress, cancel, questions, errors, pictures, links, history, and the request as code."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from console.page.console_page import ConsolePage
from console.page.harbour import EVIL, TOKEN
from longshore import Client


def test_a_call_shows_its_result_its_time_and_its_tokens(console: ConsolePage) -> None:
    console.open_tool("add")
    console.fill("[data-name=a] input", "2")
    console.fill("[data-name=b] input", "40")
    console.call()
    assert "sum: 42" in console.text(".output")
    assert "Done in" in console.text(".run-panel .status")
    assert "tokens" in console.text(".run-panel .status")


def test_a_running_call_shows_progress_and_logs_until_it_is_cancelled(console: ConsolePage) -> None:
    console.open_tool("wait_for_tide")
    console.fill("[data-name=label] textarea", "spring tide")
    console.click(".run-panel .run")
    console.until("document.querySelector('.run-panel progress').value === 3", "progress")
    assert "3 of 10 · 3 of 10 for spring tide" in console.text(".run-panel .status")
    assert "the tide is low" in console.text(".logs")
    console.until("document.getElementById('status').textContent.includes('1 call runs')", "the call in the rail")
    console.click(".run-panel .danger")
    console.until("document.querySelector('.run-panel .status').textContent.startsWith('Cancelled')")
    console.until("document.getElementById('status').textContent.includes('No call runs')", "the end of the call")


def test_a_failing_tool_and_refused_arguments_are_shown_as_errors(console: ConsolePage) -> None:
    console.open_tool("sink")
    console.fill("[data-name=ship] textarea", "Fram")
    console.call()
    assert "The tool reports an error" in console.text(".output")
    assert "Fram does not sink; moor it first" in console.text(".output")


def test_pictures_and_sounds_are_shown(console: ConsolePage) -> None:
    console.open_tool("picture")
    console.call()
    console.until("document.querySelector('.output img.picture').naturalWidth === 8", "the picture")
    console.open_tool("sound")
    console.call()
    console.until("document.querySelector('.output audio').readyState > 0", "the sound")


def test_a_linked_resource_is_read_on_click(console: ConsolePage) -> None:
    console.open_tool("link")
    console.call()
    assert "08:00 fog" not in console.text(".output")
    console.click(".output .part .row button")
    console.until("document.querySelector('.output').textContent.includes('08:00 fog')", "the log book")


def test_a_question_is_answered_in_a_form(console: ConsolePage) -> None:
    console.open_tool("moor")
    console.fill("[data-name=ship] textarea", "Fram")
    console.click(".run-panel .run")
    console.until("document.querySelector('.question') !== null", "the question")
    assert "Where does Fram moor?" in console.text(".question")
    console.fill(".question [data-name=quay] :is(input, textarea)", "North")
    console.fill(".question [data-name=metres] input[type=number]", "12")
    console.click(".question button.main")
    console.wait_answer()
    assert "Fram lies at North, 12 m" in console.text(".output")


def test_a_question_may_be_declined(console: ConsolePage) -> None:
    console.open_tool("moor")
    console.fill("[data-name=ship] textarea", "Maud")
    console.click(".run-panel .run")
    console.until("document.querySelector('.question') !== null", "the question")
    console.click(".question .row button:nth-child(2)")
    console.wait_answer()
    assert "Maud lies at nobody's" in console.text(".output")


def test_a_question_with_an_address_shows_it_before_it_is_opened(console: ConsolePage) -> None:
    console.open_tool("pay")
    console.fill("[data-name=ship] textarea", "Fram")
    console.click(".run-panel .run")
    console.until("document.querySelector('.question') !== null", "the question")
    assert console.text(".question .uri") == "https://pay.example/Fram"
    link = "document.querySelector('.question a')"
    assert console.js(f"[{link}.href, {link}.target, {link}.rel]") == [
        "https://pay.example/Fram",
        "_blank",
        "noopener noreferrer",
    ]
    console.click(".question button.main")
    console.wait_answer()
    assert "Fram: paid" in console.text(".output")


def test_a_tool_that_needs_more_of_a_client_says_so(console: ConsolePage) -> None:
    console.open_tool("plan")
    console.call()
    assert "such as a language model" in console.text(".output")


def test_a_question_to_a_model_is_answered_by_the_person(console: ConsolePage) -> None:
    console.open_tool("forecast")
    console.click(".run-panel .run")
    console.until("document.querySelector('.question textarea') !== null", "the question")
    assert "You are a skipper." in console.text(".question")
    assert f"How will the weather be? {EVIL}" in console.text(".question")
    assert console.js("document.activeElement === document.querySelector('.question textarea')")
    console.click(".question button.main")
    assert console.has(".question textarea:invalid"), "an empty answer is not sent"
    console.fill(".question textarea", "Fog at dawn.")
    console.press("Control+Enter")
    console.wait_answer()
    assert "Fog at dawn." in console.text(".output")
    assert console.js("window.pwned ?? null") is None


def test_a_request_of_the_history_is_filled_in_and_run_again_without_its_secrets(console: ConsolePage) -> None:
    console.open_tool("shapes")
    console.write_arguments({"text": "Oslo", "secret": "hush", "map": {"api_key": 1, "b": 2}})
    console.call()
    stored = console.js("localStorage.getItem('longshore.history.1')")
    assert "Oslo" in stored
    assert "hush" not in stored
    assert "api_key" not in stored
    console.reload()
    console.open_tool("shapes")
    console.click(".history-box summary")
    assert "secrets and long values were left out" in console.text(".history")
    console.click(".history li:first-child button")
    console.call()
    assert console.answer() == {"text": "Oslo", "map": {"b": 2}}


def test_a_history_stays_small(console: ConsolePage) -> None:
    added = """import('/console/history.js').then(({ remember, entries }) => {
        const call = { method: "tools/call", name: "t" };
        for (let n = 0; n < 80; n++) remember({ ...call, arguments: { n, text: "x".repeat(9000) } }, {});
        remember({ ...call, arguments: { text: "y".repeat(50000) } }, {});
        return [entries().length, entries()[0].arguments, localStorage.getItem("longshore.history.1").length];
    })"""
    number, newest, size = console.js(added)
    assert newest == {}
    assert number <= 50
    assert size <= 200_000


def test_the_request_as_python_and_as_curl_gives_the_same_answer(console: ConsolePage) -> None:
    console.open_tool("shapes")
    console.write_arguments({"text": "it's", "header": "Kai 4, Ü", "any_object": {"t": True, "n": None, "s": 'a"\n'}})
    console.click(".snippets summary")
    curl = console.text(".snippets .code-block")
    console.click(".snippets [role=tab]:nth-child(2)")
    python = console.text(".snippets .code-block")
    console.click(".snippets [role=tab]:nth-child(3)")
    assert console.url.replace("/console", "/mcp") in console.text(".snippets .code-block")
    assert TOKEN not in curl + python
    environment = {**os.environ, "LONGSHORE_AUTH_TOKEN": TOKEN}
    for argv in ([sys.executable, "-c", python], ["sh", "-c", curl]):
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60)
        assert "it's" in done.stdout, done
        assert "Kai 4, " in done.stdout


def test_a_template_is_completed_and_read(console: ConsolePage) -> None:
    console.open("resources", ".entries a")
    console.click('.entries a[data-key="ship://{name}/papers"]')
    console.until("document.querySelector('[data-name=name] textarea') !== null")
    console.fill("[data-name=name] textarea", "Fr")
    console.until("document.querySelector('.suggestions button')?.textContent === 'Fram'", "a suggestion")
    console.click(".suggestions button")
    assert console.text(".tool > .uri") == "ship://Fram/papers"
    console.call()
    assert 'flag: "NO"' in console.text(".output")


def test_a_prompt_shows_its_messages(console: ConsolePage) -> None:
    console.open("prompts/greet", ".run-panel")
    console.fill("[data-name=ship] textarea", "Fram")
    console.call()
    assert "Greet Fram in a plain tone" in console.text(".output .message")


def test_a_call_of_another_client_is_seen_live_and_cancelled(console: ConsolePage) -> None:
    console.open("live", ".live")
    url = console.url.replace("/console", "/mcp")

    async def call() -> str:
        async with Client(url, auth=TOKEN) as client:
            result = await client.call_tool("wait_for_tide", {"label": "other"}, check=False)
            return result.text

    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(lambda: asyncio.run(call()))
        console.until("document.querySelector('[aria-label=\"Calls in flight\"] tbody tr') !== null", "the call")
        assert "3 of 10 · 3 of 10 for other" in console.text("[aria-label='Calls in flight'] tbody tr")
        console.click("button[aria-label='Cancel wait_for_tide']")
        assert "stopped by the operator" in answer.result(60)
    console.until("document.querySelector('.timeline .bar-failed, .timeline .bar-cancelled') !== null", "its bar")
    console.until("document.querySelector('[aria-label=\"Usage by tool\"] tbody') !== null", "usage")


def test_ended_calls_are_searched_by_tool_and_outcome(console: ConsolePage) -> None:
    console.call_tool("sink", {"ship": "Fram"})
    console.call_tool("add", {"a": 1, "b": 2})
    console.open("live", ".live")
    console.click(".earlier summary")
    console.fill(".earlier input", "sink")
    console.click(".earlier form button")
    names = "[...new Set([...document.querySelectorAll('.earlier tbody tr')].map(row => row.children[1].textContent))]"
    console.until(f"JSON.stringify({names}) === '[\"sink\"]'", "the calls of one tool")
    console.fill(".earlier input", "")
    console.fill(".earlier select", "ok")
    console.click(".earlier form button")
    console.until(f"{names}.includes('add') && !{names}.includes('sink')", "the calls that were answered")


def test_the_list_follows_what_the_server_offers_and_forms_keep_what_is_filled_in(console: ConsolePage) -> None:
    console.open_tool("add")
    console.fill("[data-name=a] input", "7")
    off = '{"changes": {"tools.sound.enabled": false}}'
    headers = "{'Content-Type': 'application/json'}"
    send = f"fetch('/console/api/settings', {{method: 'POST', headers: {headers}, body: '{off}'}})"
    assert console.js(f"{send}.then(response => response.status)") == 200
    console.js("window.dispatchEvent(new Event('focus'))")
    console.until("document.querySelector('[data-key=sound]') === null", "the new list")
    assert console.js("document.querySelector('[data-name=a] input').value") == "7"
    on = send.replace("false", "null")
    assert console.js(f"{on}.then(response => response.status)") == 200
