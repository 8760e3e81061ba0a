"""Words for values, schemas and failures. Whatever library found a failure, a model reads the same plain line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from longshore.schema.kinds import is_array, is_object

SHOWN_CHARS = 80
"""An echoed value is cut here: enough to recognise it, too little to carry a payload."""

SHOWN_WORDS = 20
"""Alternatives that are named in one line."""

SOME_KEY = "[key]"
"""A step of a path where msgspec does not tell which."""

_NOUNS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_PLURALS = {
    "string": "strings",
    "integer": "integers",
    "number": "numbers",
    "boolean": "booleans",
    "array": "arrays",
    "object": "objects",
}
_KINDS: dict[Any, str] = {
    bool: "a boolean",
    str: "a string",
    int: "a number",
    float: "a number",
    dict: "an object",
    list: "an array",
}
_FORMATS = {
    "date": "a date like 2026-01-31",
    "date-time": "a date and time like 2026-01-31T12:00:00Z",
    "time": "a time like 12:00:00",
    "duration": "a duration like PT1H30M",
    "uuid": "a UUID",
    "decimal": "a decimal number in a string",
}


def quote(value: Any) -> str:
    """A value as JSON, printable ASCII only, cut to `SHOWN_CHARS`."""
    try:
        text = msgspec.json.encode(_begun(value, [SHOWN_CHARS])).decode()
    except Exception:
        text = type(value).__name__
    return cut(text)


def _begun(value: Any, left: list[int]) -> Any:
    """As much of a value as can be shown: it may have megabytes, and be quoted for each of a hundred alternatives."""
    left[0] -= 1
    if isinstance(value, str):
        return value[:SHOWN_CHARS]
    if is_array(value):
        return [_begun(each, left) for each in takewhile(lambda _: left[0] >= 0, value)]
    if is_object(value):
        return {_begun(key, left): _begun(value[key], left) for key in takewhile(lambda _: left[0] >= 0, value)}
    return value


def cut(text: str) -> str:
    """Text that came from outside, escaped and cut, so that it can stand in a line of ours."""
    if len(text) > SHOWN_CHARS:
        text = text[: SHOWN_CHARS - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def kind(value: Any) -> str:
    """What a JSON value is."""
    if value is None:
        return "null"
    return _KINDS.get(value.__class__, "something else")


def expected(types: list[str]) -> str:
    """JSON Schema type names, as words."""
    return either([_NOUNS.get(t, t) for t in types])


def either(words: list[str]) -> str:
    """`a, b or c`, without repeats; `or others` where there are many."""
    words = list(dict.fromkeys(words))
    words = [*words[:SHOWN_WORDS], "others"] if len(words) > SHOWN_WORDS + 1 else words
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def describe(schema: dict[str, Any]) -> str:
    """What a schema asks for, in a few words."""
    match schema:
        case {"enum": values} if len(values) <= 20:
            return "one of " + ", ".join(quote(v) for v in values)
        case {"const": value}:
            return quote(value)
        case {"anyOf": options}:
            return either([describe(o) for o in options])
        case {"format": str(name)} if name in _FORMATS:
            return _FORMATS[name]
        case {"contentEncoding": "base64"}:
            return "base64 text"
        case {"type": "array", "items": {"type": str(name)}} if name in _PLURALS:
            return f"an array of {_PLURALS[name]}"
        case {"type": "object", "properties": properties} if properties:
            return "an object with " + ", ".join(list(properties)[:8])
        case {"type": str(name)}:
            return _NOUNS.get(name, name)
        case {"type": names}:
            return expected(names)
        case {"$ref": _}:
            return "an object"
        case _:
            return "any value"


def path(steps: Sequence[str | int]) -> str:
    """`points[1].x`. Keys come from outside, so each is escaped and cut."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{cut(step)}" if text and step != SOME_KEY else cut(step)
    return text


# msgspec's messages

