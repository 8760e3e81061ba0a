"""The headers of HTTP requests: those that repeat the body (2026-07-28), Content-Type and Accept, Host and Origin.

Proxies route and limit by headers, the server acts by the body. A request in which they differ is refused, so that it
can't pass a proxy by the one and reach a tool by the other. Nothing is executed from a header. No I/O: a transport
passes in the headers, and the engine compares them with the decoded body.

Host and Origin protect a local server against web pages. A page can make a browser connect to 127.0.0.1 (DNS
rebinding), but not forge these two headers. They are parsed whole and compared exactly: prefixes, suffixes and user
names have bypassed such checks elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast, final

import msgspec
from msgspec import Struct

from longshore.errors import ProtocolError
from longshore.protocol.revisions import MODERN

HEADER_MISMATCH: Final = -32020

VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
PARAM: Final = b"mcp-param-"

NAME_BEARING: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods with an `Mcp-Name` header, and the parameter that it repeats."""

MOST_INTEGER: Final = 2**53 - 1
"""The largest integer that a double holds exactly; a proxy that reads doubles can't tell larger ones apart."""

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
    """The headers of one request by lower-case name; `twice` names those sent more than once."""

    all: dict[bytes, bytes]
    twice: frozenset[bytes] = frozenset()

    @property
    def are_modern(self) -> bool:
        """Whether they name a revision without a handshake."""
        return self.all.get(VERSION, b"").strip().decode("latin-1") in MODERN

    def check(self, method: str, name: str | None, version: str) -> None:
        """Refuse a request whose headers differ from its body.

        `name` is None if the body has none; the method itself reports that fault.
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
        """Refuse a call whose `Mcp-Param-*` headers differ from its arguments, a plain JSON object."""
        for param in params:
            value, spelled = _at(arguments, param.path), _spelled(param.header)
            if value is None and param.header not in self.all:
                continue
            place = "params.arguments." + ".".join(param.path)
            if value is _UNREACHABLE:
                _refuse(f"{place} can't be compared with {spelled}: what holds it is no object; send one")
            text = self._read(param.header, place, value)
            if value is None:
                _refuse(f"{spelled} says {show_value(text)}, the body has no {place}; leave the header out")
            if param.type == "integer" and isinstance(value, (int, float)) and abs(value) > MOST_INTEGER:
                limits = "an integer that a header repeats is between -(2^53-1) and 2^53-1"
                _refuse(f"{place} is {show_value(value)}; {limits}")
            if not _agrees(value, text):
                _differ(param.header, text, value, place)

    def _compare(self, header: bytes, said: str, place: str) -> None:
        text = self._read(header, place, said)
        if text != said:
            _differ(header, text, said, place)

    def _read(self, header: bytes, place: str, said: Any) -> str:
        """The value of a header. Raises if it is missing, sent twice, or unreadable."""
        raw = self.all.get(header)
        if header in self.twice:
            _refuse(f"{_spelled(header)} came more than once; send it once")
        if raw is None:
            _refuse(f"{_spelled(header)} is missing; send in it what the body says in {place}, {show_value(said)}")
        text = _plain(raw) if header in (VERSION, METHOD) else read_value(raw)
        if text is None:
            what = f"{_spelled(header)} says {show_value(raw.decode('latin-1'))}, which can't be read"
            _refuse(f'{what}; send printable ASCII, or "{_OPEN}" + padded base64 of the UTF-8 text + "{_CLOSE}"')
        return text


def read_value(raw: bytes) -> str | None:
    """Decode a header value: plain text, or its base64 form. None if it is unreadable.

    Only canonical base64 is accepted, so that a text has one spelling.
    """
    text = _plain(raw)
    if text is None or not _is_base64_form(text):
        return text
    from binascii import Error, a2b_base64, b2a_base64

    inner = text[len(_OPEN) : -len(_CLOSE)].encode()
    try:
        data = a2b_base64(inner, strict_mode=True)
        return data.decode() if b2a_base64(data, newline=False) == inner else None
    except (Error, UnicodeDecodeError):
        return None


def write_value(text: str) -> str:
    """A text as a header can hold it: as it is, or in the base64 form."""
    marked = text.startswith(_OPEN) and text.endswith(_CLOSE)
    if not marked and _plain(text.encode()) == text:
        return text
    from binascii import b2a_base64

    return _OPEN + b2a_base64(text.encode(), newline=False).decode() + _CLOSE


def _plain(raw: bytes) -> str | None:
    """A value without surrounding blanks. None if it has characters that need the base64 form."""
    text = raw.strip(b" \t").decode("latin-1")
    return text if text.isascii() and text.isprintable() else None


def _is_base64_form(text: str) -> bool:
    """Whether a value is in the base64 form: both markers, exactly, and not one inside the other."""
    return text.startswith(_OPEN) and text.endswith(_CLOSE) and len(text) >= len(_OPEN) + len(_CLOSE)


def _is_simple(name: str) -> bool:
    """Whether a header can hold a name as it is. A quick check: "" and names that begin with "=" are compared fully."""
    return name.isascii() and name.isprintable() and name[:1] not in " =" and name[-1] != " "


_UNREACHABLE = object()


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    """The argument at a path. None: it is missing or null.

    Tools accept an object sent as a JSON text; an argument inside such a text can't be compared.
    """
    here: Any = cast("Any", arguments) if isinstance(arguments, dict) else None
    for step in path:
        if here is None:
            return None
        if not isinstance(here, dict):
            return _UNREACHABLE
        here = cast("dict[str, Any]", here).get(step)
    return here


_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]{0,15}))(?:\.([0-9]{1,20}))?")


def _agrees(value: Any, text: str) -> bool:
    """Whether an argument equals its header's value. Numbers are compared as numbers: 42.0 is 42."""
    if isinstance(value, str):
        return text == value
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    number = _NUMBER.fullmatch(text)
    if number is None or not isinstance(value, (int, float)):
        return False
    whole, fraction = number.groups("")
    return float(text) == value if fraction.strip("0") else int(whole) == value


