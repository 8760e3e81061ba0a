"""The modules that are imported to read a tool. Milliseconds vary from machine to machine; modules don't."""

import json
import subprocess
import sys
import textwrap

import pytest

# typing_extensions is in the development environment only; where it is installed, msgspec imports it and so inspect.
PROLOGUE = """
import json, sys
heavy = [m for m in sys.modules if m == "json" or m.startswith("json.")]
for name in heavy: del sys.modules[name]
sys.modules["typing_extensions"] = None
import msgspec
before = set(sys.modules)
class Context: pass
class Ask: pass
"""
EPILOGUE = """
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded_by(code: str) -> set[str]:
    script = PROLOGUE + textwrap.dedent(code) + EPILOGUE
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    return set(json.loads(done.stdout))


PLAIN = """
from longshore.schema.signature import read
from longshore.schema.output import read_output
async def forecast(city: str, days: int = 3) -> str: ...
class Weather:
    def today(self, city: "str", ctx: Context) -> int: ...
for fn in (forecast, Weather().today):
    signature = read(fn, context_type=Context, marker_type=Ask)
    read_output(signature.returns, passthrough=(Context,))
"""

RICH = """
from typing import Annotated, Literal
from longshore.schema.signature import read
from longshore.schema.output import read_output
class Point(msgspec.Struct):
    x: int
def move(to: Annotated[Point, "where to"], how: Literal["walk", "run"] = "walk", tags: list[str] | None = None,
         note: Annotated[str, msgspec.Meta(max_length=9)] = "") -> list[Point]: ...
signature = read(move, context_type=Context, marker_type=Ask)
output = read_output(signature.returns, passthrough=(Context,))
signature.decode(b'{"to":{"x":1}}')
output.enforce([Point(1)])
"""

LISTED = (
    RICH
    + """
from longshore.schema.infer import input_schema
from longshore.schema.docstring import parse
input_schema(signature, parse("Move.\\n\\nto: where", ["to"]).parameters)
output.schema()
"""
)


def test_an_ordinary_tool_loads_three_modules_of_ours_and_none_of_others() -> None:
    loaded = loaded_by(PLAIN)
    assert {n for n in loaded if n.startswith("longshore.schema.")} == {
        "longshore.schema.signature",
        "longshore.schema.kinds",
        "longshore.schema.output",
    }
    assert {n for n in loaded if not n.startswith("longshore")} == set()


@pytest.mark.parametrize("code", [RICH, LISTED], ids=["registering", "listing"])
def test_richer_types_load_only_modules_of_ours(code: str) -> None:
    assert {name for name in loaded_by(code) if not name.startswith("longshore")} == set()
