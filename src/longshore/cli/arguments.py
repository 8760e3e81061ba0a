"""`key=value …` on a command line, read as the arguments that a tool's input schema asks for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, final

import msgspec
from msgspec import Struct

from longshore.files import read_bounded
from longshore.nearest import nearest
from longshore.schema.kinds import as_array, as_object, is_array, is_object
from longshore.schema.phrase import cut, describe, expected, quote
from longshore.schema.walk import find_parts, listed_values, resolve

FILE_BYTES = 48 << 20
"""Most bytes of a file for an argument: more would not fit a message."""
MOST_PARTS = 200
"""Parts of one schema that are considered: a server's schema may refer to itself."""
_JOINED = ("allOf", "anyOf", "oneOf")
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
"""`int()` takes at most 4,300 digits."""
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A JSON number, also as `.5` and `5.`; not what `float()` takes besides: `1_000`, `１`, `nan`."""
_YES = frozenset(("true", "yes", "on", "y", "1"))
_NO = frozenset(("false", "no", "off", "n", "0"))
_TYPES: dict[str, tuple[type[Any], ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
    "string": (str,),
}
_ANY = frozenset(_TYPES)


class BadArguments(Exception):
    """The arguments can't be used; each line says which one and why."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = list(lines)


# -- the words


class Word(Struct, frozen=True):
    """One `key=value`: `forced` where it was `key:=json`, `data` as bytes where they came from a file."""

    key: str
    data: str | bytes
    forced: bool = False


@final
class Files:
    """Reads the files that a command line names, pipes included."""

    def __init__(self) -> None:
        self._stdin_went_to = ""
        """The key that has read stdin: a second one would find it empty."""

    def read(self, path: str, key: str) -> bytes:
        """The bytes of the file for this key. Raises BadArguments."""
        if path == "-":
            if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise BadArguments([f"{key}: the standard input is closed"])
            if self._stdin_went_to:
                raise BadArguments([f"{key}: {self._stdin_went_to} has read the standard input already"])
            self._stdin_went_to = key
        try:
            data = sys.stdin.buffer.read(FILE_BYTES + 1) if path == "-" else read_bounded(path, FILE_BYTES)
        except (OSError, ValueError) as problem:
            why = getattr(problem, "strerror", None) or str(problem)
            raise BadArguments(
                [f"{key}: the file {cut(path)} can't be read ({why}); a text that begins with @: {key}:='\"@…\"'"]
            ) from None
        if len(data) > FILE_BYTES:
            raise BadArguments([f"{key}: the file {cut(path)} has more than {FILE_BYTES >> 20} MiB"])
        return data


def read_words(words: Sequence[str], files: Files | None = None) -> list[Word]:
    """Split the words, and read the files that they name. Raises BadArguments with everything that is wrong."""
    files = files or Files()
    found: list[Word] = []
    problems: list[str] = []
    for word in words:
        key, equals, text = word.partition("=")
        forced = key.endswith(":")
        key = key.removesuffix(":")
        if not equals or not key:
            hint = "JSON is given with --args" if word[:1] == "{" else "a command line as TARGET is one word, in quotes"
            problems.append(f"{cut(word)!r} is no key=value ({hint})")
            continue
        try:
            found.append(Word(key, files.read(text[1:], key) if text[:1] == "@" else text, forced))
        except BadArguments as wrong:
            problems += wrong.lines
    if problems:
        raise BadArguments(problems)
    return found


def read_base(given: str | None, files: Files | None = None) -> dict[str, Any]:
    """The object of `--args`: JSON, `@FILE`, or `-` for stdin. Raises BadArguments."""
    if given is None:
        return {}
    data: str | bytes = given
    if given == "-" or given[:1] == "@":
        data = (files or Files()).read(given.removeprefix("@"), "--args")
    try:
        record: Any = msgspec.json.decode(data)
    except (ValueError, RecursionError) as problem:
        raise BadArguments([f"--args: it is no JSON: {problem}"]) from None
    if not is_object(record):
        raise BadArguments(["--args: expected an object of arguments by name"])
    return record


# -- the arguments of a call


