"""URI templates: the URIs that match, the values, and the values that never match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.registry.resource import MAX_URI_CHARACTERS, Template, TemplateProblem


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("a://b", "a://b", {}),
        ("a://b", "a://c", None),
        ("a://{x}", "a://1", {"x": "1"}),
        ("a://{x}", "a://", None),
        ("a://{x}", "a://1/2", None),
        ("a://{x}/{y}", "a://1/2", {"x": "1", "y": "2"}),
        ("a://{x}.json", "a://1.json", {"x": "1"}),
        ("a://{x}.json", "a://1xjson", None),
        ("a://{x}", "a://caf%C3%A9%20au", {"x": "café au"}),
        ("a://{x}", "a://caf\u00e9", {"x": "café"}),
        ("a://{x}", "a://a+b", {"x": "a+b"}),
        ("a://{x}", "a://100%", {"x": "100%"}),
        ("a://{x}", "a://b?c", None),
        ("a://{x}", "a://b#c", None),
        ("a://f/{+path}", "a://f/1/2/3.txt", {"path": "1/2/3.txt"}),
        ("a://f/{path*}", "a://f/1/2", {"path": "1/2"}),
        ("a:{/x}", "a:/1", {"x": "1"}),
        ("a://s{?q,n}", "a://s", {}),
        ("a://s{?q,n}", "a://s?q=a+b%26&n=2", {"q": "a b&", "n": "2"}),
        ("a://s{?q,n}", "a://s?n=2&z=9", {"n": "2"}),
        ("a://s{?q}", "a://s?q=", {"q": ""}),
        ("a://s{?q}", "a://s?q=../x", {"q": "../x"}),
        ("a://{x}{?q}", "a://1?q=2", {"x": "1", "q": "2"}),
        ("file://{+path}", "file:///etc/hosts", {"path": "/etc/hosts"}),
        ("a://(x)|{y}", "a://(x)|z", {"y": "z"}),
        ("a://{x}", "A://1", None),
    ],
)
def test_a_uri_gives_its_values_or_does_not_match(template: str, uri: str, values: dict[str, str] | None) -> None:
    assert Template(template).match(uri) == values


CLIMBING = [
    "..",
    "%2e%2e",
    "%2E.",
    "../x",
    "x/../y",
    "x/..",
    "%2e%2e/x",
    "..%2fx",
    "..%5cx",
    "..\\x",
    "x\\..\\y",
    "%00",
    "x%00y",
    "x\x00",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "\\\\host\\share",
    "%5C%5Chost",
]


@pytest.mark.parametrize("value", CLIMBING)
@pytest.mark.parametrize("template", ["f://{x}", "f:///{x}", "f://d/{+x}", "f://d/{x*}", "f:{/x*}", "f://d/{x}{?q}"])
def test_a_value_that_climbs_out_of_its_place_matches_nothing(template: str, value: str) -> None:
    before, _, _after = template.partition("{")
    if template.startswith("f:{/"):
        before += "/"
    assert Template(template).match(before + value) is None


@pytest.mark.parametrize("value", ["a%2Fb", "a%5cb", "a\\b", "a/b"])
def test_one_segment_holds_no_slash_in_any_spelling(value: str) -> None:
    assert Template("f://{x}").match(f"f://{value}") is None


def test_a_dot_in_a_name_is_only_a_dot() -> None:
    for value in (".", "...", "a..b", "..a", ".hidden", "%252e%252e"):
        assert Template("f://d/{+x}").match(f"f://d/{value}") is not None


def test_no_nul_comes_through_a_query() -> None:
    assert Template("f://d{?q}").match("f://d?q=a%00") is None


def test_a_uri_that_is_too_long_matches_nothing() -> None:
    template = Template("a://{x}")
    longest = "a://" + "x" * (MAX_URI_CHARACTERS - 4)
    assert template.match(longest) is not None
    assert template.match(longest + "x") is None


@given(st.text(max_size=50))
def test_no_text_makes_a_segment_of_what_could_leave_it(text: str) -> None:
    values = Template("f://root/{x}/end").match(f"f://root/{text}/end")
    if values is not None:
        assert not set("/\\\0") & set(values["x"])
        assert values["x"] != ".."


@given(st.text(max_size=50))
def test_no_text_makes_a_path_of_what_could_leave_it(text: str) -> None:
    values = Template("f://root/{+x}").match(f"f://root/{text}")
    if values is not None:
        assert values["x"][0] not in "/\\" and "\0" not in values["x"]
        assert ".." not in values["x"].replace("\\", "/").split("/")


@pytest.mark.parametrize(
    "template",
    [
        "cal://{year}-{month}-{day}",
        "a:{x}--{y}.{z}-",
        "a:{+x}-{y}",
        "a:{+x}/{+y}",
        "a:{x}-{y}/{+z}",
        "a:{+x}/{y}/{+z}-",
        "a://{x}-{y}{?q}",
        "a://{+x}/-/{+y}",
    ],
)
def test_a_template_that_a_uri_could_match_in_several_ways_is_refused(template: str) -> None:
    """A regex would try every way to divide a URI of nothing but separators."""
    with pytest.raises(TemplateProblem, match=r"several ways|may each hold slashes"):
        Template(template)