_PYTHON_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "null": "null",
    "array": "an array",
    "object": "an object",
    "bytes": "base64 text",
    "datetime": _FORMATS["date-time"],
    "date": _FORMATS["date"],
    "time": _FORMATS["time"],
    "timedelta": _FORMATS["duration"],
    "uuid": "a UUID",
    "decimal": "a decimal number",
}
_INVALID = {
    "Invalid RFC3339 encoded datetime": f"expected {_FORMATS['date-time']}",
    "Invalid RFC3339 encoded date": f"expected {_FORMATS['date']}",
    "Invalid RFC3339 encoded time": f"expected {_FORMATS['time']}",
    "Invalid ISO8601 duration": f"expected {_FORMATS['duration']}",
    "Invalid UUID": "expected a UUID",
    "Invalid decimal string": "expected a decimal number",
    "Invalid base64 encoded string": "expected base64 text",
}
_AT = re.compile(r" - at `(?:key` in `)?\$([^`]*)`$")


def plain(error: BaseException) -> str:
    """An exception of a decoder as one plain line, `path: what` or only `what`."""
    if (lines := model_lines(error)) is not None:
        return "; ".join(lines[:3])
    text, where = _split_path(str(error))
    where = where.lstrip(".").replace("[...]", SOME_KEY)
    said = _say(text.splitlines()[0] if text else type(error).__name__)
    return f"{where}: {said}" if where else said


def places(error: BaseException) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Where a decoder found something, and its words. Steps may lead nowhere: pydantic names forms among them, too."""
    failures = _failures(error)
    own = failures is not None and error.__cause__ is None
    text, where = (str(error), "") if own else _split_path(str(error))
    names = re.findall(r"\[(\d+)\]|(\[\.{3}\]|[^.\[\]]+)", where)
    above = tuple(int(index) if index else SOME_KEY if name == "[...]" else name for index, name in names)
    if failures is None:
        said = text.splitlines() or [type(error).__name__]
        yield above, _say(said[0])
    for failure in failures or ():
        yield (*above, *failure["loc"]), _words_of(failure)


def _split_path(text: str) -> tuple[str, str]:
    """The words of a decoder, and the path at their end: one part for each stand-in that it leads through."""
    where = ""
    while found := _AT.search(text):
        text, where = text[: found.start()], where + found[1]
    return text, where


def wrong_form(said: str, value: Any) -> str:
    """The words of a decoder about a text in the wrong form, which don't tell what came."""
    return f"{said}, got {quote(value)}" if said in _INVALID.values() and isinstance(value, str) else said


def _say(text: str) -> str:
    if text in _INVALID:
        return _INVALID[text]
    if found := re.fullmatch(r"Expected `([^`]*)`(.*)", text):
        return _say_expected(_words(found[1]), found[2])
    if found := re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", text):
        return f"{cut(found[2])} is {'missing' if found[1].startswith('missing') else 'not a known field'}"
    if found := re.fullmatch(r"Invalid enum value (.*)", text):
        return f"{cut(found[1])} is not one of the allowed values"
    return cut(text.replace("`", "")[:1].lower() + text.replace("`", "")[1:])


def _say_expected(what: str, rest: str) -> str:
    if found := re.fullmatch(r", got `([^`]*)`", rest):
        return f"expected {what}, got {_words(found[1])}"
    if rest.startswith(" of length"):
        return f"must have a length{rest.removeprefix(' of length')}"
    if rest.startswith(" matching regex "):
        return f"must match the pattern {cut(rest.removeprefix(' matching regex '))}"
    if found := re.fullmatch(r" that's a multiple of (.*)", rest):
        return f"must be a multiple of {found[1]}"
    return f"must be{rest}" if rest else f"expected {what}"


def _words(names: str) -> str:
    return either([_PYTHON_NAMES.get(name, name) for name in names.split(" | ")])


def model_lines(error: BaseException) -> list[str] | None:
    """The lines of a pydantic error, without its URLs; None if the exception is none and has none as its cause."""
    failures = _failures(error)
    return None if failures is None else [_model_line(failure) for failure in failures]


def _failures(error: BaseException) -> list[dict[str, Any]] | None:
    found: Any = error
    while found is not None:
        if hasattr(found, "errors") and "pydantic" in type(found).__module__:
            failures: list[dict[str, Any]] = found.errors(include_url=False, include_context=False, include_input=False)
            return failures
        found = found.__cause__
    return None


def _model_line(failure: dict[str, Any]) -> str:
    where, said = path(list(failure["loc"])), _words_of(failure)
    return f"{where}: {said}" if where else said


def _words_of(failure: dict[str, Any]) -> str:
    said = str(failure["msg"])
    return cut(said[:1].lower() + said[1:])