def build(schema: dict[str, Any], words: Sequence[Word], base: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call. Raises BadArguments with everything that the schema refuses."""
    from longshore.schema.cost import compile_bounded

    arguments = dict(base)
    problems: dict[str, list[str]] = {}
    given: set[str] = set()
    known = keys_of(schema, schema)
    for word in words:
        # `a.b` names a property of an object, unless the schema has the name `a.b`.
        steps = word.key.split(".")
        path = steps if word.key not in known and all(steps) else [word.key]
        try:
            inner = _argument_schema(path, schema)
            value = _read_word(word, inner, schema)
            several = word.key in given and not word.forced and "array" in types(inner, schema)
            _place(arguments, path, value, again=word.key in given, several=several)
            given.add(word.key)
        except ValueError as problem:
            problems.setdefault(path[0], []).append(f"{cut(word.key)}: {problem}")
    for key in as_array(schema.get("required")):
        if isinstance(key, str) and key not in arguments and key not in problems:
            wanted = part(child(schema, schema, key), schema)
            text = " ".join(str(wanted.get("description", "")).split())
            problems[key] = [f"{cut(key)}: missing, {say_expected(wanted)}{': ' if text else ''}{cut(text)}"]
    validator = compile_bounded(schema)
    reported = set(problems)
    for line in [] if validator is None else validator.errors(arguments):  # without one the server decides
        key = re.split(r"[:.\[]", line, maxsplit=1)[0]
        if key not in reported:
            problems.setdefault(key, []).append(line)
    if problems:
        raise BadArguments([line for lines in problems.values() for line in lines])
    return arguments


def _argument_schema(path: list[str], root: dict[str, Any]) -> Any:
    """The schema of an argument. Raises ValueError if there is none."""
    schema: Any = root
    for step in path:
        inner = child(schema, root, step)
        if inner is None:
            names = keys_of(schema, root)
            near = nearest(step, names)
            hint = f"did you mean {near!r}?" if near else f"there are {cut(', '.join(names) or 'none')}"
            raise ValueError(f"there is no such argument; {hint}")
        schema = inner
    return schema


def _read_word(word: Word, schema: Any, root: dict[str, Any]) -> Any:
    data = word.data
    if isinstance(data, bytes) and not word.forced and part(schema, root).get("contentEncoding") == "base64":
        from base64 import b64encode

        return b64encode(data).decode()
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError:
        raise ValueError("the file holds no UTF-8 text") from None
    if not word.forced:
        return take_text(text, schema, root)
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"expected JSON after :=, got {quote(text)} ({problem})") from None


def _place(arguments: dict[str, Any], path: list[str], value: Any, *, again: bool, several: bool) -> None:
    """Set an argument, in copies of the objects around it. `several`: it is an array, given item by item."""
    at = arguments
    for step in path[:-1]:
        inner: Any = at.get(step, {})
        if not is_object(inner):
            raise ValueError(f"{step} was given as {quote(inner)}, so it has no parts")
        at[step] = at = dict(inner)
    before: Any = at.get(path[-1])
    if not again:
        at[path[-1]] = value
    elif several and is_array(before) and is_array(value):
        at[path[-1]] = [*before, *value]
    else:
        raise ValueError("it was given twice")


# -- what a schema asks for


def part(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    """The schema merged with what its `$ref` names inside the root; empty if that can't be resolved."""
    made: dict[str, Any] = {}
    for _ in range(MOST_PARTS):
        if not is_object(schema):
            return made
        made = {**schema, **made}
        ref = made.pop("$ref", None)
        if not isinstance(ref, str):
            return made
        schema = resolve(root, ref)
    return {}


def parts(schema: Any, root: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema and all that it is made of: what its `$ref` names, and the parts of its unions."""
    return find_parts(schema, root, MOST_PARTS) if is_object(schema) else []


def types(schema: Any, root: dict[str, Any]) -> frozenset[str]:
    """The JSON types that a value may have. A listed text is found by its spelling, so `string` means any text."""
    left = MOST_PARTS

    def read(schema: Any) -> frozenset[str]:
        nonlocal left
        left -= 1
        if left < 0 or not is_object(schema):
            return _ANY
        found = _own_types(schema)
        if isinstance(schema.get("$ref"), str):
            found &= read(resolve(root, schema["$ref"]))
        for key in _JOINED:
            if inner := as_array(schema.get(key))[:MOST_PARTS]:
                first, *others = [read(each) for each in inner]
                found &= first.intersection(*others) if key == "allOf" else first.union(*others)
        return found

    return read(schema)


def _own_types(schema: dict[str, Any]) -> frozenset[str]:
    listed = listed_values(schema)
    if listed:
        return frozenset(name for name in _ANY - {"string"} if any(type(value) in _TYPES[name] for value in listed))
    named: Any = schema.get("type")
    names = {named} if isinstance(named, str) else {str(each) for each in named} if is_array(named) else set[str]()
    if "number" in names:
        names.add("integer")
    if names:
        return frozenset(names)
    return frozenset({"object"} if "properties" in schema else {"array"} if "items" in schema else _ANY)


def keys_of(schema: Any, root: dict[str, Any]) -> list[str]:
    """The names of an object's properties."""
    return list(dict.fromkeys(str(key) for each in parts(schema, root) for key in as_object(each.get("properties"))))


def child(schema: Any, root: dict[str, Any], key: str) -> Any:
    """The schema of an object's property; empty if any value is allowed, None if there can be no such property."""
    found = _gather(schema, root, lambda each: as_object(each.get("properties")).get(key))
    if found is not None:
        return found
    all_parts = parts(schema, root)
    if any("patternProperties" in each for each in all_parts):
        # Without a match the validator says whether it is allowed.
        return _gather(schema, root, lambda each: _matching(as_object(each.get("patternProperties")), key)) or {}
    others: list[Any] = [each["additionalProperties"] for each in all_parts if "additionalProperties" in each]
    if any(each is not False for each in others):
        return _gather(schema, root, _additional)
    closed = others or keys_of(schema, root) or "object" not in types(schema, root)
    return None if closed else {}


def _gather(schema: Any, root: dict[str, Any], pick: Callable[[dict[str, Any]], Any]) -> Any:
    """Apply `pick` to the parts of a schema, and join the results by `allOf` and `anyOf` as the parts are."""
    left = MOST_PARTS

    def read(schema: Any, followed: frozenset[str]) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or not is_object(schema):
            return None
        found = [pick(schema)]
        ref = schema.get("$ref")
        if isinstance(ref, str) and ref not in followed:
            found.append(read(resolve(root, ref), followed | {ref}))
        for key in _JOINED:
            inner = as_array(schema.get(key))[:MOST_PARTS]
            picked = [read(each, followed) for each in inner]
            found += picked if key == "allOf" else [_join("anyOf", picked)]
        return _join("allOf", found)

    return read(schema, frozenset())


def _join(key: str, schemas: Sequence[Any]) -> Any:
    known = [as_object(each) for each in schemas if each is not None]
    return None if not known else known[0] if len(known) == 1 else {key: known}


def _additional(schema: dict[str, Any]) -> Any:
    return None if schema.get("additionalProperties") is False else schema.get("additionalProperties")


def _matching(patterns: dict[str, Any], key: str) -> Any:
    return _join("allOf", [each for pattern, each in [*patterns.items()][:MOST_PARTS] if _matches(pattern, key)])


def _matches(pattern: str, key: str) -> bool:
    """Match in linear time: the schema comes from a server. For a pattern that takes longer the server decides."""
    from longshore.schema.validate import compile_linear

    matches = compile_linear(pattern)
    return matches is None or matches(key)


def say_expected(schema: Any) -> str:
    """Describe in a few words what a schema accepts. The schema may be malformed."""
    try:
        return describe(schema)
    except Exception:
        return "another value"


# -- a text as a value


def take_text(text: str, schema: Any, root: dict[str, Any]) -> Any:
    """Read a text as a value of this schema. Raises ValueError, which says what is expected."""
    all_parts = parts(schema, root)
    listed = [value for each in all_parts for value in listed_values(each)]
    for value in listed:
        if value == text or (not isinstance(value, str) and text == msgspec.json.encode(value).decode()):
            return value
    wanted = types(schema, root)
    if wanted != _ANY and "string" in wanted:
        return text  # also one that looks like a number
    try:
        return _read_typed(text, wanted)
    except ValueError:
        if wanted == _ANY or listed:
            return text  # of listed values the validator says which there are
    item: Any = next((each["items"] for each in all_parts if "items" in each), None)
    inner = types(item, root)
    if "array" in wanted and text[:1] != "[" and (inner == _ANY or "array" not in inner):
        return [take_text(text, item, root)]
    fix = "; write a JSON array, or the key once for each item" if "array" in wanted else ""
    fix = fix or ("; write it as JSON" if "object" in wanted else "")
    named = sorted(wanted - {"integer"} if "number" in wanted else wanted)
    raise ValueError(f"expected {expected(named) if named else 'another value'}, got {quote(text)}{fix}")


def _read_typed(text: str, wanted: frozenset[str]) -> Any:
    """Read a text as a value of one of these types. Raises ValueError."""
    if wanted != _ANY:
        word = text.strip()
        if wanted & {"integer", "number"} and _WHOLE.fullmatch(word):
            return int(word)
        if "number" in wanted and _DECIMAL.fullmatch(word) and isfinite(float(word)):
            return float(word)
        if "boolean" in wanted and word.lower() in _YES | _NO:
            return word.lower() in _YES
    try:
        found: Any = msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if wanted != _ANY and not any(type(found) in _TYPES[kind] for kind in wanted & {"null", "array", "object"}):
        raise ValueError("a value of another type")
    return found
