"""docs/api/ is made of the public names: `python -m scripts.api_reference` writes it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from typing import Any

import pytest
from scripts import api_reference
from scripts.api_reference import COMMAND, FOLDER, PAGES, every
from scripts.api_source import Name

import longshore
from longshore.client import auth

MADE = api_reference.make()
NAMES = [name for slug in PAGES for name in every(slug)]


@pytest.mark.parametrize("page", sorted(MADE))
def test_a_page_is_what_the_source_says(page: str) -> None:
    assert (FOLDER / page).read_text(encoding="utf-8") == MADE[page], f"run: {COMMAND}"


def test_there_is_no_other_page() -> None:
    assert {path.name for path in FOLDER.iterdir()} == MADE.keys()


def test_every_public_name_is_on_one_page() -> None:
    shown = [name.name for name in NAMES]
    assert {name for name in shown if shown.count(name) > 1} == set()
    public = {*longshore.__all__, *auth.__all__, *importlib.import_module("longshore.testing").__all__}
    assert public - {"__version__"} <= set(shown)


@pytest.mark.parametrize("slug", PAGES)
def test_every_name_and_member_is_described(slug: str) -> None:
    for part in re.split(r"^(?=#+ `)", MADE[f"{slug}.md"], flags=re.MULTILINE)[1:]:
        heading, _, rest = part.partition("\n")
        if f"\n{heading.strip('# `')} = " in rest:
            continue  # an alias of a type says what it is
        words = re.sub(r"^```.*?^```$", "", rest, flags=re.MULTILINE | re.DOTALL).strip()
        assert words and not words.startswith(("|", "Used in", "Raises `")), f"{heading} has no docstring"


@pytest.mark.parametrize("page", sorted(MADE))
def test_no_two_headings_have_one_anchor(page: str) -> None:
    """`Tool` and `tool` would, and the links to the second lead to the first."""
    anchors = [re.sub(r"[^\w -]", "", each.lower()) for each in re.findall(r"^#+ (.*)$", MADE[page], re.MULTILINE)]
    assert {each for each in anchors if anchors.count(each) > 1} == set()


def test_a_use_is_shown_of_every_name() -> None:
    assert [name.name for name in NAMES if not api_reference.use(name)] == []


def shown_parameters(signature: str) -> set[str]:
    call = ast.parse(f"def {signature.removeprefix('async ')}: ...").body[0]
    assert isinstance(call, ast.FunctionDef)
    return {node.arg for node in ast.walk(call.args) if isinstance(node, ast.arg)}


def real_parameters(value: Any) -> set[str]:
    if hasattr(value, "__struct_fields__"):
        return set(value.__struct_fields__)
    return {name for name, each in inspect.signature(value).parameters.items() if each.annotation != "Never"}


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.name)
def test_a_signature_has_the_parameters_that_python_sees(name: Name) -> None:
    value = getattr(importlib.import_module(name.module), name.name)
    if len(name.signatures) == 1 and re.match(rf"(async )?{name.name}\(", name.signatures[0]) and callable(value):
        assert shown_parameters(name.signatures[0]) == real_parameters(value)