def _spelled(header: bytes) -> str:
    return _SPELLED.get(header) or header.decode().title()


def show_value(value: Any) -> str:
    """A value of the body or a header for an error message: cut, and escaped so that it can't forge a log line."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return ascii(cut) if isinstance(value, str) else cut


def _differ(header: bytes, text: str, said: Any, place: str) -> NoReturn:
    ours, theirs = show_value(said), show_value(text)
    _refuse(f"{_spelled(header)} says {theirs}, the body says {ours} in {place}; send the same in both")


def _refuse(text: str) -> NoReturn:
    raise ProtocolError(HEADER_MISMATCH, text)


# -- Content-Type and Accept

MOST_KNOWN: Final = 256
"""Parsed values of one header that are cached; clients send the same few again and again."""
LONGEST_KNOWN: Final = 300
"""Longer values are not cached, so that headers can't fill the memory. A host name with its port has at most 259."""

_JSON = re.compile(rb"application/json[ \t]*(?:;[ \t]*charset=(?:utf-8|\"utf-8\"))?", re.IGNORECASE)
_USUAL_JSON = frozenset((b"application/json", b"application/json; charset=utf-8", b"application/json;charset=utf-8"))
_NO_WEIGHT = re.compile(r"0(?:\.0*)?")
_BOTH = (True, True)


def is_json(raw: bytes | None) -> bool:
    """Whether a body is sent as `application/json`, and in UTF-8 if it says so.

    Nothing else is accepted: a web page may send `text/plain` to any server without a preflight request, but not this.
    """
    return raw in _USUAL_JSON or (raw is not None and _JSON.fullmatch(raw.strip(b" \t")) is not None)


