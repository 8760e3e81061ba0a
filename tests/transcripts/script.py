"""Transcripts: what a client sends and what it must get back, in a text file.

    @server tools                 which fixture
    @let V "2025-11-25"           $V stands for that text in the lines below; some are there from the start (MACROS)
    > {"jsonrpc": …}              send this line, as it is
    < {"jsonrpc": …}              the next line must be this
    <| …                          such lines, one after another, may come in any order
    >= / <= / <|= expression      the same with a Python expression that gives the value
    --                            by now nothing else may have come

In an expected line `"…"` stands for any value and `"…word…"` for any text that holds the word; `"…name"` stands for any
value too and keeps it, so that the same token in a later line stands for what came. `"…": "…"` in an object allows
other members. An array that begins with `"…any order"` holds the rest of its elements in any order.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

SENTINEL = '{"jsonrpc":"2.0","id":"sentinel","method":"ping"}'
SENTINEL_ANSWER = {"jsonrpc": "2.0", "id": "sentinel", "result": {}}
ANY = "…"
ANY_ORDER = "…any order"
PREFIX = "io.modelcontextprotocol/"
MACROS = {
    "J": '"jsonrpc":"2.0"',
    "PREFIX": PREFIX,
    "MODERN": f'"_meta":{{"{PREFIX}protocolVersion":"2026-07-28","{PREFIX}clientCapabilities":{{}}}}',
    "SERVER": f'"_meta":{{"{PREFIX}serverInfo":"…"}}',
    "COMPLETE": '"resultType":"complete"',
    "CACHE": '"ttlMs":0,"cacheScope":"private"',
    "READY": '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    "TEXT": '"type":"text","text"',
}


class Send(NamedTuple):
    line: str
    number: int


class Expect(NamedTuple):
    """Values of which each must come, in any order."""

    values: list[Any]
    number: int


class Quiet(NamedTuple):
    number: int


Step = Send | Expect | Quiet


class Script(NamedTuple):
    server: str
    steps: list[Step]


def ping(id: int | str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


def empty(id: int | str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": {}}


_NAMES = {"ping": ping, "empty": empty}


def parse(path: Path) -> Script:
    server, macros, steps = "", dict(MACROS), list[Step]()
    for number, raw in enumerate(path.read_text().splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        mark, _, rest = line.partition(" ")
        if mark == "@server":
            server = rest.strip()
        elif mark == "@let":
            name, _, value = rest.partition(" ")
            macros[name] = _expand(value, macros)
        else:
            _add(steps, mark, _expand(rest, macros), number)
    assert server, f"{path.name} names no server"
    return Script(server, [*steps, Quiet(0)])


def _expand(text: str, macros: dict[str, str]) -> str:
    return re.sub(r"\$([A-Z]+)", lambda found: macros[found[1]], text)


def _add(steps: list[Step], mark: str, text: str, number: int) -> None:
    if mark == "--":
        steps.append(Quiet(number))
    elif mark == ">":
        steps.append(Send(text, number))
    elif mark == ">=":
        steps.append(Send(json.dumps(eval(text, dict(_NAMES))), number))
    else:
        assert mark in ("<", "<=", "<|", "<|="), f"line {number}: what is {mark!r}?"
        value = eval(text, dict(_NAMES)) if mark.endswith("=") else json.loads(text)
        last = steps[-1] if steps else None
        if "|" in mark and isinstance(last, Expect) and last.number < 0:
            last.values.append(value)
        else:
            steps.append(Expect([value], -number if "|" in mark else number))


def fill(line: str, kept: dict[str, Any]) -> str:
    """The line with what was kept in the place of its tokens."""
    return re.sub(r'"…(\w+)"', lambda found: json.dumps(kept[found[1]]), line)


def matches(expected: Any, came: Any, kept: dict[str, Any]) -> bool:
    if isinstance(expected, str) and expected.startswith(ANY):
        return _matches_token(expected, came, kept)
    if isinstance(expected, dict) and isinstance(came, dict):
        open_ended = ANY in expected
        named = {key: value for key, value in expected.items() if key != ANY}
        if not (named.keys() <= came.keys() if open_ended else named.keys() == came.keys()):
            return False
        return all(matches(value, came[key], kept) for key, value in named.items())
    if isinstance(expected, list) and isinstance(came, list):
        if expected[:1] == [ANY_ORDER]:
            return len(expected) == len(came) + 1 and _all_taken(expected[1:], came, kept)
        return len(expected) == len(came) and all(matches(e, c, kept) for e, c in zip(expected, came, strict=True))
    return type(expected) is type(came) and bool(expected == came)


def _all_taken(expected: list[Any], came: list[Any], kept: dict[str, Any]) -> bool:
    left = list(came)
    return all(_take(one, left, kept) for one in expected)


def _take(expected: Any, left: list[Any], kept: dict[str, Any]) -> bool:
    """Whether one of what is left matches; it is taken out."""
    for index, candidate in enumerate(left):
        trial = dict(kept)
        if matches(expected, candidate, trial):
            kept.update(trial)
            del left[index]
            return True
    return False


def _matches_token(token: str, came: Any, kept: dict[str, Any]) -> bool:
    if token == ANY:
        return True
    if token.endswith(ANY):
        return isinstance(came, str) and token[1:-1] in came
    name = token[1:]
    if name in kept:
        return bool(kept[name] == came)
    kept[name] = came
    return True


class Checker:
    """Follows a script: says what to send, and is told what came."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.kept: dict[str, Any] = {}

    def check(self, step: Expect, lines: list[str]) -> None:
        left = [json.loads(line) for line in lines]
        for value in step.values:
            assert _take(value, left, self.kept), (
                f"line {abs(step.number)} expects\n  {json.dumps(value, ensure_ascii=False)}\nand there came\n  "
                + "\n  ".join(json.dumps(one, ensure_ascii=False) for one in left)
            )

    def check_quiet(self, step: Quiet, line: str) -> None:
        assert json.loads(line) == SENTINEL_ANSWER, f"line {step.number}: nothing should have come, but\n  {line}"
