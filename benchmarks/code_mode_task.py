"""What a coding agent sends to mend the order page: a tool for every step, or code that calls tools.

Each form takes the same steps on the project of `order_page.py`. In code form a model first finds the tools, then
looks before it decides: it can't fix what it has not read, nor fill in a form that it has not seen. So the code comes
in eight pieces, which print what the next one needs, and are cut at the same places for each server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.order_page import CHANGE, EMAIL, NAME, SCRIPT_FIX, SITE_FIX, SUBJECT, TOTAL

SITE_ADDRESS = "SITE_ADDRESS"
"""Stands in arguments for the address that the page is served at, which an earlier answer has said."""


FOLDER = "PROJECT_FOLDER"
"""Stands in arguments for the path of the project."""
REF = "REF {role} {name}"
"""Stands in arguments for the ref of an element, which an earlier answer has shown."""


@dataclass(frozen=True)
class Turn:
    """A call that the model makes, and what it has to see in the answer to go on.

    If that comes later, as the address of a server that starts slowly, it makes the call `more`.
    """

    tool: str
    arguments: Mapping[str, Any]
    shows: tuple[str, ...]
    more: Mapping[str, Any] | None = None
    """The arguments of a call that waits for the rest, and its `tool` if it is another one."""


TESTS = "python3 -m unittest discover -s tests"
SERVE = "python3 -m shop.site --port 0"
COMMIT = f"git add -A && git commit -q -m '{SUBJECT}' && git log --oneline -1"
FILES_QUERY = "list a folder, read, search and edit files"
OTHER_QUERY = "run a command, open a web page, fill in a form, see console errors"
HITS = 10


def _edits(change: tuple[str, str]) -> list[dict[str, str]]:
    old, new = change
    return [{"old": old, "new": new}]


def _fields(**values: str) -> list[dict[str, str]]:
    return [{"label": label, "value": value} for label, value in values.items()]


ITEMS = {"Product": "Kettle", "Quantity": "3", "Voucher": "SPRING"}
CUSTOMER = {"Name": NAME, "Email": EMAIL}
MORE = {"wait": "output"}
NOTE = ("# Changes\n", CHANGE)

FULL = (
    Turn("fs_list", {"depth": 1}, ("web/",)),
    Turn("fs_read", {"path": "README.md"}, (SERVE, "CHANGELOG.md")),
    Turn("terminal_run", {"command": TESTS}, ("test_a_voucher_is_taken_off",)),
    Turn("fs_search", {"pattern": "def quote", "path": "shop"}, ("site.py",)),
    Turn("fs_read", {"path": "shop/site.py"}, (SITE_FIX[0],)),
    Turn("fs_read", {"path": "shop/pricing.py"}, ("voucher: Voucher | None = None",)),
    Turn("fs_edit", {"path": "shop/site.py", "edits": _edits(SITE_FIX)}, (SITE_FIX[1],)),
    Turn("terminal_run", {"command": TESTS}, ("OK",)),
    Turn(
        "terminal_run",
        {"command": SERVE, "background": True},
        ("http://127.0.0.1:",),
        more={"tool": "terminal_read", **MORE, "id": "c3"},
    ),
    Turn("browser_navigate", {"url": SITE_ADDRESS}, ("Voucher",)),
    Turn("browser_fill", {"fields": _fields(**ITEMS)}, ("TypeError",)),
    Turn("browser_console", {"level": "error"}, ("order.js:",)),
    Turn("fs_read", {"path": "web/order.js"}, (SCRIPT_FIX[0],)),
    Turn("fs_edit", {"path": "web/order.js", "edits": _edits(SCRIPT_FIX)}, (SCRIPT_FIX[1],)),
    Turn("browser_navigate", {"action": "reload"}, ("Voucher",)),
    Turn("browser_fill", {"fields": _fields(**ITEMS)}, (TOTAL,)),
    Turn("browser_fill", {"fields": _fields(**CUSTOMER), "submit": True}, (f"Thank you, {NAME}", TOTAL)),
    Turn("fs_read", {"path": "CHANGELOG.md", "limit": 10}, ("1.4.1",)),
    Turn("fs_edit", {"path": "CHANGELOG.md", "edits": _edits(NOTE)}, ("1.4.2",)),
    Turn("terminal_run", {"command": COMMIT}, (SUBJECT,)),
)

PIECES = (
    ("web", SERVE, "CHANGELOG.md", "test_a_voucher_is_taken_off"),  # look around
    (SITE_FIX[0], "voucher: Voucher | None = None"),  # read what fails
    ("OK", "http://127.0.0.1:"),  # fix it, test, serve the page
    ("Voucher",),  # open it
    ("TypeError", "order.js:"),  # fill in the form
    (SCRIPT_FIX[0], "1.4.1"),  # read the script and the changes
    (TOTAL, f"Thank you, {NAME}"),  # fix it, look again, order
    (SUBJECT,),  # note and commit
)
"""What each piece of code has to show."""

# Every step by a tool, as FastMCP's interpreter needs it.
TOOL_CODE = (
    f"""print(tools.fs_list(depth=1))
