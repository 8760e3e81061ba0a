"""Patterns in the syntax that both engines share."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.toolsets.filesystem.patterns import MOST_CHARACTERS, MOST_REPETITIONS, PatternError, read_pattern


@pytest.mark.parametrize(
    ("pattern", "ripgrep"),
    [
        ("a{2,3}b{", r"a{2,3}b\{"),
        ("a{,3}", "a{0,3}"),
        ("a{2}?", "a{2}?"),
        ("x{}", r"x\{\}"),
        ("foo$", r"foo(?:\r?$)"),
        (r"\Afoo\Z", r"^foo(?:\r?$)"),
        ("[]a]", r"[\]a]"),
        ("[[&]", r"[\[\&]"),
        (r"[\x41-\u0043-]", r"[A-C\-]"),
        ("(?<n>x)(?:y)", "(?P<n>x)(?:y)"),
        (r"\/\"", '/"'),
        ("(?im)x", "x"),
    ],
)
def test_a_pattern_is_written_for_ripgrep(pattern: str, ripgrep: str) -> None:
    assert read_pattern(pattern).ripgrep == ripgrep


@pytest.mark.parametrize(
    "pattern", ["a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b", r"(a)\1", "(?P<n>a)(?P=n)", "(?>a)", "a++"]
)
def test_what_ripgrep_lacks_is_left_to_python(pattern: str) -> None:
    assert read_pattern(pattern).ripgrep is None


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("", "empty"),
        ("a\nb", "newline"),
        ("a\0", "NUL"),
        (r"a\n", "in one line"),
        ("*a", "nothing before it to repeat"),
        ("a**", "nothing before it to repeat"),
        ("^*", "nothing before it to repeat"),
        (r"\p{L}", r"'\\p' at character 1"),
        (r"\x4", "2 hexadecimal digits"),
        (r"\ud800", "4 hexadecimal digits"),
        ("(?x)a", "leading (?i)"),
        ("a(?i)b", "leading (?i)"),
        ("[[:alpha:]]", "named classes"),
        ("[a&&b]", "set operations"),
        ("[z-a]", "upwards"),
        ("[a", "no ]"),
        (r"[\b]", "word boundary"),
        ("(a", "can't be read"),
        ("a)", "can't be read"),
        ("\\", "escaped sign"),
        ("\ud800", "surrogates"),
        (f"a{{{MOST_REPETITIONS + 1}}}", "at most 1,000"),
        ("a" * (MOST_CHARACTERS + 1), "at most 4,000"),
    ],
)
def test_a_pattern_that_can_not_be_searched_says_what_to_do(pattern: str, part: str) -> None:
    with pytest.raises(PatternError, match=re.escape(part)):
        read_pattern(pattern)


@pytest.mark.parametrize("pattern", [f"a{{{MOST_REPETITIONS}}}", "a" * MOST_CHARACTERS])
def test_a_pattern_at_its_limit_is_read(pattern: str) -> None:
    assert read_pattern(pattern).ripgrep == pattern


@given(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_literal_matches_itself(text: str) -> None:
    assert re.fullmatch(read_pattern(text, literal=True).python, text)


@given(st.text(st.sampled_from("ab\\[]()?*+{}^$|.<>=!:Pi1-,dws"), min_size=1, max_size=12))
def test_any_pattern_is_read_or_refused(text: str) -> None:
    try:
        pattern = read_pattern(text)
    except PatternError:
        return
    found = re.search(pattern.python, "a\nb\n1", re.MULTILINE)
    assert found is None or "\n" not in found[0]