def accepts(raw: bytes | None) -> tuple[bool, bool]:
    """Whether an answer may be JSON, and whether it may be an event stream. Without the header, both."""
    if raw is None:
        return _BOTH
    return _known(raw) if len(raw) <= LONGEST_KNOWN else _read_accept(raw)


def _read_accept(raw: bytes) -> tuple[bool, bool]:
    ranges = [_range(part) for part in raw.decode("latin-1").lower().split(",") if part.strip(" \t")]
    if not ranges:
        return _BOTH
    return _takes(ranges, "application", "json"), _takes(ranges, "text", "event-stream")


_known = lru_cache(MOST_KNOWN)(_read_accept)


def _range(part: str) -> tuple[str, bool]:
    """A media range, and whether it is wanted: `q=0` excludes it."""
    kind, *parameters = (piece.strip(" \t") for piece in part.split(";"))
    weights = [value for name, _, value in (piece.partition("=") for piece in parameters) if name.strip() == "q"]
    return kind, not any(_NO_WEIGHT.fullmatch(weight.strip()) for weight in weights)


def _takes(ranges: list[tuple[str, bool]], kind: str, subtype: str) -> bool:
    """The most exact range that matches decides; if it occurs twice, one yes is enough."""
    for name in (f"{kind}/{subtype}", f"{kind}/*", "*/*"):
        said = [wanted for found, wanted in ranges if found == name]
        if said:
            return any(said)
    return False


# -- Host and Origin

Host: TypeAlias = tuple[str, int | None]
"""A name in lower case or an address, IPv6 in brackets; and the port, None if it is left out."""
Origin: TypeAlias = tuple[str, str, int | None]
"""Scheme, host and port; the port is None if it is left out and the scheme's default is unknown."""
Server: TypeAlias = tuple[str, int | None] | None
"""The local address of a connection (ASGI's `scope["server"]`). None, or without a port: a Unix socket."""

_PORTS = {"http": 80, "https": 443}
_UNIX: Final = ("", None)
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
# Compiled on first use: a client, which has no use for them, imports this module too.
_NAME = r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*"
_PORT = r"[1-9][0-9]{0,4}"
_ORIGIN = r"([a-z][a-z0-9+.-]*)://(.+)"
_NAME_CHARS = 253


@final
class Hosts:
    """The hosts and origins that one server answers to.

    `allowed` are hosts with or without a port; without one, the default ports of http and https are meant. On a
    connection to loopback its own address is accepted too. `origins` are web pages from elsewhere that may call us.
    """

    def __init__(self, allowed: Iterable[str], origins: Iterable[str] = ()) -> None:
        """Raises ValueError, with the fix, for an entry that could never match."""
        self._allowed = {host for entry in allowed for host in _meant(entry)}
        self._origins = {_listed_origin(entry) for entry in origins}
        self._is_host = lru_cache(MOST_KNOWN)(self._check_host)
        self._is_origin = lru_cache(MOST_KNOWN)(self._check_origin)
        self._cors = lru_cache(MOST_KNOWN)(self._find_listed)

    def host_ok(self, raw: bytes | None, server: Server) -> bool:
        """Whether a Host header is one of ours."""
        return raw is not None and len(raw) <= LONGEST_KNOWN and self._is_host(raw, *(server or _UNIX))

    def origin_ok(self, raw: bytes | None, host: bytes, scheme: str, server: Server) -> bool:
        """Whether a page of this origin may call us: our own, or a listed one. Only browsers send an origin."""
        if raw is None:
            return True
        return len(raw) <= LONGEST_KNOWN and self.host_ok(host, server) and self._is_origin(raw, host, scheme)

    def cors(self, raw: bytes | None) -> str | None:
        """The origin to name in the response, if it is a listed one."""
        return None if raw is None or len(raw) > LONGEST_KNOWN else self._cors(raw)

    @staticmethod
    def explain_host(raw: bytes | None, server: Server) -> str:
        """Why a Host header is refused, and the fix."""
        said = "a request without Host" if raw is None else f"the Host {raw[:_SHOWN].decode('latin-1')!a}"
        address, port = server or _UNIX
        own = f"use localhost:{port}, or " if port is not None and _is_loopback(address) else ""
        return (
            f"this server does not answer to {said}; {own}add the host to http.hosts, or set http.public_url "
            "(--public-url) to the address that clients use"
        )

    def _check_host(self, raw: bytes, address: str, port: int | None) -> bool:
        host = parse_host(raw.decode("latin-1"))
        return host is not None and (host in self._allowed or _is_own(host, address, port))

    def _check_origin(self, raw: bytes, host: bytes, scheme: str) -> bool:
        return same_origin(raw, host, scheme) or self._find_listed(raw) is not None

    def _find_listed(self, raw: bytes) -> str | None:
        text = raw.decode("latin-1")
        return text if parse_origin(text) in self._origins else None


