"""Patterns as `new RegExp(pattern, "u")` takes them. The table was measured with Node 20."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longshore.schema.ecmascript import MOST_CHARS, find_flaw, translate
from longshore.schema.validate import compile

FINE = [
    *(
        "",
        "a",
        "^a$",
        "a|b",
        "^[A-Z]{3}-\\d+$",
        "(a)\\1",
        "(?<n>a)\\k<n>",
        "\\k<n>(?<n>a)",
        "(?:a)+?",
        "(?=a)b",
        "(?!a)b",
    ),
    *(
        "(?<=a)b",
        "(?<=a+)b",
        "(?<!a)b",
        "[\\-a]",
        "[a-]",
        "[-a]",
        "[^]",
        "[]",
        "[[]",
        "[a\\]]",
        "\\/",
        "\\.",
        "\\0",
        "a{2}",
    ),
    *("a{2,}", "a{2,2}", "a{2,3}?", "\\p{L}", "\\P{Script=Latin}", "\\x41", "\\u0041", "\\u{1F600}", "\\cA", "[\\b]"),
    *(
        "é+",
        "😀?",
        "[😀-😎]",
        "\\bword\\b",
        "()",
        "(|a)",
        "[\\d\\w]",
        "[\\cA-\\cZ]",
        "[\\0-\\x7f]",
        "[\\t-\\r]",
        "(?<$é>a)",
    ),
]
FLAWED = {
    "(?P<n>a)": "the group (?P<",
    "(?i)a": "the group (?i)",
    "(?i:a)": "the group (?i:",
    "(?#a)": "the group (?#a",
    "(?>a)": "the group (?>a",
    "(a)(?(1)b)": "the group (?(1",
    "\\Aa": "the escape \\A",
    "a\\Z": "the escape \\Z",
    "\\-": "the escape \\-",
    "\\@": "the escape \\@",
    "\\_": "the escape \\_",
    '\\"': 'the escape \\"',
    "\\": "the escape \\",
    "\\x4": "the escape \\x",
    "\\u004": "the escape \\u",
    "\\u{110000}": "the escape \\u",
    "\\c1": "the escape \\c",
    "\\07": "the escape \\0",
    "\\pL": "the escape \\p",
    "\\k": "the escape \\k",
    "[\\B]": "the escape \\B",
    "[\\1]": "the escape \\1",
    "\\1": "a back reference to a group that is not there",
    "(?:a)\\1": "a back reference to a group that is not there",
    "\\k<n>": "a back reference to the group 'n', which is not there",
    "(?<n>a)(?<n>b)": "two groups named n",
    "a{": "a lone {",
    "a{,2}": "a lone {",
    "}": "a lone }",
    "]": "a lone ]",
    "[[:alpha:]]": "a lone ]",
    ")": "a lone )",
    "(": "a group is not closed",
    "[a": "a [ is not closed",
    "[\\w-a]": "a range in [] that begins or ends with more than one character",
    "[z-a]": "the range z-a is out of order",
    "*": "* repeats nothing",
    "a**": "* repeats nothing",
    "a++": "+ repeats nothing",
    "^*": "* repeats nothing",
    "(?=a)*": "* repeats nothing",
    "\\b+": "+ repeats nothing",
    "a|*": "* repeats nothing",
    "a{3,2}": "the numbers of {3,2} are out of order",
    "a{10,9}": "the numbers of {10,9} are out of order",
}


@pytest.mark.parametrize("pattern", FINE)
def test_what_javascript_takes_has_no_flaw(pattern: str) -> None:
    assert find_flaw(pattern) == ""


@pytest.mark.parametrize(("pattern", "flaw"), FLAWED.items())
def test_what_javascript_refuses_is_told(pattern: str, flaw: str) -> None:
    assert find_flaw(pattern) == flaw


def test_a_very_long_pattern_is_not_read() -> None:
    assert find_flaw("(" * MOST_CHARS) and not find_flaw("(" * (MOST_CHARS + 1))


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab(?<>)[]{}\\-^$|*+:=!,1pux\ud800", max_size=30))
def test_reading_never_raises(pattern: str) -> None:
    assert isinstance(find_flaw(pattern), str)


# -- from Python's syntax

PYTHON: dict[str, str | None] = {
    "^[a-z]+$": "^[a-z]+$",
    r"\A[a-z]+\Z": "^[a-z]+$",
    r"(?P<w>[ab]+)-\1": r"(?<w>[ab]+)-\1",
    r"(?P<w>[ab]+)-(?P=w)": None,
    r"a\-b\@c\_\ d": "a-b@c_ d",
    r"[\-\@\_]+": r"[\-@_]+",
    "[]a]+": r"[\]a]+",
    "[^]a]": r"[^\]a]",
    "[][]": r"[\]\[]",
    "a{": r"a\{",
    "{a}": r"\{a\}",
    "a{,2}$": "a{0,2}$",
    "]": r"\]",
    r"\U0001F600": r"\u{1F600}",
    r"\a": r"\x07",
    "(?i)yes": None,
    "(?s).*": None,
    "(?#why)a": None,
    "(a)(?(1)b)": None,
    "a++": None,
    r"\N{DASH}": None,
    "(" * (MOST_CHARS + 1): None,
}
TEXTS = [
    "",
    "a",
    "ab",
    "aa",
    "aaa",
    "ab-ab",
    "ab-ba",
    "a-b@c_ d",
    "-",
    "@",
    "]",
    "[",
    "a{",
    "{a}",
    "b",
    "A",
    "😀",
    "\a",
]


@pytest.mark.parametrize(("pattern", "written"), PYTHON.items(), ids=lambda value: str(value)[:20])
def test_what_is_plainly_python_is_translated(pattern: str, written: str | None) -> None:
    assert translate(pattern) == written
    if written is not None:
        assert find_flaw(written) == "" and translate(written) == written
        schema: Any = {"pattern": written}
        assert [compile(schema).is_valid(text) for text in TEXTS] == [bool(re.search(pattern, text)) for text in TEXTS]


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab(?P<>=)[]{}\\-^$|*+:!,1AZU", max_size=30))
def test_what_is_translated_has_no_flaw(pattern: str) -> None:
    written = translate(pattern)
    assert written is None or find_flaw(written) == ""
