"""What the headers of a modern HTTP request repeat of its body, and how the two are compared.

Proxies route and limit by headers, we act by the body; a request in which they differ is refused, so that nobody gets
past a proxy with the one and to a tool with the other. Nothing is ever executed from a header. No I/O: a transport
hands over the headers that it read, and the engine compares them where it knows what the body says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NoReturn, cast

import msgspec
from msgspec import Struct

from longshore.errors import ProtocolError
from longshore.protocol.annotation import ANNOTATION
from longshore.protocol.revisions import MODERN
from longshore.protocol.subschemas import subschemas

HEADER_MISMATCH: Final = -32020

VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
PARAM: Final = b"mcp-param-"

NAME_BEARING: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose requests are about something by name, and the parameter that holds the name."""

MOST_INTEGER: Final = 2**53 - 1
"""Up to here every integer is exact everywhere; a proxy that counts in doubles can't tell larger ones apart."""

_SHOWN = 100
_OPEN, _CLOSE = "=?base64?", "?="
_SPELLED = {VERSION: "MCP-Protocol-Version", METHOD: "Mcp-Method", NAME: "Mcp-Name"}
_VERSION_PLACE = 'params._meta["io.modelcontextprotocol/protocolVersion"]'


class HeaderParam(Struct, frozen=True):
    """An argument that a header repeats: where it stands in the arguments, and the header's name in lower case."""

    path: tuple[str, ...]
    header: bytes
    type: Literal["string", "integer", "boolean"]


class Headers(Struct):
    """The headers of one request: `all` by lower-case name as they came, `twice` those that came more than once."""

    all: dict[bytes, bytes]
    twice: frozenset[bytes] = frozenset()

    @property
    def are_modern(self) -> bool:
        """Whether they name a revision that has no handshake."""
        return self.all.get(VERSION, b"").strip().decode("latin-1") in MODERN

    def check(self, method: str, name: str | None, version: str) -> None:
        """Refuse a request whose headers say something else than its body.

        `name` is None where the body has none; what is wrong with that is for the method to say.
        """
        given = self.all
        if (
            not self.twice
            and given.get(VERSION) == version.encode()
            and given.get(METHOD) == method.encode()
            and (name is None or method not in NAME_BEARING or (given.get(NAME) == name.encode() and _is_simple(name)))
        ):
            return  # byte for byte, as nearly always
        self._compare(VERSION, version, _VERSION_PLACE)
        self._compare(METHOD, method, "method")
        if name is not None and method in NAME_BEARING:
            self._compare(NAME, name, f"params.{NAME_BEARING[method]}")

    def check_params(self, params: tuple[HeaderParam, ...], arguments: Any) -> None:
        """Refuse a call whose `Mcp-Param-*` headers say something else than its arguments, a plain JSON object."""
        for param in params:
            value, raw = _at(arguments, param.path), self.all.get(param.header)
            if value is None and raw is None:
                continue
            text = None if raw is None or param.header in self.twice else read_value(raw)
            if text is None or not _agrees(value, text) or _is_too_large(param, value):
                self._refuse_param(param, value)

    def _compare(self, header: bytes, said: str, place: str) -> None:
        text = self._read(header, place, said)
        if text != said:
            _differ(header, text, said, place)

    def _refuse_param(self, param: HeaderParam, value: Any) -> NoReturn:
        place = "params.arguments." + ".".join(param.path)
        if value is _OUT_OF_SIGHT:
            _refuse(f"{place} can't be compared with {_spelled(param.header)}: what holds it is no object; send one")
        text = self._read(param.header, place, value)
        if value is None:
            _refuse(f"{_spelled(param.header)} says {_shown(text)}, the body has no {place}; leave the header out")
        if _is_too_large(param, value):
            _refuse(f"{place} is {_shown(value)}; an integer that a header repeats is between -(2^53-1) and 2^53-1")
        _differ(param.header, text, value, place)

    def _read(self, header: bytes, place: str, said: Any) -> str:
        """What a header says. Raises if it is not there, came twice, or can't be read."""
        raw = self.all.get(header)
        if header in self.twice:
            _refuse(f"{_spelled(header)} came more than once; send it once")
        if raw is None:
            _refuse(f"{_spelled(header)} is missing; send in it what the body says in {place}, {_shown(said)}")
        text = _plain(raw) if header in (VERSION, METHOD) else read_value(raw)
        if text is None:
            what = f"{_spelled(header)} says {_shown(raw.decode('latin-1'))}, which can't be read"
            _refuse(f'{what}; send printable ASCII, or "{_OPEN}" + padded base64 of the UTF-8 text + "{_CLOSE}"')
        return text


def read_value(raw: bytes) -> str | None:
    """What a value stands for: itself, or what its base64 form holds. None if it can't be read.

    The base64 must be in its one canonical spelling, or one text would have several headers.
    """
    text = _plain(raw)
    if text is None or not _is_sealed(text):
        return text
    from binascii import Error, a2b_base64, b2a_base64

    inner = text[len(_OPEN) : -len(_CLOSE)].encode()
    try:
        data = a2b_base64(inner, strict_mode=True)
        return data.decode() if b2a_base64(data, newline=False) == inner else None
    except (Error, UnicodeDecodeError):
        return None


