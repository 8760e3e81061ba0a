"""Who uses a browser through a server: each verb by the calls that a model would make with that server's tools.

Ours is the class `Longshore`, at the end: the names of its tools and the look of its answers are there only.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.environment import BENCH, HERE, node_server, python
from benchmarks.load import LoadFailed
from benchmarks.stdio_server import Answer, StdioServer, count_tokens

CHROMIUM = "/usr/bin/chromium"
PINS, PEERS_HOME = HERE / "browser_peers", BENCH / "browser"
PLAYWRIGHT, DEVTOOLS = "@playwright/mcp", "chrome-devtools-mcp"
SNAPSHOT_TOKENS = 25_000  # for a page of a thousand elements, which are to be there all

Value = str | bool
Element = tuple[str, str]  # role and name


class Agent(ABC):
    """Someone who uses a browser. `seen` is the last text that shows the page, from which refs are taken."""

    name: ClassVar[str]
    one_call: ClassVar[bool] = False
    """Whether a click's own answer shows what it did."""
    element: ClassVar[re.Pattern[str]]
    """Finds role, name and ref of the elements in a text."""

    def __init__(self, folder: Path) -> None:
        self.server = StdioServer(self.command(), folder=folder, home=folder, variables=self.variables())
        self.reset()

    def reset(self) -> None:
        """Count anew."""
        self.tokens = self.milliseconds = 0.0
        self.calls = 0
        self.seen = ""

    @abstractmethod
    def command(self) -> list[str]: ...

    def variables(self) -> dict[str, str]:
        return {}

    @abstractmethod
    def open(self, url: str) -> str:
        """Load a page. Not each server shows it."""

    @abstractmethod
    def look(self) -> str:
        """The whole page."""

    @abstractmethod
    def press(self, role: str, name: str) -> str:
        """Click an element, without a look at the page after it where that is another call."""

    @abstractmethod
    def enter(self, fields: Mapping[Element, Value]) -> str:
        """Fill fields in one call."""

    def open_and_look(self, url: str) -> str:
        self.open(url)
        return self.look()

    def click(self, role: str, name: str) -> str:
        """Click an element, and see what that did."""
        said = self.press(role, name)
        return said if self.one_call else self.look()

    def search(self, field: str, text: str, button: str) -> str:
        """Enter a text in a search field, and see what was found."""
        self.enter({("searchbox", field): text})
        return self.click("button", button)

    def submit(self, fields: Mapping[Element, Value], button: str) -> str:
        """Fill a form, send it, and see what comes."""
        self.enter(fields)
        return self.click("button", button)

    def list_tools(self) -> str:
        answer = self.server.ask("tools/list")
        self.tokens += answer.tokens
        return f"{len(answer.result['tools'])} tools"

    def elements(self) -> dict[Element, str]:
        """The ref of each element that was seen, by role and name."""
        return {(match["role"], match["name"]): match["ref"] for match in self.element.finditer(self.seen)}

    def ref(self, role: str, name: str) -> str:
        found = self.elements().get((role, name))
        if found is None:
            raise LoadFailed(f"{self.name}: no {role} {name!r} in {self.seen[:1000]!r}")
        return found

    def call(self, tool: str, **arguments: Any) -> Answer:
        answer = self.server.call(tool, **arguments)
        self.tokens += count_tokens({"name": tool, "arguments": arguments}) + answer.tokens
        self.milliseconds += answer.milliseconds
        self.calls += 1
        return answer


def playwright_command() -> list[str]:
    node, _ = node_server(PLAYWRIGHT, PINS, PEERS_HOME)
    program = str(PEERS_HOME / "node_modules" / PLAYWRIGHT / "cli.js")
    return [node, program, "--headless", "--isolated", "--no-sandbox", "--executable-path", CHROMIUM]


class Playwright(Agent):
    """Its actions answer with the name of a file that has the page; without a tool for files a model looks again."""

    name = "Playwright MCP"
    element = re.compile(r'- (?P<role>\w+) "(?P<name>[^"]*)"(?: \[(?!ref=)[^]]*\])* \[ref=(?P<ref>\w+)\]')

    def command(self) -> list[str]:
        return playwright_command()

    def open(self, url: str) -> str:
        return self.call("browser_navigate", url=url).text

    def look(self) -> str:
        self.seen = self.call("browser_snapshot").text
        return self.seen

    def press(self, role: str, name: str) -> str:
        return self.call("browser_click", element=name, target=self.ref(role, name)).text

    def enter(self, fields: Mapping[Element, Value]) -> str:
        return self.call("browser_fill_form", fields=[self._field(*each) for each in fields.items()]).text

    def search(self, field: str, text: str, button: str) -> str:
        self.call("browser_type", element=field, target=self.ref("searchbox", field), text=text, submit=True)
        return self.look()

    def _field(self, element: Element, value: Value) -> dict[str, str]:
        role, name = element
        text = str(value).lower() if isinstance(value, bool) else value
        kind = role if role in ("checkbox", "radio", "combobox") else "textbox"
        return {"target": self.ref(role, name), "name": name, "type": kind, "value": text}


