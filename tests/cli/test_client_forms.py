"""Questions of hand-written servers, answered on a terminal: every kind of field."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from waiting import eventually

from .conftest import Terminal, Workspace
from .test_client_terminal import plain

ASKER = """
    import json, os, sys, time
    ASK = json.load(open("ask.json"))
    LONG = "\\x1b[31m" + "word " * 60
    TOOL = {"name": "ask\\x1b]0;x\\x07", "description": LONG, "inputSchema": {"type": "object"}}
    CAN = {"tools": {}, "logging": {}}
    INFO = {"name": "ask\\x1b[2Jer", "version": "\\x9b"}

    def say(message):
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    for line in sys.stdin:
        asked = json.loads(line)
        match asked.get("method"):
            case "initialize":
                say({"id": asked["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": CAN,
                                                   "serverInfo": INFO}})
            case "tools/list":
                say({"id": asked["id"], "result": {"tools": [TOOL, {**TOOL, "name": "ask"}]}})
            case "tools/call":
                call, token = asked["id"], asked["params"].get("_meta", {}).get("progressToken")
                say({"id": "q", "method": "elicitation/create", "params": ASK})
                while not os.path.exists("go"):
                    time.sleep(0.005)
                for n in range(5):
                    say({"method": "notifications/progress", "params": {"progressToken": token, "progress": n}})
                    say({"method": "notifications/message", "params": {"level": "error", "data": f"meanwhile {n}"}})
                say({"id": "heard", "method": "ping"})
            case None if asked["id"] == "heard":
                open("sent", "w").close()
            case None:
                text = json.dumps(asked.get("result"), sort_keys=True)
                say({"id": call, "result": {"content": [{"type": "text", "text": "got: " + text}]}})
            case _ if "id" in asked:
                say({"id": asked["id"], "error": {"code": -32601, "message": "no"}})
