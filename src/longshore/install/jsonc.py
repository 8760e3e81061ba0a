"""JSON with comments and trailing commas, edited as text: the rest of the file keeps every character.

A file is parsed into nodes with their positions. An edit replaces the smallest part of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Struct

from longshore.install.plain_data import BrokenFile
from longshore.schema.kinds import is_object

DEPTH: Final = 200
"""Levels of nesting. Settings have ten."""
_TOKEN: Final = re.compile(
    r"""(?P<space>(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)+)
      | (?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")
      | (?P<mark>[{}\[\],:])
      | (?P<word>[^\s{}\[\],:"/]+)""",
    re.DOTALL | re.VERBOSE,
)
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class Member(Struct, frozen=True):
    """A key of an object and its value. `start` is where the key begins."""

    key: str
    start: int
    value: JsonNode


class JsonNode(Struct, frozen=True):
    """A value and its place in the text."""

    start: int
    end: int
    kind: str
    """`{`, `[` or empty for a scalar."""
    scalar: Any = None
    items: tuple[JsonNode, ...] = ()
    members: tuple[Member, ...] = ()


def read(text: str) -> dict[str, Any]:
    """The data of a file; an empty one holds an empty object. Raises BrokenFile, with the line."""
    try:
        data = msgspec.json.decode(text)  # plain JSON, in C: Claude Code's file may have megabytes
    except (msgspec.DecodeError, RecursionError):
        data = None
    if is_object(data):
        return data
    root = _parse(text)
    return {} if root is None else _data(root)


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with a value at a path of keys. Missing objects of the path are created."""
    root = _parse(text)
    eol = "\r\n" if "\r\n" in text else "\n"
    if root is None:
        body = _nested(path, value, "  ").replace("\n", eol)
        return f"{text.rstrip()}{eol if text.strip() else ''}{body}{eol}"
    unit = found[1] if (found := _INDENT.search(text)) else "  "
    node = root
    for level, key in enumerate(path):
        member = _member(text, node, key)
        if member is None:
            return _insert(text, node, key, _nested(path[level + 1 :], value, unit), unit, eol)
        node = member.value
        if level < len(path) - 1 and node.kind != "{":
            _fail(text, node.start, f'"{key}" is no object')
    if "\n" in text[node.start : node.end]:
        written = _dump(value, unit).replace("\n", "\n" + _indent_at(text, node.start)).replace("\n", eol)
    else:
        written = msgspec.json.encode(value).decode()
    return text[: node.start] + written + text[node.end :]


def remove(text: str, path: Sequence[str]) -> str:
    """The text without the member at a path, which must be there. Comments stay."""
    root = _parse(text)
    assert root is not None
    node = root
    for key in path[:-1]:
        member = _member(text, node, key)
        assert member is not None
        node = member.value
    gone = _member(text, node, path[-1])
    assert gone is not None
    at = node.members.index(gone)
    before = node.members[at - 1].value.end if at else node.start + 1
    after = gone.value.end
    comma = _comma_after(text, after)
    left, right = text[before : gone.start], text[after : node.end - 1]
    if comma is not None:
        right = text[after:comma] + text[comma + 1 : node.end - 1]
    elif at:  # the last one, without a trailing comma: the one before it loses its comma
        stop = _comma_after(text, before)
        assert stop is not None
        left = text[before:stop] + text[stop + 1 : gone.start]
    beside = right.lstrip(" \t")
    if beside and beside[0] not in "\r\n":  # more on the line: a comment before it must not include it
        left, right = left.rstrip(" \t") + (" " if at and "\n" not in left[-1:] else ""), beside
    else:
        left = left.rstrip()
    kept = left + right
    if len(node.members) == 1 and not kept.strip():
        kept = ""
    return text[:before] + kept + text[node.end - 1 :]


# -- inserting


def _insert(text: str, node: JsonNode, key: str, value: str, unit: str, eol: str) -> str:
    """A new last member of an object, in the object's own style."""
    name = _quote(key)
    inner = text[node.start + 1 : node.end - 1]
    last = node.members[-1].value.end if node.members else node.start + 1
    comma = _comma_after(text, last) if node.members else None
    is_compact = "\n" not in text.strip() and text.strip() != "{}"
    if "\n" not in inner and (inner.strip() or is_compact):
        at = node.start + 1 + len(inner.rstrip())
        compact = msgspec.json.encode(msgspec.json.decode(value)).decode()
        return f"{text[:at]}{', ' if node.members and comma is None else ''}{name}: {compact}{text[at:]}"
    outer = _indent_at(text, node.start)
    indent = _indent_at(text, node.members[0].start) if _begins_line(text, node) else outer + unit
    member = f"{indent}{name}: " + value.replace("\n", "\n" + indent)
    member = member.replace("\n", eol)
    at = node.start + 1 + len(inner.rstrip())  # after the comments that follow the last member
    rest = text[at:] if inner.strip() or "\n" in inner else eol + outer + text[node.end - 1 :]
    if not node.members or comma is not None:
        return f"{text[:at]}{eol}{member}{',' if comma is not None else ''}{rest}"
    return f"{text[:last]},{text[last:at]}{eol}{member}{rest}"


def _nested(path: Sequence[str], value: Any, unit: str) -> str:
    for key in reversed(path):
        value = {key: value}
    return _dump(value, unit)


def _dump(value: Any, unit: str) -> str:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return "\n".join(_reindent(line, unit) for line in text.split("\n"))


def _reindent(line: str, unit: str) -> str:
    bare = line.lstrip(" ")
    return unit * ((len(line) - len(bare)) // 2) + bare


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _indent_at(text: str, at: int) -> str:
    """The indentation of the line that a place is in."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, node: JsonNode) -> bool:
    """Whether the first member of an object is the first text of its line."""
    if not node.members:
        return False
    at = node.members[0].start
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _comma_after(text: str, at: int) -> int | None:
    """The place of the comma that follows a value."""
    found = _TOKEN.match(text, at)
    while found is not None and found["space"] is not None:
        found = _TOKEN.match(text, found.end())
    return found.start() if found is not None and found["mark"] == "," else None


def _member(text: str, node: JsonNode, key: str) -> Member | None:
    if node.kind != "{":
        _fail(text, node.start, "expected an object")
    found = [each for each in node.members if each.key == key]
    if len(found) > 1:
        _fail(text, found[1].start, f'"{key}" stands there twice; delete one of them')
    return found[0] if found else None


# -- parsing


def _parse(text: str) -> JsonNode | None:
    """The root object; None for a file of only spaces and comments."""
    parser = _Parser(text)
    if parser.is_at_end():
        return None
    root = parser.value(0)
    if not parser.is_at_end():
        _fail(text, parser.start, "there is more after the end of the object")
    if root.kind != "{":
        _fail(text, root.start, "expected an object")
    return root


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self.start = self._end = 0
        self._kind, self._word = "", ""
        self.at = 1 if text.startswith("\ufeff") else 0
        self._advance()

    def is_at_end(self) -> bool:
        return not self._kind

    def _advance(self) -> None:
        """Read the next token other than space."""
        text, self._end = self._text, self.at
        while True:
            found = _TOKEN.match(text, self.at)
            if found is None:
                self._kind = self._word = ""
                if self.at < len(text):
                    what = "a text that does not end" if text[self.at] == '"' else f"unexpected {text[self.at]!r}"
                    _fail(text, self.at, what)
                return
            if found["space"] is None:
                break
            self.at = found.end()
        self._kind, self._word = str(found.lastgroup), found[0]
        self.start, self.at = found.start(), found.end()

    def value(self, depth: int) -> JsonNode:
        start, kind, word = self.start, self._kind, self._word
        if depth > DEPTH:
            _fail(self._text, start, f"more than {DEPTH} levels")
        if word in ("{", "["):
            return self._object(start, depth) if word == "{" else self._array(start, depth)
        if kind not in ("text", "word"):
            _fail(self._text, start, f"expected a value, not {word!r}" if kind else "it ends too early")
        try:
            # The standard library accepts unpaired surrogates, which programs that cut texts may write.
            scalar = json.loads(word) if kind == "text" else msgspec.json.decode(word)
        except (msgspec.DecodeError, ValueError):
            _fail(self._text, start, f"{word[:40]} is no JSON")
        self._advance()
        return JsonNode(start, start + len(word), "", scalar)

    def _object(self, start: int, depth: int) -> JsonNode:
        members: list[Member] = []
        self._advance()
        while self._word != "}":
            at = self.start
            if self._kind != "text":
                _fail(self._text, at, f"expected a key, not {self._word!r}" if self._kind else "it ends too early")
            key = self.value(depth).scalar
            self._expect(":")
            members.append(Member(key, at, self.value(depth + 1)))
            self._separator("}")
        end = self.start + 1
        self._advance()
        return JsonNode(start, end, "{", members=tuple(members))

    def _array(self, start: int, depth: int) -> JsonNode:
        items: list[JsonNode] = []
        self._advance()
        while self._word != "]":
            items.append(self.value(depth + 1))
            self._separator("]")
        end = self.start + 1
        self._advance()
        return JsonNode(start, end, "[", items=tuple(items))

    def _separator(self, close: str) -> None:
        if self._word != close or self._kind != "mark":
            self._expect(",", f"expected , or {close}")

    def _expect(self, mark: str, what: str = "") -> None:
        if self._kind != "mark" or self._word != mark:
            found = f"not {self._word[:40]}" if self._kind else "it ends too early"
            _fail(self._text, self.start if self._kind else self._end, f"{what or f'expected {mark}'}, {found}")
        self._advance()


def _data(node: JsonNode) -> Any:
    if node.kind == "{":
        return {each.key: _data(each.value) for each in node.members}
    return [_data(each) for each in node.items] if node.kind == "[" else node.scalar


def _fail(text: str, at: int, what: str) -> NoReturn:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    raise BrokenFile(line, f"column {column}: {what}")