class DevTools(Agent):
    """Its actions show the whole page when they are asked to. Every call names the page."""

    name = "chrome-devtools-mcp"
    one_call = True
    element = re.compile(r'uid=(?P<ref>\w+) (?P<role>\w+) "(?P<name>[^"]*)"')
    page = 0

    def command(self) -> list[str]:
        node, _ = node_server(DEVTOOLS, PINS, PEERS_HOME)
        program = str(PEERS_HOME / "node_modules" / DEVTOOLS / "build" / "src" / "bin" / "chrome-devtools-mcp.js")
        quiet = ["--no-usage-statistics", "--no-performance-crux"]
        browser = ["--executablePath", CHROMIUM, "--chromeArg=--no-sandbox"]
        return [node, program, "--headless", "--isolated", *browser, *quiet]

    def variables(self) -> dict[str, str]:
        return {"CHROME_DEVTOOLS_MCP_NO_USAGE_STATISTICS": "1", "CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS": "1"}

    def open(self, url: str) -> str:
        if self.page:
            return self.call("navigate_page", pageId=self.page, type="url", url=url).text
        said = self.call("new_page", url=url).text
        found = re.search(r"^(\d+): .*\[selected\]", said, re.MULTILINE)
        if found is None:
            raise LoadFailed(f"{self.name}: no selected page in {said!r}")
        self.page = int(found[1])
        return said

    def look(self) -> str:
        self.seen = self.call("take_snapshot", pageId=self.page).text
        return self.seen

    def press(self, role: str, name: str) -> str:
        self.seen = self.call("click", pageId=self.page, uid=self.ref(role, name), includeSnapshot=True).text
        return self.seen

    def enter(self, fields: Mapping[Element, Value]) -> str:
        elements = [{"uid": self.ref(*element), "value": _as_text(value)} for element, value in fields.items()]
        return self.call("fill_form", pageId=self.page, elements=elements).text


class Longshore(Agent):
    """Ours. A page is shown when it is loaded, an action shows what it changed, fields are named by their labels."""

    name = "longshore"
    one_call = True
    element = re.compile(r"\b(?P<ref>(?:f\d+)?e\d+) (?P<role>\w+)[\w,]* (?P<name>[^|\n]*?)(?= = | \||$)", re.MULTILINE)

    def command(self) -> list[str]:
        return [str(python("longshore")), "-m", "longshore", "serve"]

    def variables(self) -> dict[str, str]:
        return {"CHROME_PATH": CHROMIUM}

    def open(self, url: str) -> str:
        self.seen = self.call("browser_navigate", url=url).text
        return self.seen

    def open_and_look(self, url: str) -> str:
        return self.open(url)

    def look(self) -> str:
        self.seen = self.call("browser_snapshot", max_tokens=SNAPSHOT_TOKENS).text
        return self.seen

    def press(self, role: str, name: str) -> str:
        if (role, name) not in self.elements():
            self.seen += "\n" + self.call("browser_find", text=name).text
        return self._see(self.call("browser_click", ref=self.ref(role, name)).text)

    def enter(self, fields: Mapping[Element, Value]) -> str:
        return self._see(self.call("browser_fill", fields=_by_label(fields)).text)

    def search(self, field: str, text: str, button: str) -> str:
        return self.submit({("searchbox", field): text}, button)

    def submit(self, fields: Mapping[Element, Value], button: str) -> str:
        return self._see(self.call("browser_fill", fields=_by_label(fields), submit=True).text)

    def list_tools(self) -> str:
        """Those of the browser: the peers have no others."""
        tools = self.server.ask("tools/list").result["tools"]
        ours = [tool for tool in tools if tool["name"].startswith("browser_")]
        self.tokens += count_tokens({"tools": ours})
        self.listed = f"{len(ours)} of {len(tools)}"
        return f"{len(ours)} tools"

    def _see(self, said: str) -> str:
        """Refs stay: what was seen before is still known."""
        self.seen += "\n" + said
        return said


def _by_label(fields: Mapping[Element, Value]) -> list[dict[str, Value]]:
    return [{"label": name, "value": value} for (_, name), value in fields.items()]


def _as_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else value


PEERS: tuple[type[Agent], ...] = (Playwright, DevTools)
