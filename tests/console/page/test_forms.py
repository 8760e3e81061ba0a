"""Forms made from schemas: what is filled in arrives as arguments, and what is wrong is said at its field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.page.console_page import ConsolePage
from console.page.harbour import SHAPES

FIELD = ".form > .field > .control > .fields > .field[data-name={}]"


@pytest.mark.parametrize("name", SHAPES)
def test_a_value_of_each_shape_goes_through_the_form_unchanged(console: ConsolePage, name: str) -> None:
    """From JSON into the fields and back: only what the fields hold is sent."""
    console.open_tool("shapes")
    arguments = {"text": "Oslo", name: SHAPES[name][1]}
    console.write_arguments(arguments)
    assert console.has(FIELD.format(name))
    console.call()
    assert console.answer() == arguments


def test_all_shapes_at_once_go_through_the_form_unchanged(console: ConsolePage) -> None:
    console.open_tool("shapes")
    arguments = {name: value for name, (_, value) in SHAPES.items()}
    console.write_arguments(arguments)
    console.call()
    assert console.answer() == arguments


TYPED: dict[str, tuple[list[tuple[str, str, Any]], Any]] = {
    "long_text": ([("fill", "textarea", "typed")], "typed"),
    "integer": ([("fill", "input[type=number]", "5")], 5),
    "boolean": ([("fill", "select", "true")], True),
    "enum": ([("fill", "select", "large")], "large"),
    "titled": ([("fill", "select", "Second")], "b"),
    "nullable": ([("click", ".null-check input", None)], None),
    "constant": ([("click", ".send", None)], "fixed"),
    "several": ([("click", ".send", None), ("click", ".check:nth-child(2) input", None)], ["y"]),
    "list": ([("click", ".send", None), ("click", ".list > button", None), ("fill", ".item textarea", "one")], ["one"]),
    "map": (
        [
            ("click", ".send", None),
            ("click", ".list > button", None),
            ("fill", ".key", "depth"),
            ("fill", ".item input[type=number]", "9"),
        ],
        {"depth": 9},
    ),
    "choice": (
        [("click", ".send", None), ("fill", ".choice > select", "Square"), ("fill", ".branch input[type=number]", "3")],
        {"side": 3},
    ),
    "nested": ([("click", ".send", None), ("fill", "[data-name=street] textarea", "Quay 1")], {"street": "Quay 1"}),
    "anything": ([("fill", "textarea.code", '[1, {"a": null}]')], [1, {"a": None}]),
    "extra": (
        [
            ("click", ".send", None),
            ("fill", "[data-name=id] textarea", "q"),
            ("click", "[data-name='Other properties'] .send", None),
            ("click", "[data-name='Other properties'] .list > button", None),
            ("fill", ".key", "more"),
            ("fill", ".entry input[type=number]", "1.5"),
        ],
        {"id": "q", "more": 1.5},
    ),
}


@pytest.mark.parametrize("name", TYPED)
def test_what_a_person_fills_in_is_sent(console: ConsolePage, name: str) -> None:
    console.open_tool("shapes")
    place = FIELD.format(name)
    console.fill(f"{FIELD.format('text')} input", "Oslo")
    steps, value = TYPED[name]
    for kind, selector, given in steps:
        console.fill(f"{place} {selector}", given) if kind == "fill" else console.click(f"{place} {selector}")
    console.call()
    assert console.answer() == {"text": "Oslo", name: value}


def test_a_default_is_shown_and_not_sent_until_it_is_changed(console: ConsolePage) -> None:
    console.open_tool("shapes")
    place = FIELD.format("defaulted")
    assert console.js(f"document.querySelector('{place} textarea').value") == "from the schema"
    console.fill(f"{FIELD.format('text')} input", "Oslo")
    console.call()
    assert console.answer() == {"text": "Oslo"}


@pytest.mark.parametrize(
    ("name", "given", "complaint"),
    [
        ("text", "x", "text needs at least 2 characters"),
        ("integer", "12", "integer must be at most 9"),
        ("number", "0", "number must be more than 0"),
        ("any_object", "[]", "any_object must be an object: { … }"),
        ("anything", "{", "anything is not JSON"),
    ],
)
def test_a_wrong_value_is_said_at_its_field_and_nothing_is_sent(
    console: ConsolePage, name: str, given: str, complaint: str
) -> None:
    console.open_tool("shapes")
    console.fill(f"{FIELD.format('text')} input", "Oslo")
    control = f"{FIELD.format(name)} :is(input:not([type=checkbox]), textarea)"
    console.fill(control, given)
    console.click(".run-panel .run")
    assert console.text(f"{FIELD.format(name)} > .problem").startswith(complaint)
    assert console.js(f"document.activeElement === document.querySelector({json.dumps(control)})")
    assert not console.js("document.querySelector('.output').hasChildNodes()")


def test_a_missing_required_value_is_said(console: ConsolePage) -> None:
    console.open_tool("shapes")
    console.click(".run-panel .run")
    assert console.text(f"{FIELD.format('text')} > .problem") == "text is required"


def test_items_of_a_list_can_be_moved_and_removed(console: ConsolePage) -> None:
    console.open_tool("shapes")
    console.write_arguments({"text": "Oslo", "list": ["a", "b", "c"]})
    items = f"{FIELD.format('list')} .item"
    console.click(f"{items}:nth-child(1) [title='Move down an item']")
    console.click(f"{items}:nth-child(3) [title='Remove an item']")
    console.call()
    assert console.answer() == {"text": "Oslo", "list": ["b", "a"]}
