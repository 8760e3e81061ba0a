"""The targets of references, the same for everything that resolves them."""

from __future__ import annotations

from typing import Any

import pytest

from longshore.cli.arguments import part
from longshore.schema.walk import resolve
from longshore.toolsets.discovery.survey import kind_of

ROOT: dict[str, Any] = {
    "type": "object",
    "$defs": {"a/b": {"type": "string"}, "c d": {"type": "number"}, "0": {"$anchor": "here", "type": "null"}},
    "definitions": {"old": {"type": "boolean"}},
    "prefixItems": [{"type": "integer"}],
}


@pytest.mark.parametrize(
    ("ref", "kind"),
    [
        ("#", "object"),
        ("#/$defs/a~1b", "string"),
        ("#/$defs/c%20d", "number"),
        ("#/$defs/0", "null"),
        ("#/definitions/old", "boolean"),
        ("#/prefixItems/0", "integer"),
    ],
)
def test_a_way_through_the_schema_is_followed(ref: str, kind: str) -> None:
    assert resolve(ROOT, ref)["type"] == part({"$ref": ref}, ROOT)["type"] == kind_of({"$ref": ref}, ROOT) == kind


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "#here",
        "#/$defs/gone",
        "#/prefixItems/1",
        "#/prefixItems/-1",
        "#/prefixItems/999999999",
        "/$defs/0",
        1,
        None,
    ],
)
def test_a_reference_out_of_the_schema_resolves_to_nothing(ref: Any) -> None:
    assert resolve(ROOT, ref) is None
    assert part({"$ref": ref}, ROOT) in ({}, {"$ref": ref})
    assert kind_of({"$ref": ref}, ROOT) == "any value"
