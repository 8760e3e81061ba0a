"""What it costs to check the arguments of a call, against the bare libraries that do the work.

A typed tool of six parameters, against msgspec decoding the same bytes into a Struct of the same six fields; and a
tool with its author's own schema of the same shape, against msgspec and jsonschema-rs alone. In this process, in turns.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import process_time_ns
from typing import Annotated, Any, Literal

import jsonschema_rs
import msgspec
from msgspec import Meta

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.load import Session

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

ARGUMENTS = msgspec.json.encode(
    {"city": "Lisbon", "days": 3, "unit": "celsius", "hourly": True, "wind": 4.5, "tags": ["sea", "sun"]}
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "hourly": {"type": "boolean"},
        "wind": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
OURS, MSGSPEC, LIBRARY = "longshore", "msgspec alone", "msgspec and jsonschema-rs alone"


class Forecast(msgspec.Struct, forbid_unknown_fields=True):
    """What a careful author would write for msgspec itself."""

    city: str
    days: Annotated[int, Meta(ge=1, le=7)]
    unit: Literal["celsius", "fahrenheit"] = "celsius"
    hourly: bool = False
    wind: float = 0.0
    tags: list[str] = []


def typed_tool() -> Callable[[Any], Any]:
    """How the arguments of a typed tool are read."""
    app = import_module("longshore").Server("bench")

    @app.tool
    def forecast(
        city: str,
        days: Annotated[int, Meta(ge=1, le=7)],
        unit: Literal["celsius", "fahrenheit"] = "celsius",
        hourly: bool = False,
        wind: float = 0.0,
        tags: list[str] = [],  # noqa: B006  (each call gets its own)
    ) -> str:
        """Forecast the weather of a city."""
        return city

    return app.engine.tools["forecast"].decode


def raw_tool() -> Callable[[Any], Any]:
    """How the arguments of a tool with its author's own schema are read."""
    longshore = import_module("longshore")
    app = longshore.Server("bench")
    tool = longshore.Tool(name="forecast", description="Forecast the weather of a city", input_schema=SCHEMA)
    app.add_tool(tool, lambda arguments, context: {"content": []})
    return app.engine.tools["forecast"].decode


def library() -> Callable[[Any], Any]:
    """The same by hand: decode, and ask the validator."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    is_valid = jsonschema_rs.Draft202012Validator(SCHEMA).is_valid

    def read(raw: Any) -> Any:
        values = decode(raw)
        if is_valid(values):
            return values
        raise ValueError("invalid")

    return read


def measure(session: Session) -> list[Claim]:
    bare = msgspec.json.Decoder(Forecast).decode
    return [
        _claim(session, "validation_typed", "a typed tool of six parameters", typed_tool(), MSGSPEC, bare, 1.5),
        _claim(session, "validation_raw", "an author's own schema of six", raw_tool(), LIBRARY, library(), 1.3),
    ]


def _claim(
    session: Session,
    name: str,
    what: str,
    ours: Callable[[Any], Any],
    base: str,
    bare: Callable[[Any], Any],
    most: float,
) -> Claim:
    rounds, calls = session.pick(full=15, quick=5), session.pick(full=100_000, quick=20_000)
    claim = Claim(
        name,
        f"Checking arguments, {what}: processor time a call, median of {rounds} rounds of {calls:,}",
        "µs",
        base=base,
        targets=[Target(OURS, most, base)],
    )
    values: dict[str, list[float]] = {OURS: [], base: []}
    for _ in range(rounds):
        for each, read in ((OURS, ours), (base, bare)):
            gc.collect()
            values[each].append(_time(read, calls))
    for each, figures in values.items():
        claim.add(each, figures)
    return claim


def _time(read: Callable[[Any], Any], calls: int) -> float:
    raw = msgspec.Raw(ARGUMENTS)
    read(raw)
    began = process_time_ns()
    for _ in range(calls):
        read(raw)
    return (process_time_ns() - began) / calls / 1000


if __name__ == "__main__":
    sys.exit(main([measure]))
