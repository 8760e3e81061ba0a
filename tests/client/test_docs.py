"""`docs/client.md` is true: the code that it and other pages quote is in the examples, and the examples run."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest

import longshore
from longshore import Ask, Client, ClientError, Sample, Server, ServerError, SyncClient
from longshore.client import auth
from longshore.client.channel import CLIENT_LIMITS
from longshore.client.child_process import EOF_SECONDS, TERM_SECONDS
from longshore.client.handlers import AT_ONCE
from longshore.client.http import MOST_REQUESTS
from longshore.client.models import PromptInfo, ResourceInfo, TemplateInfo, ToolInfo
from longshore.client.negotiate import PROBE_SECONDS
from longshore.client.reconnecting_session import RESTART_SECONDS, RESTARTS, ROUNDS
from longshore.client.server_lists import ENTRIES, MOST, MOST_BYTES, MOST_PROBLEMS, PAGES
from longshore.client.session import CAP, MOST_NOTES
from longshore.client.stdio import TAIL_BYTES, TAIL_LINES
from longshore.client.sync import CLOSE_SECONDS

ROOT = Path(__file__).parents[2]
PAGE, LOGIN = ROOT / "docs" / "client.md", ROOT / "docs" / "signing-in.md"
CODE_MODE = ROOT / "docs" / "code-mode.md"
QUOTING = (PAGE, LOGIN, CODE_MODE, ROOT / "docs" / "questions.md", ROOT / "README.md")
QUOTE = re.compile(r"^```python\n# (examples/\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAYS = {
    "forecast": [
        "weather speaks 2026-07-28",
        "  forecast: Fetch the weather forecast for a city.",
        "sunny in Oslo for 2 days",
    ],
    "script": [
        "{'cup': 12, 'cap': 0, 'bowl': 7}",
        "['cup', 'cap']",
        "user Write a polite letter that orders more of: cap",
        "-32602 no resource 'stock://spoon'",
    ],
    "person": [
        "Refund order A9?",
        "refunded 40 EUR",
        "info: found 88484 for longshore",
        "88484 was found; we were told on the way: True",
    ],
    "code_mode": [
        "search_tools tool_api run_code",
        "> search_tools",
        "terminal_run(command?, argv?, cwd?, env?, stdin?, timeout_ms?, on_timeout?, background?, pty?): "
        "Run a command.",
        "> tool_api",
        'def fs_edit(path: str, edits: list[{"old": str, "new": str, "replace_all"?: bool}], *, dry_run: bool = ..., '
        "expected_hash: str = ...) -> str: ...  # Replace exact texts in a file, all or none, and show the diff.",
        "> run_code",
        "AssertionError: 7 != 5",
        "prices.py",
        "[hash 4ab34dfe4723]",
        "def total(prices, voucher=0):",
        "    return sum(prices)",
        "> run_code",
        "OK",
    ],
    "watching": ["0 tools", "tools changed: ['later']"],
}
ELSEWHERE = {"signing_in"}
"""Run by tests/client/auth/test_redirect.py, which has somewhere to sign in."""


@pytest.mark.parametrize("name", SAYS)
def test_an_example_prints_the_expected_lines(name: str) -> None:
    command = [sys.executable, "-W", "error", f"examples/clients/{name}.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", SAYS[name])


def test_every_example_is_run() -> None:
    assert {path.stem for path in (ROOT / "examples" / "clients").glob("*.py")} == SAYS.keys() | ELSEWHERE


@pytest.mark.parametrize("page", QUOTING, ids=lambda path: path.stem)
def test_code_quoted_on_a_page_is_in_the_example(page: Path) -> None:
    quotes = QUOTE.findall(page.read_text())
    assert quotes and len(quotes) == page.read_text().count("```python")
    for name, code in quotes:
        assert code in (ROOT / name).read_text(), name


def test_the_page_names_every_method_and_every_exception() -> None:
    page = PAGE.read_text()
    for name in {name for name, _ in inspect.getmembers(Client) if not name.startswith("_")} - {"open", "connected"}:
        assert re.search(rf"\b{name}\b", page), name
    for name in longshore.__all__:
        value = getattr(longshore, name)
        if inspect.isclass(value) and issubclass(value, longshore.ClientError):
            assert f"`{name}`" in page, name
    for entry in (ToolInfo, ResourceInfo, TemplateInfo, PromptInfo):
        for name in entry.__struct_fields__:
            assert f"`{name}`" in page, name
    for name in inspect.signature(Client).parameters:
        if name not in ("client_info", "extensions", "limits"):
            assert re.search(rf"\b{name}\b", page), name


def _raise(_: Any) -> None:
    raise OSError("the model is down")


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(
    ("row", "tool", "handlers"),
    [
        ("has no handler", "confirm", {}),
        ("`on_elicit` returns `False` or `None`", "confirm", {"on_elicit": lambda question: False}),
        ("`on_elicit` returns `False` or `None`", "confirm", {"on_elicit": lambda question: None}),
        ("`on_sample` returns `None`", "draft", {"on_sample": lambda params: None}),
        ("the handler raises", "draft", {"on_sample": _raise}),
    ],
)
def test_a_call_whose_question_gets_no_answer_raises_what_the_page_says(
    era: str, row: str, tool: str, handlers: dict[str, Any]
) -> None:
    app = Server("asking")

    @app.tool
    def confirm(ok: Annotated[bool, Ask("Go on?")]) -> str:
        return str(ok)

    @app.tool
    def draft(text: Annotated[str, Ask(Sample("Write."))]) -> str:
        return text

    [cells] = re.findall(rf"^\| {re.escape(row)} \| (.*) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    with SyncClient(app, era=era, **handlers) as client, pytest.raises(ClientError) as caught:
        client.call_tool(tool)
    code = f" {caught.value.code}" if isinstance(caught.value, ServerError) else ""
    assert cells[era == "legacy"] == f"`{type(caught.value).__name__}`{code}"


def test_the_login_page_names_everything_that_there_is() -> None:
    page = LOGIN.read_text()
    for name in auth.__all__:
        assert name in ("Authorizer", "AuthRequest", "Bearer", "Storage") or f"{name}(" in page, name


def test_the_numbers_are_the_codes() -> None:
    page = " ".join(PAGE.read_text().split())
    for claim in (
        f"{CLIENT_LIMITS.frame_bytes >> 20} MiB; more",
        f"| {MOST_REQUESTS}; more wait",
        f"last {TAIL_LINES} lines, {TAIL_BYTES >> 10} KiB",
        f"at most {PAGES:,} pages and {ENTRIES:,} entries",
        f"{MOST} answers, {MOST_BYTES >> 20} MiB",
        f"({ROUNDS} rounds at most)",
        f"questions at once | {AT_ONCE}; more are refused",
        f"last {MOST_NOTES} of what came, and {MOST_PROBLEMS} entries that were left out",
        f"holds up for {CLOSE_SECONDS:g} s",
        f"at most {RESTARTS} times in {RESTART_SECONDS:g} s",
        f"end of input, {EOF_SECONDS:g} s, SIGTERM to the group, {TERM_SECONDS:g} s, SIGKILL",
    ):
        assert claim in page, claim
    assert CAP == 10 and "up to ten times" in page
    assert PROBE_SECONDS == 2 and "after two seconds of silence" in page


def test_the_sync_client_has_the_methods_of_the_other() -> None:
    """Page by page makes no sense without async: a script takes the whole list."""
    own = {name for name, _ in inspect.getmembers(Client) if not name.startswith("_")} - {"pages"}
    assert own <= {name for name, _ in inspect.getmembers(SyncClient)}