print(tools.fs_read(path="README.md"))
print(tools.terminal_run(command="{TESTS} 2>&1 | tail -15"))""",
    """[path] = tools.fs_search(pattern="def quote", path="shop", output="files").split()
source = tools.fs_read(path=path)
print(path, source[source.index("def quote"):].split("\\n\\n\\n")[0])
print(tools.fs_search(pattern="voucher", path="shop/pricing.py"))""",
    f"""old = 'fields.get("country", "DE"), DISCOUNTS)'
tools.fs_edit(path="shop/site.py", edits=[{{"old": old, "new": old[:-1] + ", voucher)"}}])
print(tools.terminal_run(command="{TESTS} 2>&1 | tail -3"))
print(tools.terminal_run(command="{SERVE}", background=True))""",
    f"""print(tools.browser_navigate(url="{SITE_ADDRESS}"))""",
    """items = {"Product": "Kettle", "Quantity": "3", "Voucher": "SPRING"}
print(tools.browser_fill(fields=[{"label": k, "value": v} for k, v in items.items()]))
print(tools.browser_console(level="error"))""",
    """print(tools.fs_read(path="web/order.js", offset=22, limit=10))
print(tools.fs_read(path="CHANGELOG.md", limit=10))""",
    f"""tools.fs_edit(path="web/order.js", edits=[{{"old": "data.price.total", "new": "data.total"}}])
tools.browser_navigate(url="{SITE_ADDRESS}")
items = {{"Product": "Kettle", "Quantity": "3", "Voucher": "SPRING"}}
print(tools.browser_fill(fields=[{{"label": k, "value": v}} for k, v in items.items()]))
customer = {{"Name": "{NAME}", "Email": "{EMAIL}"}}
print(tools.browser_fill(fields=[{{"label": k, "value": v}} for k, v in customer.items()], submit=True))""",
    f"""note = "# Changes\\n\\n## 1.4.2\\n\\n- The order page shows the total, and takes vouchers off.\\n"
tools.fs_edit(path="CHANGELOG.md", edits=[{{"old": "# Changes\\n", "new": note}}])
print(tools.terminal_run(command="{COMMIT}"))""",
)

# Files and commands by Python, which the code has; what is to run on and the browser by tools.
PYTHON_CODE = (
    f"""import subprocess
def sh(command):
    print(subprocess.run(command, shell=True, text=True, stdout=-1, stderr=-2).stdout)
sh("ls; cat README.md; {TESTS} 2>&1 | tail -15")""",
    """sh("grep -rA14 'def quote' shop --include=*.py -h; grep -n voucher shop/pricing.py")""",
    f"""from pathlib import Path
