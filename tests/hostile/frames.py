"""The hostile table: every frame of security.md §1.0 and §1.5, and the one answer that it gets.

`code` is the error's code, 0 for a plain success, 1 for a tool error and None for silence; `id` is what the answer
carries. The rows hold for a session of any revision but 2025-03-26 (which takes arrays), before `initialize` and after
it.
"""

from __future__ import annotations

from typing import NamedTuple

PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602
ANSWERED, SILENT = 0, None
FAILED = 1


LIMIT = 16 << 20
"""`limits.frame_bytes`, as it is unless configured."""


def call_of_size(size: int) -> tuple[bytes, int]:
    """A call of the tool `length` that is so many bytes long, and how long its text is."""
    head = b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"length","arguments":{"text":"'
    tail = b'"}}}'
    text = size - len(head) - len(tail)
    return head + b"x" * text + tail, text


class Row(NamedTuple):
    name: str
    frame: bytes
    code: int | None
    id: int | str | None = None


def _text(name: str, frame: str, code: int | None, id: int | str | None = None) -> Row:
    return Row(name, frame.encode(), code, id)


def _with_id(name: str, id: str, code: int | None, echoed: int | str | None = None) -> Row:
    return _text(f"id {name}", f'{{"jsonrpc":"2.0","id":{id},"method":"ping"}}', code, echoed)


def _with_params(name: str, params: str, code: int | None, id: int | None = 3) -> Row:
    return _text(f"params {name}", f'{{"jsonrpc":"2.0","id":3,"method":"ping","params":{params}}}', code, id)


def _with_member(name: str, value: str, code: int | None, id: int | None = 3) -> Row:
    return _text(f"skipped {name}", f'{{"jsonrpc":"2.0","id":3,"method":"ping","x":{value}}}', code, id)


def _nested(levels: int) -> list[Row]:
    """A frame that nests so many levels in all, in each of the ways that it can."""
    good, inner = levels <= 128, levels - 2
    bare = REQUEST if good else PARSE
    return [
        Row(f"depth {levels} arrays", b"[" * levels + b"]" * levels, bare),
        Row(f"depth {levels} objects", b'{"a":' * levels + b"1" + b"}" * levels, bare),
        _with_params(f"depth {levels}", '{"a":' + "[" * inner + "]" * inner + "}", 0 if good else PARSE),
        _with_member(f"depth {levels}", '{"a":' * (levels - 1) + "1" + "}" * (levels - 1), 0 if good else PARSE),
        Row(f"depth {levels} only opened", b"[" * levels, PARSE),
        Row(f"depth {levels} only opened, objects", b'{"a":' * levels, PARSE),
    ]


_PING = '{"jsonrpc":"2.0","id":3,"method":"ping"}'

NOT_JSON = [
    _text("a word", "hello", PARSE),
    _text("an open brace", "{", PARSE),
    _text("an open bracket", "[", PARSE),
    _text("an open string", '"x', PARSE),
    Row("one NUL", b"\x00", PARSE),
    Row("NUL bytes", b"\x00" * 64, PARSE),
    Row("NUL after a message", _PING.encode() + b"\x00", PARSE, 3),
    Row("NUL before a message", b"\x00" + _PING.encode(), PARSE),
    Row("BOM before a message", b"\xef\xbb\xbf" + _PING.encode(), ANSWERED, 3),
    Row("UTF-16", _PING.encode("utf-16"), PARSE),
    Row("UTF-16 without a BOM", _PING.encode("utf-16-le"), PARSE),
    Row("bad UTF-8 in the method", b'{"jsonrpc":"2.0","id":3,"method":"pi\xffng"}', PARSE, 3),
    Row("bad UTF-8 in a skipped member", b'{"jsonrpc":"2.0","id":3,"method":"ping","x":"\xff"}', PARSE, 3),
    Row("bad UTF-8 in params", b'{"jsonrpc":"2.0","id":3,"method":"ping","params":{"a":["\xe2\x28\xa1"]}}', PARSE, 3),
    Row("bad UTF-8 in a key", b'{"jsonrpc":"2.0","id":3,"method":"ping","\xf0\x28":1}', PARSE, 3),
    Row("overlong UTF-8", b'{"jsonrpc":"2.0","id":3,"method":"ping","x":"\xc0\x80"}', PARSE, 3),
    Row("a surrogate as UTF-8", b'{"jsonrpc":"2.0","id":3,"method":"ping","x":"\xed\xa0\x80"}', PARSE, 3),
    Row("bad UTF-8 alone", b"\xff\xfe", PARSE),
    _text("two messages on a line", _PING + _PING, PARSE, 3),
    _text("something after a message", _PING + " x", PARSE, 3),
    _text("a trailing comma", '{"jsonrpc":"2.0","id":3,"method":"ping",}', PARSE, 3),
    _text("single quotes", "{'jsonrpc':'2.0','id':3,'method':'ping'}", PARSE),
    _text("a comment", _PING + "//", PARSE, 3),
    _text("a key without quotes", '{jsonrpc:"2.0"}', PARSE),
    _text("a raw control character", '{"jsonrpc":"2.0","id":3,"method":"pi\x01ng"}', PARSE, 3),
    _text("a raw tab in a string", '{"jsonrpc":"2.0","id":3,"method":"pi\tng"}', PARSE, 3),
]

WRONG_SHAPE = [
    _text("an empty object", "{}", REQUEST),
    _text("an empty array", "[]", REQUEST),
    _text("an array of a number", "[1]", REQUEST),
    _text("a batch", f"[{_PING}]", REQUEST),
    _text("a batch of a thousand", f"[{','.join([_PING] * 1000)}]", REQUEST),
    _text("a batch of a million", f"[{','.join(['1'] * 1_000_000)}]", REQUEST),
    _text("a string", '"ping"', REQUEST),
    _text("a number", "7", REQUEST),
    _text("a float", "1.5", REQUEST),
    _text("null", "null", REQUEST),
    _text("true", "true", REQUEST),
    _text("jsonrpc 1.0", '{"jsonrpc":"1.0","id":3,"method":"ping"}', REQUEST, 3),
    _text("jsonrpc 2.0 as a number", '{"jsonrpc":2.0,"id":3,"method":"ping"}', REQUEST, 3),
    _text("jsonrpc null", '{"jsonrpc":null,"id":3,"method":"ping"}', REQUEST, 3),
    _text("no jsonrpc", '{"id":3,"method":"ping"}', REQUEST, 3),
    _text("no jsonrpc, string id", '{"id":"three","method":"ping"}', REQUEST, "three"),
    _text("method 7", '{"jsonrpc":"2.0","id":3,"method":7}', REQUEST, 3),
    _text("method null", '{"jsonrpc":"2.0","id":3,"method":null}', REQUEST, 3),
    _text("method an object", '{"jsonrpc":"2.0","id":"q","method":{}}', REQUEST, "q"),
    _text("method empty", '{"jsonrpc":"2.0","id":3,"method":""}', REQUEST, 3),
    _text("method missing", '{"jsonrpc":"2.0","id":3}', REQUEST, 3),
    _text("method missing, with params", '{"jsonrpc":"2.0","id":3,"params":{}}', REQUEST, 3),
    _text("folded keys", '{"JSONRPC":"2.0","ID":3,"METHOD":"ping"}', REQUEST),
    _text("one folded key", '{"jsonrpc":"2.0","id":3,"Method":"ping"}', REQUEST, 3),
    _text("an escaped but equal key", '{"jsonrpc":"2.0","id":3,"met\\u0068od":"ping"}', ANSWERED, 3),
    _text("escaped but equal values", '{"jsonrpc":"\\u0032.0","id":3,"method":"\\u0070ing"}', ANSWERED, 3),
    _text("params with a long s", '{"jsonrpc":"2.0","id":3,"method":"ping","paramſ":[1]}', ANSWERED, 3),
    _text("method with a folded letter", '{"jsonrpc":"2.0","id":3,"method":"Ping"}', METHOD, 3),
    _text("the key id twice: the last wins", '{"jsonrpc":"2.0","id":3,"id":4,"method":"ping"}', ANSWERED, 4),
    _text("the key method twice: the last wins", '{"jsonrpc":"2.0","id":3,"method":"x","method":"ping"}', ANSWERED, 3),
    _text("unknown members", '{"jsonrpc":"2.0","id":3,"method":"ping","meta":{},"x":[1]}', ANSWERED, 3),
    _text("an unknown method", '{"jsonrpc":"2.0","id":3,"method":"no/such"}', METHOD, 3),
    _text(
        "a notification's method with an id", '{"jsonrpc":"2.0","id":3,"method":"notifications/initialized"}', METHOD, 3
    ),
    _text("a private method name", '{"jsonrpc":"2.0","id":3,"method":"__class__"}', METHOD, 3),
    _text("a method of 100 KB", f'{{"jsonrpc":"2.0","id":3,"method":"{"m" * 100_000}"}}', METHOD, 3),
]

IDS = [
    _with_id("null", "null", REQUEST),
    _with_id("true", "true", REQUEST),
    _with_id("false", "false", REQUEST),
    _with_id("1.5", "1.5", REQUEST),
    _with_id("1.0", "1.0", REQUEST),
    _with_id("1e2", "1e2", REQUEST),
    _with_id("{}", "{}", REQUEST),
    _with_id("[]", "[]", REQUEST),
    _with_id("-0", "-0", ANSWERED, 0),
    _with_id("0", "0", ANSWERED, 0),
    _with_id("-1", "-1", ANSWERED, -1),
    _with_id("empty string", '""', ANSWERED, ""),
    _with_id("a number as a string", '"7"', ANSWERED, "7"),
    _with_id("2^53+1", "9007199254740993", ANSWERED, 2**53 + 1),
    _with_id("2^63-1", str(2**63 - 1), ANSWERED, 2**63 - 1),
    _with_id("2^63", str(2**63), REQUEST, 2**63),
    _with_id("-2^63", str(-(2**63)), ANSWERED, -(2**63)),
    _with_id("-2^63-1", str(-(2**63) - 1), REQUEST, -(2**63) - 1),
    _with_id("20 digits", "12345678901234567890", REQUEST, 12345678901234567890),
    _with_id("30 digits", "1" * 30, REQUEST, int("1" * 30)),
    _with_id("4301 digits", "9" * 4301, REQUEST),
    _with_id("5000 digits", "9" * 5000, REQUEST),
    _with_id("255 bytes", f'"{"a" * 255}"', ANSWERED, "a" * 255),
    _with_id("256 bytes", f'"{"a" * 256}"', ANSWERED, "a" * 256),
    _with_id("257 bytes", f'"{"a" * 257}"', REQUEST),
    _with_id("1 MB", f'"{"a" * 1_000_000}"', REQUEST),
    _with_id("a leading zero", "01", PARSE),
    _with_id("a lone minus", "-", PARSE),
    _with_id("a NUL character", '"\\u0000"', ANSWERED, "\0"),
    _with_id("a newline", '"a\\nb"', ANSWERED, "a\nb"),
    _with_id("a line separator", '"a\\u2028b"', ANSWERED, "a\u2028b"),
    _with_id("a lone surrogate", '"\\ud800"', ANSWERED, "\ufffd"),
    _with_id("an emoji", '"🛳"', ANSWERED, "🛳"),
]

PARAMETERS = [
    _with_params("an array", "[1]", PARAMS),
    _with_params("an empty array", "[]", PARAMS),
    _with_params("a string", '"x"', PARAMS),
    _with_params("a number", "7", PARAMS),
    _with_params("true", "true", PARAMS),
    _with_params("NaN", '{"a":NaN}', PARSE),
    _with_params("Infinity", '{"a":Infinity}', PARSE),
    _with_params("-Infinity", '{"a":-Infinity}', PARSE),
    _with_params("+1", '{"a":+1}', PARSE),
    _with_params("hexadecimal", '{"a":0x1}', PARSE),
    _with_params("a lone high surrogate", '{"a":"\\ud800"}', ANSWERED),
    _with_params("a lone low surrogate", '{"a":"\\udc00"}', ANSWERED),
    _with_params("a high surrogate and a letter", '{"a":"\\ud800x"}', ANSWERED),
    _with_params("two high surrogates", '{"a":"\\ud800\\ud800"}', ANSWERED),
    _with_params("a surrogate pair", '{"a":"\\ud83d\\ude00"}', ANSWERED),
    _with_params("an escaped NUL", '{"a":"\\u0000"}', ANSWERED),
    _with_params("a bad escape", '{"a":"\\x41"}', PARSE),
    _with_params("brackets in a string", '{"a":"' + "[{" * 1000 + '"}', ANSWERED),
    _with_params("brackets and quotes in a string", '{"a":"' + '\\"[{' * 1000 + '"}', ANSWERED),
    _with_params("brackets and backslashes in a string", '{"a":"' + "\\\\[{" * 1000 + '"}', ANSWERED),
    _with_params("side by side, not nested", '{"a":[' + ",".join(["[]"] * 10_000) + "]}", ANSWERED),
    _with_member("NaN", "NaN", PARSE),
    _with_member("a lone surrogate", '"\\ud800"', ANSWERED),
    _with_member("an array", "[1]", ANSWERED),
]

SILENCE = [
    Row("an empty line", b"", SILENT),
    Row("a carriage return", b"\r", SILENT),
    Row("blanks", b"  \t ", SILENT),
    _text("an unsolicited response", '{"jsonrpc":"2.0","id":3,"result":{}}', SILENT),
    _text("an unsolicited error", '{"jsonrpc":"2.0","id":"longshore-1","error":{"code":1,"message":"x"}}', SILENT),
    _text("a response with both", '{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":"x"}}', SILENT),
    _text("a response of id null", '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}', SILENT),
    _text("a response without an id", '{"jsonrpc":"2.0","result":{}}', SILENT),
    _text("a response of jsonrpc 1.0", '{"jsonrpc":"1.0","id":3,"result":{}}', SILENT),
    _text("an unknown notification", '{"jsonrpc":"2.0","method":"notifications/no_such"}', SILENT),
    _text("a notification with array params", '{"jsonrpc":"2.0","method":"notifications/x","params":[1]}', SILENT),
    _text("a request's method without an id", '{"jsonrpc":"2.0","method":"tools/list"}', SILENT),
    _text("a call without an id", '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}', SILENT),
    _text(
        "cancel of an unknown id",
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
        SILENT,
    ),
    _text(
        "cancel of id null", '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}', SILENT
    ),
    _text(
        "cancel of id true", '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":true}}', SILENT
    ),
    _text("cancel of nothing", '{"jsonrpc":"2.0","method":"notifications/cancelled"}', SILENT),
    _text("cancel with a list", '{"jsonrpc":"2.0","method":"notifications/cancelled","params":[9]}', SILENT),
]

CALLS = [
    _text(
        "a call with NaN",
        '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","arguments":{"a":NaN}}}',
        FAILED,
        3,
    ),
    Row("a call with bad UTF-8", b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"\xff"}}', FAILED, 3),
    _text(
        "a call that nests too deep",
        '{"jsonrpc":"2.0","id":"c","method":"tools/call","params":' + "[" * 200 + "]" * 200 + "}",
        FAILED,
        "c",
    ),
    _text("a call with its id last", '{"method":"tools/call","params":{"name":NaN},"jsonrpc":"2.0","id":4}', FAILED, 4),
    _text(
        "a call with everything last",
        '{"params":{"name":NaN},"id":"last","method":"tools/call","jsonrpc":"2.0"}',
        FAILED,
        "last",
    ),
    _text("a call that ends in the middle", '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"na', FAILED, 3),
    _text("an id only within params", '{"jsonrpc":"2.0","method":"ping","params":{"a":NaN,"id":5}}', PARSE),
    _text("an id only within a string", '{"jsonrpc":"2.0","method":"ping","a":NaN,"b":",\\"id\\":5}"}', PARSE),
    _text("an unreadable response", '{"jsonrpc":"2.0","id":3,"result":{"a":NaN}}', SILENT),
    _text("an unreadable response with its id last", '{"result":{"a":NaN},"jsonrpc":"2.0","id":3}', SILENT),
]

DEEP = [row for levels in (127, 128, 129, 900, 100_000) for row in _nested(levels)]

TABLE = [*NOT_JSON, *WRONG_SHAPE, *IDS, *PARAMETERS, *SILENCE, *CALLS, *DEEP]
