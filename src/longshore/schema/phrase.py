"""Texts about values, schemas and errors of decoders, the same for every library that found the error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Any

import msgspec

from longshore.schema.kinds import is_array, is_object

SHOWN_CHARS = 80
"""An echoed value is cut here: enough to recognise it, too little to carry a payload."""

SHOWN_WORDS = 20
"""Alternatives that one line lists."""

SOME_KEY = "[key]"
"""A step of a path that msgspec does not name."""

_NOUNS = {
    **{name: f"a {name}" for name in ("string", "number", "boolean")},
    **{name: f"an {name}" for name in ("integer", "array", "object")},
    "null": "null",
}
_TYPE_NAMES: dict[Any, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
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
    """The beginning of a value for a message: it may have megabytes, and be quoted for each of many alternatives."""
    left[0] -= 1
    if isinstance(value, str):
        return value[:SHOWN_CHARS]
    if is_array(value):
        return [_begun(each, left) for each in takewhile(lambda _: left[0] >= 0, value)]
    if is_object(value):
        return {_begun(key, left): _begun(value[key], left) for key in takewhile(lambda _: left[0] >= 0, value)}
    return value


def cut(text: str) -> str:
    """A text from outside, escaped and cut for use in a message."""
    if len(text) > SHOWN_CHARS:
        text = text[: SHOWN_CHARS - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def type_name(value: Any) -> str:
    """The type of a JSON value, as JSON Schema names it; integers are numbers."""
    return _TYPE_NAMES.get(value.__class__, "something else")


def kind(value: Any) -> str:
    """The type of a JSON value, with its article."""
    return expected([type_name(value)])


def expected(types: list[str]) -> str:
    """JSON Schema type names, with their articles."""
    return either([_NOUNS.get(t, t) for t in types])


def either(words: list[str]) -> str:
    """`a, b or c`, without repeats; `or others` where there are many."""
    words = list(dict.fromkeys(words))
    words = [*words[:SHOWN_WORDS], "others"] if len(words) > SHOWN_WORDS + 1 else words
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def describe(schema: dict[str, Any]) -> str:
    """A schema in a few words."""
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
        case {"type": "array", "items": {"type": str(name)}} if name in _NOUNS and name != "null":
            return f"an array of {name}s"
        case {"type": "object", "properties": properties} if properties:
            return "an object with " + ", ".join(list(properties)[:8])
        case {"type": names}:
            return expected([names] if isinstance(names, str) else names)
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
    **_NOUNS,
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "bytes": "base64 text",
    "uuid": "a UUID",
    "decimal": "a decimal number",
    "datetime": _FORMATS["date-time"],
    "date": _FORMATS["date"],
    "time": _FORMATS["time"],
    "timedelta": _FORMATS["duration"],
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
    """The error of a decoder as one plain line, `path: text` or only `text`."""
    lines = [f"{path(where)}: {text}" if where else text for where, text in islice(places(error), 3)]
    return "; ".join(lines)


def places(error: BaseException) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The paths and texts of a decoder's error. A path may lead nowhere: pydantic puts names of alternatives in it."""
    failures = _pydantic_errors(error)
    text, where = str(error), ""
    if failures is None or error.__cause__ is not None:
        while found := _AT.search(text):  # one part for each custom type on the path
            text, where = text[: found.start()], where + found[1]
    names = re.findall(r"\[(\d+)\]|(\[\.{3}\]|[^.\[\]]+)", where)
    above = tuple(int(index) if index else SOME_KEY if name == "[...]" else name for index, name in names)
    if failures is None:
        yield above, _say((text.splitlines() or [type(error).__name__])[0])
    for failure in failures or ():
        message = str(failure["msg"])
        yield (*above, *failure["loc"]), cut(message[:1].lower() + message[1:])


def _pydantic_errors(error: BaseException | None) -> list[dict[str, Any]] | None:
    """The list in a pydantic error, or in one that is its cause; None if there is none."""
    while error is not None:
        found: Any = error
        if hasattr(found, "errors") and "pydantic" in type(found).__module__:
            failures: list[dict[str, Any]] = found.errors(include_url=False, include_context=False, include_input=False)
            return failures
        error = error.__cause__
    return None


def wrong_form(text: str, value: Any) -> str:
    """The message about a string in the wrong form, with the string."""
    return f"{text}, got {quote(value)}" if text in _INVALID.values() and isinstance(value, str) else text


def _say(text: str) -> str:
    """A message of msgspec in plain words."""
    if text in _INVALID:
        return _INVALID[text]
    for pattern, say in _MESSAGES:
        if found := re.fullmatch(pattern, text):
            return say(found)
    text = text.replace("`", "")
    return cut(text[:1].lower() + text[1:])


def _type_names(names: str) -> str:
    return either([_PYTHON_NAMES.get(name, name) for name in names.split(" | ")])


_MESSAGES: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (r"Expected `([^`]*)`, got `([^`]*)`", lambda it: f"expected {_type_names(it[1])}, got {_type_names(it[2])}"),
    (r"Expected `[^`]*` of length(.*)", lambda it: f"must have a length{it[1]}"),
    (r"Expected `[^`]*` matching regex (.*)", lambda it: f"must match the pattern {cut(it[1])}"),
    (r"Expected `[^`]*` that's a multiple of (.*)", lambda it: f"must be a multiple of {it[1]}"),
    (r"Expected `([^`]*)`", lambda it: f"expected {_type_names(it[1])}"),
    (r"Expected `[^`]*`(.+)", lambda it: f"must be{it[1]}"),
    (r"Object missing required field `(.*)`", lambda it: f"{cut(it[1])} is missing"),
    (r"Object contains unknown field `(.*)`", lambda it: f"{cut(it[1])} is not a known field"),
    (r"Invalid enum value (.*)", lambda it: f"{cut(it[1])} is not one of the allowed values"),
)
"""A message of msgspec → ours."""