def edit(path, old, new):
    text = Path(path).read_text()
    assert text.count(old) == 1
    Path(path).write_text(text.replace(old, new))
edit("shop/site.py", '"DE"), DISCOUNTS)', '"DE"), DISCOUNTS, voucher)')
sh("{TESTS} 2>&1 | tail -3")
print(tools.terminal_run(command="{SERVE}", background=True))""",
    f"""print(tools.browser_navigate(url="{SITE_ADDRESS}"))""",
    """def fill(submit=False, **values):
    print(tools.browser_fill(fields=[{"label": k, "value": v} for k, v in values.items()], submit=submit))
fill(Product="Kettle", Quantity="3", Voucher="SPRING")
print(tools.browser_console(level="error"))""",
    """sh("sed -n 22,31p web/order.js; head CHANGELOG.md")""",
    f"""edit("web/order.js", "data.price.total", "data.total")
tools.browser_navigate(url="{SITE_ADDRESS}")
fill(Product="Kettle", Quantity="3", Voucher="SPRING")
fill(submit=True, Name="{NAME}", Email="{EMAIL}")""",
    f"""note = "# Changes\\n\\n## 1.4.2\\n\\n- The order page shows the total, and takes vouchers off.\\n"
edit("CHANGELOG.md", "# Changes\\n", note)
sh("{COMMIT}")""",
)


def _code_turns(
    codes: tuple[str, ...],
    read_more: str,
    tool: str = "run_code",
    pieces: tuple[tuple[str, ...], ...] = PIECES,
    **more: str,
) -> tuple[Turn, ...]:
    """The pieces of code as calls. `read_more` is code that gets the rest of what a command prints."""
    waiting = {"code": read_more, **more}
    return tuple(
        Turn(tool, {"code": code, **more}, shows, waiting if "http://127.0.0.1:" in shows else None)
        for code, shows in zip(codes, pieces, strict=True)
    )


FILE_TOOLS = ("fs_list", "fs_read", "fs_search", "fs_edit")
OTHER_TOOLS = ("terminal_run", "browser_navigate", "browser_fill", "browser_console")

UNCLEAR = ["fs_search", "fs_edit", "browser_fill"]
"""Tools that are called with a list, or a word to choose from. What the others take is clear from the names of their
parameters, which search_tools shows. FastMCP's search does not, so there the schemas of all are read."""

FIND_OTHERS = Turn("search_tools", {"query": OTHER_QUERY, "limit": HITS}, OTHER_TOOLS)

CODE_BY_TOOLS = (
    Turn("search_tools", {"query": FILES_QUERY, "limit": HITS}, FILE_TOOLS),
    FIND_OTHERS,
    Turn("tool_api", {"names": UNCLEAR}, ("files", "old", "label")),
    *_code_turns(TOOL_CODE, 'print(tools.terminal_read(id="c3", wait="output"))'),
)
CODE = (
    FIND_OTHERS,
    Turn("tool_api", {"names": UNCLEAR[2:]}, ("label",)),
    *_code_turns(PYTHON_CODE, 'print(tools.terminal_read(id="c1", wait="output"))', session="shop"),
)

