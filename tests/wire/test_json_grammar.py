"""JSON that is none, and JSON that is odd but good, as whole frames and as params: the cases that parsers get wrong."""

# ruff: noqa: E501

from __future__ import annotations

import json

import pytest

from longshore import Server
from longshore.server.link import Link

BAD = [
    "[1 true]", "[a]", '["": 1]', '[""],', "[,1]", "[1,,2]", '["x"]]', '["",]', '["x"', "[x", "[3[4]]", "[1:2]", "[,]", "[-]",
    "[   , \"\"]", "[*]", "[++1234]", "[+1]", "[+Inf]", "[-01]", "[-1.0.]", "[-2.]", "[-NaN]", "[.-1]", "[.2e-3]", "[0.1.2]",
    "[0.3e+]", "[0.3e]", "[0.e1]", "[0E+]", "[0E]", "[1.0e+]", "[1.0e-]", "[1.0e]", "[1 000.0]", "[1eE2]", "[2.e+3]", "[2.e3]",
    "[9.e+]", "[Inf]", "[NaN]", "[\uff11]", "[1+2]", "[0x1]", "[0x42]", "[Infinity]", "[0e+-1]", "[-123.123foo]", "[-foo]", "[- 1]",
    "[-012]", "[-.123]", "[1ea]", "[1.]", "[.123]", "[1.2a-3]", "[012]", '["x", truth]', '{[: "x"}', '{"x", null}', '{"x"::"b"}',
    '{"a":"a" 123}', "{key: 'value'}", '{"a" b}', '{:"b"}', '{"a" "b"}', '{"a":', '{"a"', "{1:1}", "{9999E9999:1}",
    "{null:null,null:null}", '{"id":0,,,,,}', "{'a':0}", '{"id":0,}', '{"a":"b"}/**/', '{"a":"b"}#', '{"a":"b",,"c":"d"}',
    '{a: "b"}', '{"a":"a', '{ "foo" : "bar", "a" }', '{"a":"b"}#{}', " x", '["\\uD800\\"]', '["\\uD800\\u1"]', '["\\uD800\\u1x"]',
    '["\\x00"]', '["\\\\\\"]', '["\\\U0001f300"]', '["\\"]', '["\\u00A"]', '["\\uD834\\uDd"]', '["\\a"]', '["\\uqqqq"]', "[\\u0020\"asd\"]",
    "[\\n]", '"', "['single quote']", "abc", '["\\', '["new\tline"]', '"\\UA66D"', '""x', "<.>", "[<null>]", "[1]x", "[1]]", "[True]",
    "1]", '{"x": true,', "[][]", "]", "[", "{}}", '{"":', "{", '{"a":/*comment*/"b"}', "[\u2060]", "\u2060", "*", "å", "[\"asd",
    "nul", "tru", "fals", "[nul]", "[\"a\",\n4\n,", "\x0c[]", "[\x0b]", "\u00a0[]",
]  # fmt: skip
GOOD = [
    "[[]   ]", '[""]', "[]", '["a"]', "[false]", '[null, 1, "1", {}]', "[null]", "[1\n]", " [1]", "[1,null,null,null,2]", "[2] ",
    "[123e65]", "[0e+1]", "[0e1]", "[ 4]", "[-0.000000000000000000000000000000000000000000000000000000000000000000000000000001]", "[20e1]",
    "[-0]", "[-123]", "[-1]", "[1E22]", "[1E-2]", "[1E+2]", "[123e45]", "[123.456e78]", "[1e-2]", "[1e+2]", "[123]", "[123.456789]",
    '{"asd":"sdf", "dfg":"fgh"}', '{"a":"b","a":"c"}', '{"a":"b","a":"b"}', "{}", '{"":0}', '{"foo\\u0000bar": 42}',
    '{ "min": -1.0e+28, "max": 1.0e+28 }', '{"a":[]}', '{"title":"\\u041f\\u043e"}', '["\\u0060\\u012a\\u12AB"]', '["\\uD801\\udc37"]',
    '["\\ud83d\\ude39\\ud83d\\udc8d"]', '["\\"\\\\\\/\\b\\f\\n\\r\\t"]', '["\\\\u0000"]', '["\\""]', '["a/*b*/c/*d//e"]', '["\\\\a"]',
    '["\\\\n"]', '["\\u0012"]', '["\\uFFFF"]', '["asd"]', '[ "asd"]', '["\\uDBFF\\uDFFF"]', '["new\\u00A0line"]', '["\U0010ffff"]',
    '["\uffff"]', '["\\u0000"]', '["\\u002c"]', '["π"]', '["\U0001bfff"]', '["asd "]', '" "', '["\\uD834\\uDd1e"]', '["\\u0821"]',
    '["\\u0123"]', '["\u2028"]', '["\u2029"]', '["\\u0061\\u30af\\u30EA\\u30b9"]', '["new\\u000Aline"]', '["\x7f"]', '["\\uA66D"]',
    '["\\u005C"]', '["⍂㈴⍂"]', '["\\u200B"]', '["\\u2064"]', '["\\uFDD0"]', '["\\uFFFE"]', '["\\u0022"]', '["€\U0001d11e"]', '["a\x7fa"]',
    "false", "42", "-0.1", "null", '"asd"', "true", '""', '["a"]\n', "[true]", " [] ",
]  # fmt: skip


class Nobody(Link):
    def send(self, frame: bytes) -> None:
        raise AssertionError(frame)


def code_of(frame: str) -> int:
    reply = Server("t").engine.handle(frame.encode(), Nobody())
    assert reply is not None
    return int(json.loads(reply).get("error", {}).get("code", 0))


@pytest.mark.parametrize("text", BAD)
def test_invalid_json_is_a_parse_error(text: str) -> None:
    with pytest.raises(ValueError):
        json.loads(text, parse_constant=lambda _: (_ for _ in ()).throw(ValueError()))
    assert code_of(text) == -32700


@pytest.mark.parametrize(
    "text", [text for text in BAD if not text.endswith(("}", "]", '"')) or text.count('"') % 2 == 0]
)
def test_invalid_json_within_params_is_a_parse_error(text: str) -> None:
    frame = f'{{"jsonrpc":"2.0","id":3,"method":"ping","params":{{"a":{text}}}}}'
    try:
        json.loads(frame, parse_constant=lambda _: (_ for _ in ()).throw(ValueError()))
    except ValueError:
        assert code_of(frame) == -32700


@pytest.mark.parametrize("text", GOOD)
def test_json_that_is_not_a_message_is_an_invalid_request(text: str) -> None:
    json.loads(text)
    assert code_of(text) == -32600


@pytest.mark.parametrize("text", GOOD)
def test_any_json_within_params_is_accepted(text: str) -> None:
    assert code_of(f'{{"jsonrpc":"2.0","id":3,"method":"ping","params":{{"a":{text}}}}}') == 0
