# ruff: noqa: SIM905  (patterns are easier to read without quotes)
"""Patterns as `new RegExp(pattern, "u")` takes them. The table was measured with Node 20."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counts import count
from longshore.schema.patterns import MAX_CHARS, find_flaw, has_nested_loop, translate
from longshore.schema.validate import compile

FINE = r"""
    a ^a$ a|b ^[A-Z]{3}-\d+$ (a)\1 (?<n>a)\k<n> \k<n>(?<n>a) (?:a)+? (?=a)b (?!a)b (?<=a)b (?<=a+)b (?<!a)b
    [\-a] [a-] [-a] [^] [] [[] [a\]] \/ \. \0 a{2} a{2,} a{2,2} a{2,3}? \p{L} \P{Script=Latin} \x41 \u0041
    \u{1F600} \cA [\b] é+ 😀? [😀-😎] \bword\b () (|a) [\d\w] [\cA-\cZ] [\0-\x7f] [\t-\r] (?<$é>a)
""".split()
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
    "[\\B]": "the set [\\B]",
    "[\\1]": "the set [\\1]",
    "a{": "a lone {",
    "a{,2}": "a lone {",
    "}": "a lone }",
    "]": "a lone ]",
    "[[:alpha:]]": "a lone ]",
    "[a": "the set [a",
    "a++": "a lone +",
}
"""Flaws that are not found: parentheses without a partner, loops of nothing, groups that don't exist."""


@pytest.mark.parametrize("pattern", FINE)
def test_a_pattern_that_javascript_accepts_has_no_flaw(pattern: str) -> None:
    assert find_flaw(pattern) == ""


@pytest.mark.parametrize(("pattern", "flaw"), FLAWED.items())
def test_a_pattern_that_javascript_refuses_has_a_flaw(pattern: str, flaw: str) -> None:
    assert find_flaw(pattern) == flaw


def test_a_very_long_pattern_is_not_read() -> None:
    assert find_flaw("{" * MAX_CHARS) and not find_flaw("{" * (MAX_CHARS + 1))


@settings(max_examples=count(60), deadline=None)
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
    r"\a": r"\x07",
    "(?i)yes": None,
    "(?s).*": None,
    "(?#why)a": None,
    "(a)(?(1)b)": None,
    "a++": None,
    r"\N{DASH}": None,
    "(" * (MAX_CHARS + 1): None,
}
TEXTS = ["", "a-b@c_ d", "\a", *"a ab aa aaa ab-ab ab-ba - @ ] [ a{ {a} b A".split()]


@pytest.mark.parametrize(("pattern", "written"), PYTHON.items(), ids=lambda value: str(value)[:20])
def test_a_python_pattern_is_translated(pattern: str, written: str | None) -> None:
    assert translate(pattern) == written
    if written is not None:
        assert find_flaw(written) == "" and translate(written) == written
        schema: Any = {"pattern": written}
        assert [compile(schema).is_valid(text) for text in TEXTS] == [bool(re.search(pattern, text)) for text in TEXTS]


@settings(max_examples=count(60), deadline=None)
@given(st.text(alphabet="ab(?P<>=)[]{}\\-^$|*+:!,1AZU", max_size=30))
def test_a_translated_pattern_has_no_flaw(pattern: str) -> None:
    written = translate(pattern)
    assert written is None or find_flaw(written) == ""


# -- loops in loops

SLOW = r"""
    ^(a+)+$ (a*)*$ ^(\w+\s?)*$ ^([a-z]+-?)*$ ^(-?[a-z]+)*$ ^(?<name>a+)+$ ^(?:\(+)+$ ^(a+){2,}$
""".split()
FAST = r"""
    ^[a-z]+(-[a-z]+)*$ ^([a-z]+-)*[a-z]+$ ^\d{4}-\d{2}-\d{2}$ ^(\d{1,3}\.){3}\d{1,3}$ ^https?://\S+$
    ^([0-9a-f]{2}:?)+$ ^(foo|foobar)*$ ^(a|b)*$ ^[(a+)+]$ ^\(a+\)+$ ^(/[^/]+)+/?$ ^\s*(\w+\s*=\s*\d+\s*;\s*)*$
    ^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$ (unclosed
""".split()


@pytest.mark.parametrize("pattern", SLOW)
def test_a_loop_in_a_loop_is_found(pattern: str) -> None:
    assert has_nested_loop(pattern)


@pytest.mark.parametrize("pattern", FAST)
def test_an_ordinary_pattern_has_no_nested_loop(pattern: str) -> None:
    assert not has_nested_loop(pattern)