# The same pieces for FastMCP's interpreter: a call of a tool is awaited, and the answer is what is returned.
PEER_CODE = (
    f"""files = await call_tool("fs_list", {{"depth": 1}})
readme = await call_tool("fs_read", {{"path": "README.md"}})
tests = await call_tool("terminal_run", {{"command": "{TESTS} 2>&1 | tail -15"}})
return "\\n".join([files, readme, tests])""",
    """found = await call_tool("fs_search", {"pattern": "def quote", "path": "shop", "output": "files"})
path = found.split()[0]
source = await call_tool("fs_read", {"path": path})
quote = source[source.index("def quote"):].split("\\n\\n\\n")[0]
voucher = await call_tool("fs_search", {"pattern": "voucher", "path": "shop/pricing.py"})
return path + " " + quote + "\\n" + voucher""",
    f"""old = 'fields.get("country", "DE"), DISCOUNTS)'
await call_tool("fs_edit", {{"path": "shop/site.py", "edits": [{{"old": old, "new": old[:-1] + ", voucher)"}}]}})
tests = await call_tool("terminal_run", {{"command": "{TESTS} 2>&1 | tail -3"}})
return tests + "\\n" + await call_tool("terminal_run", {{"command": "{SERVE}", "background": True}})""",
    f"""return await call_tool("browser_navigate", {{"url": "{SITE_ADDRESS}"}})""",
    """items = {"Product": "Kettle", "Quantity": "3", "Voucher": "SPRING"}
filled = await call_tool("browser_fill", {"fields": [{"label": k, "value": v} for k, v in items.items()]})
return filled + "\\n" + await call_tool("browser_console", {"level": "error"})""",
    """script = await call_tool("fs_read", {"path": "web/order.js", "offset": 22, "limit": 10})
return script + "\\n" + await call_tool("fs_read", {"path": "CHANGELOG.md", "limit": 10})""",
    f"""edits = [{{"old": "data.price.total", "new": "data.total"}}]
await call_tool("fs_edit", {{"path": "web/order.js", "edits": edits}})
await call_tool("browser_navigate", {{"action": "reload"}})
items = {{"Product": "Kettle", "Quantity": "3", "Voucher": "SPRING"}}
filled = await call_tool("browser_fill", {{"fields": [{{"label": k, "value": v}} for k, v in items.items()]}})
customer = {{"Name": "{NAME}", "Email": "{EMAIL}"}}
fields = [{{"label": k, "value": v}} for k, v in customer.items()]
return filled + "\\n" + await call_tool("browser_fill", {{"fields": fields, "submit": True}})""",
    f"""note = "# Changes\\n\\n## 1.4.2\\n\\n- The order page shows the total, and takes vouchers off.\\n"
edits = [{{"old": "# Changes\\n", "new": note}}]
await call_tool("fs_edit", {{"path": "CHANGELOG.md", "edits": edits}})
return await call_tool("terminal_run", {{"command": "{COMMIT}"}})""",
)
PEER = (
    Turn("search", {"query": FILES_QUERY, "limit": HITS}, ("fs_list", "fs_read", "fs_search")),
    Turn("search", {"query": OTHER_QUERY, "limit": HITS}, ("fs_edit", *OTHER_TOOLS)),
    Turn("get_schema", {"tools": [*FILE_TOOLS, *OTHER_TOOLS]}, (*FILE_TOOLS, *OTHER_TOOLS)),
    *_code_turns(PEER_CODE, 'return await call_tool("terminal_read", {"id": "c3", "wait": "output"})', "execute"),
)

# The same steps by the tools of the servers that FastMCP's users mount. Refs come from the page as it was shown last,
# so what is filled in after a reload is another piece. Paths are absolute: these servers have no folder of their own.
_FORM = tuple(
    {"target": REF.format(role=role, name=name), "element": name, "name": name, "type": kind, "value": value}
    for role, kind, name, value in (
        ("combobox", "combobox", "Product", "Kettle"),
        ("spinbutton", "textbox", "Quantity", "3"),
        ("textbox", "textbox", "Voucher", "SPRING"),
        ("textbox", "textbox", "Name", NAME),
        ("textbox", "textbox", "Email", EMAIL),
    )
)


def _run(command: str, wait_ms: int = 30_000) -> str:
    arguments = f'{{"command": "cd {FOLDER} && {command}", "timeout_ms": {wait_ms}}}'
    return f'await call_tool("commander_start_process", {arguments})'


def _fill_form(count: int) -> str:
    return f'await call_tool("playwright_browser_fill_form", {{"fields": {json.dumps(_FORM[:count])}}})'


