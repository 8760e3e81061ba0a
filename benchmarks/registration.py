"""What it costs to declare a hundred tools, with the standards held against them and without.

Eighty are typed, as people write them; twenty bring schemas of their own. All but the first start run in this process,
in turns, in processor time. A server's second start finds what the first one remembered; a first start loads the rules.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time_ns
from typing import Annotated, Any, Literal

import msgspec

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.load import Session

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

TYPED, RAW = 80, 20
OFF, AGAIN, NEW = 'standards="off"', "looked at before", "looked at first"
FRESH_OFF, FRESH_AGAIN, FRESH_NEW = (f"{each}, new process" for each in (OFF, AGAIN, NEW))
FRESH = """
import sys; sys.path[:0] = {paths!r}
import benchmarks.registration as it
print(it.declare({policy!r}, save=True))
"""


class Place(msgspec.Struct):
    """Somewhere on earth."""

    latitude: float
    longitude: float
    name: str = ""


def plain(city: str, days: int = 3) -> str:
    """Fetch the forecast for a city.

    city: its name
    days: how many days ahead
    """
    return city


def choosing(
    where: Annotated[str, "a street"], kind: Literal["walk", "ride"] = "walk", tags: list[str] | None = None
) -> str:
    """Plan a way through a street."""
    return where


def structured(place: Place, radius: Annotated[float, msgspec.Meta(ge=0, le=100)] = 5.0) -> list[Place]:
    """Find what is near a place."""
    return [place]


def handle(arguments: Any, context: Any) -> Any:
    return {"content": []}


def schema(number: int) -> dict[str, Any]:
    """An author's schema of six properties, each tool's its own."""
    return {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": f"what to look for in shelf {number}"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100 + number, "default": 20},
            "order": {"type": "string", "enum": ["newest", "oldest", "best"]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
            "window": {"type": "object", "properties": {"start": {"type": "string"}, "end": {"type": "string"}}},
            "exact": {"type": "boolean", "default": False},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def declare(policy: Any, save: bool = False) -> float:
    """Milliseconds of the processor for a hundred tools, imports of what they need included."""
    from longshore import Server, Tool

    app = Server("bench", standards="off")
    app.tool(name="warm")(structured)  # what typed tools need is loaded
    app.add_tool(Tool(name="warm-raw", input_schema={"type": "object"}), handle)
    began = process_time_ns()
    app = Server("bench", standards=policy)
    for number in range(TYPED):
        app.tool(name=f"typed_{number}")((plain, choosing, structured)[number % 3])
    for number in range(RAW):
        tool = Tool(name=f"raw_{number}", description="Search a shelf of the archive", input_schema=schema(number))
        app.add_tool(tool, handle)
    took = (process_time_ns() - began) / 1e6
    if save:
        app.admission.report()
    return took


def declare_anew(policy: Any, cache: str) -> float:
    """The same in a process of its own."""
    code = FRESH.format(paths=[str(ROOT), str(ROOT / "src")], policy=policy)
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "XDG_CACHE_HOME": cache}, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"benchmarks.registration: {done.stderr}")
    return float(done.stdout)


def measure(session: Session) -> list[Claim]:
    rounds = session.pick(full=25, quick=7)
    values: dict[str, list[float]] = {each: [] for each in (OFF, AGAIN, NEW, FRESH_OFF, FRESH_AGAIN, FRESH_NEW)}
    with TemporaryDirectory() as known, TemporaryDirectory() as unknown:
        kept = os.environ.get("XDG_CACHE_HOME")
        try:
            os.environ["XDG_CACHE_HOME"] = known
            declare("warn", save=True)
            for _ in range(rounds):
                for each, policy, cache in ((OFF, "off", known), (AGAIN, "warn", known), (NEW, "warn", unknown)):
                    os.environ["XDG_CACHE_HOME"] = cache
                    gc.collect()
                    values[each].append(declare(policy))
        finally:
            os.environ.pop("XDG_CACHE_HOME") if kept is None else os.environ.update(XDG_CACHE_HOME=kept)
        for number in range(session.pick(full=9, quick=3)):
            values[FRESH_OFF].append(declare_anew("off", known))
            values[FRESH_AGAIN].append(declare_anew("warn", known))
            values[FRESH_NEW].append(declare_anew("warn", f"{unknown}/{number}"))
    claim = Claim(
        "registration",
        f"Declaring {TYPED + RAW} tools, {RAW} of them raw: processor time, median of {rounds} rounds",
        "ms",
        base=OFF,
        targets=[Target(AGAIN, 1.5, against=OFF), Target(NEW, 1.5, against=OFF)],
    )
    for each, figures in values.items():
        claim.add(each, figures)
    return [claim]


if __name__ == "__main__":
    sys.exit(main([measure]))
