"""A misbehaving server without any framework: `python hostile.py MODE`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

MODE = sys.argv[1]
MODERN = ("old", "dies", "round", "insists", "untold")
OBJECT = {"type": "object"}
listed = 0
outgoing: list[str] = []
waiting: Any = None
held: dict[str, Any] = {}
answered: dict[str, Any] = {}


def say(message: dict[str, Any], more: bool = False) -> None:
    """`more`: what follows goes out together with it."""
    outgoing.append(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    if not more:
        sys.stdout.write("".join(outgoing))
        sys.stdout.flush()
        outgoing.clear()


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line and MODE == "stubborn":
        time.sleep(600)
    if not line:
        sys.exit(0)
    found: dict[str, Any] = json.loads(line)
    return found


def tool(name: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "does", "inputSchema": OBJECT, **more}


def sized(name: str, size: int) -> dict[str, Any]:
    """A tool whose definition takes so many bytes."""
    made = tool(name, description="")
    made["description"] = "x" * (size - len(json.dumps(made, separators=(",", ":"))))
    return made


def tools(params: dict[str, Any]) -> dict[str, Any]:
    global listed
    listed += 1
    if MODE == "many":
        return {"tools": [tool(f"t{n}") for n in range(100_001 if len(sys.argv) > 2 else 5000)]}
    if MODE == "pages":
        return {"tools": [tool(f"t{listed}")], "nextCursor": str(listed)}
    if MODE == "huge":
        return {"tools": [tool("go"), tool("long", description="x" * (1 << 20))]}
    if MODE == "heavy":
        return {"tools": [tool(f"t{n}", description="x" * 60_000) for n in range(200)]}
    if MODE == "names":
        names = ["go", "a b", "a_b", "x" * 200, "x" * 199 + "y", "\x1b[2J", "", "go", "naïve", "own", "a/b", "a" * 61]
        return {"tools": [tool(name) for name in names]}
    if MODE == "malformed":
        bad = [
            {"name": "noschema"},
            tool("notobject", inputSchema={"type": "string"}),
            tool("badtitle", title=7),
            "nonsense",
            tool("header", inputSchema={"type": "object", "properties": {"a": {"x-mcp-header": "bad name!"}}}),
            tool(None),
        ]
        return {"tools": [*bad, tool("go", description="see\x1b[0m\u202e this\U000e0041")]}
    if MODE == "tasks":
        task = {"execution": {"taskSupport": "required"}}
        return {"tools": [tool("go", execution={"taskSupport": "optional"}), tool("long", **task)]}
    if MODE == "edges":
        return {"tools": [sized("fits", 65536), sized("one_more", 65537)]}
    if MODE == "full":
        return {"tools": [sized(f"t{n:02}", 65536) for n in range(64)] + [sized("t64", 60)]}
    if MODE in ("old", "untold"):
        return {
            "tools": [tool(f"go{listed}"), tool("go")][: 1 if MODE == "old" else 2],
            "ttlMs": 1,
            "cacheScope": "private",
            "resultType": "complete",
        }
    if MODE == "dies":
        say({"id": waiting, "result": {"tools": [tool("go")], "resultType": "complete"}})
        os._exit(3)
    if MODE == "slow":
        time.sleep(600)
    if MODE == "rug":
        return {"tools": [tool("go", description=f"version {listed}"), tool("same")]}
    more: dict[str, Any] = {"resultType": "complete"} if MODE in MODERN else {}
    return {"tools": [tool("go"), tool("other")] if MODE == "later" else [tool("go")], **more}


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def elicit(id: str, message: str, field: str, more: bool = False) -> None:
    form = {"type": "object", "properties": {field: {"type": "string"}}}
    say({"id": id, "method": "elicitation/create", "params": {"message": message, "requestedSchema": form}}, more)


def answers_of(params: dict[str, Any]) -> list[str]:
    return [each["content"]["a"] for each in params.get("inputResponses", {}).values()]


def call(id: Any, params: dict[str, Any]) -> Any:
    if MODE == "result":
        return text("x" * (50 << 20))
    if MODE == "nonsense":
        return {"content": ["no block", 7]}
    if MODE == "fault":
        say({"id": id, "error": {"code": -32022, "message": "between us"}})
        return None
    if MODE == "secret":
        elicit("q", "Your password?", "password")
        return text(json.dumps(hear().get("error", "answered")))
    if MODE == "both":
        for question in ("q1", "q2", "q3"):
            elicit(question, question, "a", more=True)
        say({"method": "notifications/cancelled", "params": {"requestId": "q3"}})
        answers: dict[str, str] = {}
        while len(answers) < 2:
            heard = hear()
            if "result" in heard:
                answers[heard["id"]] = heard["result"]["content"]["a"]
        return text(f"{answers['q1']} {answers['q2']}")
    if MODE == "roots too":
        say({"id": "roots", "method": "roots/list"}, more=True)
        elicit("q", "Your name?", "a")
        heard = {each["id"]: each for each in (hear(), hear())}
        return text(f"{heard['q']['result']['content']['a']}, {heard['roots']['error']['message']}")
    if MODE == "string content":
        message = {"role": "user", "content": "hi"}
        say({"id": "q", "method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 5}})
        return text(json.dumps(hear()["error"]))
    if MODE == "one of":
        form = {"type": "object", "properties": {"a": {"type": "string", "oneOf": ["x"]}}}
        say({"id": "q", "method": "elicitation/create", "params": {"message": "m", "requestedSchema": form}})
        return text(json.dumps(hear()["error"]))
    if MODE == "later":
        name = params["name"]
        elicit(name, f"a question of {name}", "a")
        held[name] = id
        if len(held) == 2:
            elicit("more", "another question", "a")
        return None
    if MODE == "impatient":
        elicit(f"q{id}", "Where?", "a")
        time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 0.2)
        return text("went without an answer")
    if MODE == "insists":
        said = [*json.loads(params.get("requestState", "[]")), *answers_of(params)]
        if len(said) == 2:
            return {"resultType": "complete", **text(", ".join(said))}
        form = {"type": "object", "properties": {"a": {"type": "string"}}}
        question = {"method": "elicitation/create", "params": {"message": "Sure?", "requestedSchema": form}}
        state = json.dumps(said)
        return {"resultType": "input_required", "inputRequests": {"a": question}, "requestState": state}
    if MODE == "round":
        asked = int(params.get("requestState", "0"))
        if asked < int(sys.argv[2]):
            return {"resultType": "input_required", "requestState": str(asked + 1)}
        return {"resultType": "complete", **text(f"after {asked}")}
    if MODE == "watch":
        say({"method": "notifications/resources/updated", "params": {"uri": "test://good"}})
    if MODE == "rug":
        say({"method": "notifications/tools/list_changed"})
    return text("went")


TOOLS: dict[str, Any] = {"tools": {"listChanged": True}}
CAPABILITIES: dict[str, Any] = {
    "half": TOOLS | {"resources": {}, "prompts": {}},
    "watch": TOOLS | {"resources": {"subscribe": True}},
}
SAYS = {"io.modelcontextprotocol/serverInfo": {"name": "hostile", "version": "1"}}


def take_answer(message: dict[str, Any]) -> None:
    """An answer to one of several questions: when all are there, all who wait get them."""
    answered[message["id"]] = message.get("error", message.get("result", {}).get("content"))
    if len(held) == 2 and len(answered) == 3:
        for id in held.values():
            say({"id": id, "result": text(json.dumps(answered))})


def listen(id: Any, how: str) -> None:
    """Keep no subscription open, though we said that we would tell."""
    if how == "never says":
        return
    told = {"toolsListChanged": True} if how == "ends" else {}
    meta = {"io.modelcontextprotocol/subscriptionId": id}
    params = {"notifications": told, "_meta": meta}
    say({"method": "notifications/subscriptions/acknowledged", "params": params}, how == "ends")
    if how == "ends":
        say({"id": id, "result": {"resultType": "complete"}})


def main() -> None:
    global waiting
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "never":
        time.sleep(600)
    if len(sys.argv) > 2 and sys.argv[2].startswith("/"):
        with open(sys.argv[2], "a") as starts:
            starts.write("x")
    if MODE == "crash":
        os.write(2, b"no key was given\n")
        sys.exit(7)
    while True:
        message = hear()
        id, method, params = message.get("id"), message.get("method"), message.get("params", {})
        if method is None:
            take_answer(message)
        if id is None or method is None:
            continue
        waiting = id
        if method == "initialize":
            info = {"name": "hostile", "version": "1"}
            made = {"protocolVersion": "2025-06-18", "capabilities": CAPABILITIES.get(MODE, TOOLS)}
            say({"id": id, "result": {**made, "serverInfo": info}})
        elif method == "server/discover" and MODE in MODERN:
            able = TOOLS if MODE == "untold" else {"tools": {}}
            made = {"supportedVersions": ["2026-07-28"], "capabilities": able, "ttlMs": 0}
            say({"id": id, "result": {**made, "cacheScope": "private", "resultType": "complete", "_meta": SAYS}})
        elif method == "subscriptions/listen" and MODE == "untold" and sys.argv[2] != "refuses":
            listen(id, sys.argv[2])
        elif method == "resources/list" and MODE in ("half", "watch"):
            uris = ("test://good", "test://bad")
            say({"id": id, "result": {"resources": [{"uri": uri, "name": uri[7:]} for uri in uris]}})
        elif method == "resources/subscribe" and params["uri"] != "test://bad":
            say({"id": id, "result": {}})
        elif method == "tools/list":
            say({"id": id, "result": tools(params)})
        elif method == "tools/call":
            result = call(id, params)
            if result is not None:
                say({"id": id, "result": result})
        else:
            say({"id": id, "error": {"code": -32601, "message": "no such method"}})


main()