PEERS_CODE = (
    f"""files = await call_tool("filesystem_list_directory", {{"path": "{FOLDER}"}})
readme = await call_tool("commander_read_file", {{"path": "{FOLDER}/README.md"}})
tests = {_run(f"{TESTS} 2>&1 | tail -15")}
return "\\n".join([files["content"], readme, tests])""",
    f"""quote = {_run("grep -rA14 'def quote' shop --include=*.py")}
return quote + "\\n" + {_run("grep -n voucher shop/pricing.py")}""",
    f"""old = 'fields.get("country", "DE"), DISCOUNTS)'
edit = {{"file_path": "{FOLDER}/shop/site.py", "old_string": old, "new_string": old[:-1] + ", voucher)"}}
await call_tool("commander_edit_block", edit)
tests = {_run(f"{TESTS} 2>&1 | tail -3")}
return tests + "\\n" + {_run(SERVE, 1000)}""",
    f"""await call_tool("playwright_browser_navigate", {{"url": "{SITE_ADDRESS}"}})
return await call_tool("playwright_browser_snapshot", {{}})""",
    f"""{_fill_form(3)}
return await call_tool("playwright_browser_console_messages", {{"level": "error"}})""",
    f"""script = await call_tool(
    "commander_read_file", {{"path": "{FOLDER}/web/order.js", "offset": 21, "length": 10}}
)
changes = await call_tool("commander_read_file", {{"path": "{FOLDER}/CHANGELOG.md", "length": 10}})
return script + "\\n" + changes""",
    f"""edit = {{"old_string": "data.price.total", "new_string": "data.total"}}
await call_tool("commander_edit_block", {{"file_path": "{FOLDER}/web/order.js", **edit}})
await call_tool("playwright_browser_navigate", {{"url": "{SITE_ADDRESS}"}})
return await call_tool("playwright_browser_snapshot", {{}})""",
    f"""{_fill_form(5)}
filled = await call_tool("playwright_browser_snapshot", {{}})
button = {{"element": "Order now", "target": "{REF.format(role="button", name="Order now")}"}}
await call_tool("playwright_browser_click", button)
return filled + "\\n" + await call_tool("playwright_browser_snapshot", {{}})""",
    f"""note = "# Changes\\n\\n## 1.4.2\\n\\n- The order page shows the total, and takes vouchers off.\\n"
edit = {{"old_string": "# Changes\\n", "new_string": note}}
await call_tool("commander_edit_block", {{"file_path": "{FOLDER}/CHANGELOG.md", **edit}})
return {_run(COMMIT)}""",
)
_READ_MORE = """sessions = await call_tool("commander_list_sessions", {})
pid = int(sessions.split("PID: ")[1].split(",")[0])
return await call_tool("commander_read_process_output", {"pid": pid, "timeout_ms": 5000})"""
PEERS_FILES = ("filesystem_list_directory", "commander_read_file", "commander_edit_block")
PEERS_OTHERS = (
    "commander_start_process", "playwright_browser_fill_form", "playwright_browser_click",
    "playwright_browser_console_messages",
)  # fmt: skip
PEERS_PAGE = ("playwright_browser_navigate", "playwright_browser_snapshot")
PEERS_TOOLS = (*PEERS_FILES, *PEERS_OTHERS, *PEERS_PAGE)
PEERS = (
    Turn("search", {"query": FILES_QUERY, "limit": HITS}, PEERS_FILES),
    Turn("search", {"query": OTHER_QUERY, "limit": HITS}, PEERS_OTHERS),
    Turn("search", {"query": "browser navigate to a url, snapshot of the page", "limit": HITS // 2}, PEERS_PAGE),
    Turn("get_schema", {"tools": [*PEERS_TOOLS]}, PEERS_TOOLS),
    *_code_turns(PEERS_CODE, _READ_MORE, "execute", pieces=(*PIECES[:6], ("Voucher",), *PIECES[6:])),
)
