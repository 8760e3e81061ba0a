"""Expected values with holes in them.

`"…"` stands for any value and `"…word…"` for any text that holds the word; `"…name"` stands for any value too and keeps
it, so that the same token in a later line stands for what came. `"…": "…"` in an object allows other members. An array
that begins with `"…any order"` holds the rest of its elements in any order. A text that is JSON may have `"…"` in it. A
text that really begins with `…` is written `"\\u2026"` in the file.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from longshore.client.channel import CLIENT_LIMITS
from longshore.schema.evolution.canonical import same
from longshore.schema.kinds import is_array, is_object
from longshore.wire.codec import BROKEN
from longshore.wire.depth import too_deep

ANY: Final = "…"
ANY_ORDER: Final = "…any order"
LITERAL: Final = "\ue000"
"""Before a text that is meant as it stands."""
_WRITTEN: Final = re.compile(rf'(?<!\\)"(?:\\u2026|(?={LITERAL}))')

Kept = dict[str, Any]


def read_json(text: str | bytes) -> Any:
    """What JSON says, if a server or a client could say it. Raises one of BROKEN."""
    data = text.encode() if isinstance(text, str) else text
    if too_deep(data, CLIENT_LIMITS.depth):
        raise ValueError(f"nesting is deeper than {CLIENT_LIMITS.depth} levels")
    return msgspec.json.decode(data)


def read_pattern(text: str) -> Any:
    """An expected value as it is written in a file. Raises one of BROKEN where that is no JSON."""
    return read_json(_WRITTEN.sub(lambda found: f'"{LITERAL}' + ("…" if len(found[0]) > 1 else ""), text))


def read_inner(text: str) -> Any:
    """The object or array that a text is, if it is JSON; None otherwise."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return read_json(text)
    except BROKEN:
        return None


def write_literally(text: str) -> str:
    """JSON as a file holds it where nothing in it is meant as a hole or a macro."""
    return text.replace("$", "\\u0024").replace('"…', '"\\u2026')


def matches(expected: Any, came: Any, kept: Kept) -> bool:
    """Whether what came is what was expected. `kept` learns what the tokens stand for."""
    if isinstance(expected, str) and expected.startswith((ANY, LITERAL)):
        return _matches_token(expected, came, kept)
    if is_object(expected) and is_object(came):
        return _matches_object(expected, came, kept)
    if is_array(expected) and is_array(came):
        if expected[:1] == [ANY_ORDER]:
            return len(expected) == len(came) + 1 and _all_taken(expected[1:], came, kept)
        return len(expected) == len(came) and all(matches(e, c, kept) for e, c in zip(expected, came, strict=True))
    if type(expected) is not type(came):
        return False
    if isinstance(expected, str) and expected != came and has_inner_hole(expected):
        return matches(read_inner(expected), read_inner(came), kept)
    return bool(expected == came)


def has_inner_hole(text: str) -> bool:
    """Whether it is a text that is JSON, from which something was left out."""
    return f'"{ANY}"' in text and read_inner(text) is not None


def _matches_object(expected: dict[str, Any], came: dict[str, Any], kept: Kept) -> bool:
    named = {key.removeprefix(LITERAL): value for key, value in expected.items() if key != ANY}
    if not (named.keys() <= came.keys() if ANY in expected else named.keys() == came.keys()):
        return False
    return all(matches(value, came[key], kept) for key, value in named.items())


def _all_taken(expected: list[Any], came: list[Any], kept: Kept) -> bool:
    left = list(came)
    return all(take(one, left, kept) for one in expected)


def take(expected: Any, left: list[Any], kept: Kept) -> bool:
    """Whether one of what is left matches; it is taken out."""
    for index, candidate in enumerate(left):
        trial = dict(kept)
        if matches(expected, candidate, trial):
            kept.update(trial)
            del left[index]
            return True
    return False


def _matches_token(token: str, came: Any, kept: Kept) -> bool:
    if token.startswith(LITERAL):
        return bool(token[1:] == came)
    if token == ANY:
        return True
    if token.endswith(ANY):
        return isinstance(came, str) and token[1:-1] in came
    return same(kept.setdefault(token[1:], came), came)