def same_origin(raw: bytes, host: bytes, scheme: str) -> bool:
    """Whether a page calls its own origin: the same scheme, host and port."""
    origin = parse_origin(raw.decode("latin-1"))
    return origin is not None and origin == parse_origin(f"{scheme}://{host.decode('latin-1')}")


def parse_host(text: str) -> Host | None:
    """Parse a Host header into one form for all its spellings. None if it is invalid."""
    if text.startswith("["):
        name, bracket, rest = text.partition("]")
        address = _ipv6(name[1:]) if bracket else None
        return None if address is None else _with_port(f"[{address}]", rest)
    name, colon, port = text.partition(":")
    name = name.lower() if name.isascii() else ""
    if len(name) > _NAME_CHARS or not re.fullmatch(_NAME, name):
        return None
    return _with_port(name, colon + port)


def parse_origin(text: str) -> Origin | None:
    """Parse an Origin header. None for `null` and for anything that is not exactly an origin."""
    found = re.fullmatch(_ORIGIN, text.lower()) if text.isascii() else None
    host = parse_host(found[2]) if found else None
    if found is None or host is None:
        return None
    name, port = host
    return found[1], name, _PORTS.get(found[1]) if port is None else port


def _with_port(name: str, rest: str) -> Host | None:
    """Parse `rest`: empty, or a colon and a port."""
    if not rest:
        return name, None
    if rest[0] != ":" or not re.fullmatch(_PORT, rest[1:]) or int(rest[1:]) > 65535:
        return None
    return name, int(rest[1:])


def _ipv6(text: str) -> str | None:
    from ipaddress import AddressValueError, IPv6Address

    try:
        return None if "%" in text else str(IPv6Address(text))
    except AddressValueError:
        return None


def _meant(entry: str) -> list[Host]:
    """An allowed host with every port that it includes: a default port may be written or left out."""
    host = parse_host(entry)
    if host is None:
        fix = "write host or host:port, such as mcp.example.com or [::1]:9100, without scheme, path or wildcard"
        raise ValueError(f"{entry[:_SHOWN]!r} is no host; {fix}")
    name, port = host
    defaults = list(_PORTS.values())
    if port is None:
        return [(name, None), *((name, each) for each in defaults)]
    return [host, (name, None)] if port in defaults else [host]


def _listed_origin(entry: str) -> Origin:
    origin = parse_origin(entry)
    if origin is None:
        fix = "write scheme://host or scheme://host:port, such as https://app.example.com, without path or wildcard"
        raise ValueError(f"{entry[:_SHOWN]!r} is no origin; {fix}")
    return origin


def _is_own(host: Host, address: str, port: int | None) -> bool:
    """Whether a host is a name of the loopback address that the connection came in on, with its port."""
    name, asked = host
    right_port = asked == port or (asked is None and port in _PORTS.values())
    return port is not None and right_port and name in (*_LOOPBACK_NAMES, address) and _is_loopback(address)


def _is_loopback(address: str) -> bool:
    from longshore.addresses import is_loopback_ip  # it loads `ipaddress`, which a client does without

    return is_loopback_ip(address)
