"""The rules. Their texts and examples are in `rules.json`, their checks in one module for each kind of thing."""

from __future__ import annotations

import os
from typing import Final

import msgspec
from msgspec.structs import asdict, replace

from longshore.schema.lint.rule import Check, Level, Mend, Profile, Rule
from longshore.schema.lint.rules import brooklyn, naming, portability, schemas, texts
from longshore.schema.lint.tool_list import Declaration, Json, ToolList, example

NOT_OFFERED: Final = "E00"
"""The rule about tools that were refused at registration. No list has them, so it has no check."""
_CHECKS: Final[dict[str, Check]] = naming.CHECKS | schemas.CHECKS | portability.CHECKS | texts.CHECKS | brooklyn.CHECKS
_SERVER_CHECKS: Final = naming.SERVER_CHECKS | texts.SERVER_CHECKS
_MENDS: Final[dict[str, Mend]] = naming.MENDS | schemas.MENDS | portability.MENDS | texts.MENDS | brooklyn.MENDS


class _Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tools: list[Json]
    """Members that are left out are filled in."""
    server: str = "example"
    declared: Declaration | None = None
    copies: int = 0
    """How many numbered copies of the tool the server lists."""
    repeats: int = 1
    """How many times the description is repeated."""

    def fill(self) -> ToolList:
        tools = [{"name": f"get_weather_{number}"} for number in range(self.copies)] or self.tools
        if self.repeats > 1:
            tools = [{**tool, "description": tool["description"] * self.repeats} for tool in tools]
        filled = [example(tool, declared=self.declared, name=self.server) for tool in tools]
        together = tuple(tool for each in filled for tool in each.tools)
        return replace(filled[0], tools=together) if filled else ToolList()


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule in `rules.json`."""

    title: str
    level: Level
    profiles: tuple[Profile, ...]
    why: str
    evidence: str
    fix: str
    good: _Example
    bad: _Example


def _read_rules() -> tuple[Rule, ...]:
    with open(os.path.join(os.path.dirname(__file__), "rules.json"), "rb") as file:
        records = msgspec.json.decode(file.read(), type=dict[str, _Record])
    found: list[Rule] = []
    for id, record in records.items():
        filled: Json = {**asdict(record), "good": record.good.fill(), "bad": record.bad.fill()}
        found.append(Rule(id=id, **filled, check=_CHECKS.get(id), whole=_SERVER_CHECKS.get(id), mend=_MENDS.get(id)))
    return tuple(found)


RULES: Final = _read_rules()
