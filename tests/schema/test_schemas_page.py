"""`docs/schemas.md` is true."""

import json
import re
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from longshore.schema import infer
from longshore.schema.client_forms import FORMS, lower
from longshore.schema.combinators import ROOT_COMBINATORS
from longshore.schema.infer import input_schema
from longshore.schema.rewrite import MAX_INLINED
from longshore.schema.walk import MAX_DEPTH, MAX_NODES

from .conftest import taking

PAGE = (Path(__file__).parents[2] / "docs/schemas.md").read_text(encoding="utf-8")


def test_the_example_is_what_is_made() -> None:
    [text] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    shown: dict[str, Any] = json.loads(text)
    for form in ("claude", "openai-strict"):
        lowered = lower({"name": "get", "inputSchema": shown["before"]}, form)
        assert lowered["inputSchema"] == shown[form]
        assert lowered["description"] == shown["description"]


def test_the_table_of_types_is_what_is_inferred() -> None:
    def written(annotation: Any, *default: Any) -> Any:
        return input_schema(taking(annotation, *default), {})["properties"]["x"]

    assert written(str | None, None) == {"type": "string"}
    assert written(str | None) == {"type": ["string", "null"]}
    assert written(Any) == {}
    pattern = Annotated[str, Meta(pattern=r"\A(?P<n>\d+)\Z")]
    assert written(pattern)["pattern"] == r"^(?<n>\d+)$"
    assert f"more than {infer.INLINE_USES} times" in PAGE


def test_the_page_names_every_form_and_every_limit() -> None:
    forms = PAGE.split("| Form |")[1].split("\n\n")[0]
    assert re.findall(r"`([a-z-]+)`", "".join(row.split("|")[1] for row in forms.splitlines()[2:])) == [*FORMS]
    assert all(f"`{word}`" in PAGE for word in ROOT_COMBINATORS if word not in ("then", "else"))
    assert f"{MAX_NODES:,} schemas, {MAX_DEPTH} levels" in PAGE and f"up to {MAX_INLINED:,} schemas" in PAGE