"""


def ask(workspace: Workspace, schema: dict[str, Any], message: str = "Please", *, go: bool = True) -> Terminal:
    """`go`: it says more at once, not only when the test lets it."""
    workspace.write("ask.json", json.dumps({"mode": "form", "message": message, "requestedSchema": schema}))
    workspace.write("asker.py", ASKER)
    if go:
        workspace.write("go", "")
    return workspace.terminal("call", f"{sys.executable} asker.py", "ask", columns=300)


def answers(terminal: Terminal) -> Any:
    assert terminal.end() == 0, terminal.seen
    return json.loads(plain(terminal.seen).rpartition("got: ")[2])


def form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


@pytest.mark.parametrize(
    ("field", "prompt", "typed", "value"),
    [
        ({"type": "string"}, "f, a string: ", "5", "5"),
        ({"type": "string", "title": "Name", "description": "of you"}, "Name (of you), a string: ", "Ada L", "Ada L"),
        ({"type": "string", "default": "x"}, 'f, a string ["x"]: ', "", "x"),
        ({"type": "integer", "minimum": 3}, "f, an integer: ", "3", 3),
        ({"type": "number"}, "f, a number: ", "2.5", 2.5),
        ({"type": "boolean"}, "f [y/n] ", "no", False),
        ({"type": "boolean", "default": True}, "f [Y/n] ", "", True),
        ({"type": "string", "enum": ["a", "b"]}, "f, a number: ", "2", "b"),
        ({"type": "string", "enum": ["2", "4", "8"]}, "2) 4", "2", "4"),
        ({"type": "string", "enum": ["2", "4", "8"]}, "3) 8", "8", "8"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["Ay", "Bee"]}, "1) Ay", "bee", "b"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "Ay"}, {"const": "b"}]}, "1) Ay", "1", "a"),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}}, "numbers, with", "1, 3", ["a", "c"]),
        ({"type": "array", "items": {"type": "integer", "enum": [3, 2, 1]}}, "3) 1", "1,3", [3, 1]),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "Ay"}]}}, "1) Ay", "1", ["a"]),
    ],
)
def test_every_kind_of_field(workspace: Workspace, field: dict[str, Any], prompt: str, typed: str, value: Any) -> None:
    terminal = ask(workspace, form(f=field)).until(prompt)
    terminal.type(typed + "\n")
    assert answers(terminal) == {"action": "accept", "content": {"f": value}}


def test_an_invalid_answer_is_asked_again(workspace: Workspace) -> None:
    terminal = ask(workspace, form(f={"type": "string", "minLength": 3}, g={"type": "integer", "maximum": 5}))
    terminal.until("f, a string: ").type("\n").until("it is needed").type("ab\n").until("must have a length >= 3")
    terminal.type("abc\n").until("g, an integer: ").type("6\n").until("must be <= 5").type("5\n")
    assert answers(terminal)["content"] == {"f": "abc", "g": 5}


def test_an_optional_field_may_be_left_out(workspace: Workspace) -> None:
    terminal = ask(workspace, {**form(f={"type": "string"}), "required": []}).until("[nothing]: ").type("\n")
    assert answers(terminal) == {"action": "accept", "content": {}}


@pytest.mark.parametrize(("typed", "content"), [("", {}), ("y", {"f": True})])
def test_an_optional_yes_or_no_may_be_left_out(workspace: Workspace, typed: str, content: dict[str, Any]) -> None:
    terminal = (
        ask(workspace, {**form(f={"type": "boolean"}), "required": []}).until("[y/n, or nothing] ").type(f"{typed}\n")
    )
    assert answers(terminal) == {"action": "accept", "content": content}


def test_a_form_without_fields_is_yes_or_no(workspace: Workspace) -> None:
    terminal = ask(workspace, {"type": "object", "properties": {}}).until("Agree? [y/n] ").type("what\n")
    terminal.until("[y/n] ").type("n\n")
    assert answers(terminal) == {"action": "decline"}


def test_the_end_of_input_declines(workspace: Workspace) -> None:
    terminal = ask(workspace, form(a={"type": "string"}, b={"type": "string"})).until("a, a string: ").type("x\n")
    terminal.until("b, a string: ").type("\x04")
    assert answers(terminal) == {"action": "decline"}


@pytest.mark.parametrize("schema", [{"properties": 3}, {"properties": {"f": 3}}, {"properties": {"f": {"enum": 3}}},
                                    {"properties": {"f": {"type": "array", "items": 3}}}])  # fmt: skip
def test_malformed_forms_are_answered(workspace: Workspace, schema: dict[str, Any]) -> None:
    terminal = ask(workspace, schema).until(": ").type("y\n")
    assert answers(terminal)["action"] == "accept"


def test_log_messages_wait_until_a_question_is_answered(workspace: Workspace) -> None:
    terminal = ask(workspace, form(f={"type": "string"}), message="Say \x1b[31mit", go=False).until("f, a string: ")
    (workspace.folder / "go").touch()
    eventually("what comes meanwhile", (workspace.folder / "sent").exists)
    terminal.type("xy\n").until("meanwhile 4")
    assert "f, a string: xy\r\n" in terminal.seen
    assert answers(terminal)["content"] == {"f": "xy"}


def test_control_characters_in_a_list_are_spelled_out(workspace: Workspace) -> None:
    workspace.write("ask.json", "{}")
    workspace.write("asker.py", ASKER)
    terminal = workspace.terminal("list", f"{sys.executable} asker.py", columns=50)
    assert terminal.end() == 0
    shown = plain(terminal.seen)
    assert "ask\\x1b[2Jer" in shown and "ask\\x1b]0;x\\x07" in shown
    assert max(map(len, shown.splitlines())) <= 50


def test_a_terminal_shows_which_file_names_a_project_server(workspace: Workspace) -> None:
    entry = {"command": sys.executable, "args": ["-m", "longshore", "serve", "server.py"]}
    workspace.write(".mcp.json", json.dumps({"mcpServers": {"dock": entry}}))
    terminal = workspace.terminal("call", "dock", "add", "a=1", columns=300)
    assert terminal.end() == 0
    assert plain(terminal.seen) == f"dock, as {workspace.folder}/.mcp.json has it\n3\n"
