"""Checks of input to the graph: sizes, numbers and names, once, before a transaction begins."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from unicodedata import category

from msgspec.structs import replace

from longshore.errors import ToolError
from longshore.toolsets.context.records import NOTE, NewItem, NewLink, NodeChange
from longshore.toolsets.context.rows import to_json

TEXT_CHARACTERS: Final = 100_000
"""Of one observation. A longer text is a file: ingest it, and its sections are found one by one."""
NAME_CHARACTERS: Final = 500
KIND_CHARACTERS: Final = 50
"""Of a kind or a relation."""
PATH_CHARACTERS: Final = 4_096
ATTRIBUTES_CHARACTERS: Final = 10_000
"""As JSON. They are shown, not searched."""
LINKS: Final = 1_000
"""Of one item."""
MOST_WEIGHT: Final = 100.0
"""Of a link. The usual one is 1."""
_DERIVED_NAME_CHARACTERS: Final = 80
_SIGNS: Final = "_-./+#&@~%=:"
_CONTROL: Final = re.compile("[\x00-\x1f\x7f\u2028\u2029]+")
_SURROGATE: Final = re.compile("[\x00\ud800-\udfff]")


def check_item(item: NewItem, number: int) -> NewItem:
    """The item with its name, and without invalid characters. Raises ToolError for an item that can't be stored."""
    where = f"item {number}: its"
    text = _SURROGATE.sub("\ufffd", item.text).strip()
    name = _one_line(item.name) or derive_name(text)
    if not name:
        raise ToolError(f"item {number} has neither a name nor a text")
    if item.valid_to is not None and item.valid_from is not None and item.valid_to <= item.valid_from:
        raise ToolError(f"item {number} is valid to a time that is not after valid_from")
    _check_length(f"{where} text", text, TEXT_CHARACTERS, "divide it, or ingest it as a file")
    _check_share(f"{where} confidence", item.confidence)
    if len(item.links) > LINKS:
        raise ToolError(f"{where} links are {len(item.links):,}, and at most {LINKS:,} are stored; add the rest later")
    fields = NodeChange(
        kind=item.kind, name=name, path=item.path, importance=item.importance, attributes=item.attributes
    )
    checked = check_change(fields, where)
    links = tuple(_check_link(link, where) for link in item.links)
    return replace(item, text=text, name=name, kind=checked.kind or NOTE, links=links)


def derive_name(text: str) -> str:
    """Derive the name of an item without one from the beginning of its text."""
    return _one_line(text.strip().partition("\n")[0])[:_DERIVED_NAME_CHARACTERS].strip()


def check_change(change: NodeChange, where: str = "the") -> NodeChange:
    """The change, with a name and kind on one line. Raises ToolError for a change that can't be stored."""
    name = None if change.name is None else _one_line(change.name)
    kind = None if change.kind is None else _one_line(change.kind)
    if name == "":
        raise ToolError(f"{where} name is empty; leave it out, or give one")
    _check_length(f"{where} name", name or "", NAME_CHARACTERS, "put the details into the text")
    _check_word(f"{where} kind", kind or "", "use one word, such as decision")
    _check_length(f"{where} path", change.path or "", PATH_CHARACTERS, "name it from the project's root")
    _check_length(f"{where} attributes", to_json(change.attributes), ATTRIBUTES_CHARACTERS, "put them into a text")
    if change.importance is not None:
        _check_share(f"{where} importance", change.importance)
    return replace(change, name=name, kind=kind or None)


def check_text(text: str) -> str:
    """Check the text of an observation. Raises ToolError."""
    text = _SURROGATE.sub("\ufffd", text).strip()
    if not text:
        raise ToolError("the text is empty; to remove an observation, retract it")
    _check_length("the text", text, TEXT_CHARACTERS, "divide it, or ingest it as a file")
    return text


def _check_link(link: NewLink, where: str) -> NewLink:
    name, relation, kind = _one_line(link.to), _one_line(link.relation), _one_line(link.kind)
    if not name or not relation:
        raise ToolError(f"{where} link needs a node's id or name in `to`, and a relation")
    _check_length(f"{where} link's `to`", name, NAME_CHARACTERS, "name the node shorter, or by its id")
    _check_word(f"{where} link's relation", relation, "use a word, such as depends_on")
    _check_word(f"{where} link's kind", kind, "use one word, such as decision")
    _check_length(f"{where} link's path", link.path, PATH_CHARACTERS, "name it from the project's root")
    if not 0 < link.weight <= MOST_WEIGHT:
        raise ToolError(f"{where} link's weight is {link.weight}; it is more than 0, and at most {MOST_WEIGHT:g}")
    return replace(link, to=name, relation=relation, kind=kind)


@lru_cache(1_024)
def to_word(text: str) -> str:
    """A text as a valid kind or relation: letters, digits, spaces and a few signs.

    Kinds and relations stand unquoted in answers, where other characters could imitate a line of the server.
    """
    plain = "".join(c if c in _SIGNS or category(c)[0] in "LMN" else " " for c in text)
    return " ".join(word for part in plain.split() if (word := part.strip(":")))


def _check_word(what: str, text: str, fix: str) -> None:
    _check_length(what, text, KIND_CHARACTERS, fix)
    if text != to_word(text):
        raise ToolError(f"{what} is {text!r}, and may only have letters, digits, spaces and {_SIGNS}; {fix}")


def _check_length(what: str, text: str, most: int, fix: str) -> None:
    if len(text) > most:
        raise ToolError(f"{what} has {len(text):,} characters, and at most {most:,} are stored; {fix}")


def _check_share(what: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ToolError(f"{what} is {value}; it is a number from 0 to 1")


def _one_line(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", _SURROGATE.sub("\ufffd", text)).split())
