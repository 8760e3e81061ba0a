"""YAML, edited as text: the rest of the file keeps every character.

A parser gives the positions of the entries of a mapping; an edit adds, replaces or removes whole lines. Values are
written as JSON, which is YAML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from yaml import SafeLoader, YAMLError, compose, safe_load
from yaml.error import MarkedYAMLError
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from longshore.install.plain_data import BrokenFile, look_up
from longshore.schema.kinds import is_object


def read(text: str) -> dict[str, Any]:
    """The data of a file; an empty one holds an empty mapping. Raises BrokenFile, with the line."""
    try:
        data: Any = safe_load(text)
    except YAMLError as problem:
        raise _broken(problem) from None
    except (RecursionError, ValueError) as problem:  # a value such as a month 13
        raise BrokenFile(0, str(problem)) from None
    if data is None:
        return {}
    if not is_object(data):
        raise BrokenFile(1, "expected a mapping")
    return data


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with an entry at a path of two keys. A missing mapping for it is created."""
    outer, name = path
    if look_up(read(text), path) is not None:
        return _replace(text, path, value)
    eol = "\r\n" if "\r\n" in text else "\n"
    found = _entry(_root(text), outer)
    if found is None:
        gap = "" if not text or text.endswith("\n") else eol
        return f"{text}{gap}{outer}:{eol}" + _block(name, value, 2, eol)
    key, node = found
    if not isinstance(node, MappingNode) or not node.value:
        start, end = node.start_mark.index, node.end_mark.index
        if text[start:end].strip() not in ("", "{}", "null", "~"):
            raise BrokenFile(node.start_mark.line + 1, f"{outer} is no mapping")
        rest = text[end:]
        line, _, after = rest.partition("\n")
        head = text[:start].rstrip(" ") if start > key.end_mark.index else text[: key.end_mark.index] + ":"
        column = key.start_mark.column + 2
        return f"{head}{line.rstrip()}{eol}{_block(name, value, column, eol)}{after}"
    if node.flow_style:
        at = node.start_mark.index + 1
        return f"{text[:at]}{_json(name)}: {_json(value)}, {text[at:].lstrip(' ')}"
    at = _line_end(text, key.end_mark.index)
    return text[:at] + _block(name, value, node.value[0][0].start_mark.column, eol) + text[at:]


def remove(text: str, path: Sequence[str]) -> str:
    """The text without the entry at a path, which must be there. Comments beside it stay."""
    parent, key, value = _located(text, path)
    if parent.flow_style:
        raise BrokenFile(key.start_mark.line + 1, f"{'.'.join(path)} stands in braces; change it by hand")
    start, end = _lines_of(text, key, value)
    if len(parent.value) > 1 or len(path) == 1:
        return text[:start] + text[end:]
    outer, _ = _entry(_root(text), path[0]) or (None, None)
    assert outer is not None
    colon = text.index(":", outer.end_mark.index) + 1
    return f"{text[:colon]} {{}}{text[colon:start]}{text[end:]}"


def _replace(text: str, path: Sequence[str], value: Any) -> str:
    parent, key, old = _located(text, path)
    if parent.flow_style:
        return text[: old.start_mark.index] + _json(value) + text[old.end_mark.index :]
    start, end = _lines_of(text, key, old)
    eol = "\r\n" if "\r\n" in text else "\n"
    return text[:start] + _block(path[-1], value, key.start_mark.column, eol) + text[end:]


# -- places


def _root(text: str) -> MappingNode | None:
    try:
        root: Any = compose(text, Loader=SafeLoader)
    except YAMLError as problem:
        raise _broken(problem) from None
    if root is None:
        return None
    if not isinstance(root, MappingNode) or root.flow_style or root.start_mark.column or "\n..." in text:
        raise BrokenFile(
            root.start_mark.line + 1, "expected one mapping in lines, from the first column; change it by hand"
        )
    return root


def _entry(node: MappingNode | None, name: str) -> tuple[Node, Node] | None:
    """The key and the value of an entry."""
    found = [] if node is None else [pair for pair in node.value if pair[0].value == name]
    if len(found) > 1:
        raise BrokenFile(found[1][0].start_mark.line + 1, f"{name} stands there twice; delete one of them")
    return found[0] if found else None


def _located(text: str, path: Sequence[str]) -> tuple[MappingNode, Node, Node]:
    """The mapping that holds an entry, its key and its value."""
    node: Any = _root(text)
    found = None
    for name in path:
        if found is not None:
            node = found[1]
        found = _entry(node, name)
        assert found is not None
    assert found is not None
    return node, *found


def _lines_of(text: str, key: Node, value: Node) -> tuple[int, int]:
    """From the line of the key to the end of the value's last line.

    The mark of a mapping's end is after its comments.
    """
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    last = max([key.end_mark.index, *_ends(text, value)])
    return start, _line_end(text, last)


def _ends(text: str, node: Node) -> Iterator[int]:
    if isinstance(node, CollectionNode) and not node.flow_style:
        for each in node.value:
            inner: tuple[Node, ...] = each if isinstance(node, MappingNode) else (each,)
            for one in inner:
                yield from _ends(text, one)
    elif isinstance(node, ScalarNode) and node.style in ("|", ">"):
        yield len(text[: node.end_mark.index].rstrip())
    elif node.end_mark.index > node.start_mark.index:
        yield node.end_mark.index


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


# -- writing


def _block(name: str, value: dict[str, Any], column: int, eol: str) -> str:
    pad = " " * column
    shown = name if _read_key(name) == name else _json(name)
    lines = [f"{pad}{shown}:", *(f"{pad}  {key}: {_json(each)}" for key, each in value.items())]
    return eol.join(lines) + eol


def _read_key(name: str) -> Any:
    """The value of a bare key: `on` and `12` are not read as texts."""
    return safe_load(name)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007F")


def _broken(problem: YAMLError) -> BrokenFile:
    if isinstance(problem, MarkedYAMLError) and problem.problem_mark is not None:
        return BrokenFile(problem.problem_mark.line + 1, str(problem.problem or problem.context))
    return BrokenFile(0, " ".join(str(problem).split()))
