"""The rules of the Brooklyn standard about parameters that depend on one another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import is_array, is_object
from longshore.schema.standards.parameter import Parameter, parameters
from longshore.schema.standards.rule import Fault, Rule, fault
from longshore.schema.standards.rules.values import STANDARD
from longshore.schema.standards.subject import Json, Subject, example
from longshore.schema.standards.wording import READ, says

TARGETS: Final = ("latest", "current", "byId")
"""How a browser is found when no id is given."""

_QUOTE: Final = "['\"`“”‘’]?"
_NAME: Final = rf"{_QUOTE}([A-Za-z_][\w.-]{{0,63}}){_QUOTE}"
_ENDS: Final = r"(?= (?:must|is|are|has|have|needs?|should|can|may|to)\b|[.,;:)]|\s*$)"
"""Behind the names of parameters. Before other words they are no names: “either text or file contents”."""
_EITHER: Final = re.compile(rf"\b(?:either|one of) {_NAME} (?:or|and) {_NAME}{_ENDS}", re.I)
_NEEDED: Final = re.compile(rf"{_NAME} or {_NAME} (?:is|are|must be) (?:required|needed|given|provided|set)\b", re.I)
_INSTEAD: Final = re.compile(rf"\boptional if {_NAME} (?:is )?(?:provided|given|set)", re.I)
_SAYS_OPTIONAL: Final = ("option", "omit", "either", "instead", "default", "if ", "when ", "unless", " or ", "without")


def _check_either(subject: Subject) -> Iterator[Fault]:
    described = {each.name: each for each in parameters(subject)}
    stated = _find_pairs(subject.description, described)
    for pair in stated:
        yield from _check_pair(pair, described)
    for pair in _find_meant(subject, described) - stated:
        sentence = f"Either '{pair[0]}' or '{pair[1]}' must be provided."
        fix = f'Add to the description: "{sentence}", leave both out of "required", and check it in the tool.'
        yield fault(f"one of {pair[0]!r} and {pair[1]!r} is needed, and the description doesn't say so", fix=fix)


def _find_pairs(text: str, described: dict[str, Parameter]) -> set[tuple[str, str]]:
    """The parameters of which a text says that one is enough."""
    if not says(text, " or ", " and "):
        return set()
    known = {name.lower(): name for name in described}
    matches = (match for pattern in (_EITHER, _NEEDED) for match in pattern.findall(text[:READ]))
    found = ([known.get(each.rstrip(".").lower(), "") for each in match] for match in matches)
    return {_pair(a, b) for a, b in found if a != b and a and b}


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _find_meant(subject: Subject, described: dict[str, Parameter]) -> set[tuple[str, str]]:
    """The pairs that parameters tell of, or a schema that clients refuse."""
    found = set[tuple[str, str]]()
    for name, parameter in described.items():
        found |= _find_pairs(parameter.description, described)
        if says(parameter.description, "optional if"):
            others = [each.rstrip(".") for each in _INSTEAD.findall(parameter.description[:READ])]
            found |= {_pair(name, each) for each in others if each in described and each != name}
    return found | _find_refused(subject.input, described)


def _find_refused(schema: Json, described: dict[str, Parameter]) -> set[tuple[str, str]]:
    """`anyOf: [{required: [a]}, {required: [b]}]`, the old way to say it."""
    for key in ("anyOf", "oneOf"):
        choices = schema.get(key)
        if is_array(choices) and len(choices) == 2:
            names = [_only_required(each) for each in choices]
            if names[0] != names[1] and all(name in described for name in names):
                return {_pair(names[0], names[1])}
    return set()


def _only_required(choice: Any) -> str:
    names = choice.get("required") if is_object(choice) else None
    return names[0] if is_array(names) and len(names) == 1 and isinstance(names[0], str) else ""


def _check_pair(pair: tuple[str, str], described: dict[str, Parameter]) -> Iterator[Fault]:
    for name, other in (pair, pair[::-1]):
        parameter = described[name]
        if parameter.required:
            message = f"the description lets one choose between {name!r} and {other!r}, and {name!r} is required"
            yield fault(message, parameter.path, fix=f'Take {name!r} out of "required".', level="error")
        elif not says(parameter.description, *_SAYS_OPTIONAL):
            fix = f"Add to its description: (optional if {other} provided)."
            yield fault(f"{name!r} doesn't say that {other!r} will do instead", parameter.path, fix=fix)


def _check_target(subject: Subject) -> Iterator[Fault]:
    found = {each.name: each for each in parameters(subject)}
    browser = found.get("browserId") or found.get("browser_id")
    if browser is None:
        return
    if browser.required:
        yield fault(f"{browser.name!r} is required", browser.path, fix=f'Take {browser.name!r} out of "required".')
    yield from _check_strategy(found.get("target"), browser.name)


def _check_strategy(target: Parameter | None, browser: str) -> Iterator[Fault]:
    wanted = '"target": {"type": "string", "enum": ["latest", "current", "byId"], "default": "latest"}'
    if target is None:
        yield fault(
            f"{browser!r} without {'target'!r}: nothing says which browser is meant without it", fix=f"Add {wanted}."
        )
    elif not _is_of_all(target.find("enum")) or target.find("default") != TARGETS[0]:
        yield fault("'target' is not the strategy that other browser tools have", target.path, fix=f"Write {wanted}.")


def _is_of_all(values: Any) -> bool:
    return is_array(values) and sorted(map(str, values)) == sorted(TARGETS)


def _text(description: str, **more: Any) -> Json:
    return {"type": "string", "description": description, **more}


def _takes(**properties: Json) -> Json:
    return {"inputSchema": {"type": "object", "properties": properties}}


_WHICH: Final = "Optional targeting strategy when browserId is omitted or invalid."

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="B53",
        title="Where one of two parameters is needed, the description says so and both are optional",
        level="warning",
        profiles=("brooklyn",),
        why="Clients refuse the schema that says it, so the words must. A model that reads neither gives none or both.",
        evidence=f"{STANDARD}, Optional Parameter Pattern",
        fix="Say “Either 'a' or 'b' must be provided.”, and at each that it is optional if the other is provided.",
        good=example(
            {
                "description": "Get the weather. Either 'city' or 'zip' must be provided.",
                **_takes(
                    city=_text("the city's name (optional if zip provided)"),
                    zip=_text("the postal code (optional if city provided)"),
                ),
            }
        ),
        bad=example(
            _takes(
                city=_text("the city's name (optional if zip provided)"),
                zip=_text("the postal code (optional if city provided)"),
            )
        ),
        check=_check_either,
    ),
    Rule(
        id="B54",
        title="A tool for one of several browsers takes browserId and target",
        level="warning",
        profiles=("brooklyn",),
        why="Models forget ids. The strategy says which browser is meant, in the same way for every tool.",
        evidence=f"{STANDARD}, Browser Targeting Pattern",
        fix="Take an optional browserId, and target: latest, current or byId, by default latest.",
        good=example(
            _takes(
                browserId=_text("Optional. ID of the browser. If omitted or invalid, 'target' decides."),
                target=_text(_WHICH, enum=list(TARGETS), default="latest"),
            )
        ),
        bad=example(_takes(browserId=_text("Browser ID"))),
        check=_check_target,
    ),
)
