"""Schemas inferred from types break no rule at error level."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from annotated_types import Ge, Le, MinLen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.schema import models
from tests.schema.conftest import taking
from tests.schema.test_properties import EXACT, FORMATTED, Typed, types

from counts import count
from longshore.schema.infer import input_schema
from longshore.schema.lint.rule import PROFILES, Finding
from longshore.schema.lint.run import lint
from longshore.schema.lint.tool_list import ToolList
from longshore.schema.output import Output, read_output
from longshore.schema.signature import Signature
from longshore.schema.validate import compile

Json = dict[str, Any]
some = settings(max_examples=count(60), deadline=None, suppress_health_check=list(HealthCheck))


def described(signature: Signature, output: Output) -> Json:
    tool = {"name": "look_up", "description": "Look up a thing", "inputSchema": input_schema(signature, {})}
    schema = output.schema()
    return tool if schema is None else {**tool, "outputSchema": schema}


def errors(tool: Json) -> list[Finding]:
    """The errors in its schemas only."""
    found = lint(ToolList(tools=(tool,)), profiles=PROFILES, levels=("error",))
    return [each for each in found if each.path.startswith(("inputSchema", "outputSchema"))]


# -- what we infer


@some
@given(types(EXACT + FORMATTED), types(EXACT + FORMATTED), st.data())
def test_an_inferred_schema_breaks_no_rule_at_error_level_and_accepts_what_the_types_accept(
    taken: Typed, given_back: Typed, data: st.DataObject
) -> None:
    signature, output = taking(taken[0]), read_output(given_back[0], passthrough=())
    tool = described(signature, output)
    assert errors(tool) == []
    raw = msgspec.json.encode({"x": data.draw(taken[1])})
    signature.decode(raw)
    assert compile(tool["inputSchema"]).is_valid(msgspec.json.decode(raw))
    if output.structured:
        plain = msgspec.json.decode(output.enforce(data.draw(given_back[1])))
        assert compile(tool["outputSchema"]).is_valid({"result": plain} if output.wrap else plain)


class Empty(enum.Enum):
    ONLY = "only"


TYPES: list[Any] = [
    *(
        models.Color,
        models.Level,
        models.Mixed,
        models.Point,
        models.Circle,
        models.Tree,
        models.Drawing,
        models.Counted,
    ),
    *(
        models.Row,
        models.Options,
        models.Account,
        models.Cat | models.Dog,
        models.User,
        models.Node,
        models.Checked,
    ),
    *(models.Team, models.Left, models.Right, Empty, Any, None, object, dict, list, set, tuple, Path, decimal.Decimal),
    *(dict[str, Any], dict[str, list[dict[str, int]]], Mapping[str, int], Sequence[str], frozenset[int], tuple[()]),
    *(tuple[int, str], tuple[int, ...], list[tuple[int, str]], set[uuid.UUID], dict[Literal["a", "b"], int]),
    *(datetime.datetime, datetime.time, datetime.timedelta, bytes, Literal["a", 1, None], models.Tree | None),
    *(Annotated[int, Ge(1), Le(9)], Annotated[str, MinLen(1)], Annotated[list[int], MinLen(1)], int | str | list[int]),
    *(Annotated[str, msgspec.Meta(pattern="^[a-z]+$")], list[models.Node | None], dict[str, models.Tree | int]),
]


@pytest.mark.parametrize("annotation", TYPES, ids=str)
def test_each_family_of_types_breaks_no_rule_at_error_level(annotation: Any) -> None:
    assert errors(described(taking(annotation), read_output(annotation, passthrough=()))) == []
    if annotation is not None:
        assert errors(described(taking(annotation | None, None), read_output(str, passthrough=()))) == []


@pytest.mark.parametrize("pattern", [r"\A[a-z]+\Z", r"(?P<word>\w+)", r"a\-b", r"(?i)yes", r"a\@b\_c", r"(?s).*"])
def test_a_pattern_in_python_syntax_is_translated_or_left_out(pattern: str) -> None:
    annotation = Annotated[str, msgspec.Meta(pattern=pattern)]
    assert errors(described(taking(annotation), read_output(annotation, passthrough=()))) == []
    output = read_output(list[annotation], passthrough=())  # type: ignore[valid-type]
    tool = described(taking(annotation), output)
    assert not [each for each in lint(ToolList(tools=(tool,)), profiles=PROFILES) if each.rule == "E15"]
