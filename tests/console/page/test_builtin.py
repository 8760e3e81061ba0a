"""The built-in server in its console: the project memory, a terminal's screen, the coloured border."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from console.page.console_page import READY, ConsolePage
from console.page.harbour import EVIL, TOKEN
from longshore import Client
from longshore.builtin import make
from serving import serve
from toolsets.browser.page import TestPage


@pytest.fixture
def builtin(browser: TestPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConsolePage]:
    """The console of the built-in server in an empty project."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("LONGSHORE_AUTH_TOKEN", TOKEN)
    (tmp_path / "project" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    with serve(make().asgi(console=True), own=True) as served:
        console = ConsolePage(browser, served.port)
        console.window(1280)
        console.media()
        console.sign_in(TOKEN)
        console.until(READY, "the console")
        yield console
        console.leave()


def test_the_memory_is_searched_and_a_node_shows_facts_links_history_and_a_picture(builtin: ConsolePage) -> None:
    links = [{"to": "auth service", "relation": "decided_for"}]
    builtin.call_tool("add_context", {"items": [{"name": "Token format", "text": "Tokens are JWTs.", "links": links}]})
    builtin.call_tool("update_context", {"id": "o1", "text": f"Tokens are opaque. {EVIL}", "reason": "<b>simpler</b>"})
    builtin.open("context", ".context")
    builtin.fill("#context-search", "tokens")
    builtin.press("Enter")
    builtin.until("document.querySelector('.context .entry-title')?.textContent === 'Token format'", "the hit")
    builtin.click(".context li:first-child .entry-link")
    builtin.until("document.querySelector('.node .facts-list') !== null", "the node")
    assert f"Tokens are opaque. {EVIL}" in builtin.text(".node .facts-list")
    assert "Tokens are JWTs." not in builtin.text(".node")
    assert "decided_for auth service" in builtin.text(".node")
    builtin.until("document.querySelector('.graph img')?.naturalWidth > 0", "the picture")
    builtin.click(".node .badges button")
    builtin.until("document.querySelector('.node').textContent.includes('Tokens are JWTs.')", "the history")
    assert "<b>simpler</b>" in builtin.text(".node")
    assert builtin.js("window.pwned ?? null") is None
    builtin.click(".node .facts-list a")
    builtin.until("document.querySelector('.node .tool-name')?.textContent === 'auth service'", "its neighbour")


def test_a_running_command_shows_its_screen_and_colours_the_border(builtin: ConsolePage) -> None:
    builtin.open("live", ".live")
    url = builtin.url.replace("/console", "/mcp")
    command = "seq 300; echo the kettle sings; sleep 300"

    async def call() -> str:
        async with Client(url, auth=TOKEN) as client:
            result = await client.call_tool("terminal_run", {"command": command, "pty": True}, check=False)
            return result.text

    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(lambda: asyncio.run(call()))
        builtin.until("document.getElementById('usage').dataset.kinds?.includes('terminal')", "the border")
        assert builtin.js("document.getElementById('usage').classList.contains('shown')")
        builtin.until("document.querySelector('.screen pre')?.textContent.includes('the kettle sings')", "its screen")
        screen = "document.querySelector('.screen pre')"
        builtin.until(f"{screen}.scrollTop + {screen}.clientHeight > {screen}.scrollHeight - 4", "the end of it")
        assert builtin.js(f"{screen}.scrollTop > 0")
        builtin.click("button[aria-label='Cancel terminal_run']")
        answer.result(60)
    builtin.until("!document.getElementById('usage').classList.contains('shown')", "the end of the border")
