"""Patterns that take an engine which backtracks exponential time, and ordinary ones that only look like them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.schema.ambiguity import is_ambiguous

SLOW = [
    "^(a+)+$",
    "(a*)*$",
    "^(a|a)*$",
    "^(a|aa)+$",
    r"^(\w|\d)*$",
    r"^(\w+\s?)*$",
    r"^(\d+|\w+)+$",
    "^([a-z]+-?)*$",
    "^([a-z]{1,20})+$",
    "(x+x+)+y",
    "^(?:.*,)*x$",
    "^(?<name>a+)+$",
    "(?i)^(a|A)+$",
    "(?i)^([a-c]|B)+$",
    "^(?i:a|A)+$",
    r"^(([\-.]|_+)?([a-zA-Z0-9]+))*@x$",
]
FAST = [
    "^[a-z]+(-[a-z]+)*$",
    "^([a-z]+-)*[a-z]+$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"^(\d{1,3}\.){3}\d{1,3}$",
    r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    r"^https?://\S+$",
    "^([0-9a-f]{2}:?)+$",
    r"^(\d{3})+$",
    "^(foo|foobar)*$",
    "^(a|b)*$",
    "^(a|A)*$",
    "(?i)^(a|[^a])*$",
    "^((?i:x)a|A)*$",
    "^[a|b]*$",
    r"^(\||a)*$",
    "^(/[^/]+)+/?$",
    r"^\s*(\w+\s*=\s*\d+\s*;\s*)*$",
    "^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
    "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    r"^(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$",
    "^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
    "((((a{32}){32}){32}){32})",
    "^([0-9a-f]{64},?)*$",
    "(unclosed",
]


@pytest.mark.parametrize("pattern", SLOW)
def test_a_loop_with_many_ways_is_found(pattern: str) -> None:
    assert is_ambiguous(pattern)


@pytest.mark.parametrize("pattern", FAST)
def test_an_ordinary_pattern_is_let_be(pattern: str) -> None:
    assert not is_ambiguous(pattern)


@given(st.text("ab|()*+?[]^$\\d{1,3}", max_size=30))
def test_whatever_it_is_it_is_judged(pattern: str) -> None:
    assert is_ambiguous(pattern) in (True, False)
