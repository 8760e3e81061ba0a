"""The console in a real Chromium: one browser and one server for the tests of a module."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from console.page.harbour import TOKEN
from longshore import Client
from longshore.errors import ServerError
from longshore.toolsets.browser.actions import Click, ElementTarget, Field, Fill, Press
from longshore.toolsets.browser.page import Page
from serving import eventually
from toolsets.browser.page import TestPage

T = TypeVar("T")
READY = "document.getElementById('status') !== null"


class ConsolePage:
    """The page of one server."""

    def __init__(self, page: TestPage, port: int) -> None:
        self.page, self.port = page, port
        self.url = f"http://127.0.0.1:{port}/console"

    # -- the browser

    @property
    def _page(self) -> Page:
        page = self.page.tab.page
        assert page is not None
        return page

    def cdp(self, method: str, **params: Any) -> dict[str, Any]:
        return self.page.run(self._page.call(method, params))

    def js(self, script: str) -> Any:
        """The value of an expression in the page."""
        text = self.page.evaluate(script)
        return None if text == "undefined" else json.loads(text)

    def until(self, condition: str, what: str = "") -> Any:
        """Wait until an expression is true in the page."""
        return eventually(lambda: self.js(condition), what or condition)

    def window(self, width: int, height: int = 800) -> None:
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, **features: str) -> None:
        """Emulate media features: `media(prefers_color_scheme="dark")`."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.cdp("Emulation.setEmulatedMedia", features=named)

    def screenshot(self) -> bytes:
        return base64.b64decode(self.cdp("Page.captureScreenshot", format="png")["data"])

    # -- the console

    def sign_in(self, token: str = TOKEN) -> None:
        """Open the address that the server prints."""
        self.leave()
        self.page.run(self.page.tab.navigate(f"{self.url}#token={token}"))

    def leave(self) -> None:
        """Forget everything that the page has stored, and leave it."""
        self.cdp("Storage.clearDataForOrigin", origin=f"http://127.0.0.1:{self.port}", storageTypes="all")
        self.page.run(self.page.tab.navigate("about:blank"))

    def reload(self) -> None:
        self.page.run(self.page.tab.reload())
        self.until(READY, "the console")

    def open(self, view: str, ready: str) -> None:
        """Go to a view, until a selector is there."""
        self.until(READY, "the console")
        self.js(f"location.hash = {json.dumps('#/' + view)}")
        self.until(f"document.querySelector({json.dumps(ready)}) !== null", f"{ready} in {view}")

    def open_tool(self, name: str) -> None:
        self.open(f"tools/{name}", ".run-panel")
        self.until(f"document.querySelector('.tool-name').textContent === {json.dumps(name)}")

    def click(self, selector: str) -> None:
        self.page.act(Click(target=ElementTarget(selector=selector)))

    def press(self, *keys: str) -> None:
        self.page.act(Press(keys=list(keys)))

    def fill(self, selector: str, value: str | float | bool) -> None:
        self.page.act(Fill(fields=[Field(target=ElementTarget(selector=selector), value=value)]))

    def call(self) -> None:
        """Press the button of the form that is shown, and wait for the end of the call."""
        self.click(".run-panel .run")
        self.wait_answer()

    def wait_answer(self) -> None:
        self.until("document.querySelector('.output:not([aria-busy])')?.hasChildNodes()", "an answer")

    def call_tool(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool as another client does, and give its text, or why it was refused."""

        async def call() -> str:
            async with Client(self.url.replace("/console", "/mcp"), auth=TOKEN) as client:
                try:
                    result = await client.call_tool(name, arguments, check=False)
                except ServerError as refused:
                    return str(refused)
                return result.text

        with ThreadPoolExecutor(1) as threads:  # the browser's loop belongs to this thread
            return threads.submit(lambda: asyncio.run(call())).result()

    def text(self, selector: str) -> str:
        found = self.js(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")
        assert found is not None, selector
        return str(found)

    def answer(self) -> Any:
        """The JSON text of the answer that is shown."""
        return json.loads(self.answer_text())

    def answer_text(self) -> str:
        buttons = "[...document.querySelectorAll('.output .part-head button')]"
        self.js(f"{buttons}.find(each => each.textContent === 'Show as text')?.click()")
        return self.text(".output pre.text")

    def write_arguments(self, arguments: dict[str, Any]) -> None:
        """Put arguments into the form by way of its JSON side, then go back to the fields."""
        self.click(".segments button:nth-child(2)")
        self.fill(".form textarea.code", json.dumps(arguments))
        self.click(".segments button:nth-child(1)")

    def has(self, selector: str) -> bool:
        return bool(self.js(f"document.querySelector({json.dumps(selector)}) !== null"))

    def eventually(self, look: Callable[[], T], what: str) -> T:
        found: T = eventually(look, what)
        return found