def _plain(raw: bytes) -> str | None:
    """A value without the blanks around it. None if it holds what only the base64 form may hold."""
    text = raw.strip(b" \t").decode("latin-1")
    return text if text.isascii() and text.isprintable() else None


def _is_sealed(text: str) -> bool:
    """Whether a value is in the base64 form: both markers, exactly, and not one inside the other."""
    return text.startswith(_OPEN) and text.endswith(_CLOSE) and len(text) >= len(_OPEN) + len(_CLOSE)


def _is_simple(name: str) -> bool:
    """Whether a header can hold a name as it is, told quickly; "" and what begins with "=" are looked at again."""
    return name.isascii() and name.isprintable() and name[:1] not in " =" and name[-1] != " "


_OUT_OF_SIGHT = object()


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    """The argument at a path. None: there is none, or it is null.

    What holds it may come as a JSON text, which tools understand; there the argument is but can't be compared.
    """
    here: Any = cast("Any", arguments) if isinstance(arguments, dict) else None
    for step in path:
        if here is None:
            return None
        if not isinstance(here, dict):
            return _OUT_OF_SIGHT
        here = cast("dict[str, Any]", here).get(step)
    return here


_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]{0,15}))(?:\.([0-9]{1,20}))?")


def _agrees(value: Any, text: str) -> bool:
    """Whether an argument is what its header says. Numbers are compared as numbers: 42.0 is 42."""
    if isinstance(value, str):
        return text == value
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    number = _NUMBER.fullmatch(text)
    if number is None or not isinstance(value, (int, float)):
        return False
    whole, fraction = number.groups("")
    return float(text) == value if fraction.strip("0") else int(whole) == value


def _is_too_large(param: HeaderParam, value: Any) -> bool:
    return param.type == "integer" and isinstance(value, (int, float)) and abs(value) > MOST_INTEGER


def _spelled(header: bytes) -> str:
    return _SPELLED.get(header) or header.decode().title()


def _shown(value: Any) -> str:
    """A value of the body's or a header's in an error: cut, with nothing in it that could forge a line of a log."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return ascii(cut) if isinstance(value, str) else cut


def _differ(header: bytes, text: str, said: Any, place: str) -> NoReturn:
    _refuse(f"{_spelled(header)} says {_shown(text)}, the body says {_shown(said)} in {place}; send the same in both")


def _refuse(text: str) -> NoReturn:
    raise ProtocolError(HEADER_MISMATCH, text)


# Which arguments of a tool headers repeat


class HeaderProblem(ValueError):
    """An annotation for which clients would drop the whole tool. `what` and `fix` are one sentence each."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}")
        self.what, self.fix = what, fix


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def header_params(schema: dict[str, Any]) -> tuple[HeaderParam, ...]:
    """The arguments that headers repeat, by the annotations of an input schema. Raises HeaderProblem, a ValueError."""
    try:
        if ANNOTATION.encode() not in msgspec.json.encode(schema):
            return ()
    except (TypeError, ValueError, RecursionError):
        return ()  # it is no JSON, so no client will ever see it; whoever has to send it will say so
    found: dict[bytes, HeaderParam] = {}
    for path, where, sub in _positions(schema):
        if ANNOTATION in sub:
            param = _param(path, where, sub)
            other = found.setdefault(param.header, param)
            if other is not param:
                what = f"{'.'.join(other.path)!r} and {where!r} have the same {ANNOTATION}, {_shown(sub[ANNOTATION])}"
                raise HeaderProblem(what, "give each its own; upper and lower case are the same there")
    return tuple(found.values())


def _positions(root: dict[str, Any]) -> Iterator[tuple[tuple[str, ...] | None, str, dict[str, Any]]]:
    """Each schema in a schema: its path if it is reached through `properties` alone, where it stands, and itself."""
    queue: list[tuple[tuple[str, ...] | None, str, Any]] = [((), "", root)]
    for path, where, schema in queue:
        if not isinstance(schema, dict):
            continue
        sub = cast("dict[str, Any]", schema)
        yield path, where, sub
        prefix = f"{where}." if where else ""
        for keyword, value in sub.items():
            if keyword == "properties" and isinstance(value, dict):
                for name, inner in cast("dict[str, Any]", value).items():
                    queue.append((None if path is None else (*path, name), prefix + name, inner))
            else:  # what is marked there is no one argument
                queue.extend((None, prefix + keyword, inner) for inner in subschemas(keyword, value))


def _param(path: tuple[str, ...] | None, where: str, schema: dict[str, Any]) -> HeaderParam:
    name, kind = schema[ANNOTATION], schema.get("type")
    if not path:
        what = f"an {ANNOTATION} stands at {where or 'the root'!r}, which is not a single argument"
        raise HeaderProblem(what, 'put it on a property that is reached through "properties" alone')
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        what = f"the {ANNOTATION} of {where!r} is {_shown(name)}, which can't be part of a header's name"
        raise HeaderProblem(what, 'use letters, digits and dashes, such as "Region" for Mcp-Param-Region')
    if kind not in ("string", "integer", "boolean"):
        held = f"is of type {_shown(kind)}" if isinstance(kind, str) else "has no single type"
        fix = "make it a string, an integer or a boolean, nothing else; where it may be null, give it a default"
        raise HeaderProblem(f"{where!r} has an {ANNOTATION}, but {held}", fix)
    return HeaderParam(path, PARAM + name.lower().encode(), kind)
