"""The pages in `PAGES` are true: their code runs, and the answers shown are the answers."""

from __future__ import annotations

import inspect
import itertools
import json
import linecache
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import longshore
from longshore import RegistrationError, Server, Tool
from longshore.registry.tool import ToolOptions
from longshore.server.context import Context
from talk import NEWEST, Refused, call, result

PAGE = Path(__file__).parents[2] / "docs/writing-a-server.md"
PAGES = (PAGE, PAGE.with_name("validation.md"), PAGE.with_name("artifacts-and-roots.md"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ASKING = {"ask", "elicit", "sample", "roots", "once"}
"""What docs/questions.md tells of the context."""


def blocks() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for found in FENCE.finditer(page.read_text()):
            yield found[1], found[2]


def pairs() -> list[Any]:
    """Each piece of code, with the block that follows it."""
    found = [*blocks(), ("", "")]
    return [
        pytest.param(code, kind if kind in ("mcp", "text") else "", after, id=f"snippet {n}")
        for n, ((language, code), (kind, after)) in enumerate(itertools.pairwise(found))
        if language == "python"
    ]


def run(code: str, monkeypatch: pytest.MonkeyPatch) -> Server:
    module = ModuleType("server")
    monkeypatch.setitem(sys.modules, "server", module)  # dataclasses look their module up
    monkeypatch.setitem(linecache.cache, "server.py", (len(code), None, code.splitlines(keepends=True), "server.py"))
    exec(compile(code, "server.py", "exec"), vars(module))
    app = vars(module)["app"]
    assert isinstance(app, Server)
    return app


def answer(app: Server, request: str) -> str:
    """What a client of the newest revision would read, for one line of a page."""
    kind, _, rest = request.partition(" ")
    name, _, given = rest.partition(" ")
    try:
        match kind:
            case "call":
                return "\n".join(block["text"] for block in call(app, name, json.loads(given), NEWEST)["content"])
            case "read":
                found = result(app, "resources/read", {"uri": name}, NEWEST)["contents"]
                return "\n".join(each["text"] for each in found)
            case "prompt":
                found = result(app, "prompts/get", {"name": name, "arguments": json.loads(given)}, NEWEST)["messages"]
                return "\n".join(f"{message['role']}: {message['content']['text']}" for message in found)
            case "complete":
                argument, _, text = given.partition(" ")
                params = {
                    "ref": {"type": "ref/prompt", "name": name},
                    "argument": {"name": argument, "value": json.loads(text)},
                }
                return ", ".join(result(app, "completion/complete", params, NEWEST)["completion"]["values"])
    except Refused as refused:
        return f"error {refused}"
    raise AssertionError(f"no such request: {request}")


@pytest.mark.parametrize(("code", "kind", "after"), pairs())
def test_a_snippet_runs_and_answers_as_the_page_says(
    code: str, kind: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "text":
        with pytest.raises(RegistrationError) as caught:
            run(code, monkeypatch)
        assert str(caught.value) == after.rstrip("\n")
        return
    app = run(code, monkeypatch)
    if kind == "mcp":
        for exchange in re.split(r"^> ", after, flags=re.MULTILINE)[1:]:
            request, *said = exchange.splitlines()
            assert answer(app, request) == "\n".join(line[1:].removeprefix(" ") for line in said), request


def test_the_page_names_everything_that_there_is() -> None:
    page = PAGE.read_text()
    others = "".join(PAGE.with_name(name).read_text() for name in ("middleware.md", "authorization.md", "state.md"))
    for option in (*ToolOptions.__struct_fields__, "replace"):
        assert option == "replay" or f"{option}=" in page, option
    for name in longshore.__all__:
        if name in ("Annotations", "Limits", "__version__") or "Error" in name:
            continue
        home = longshore._HOMES[name]
        value = getattr(longshore, name)
        if ".client" in home or (inspect.isclass(value) and issubclass(value, longshore.ClientError)):
            continue  # docs/client.md tells of these
        assert home == "longshore.protocol.questions" or name in page + others or name == "Declined", name
    members = {name for name, _ in inspect.getmembers(Context) if not name.startswith("_")} - ASKING
    for name in members - {"debug", "warning", "error", "log"}:
        assert re.search(rf"\b{name}\b", page), name
    for name in ("name", *Server.__init__.__kwdefaults__):
        assert re.search(rf"^\|[^|]*`{name}`", page, re.MULTILINE), name
    assert "validate" in Tool.__struct_fields__ and "Tool(validate=False)" in page
