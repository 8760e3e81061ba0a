"""The rules of the Brooklyn standard about what a single parameter says and takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import is_object
from longshore.schema.phrase import quote
from longshore.schema.standards.parameter import Parameter, is_opaque, parameters, type_names
from longshore.schema.standards.place import show
from longshore.schema.standards.rule import Fault, Rule, fault
from longshore.schema.standards.subject import Json, Subject, example
from longshore.schema.standards.vocabulary import gather
from longshore.schema.standards.wording import READ, find_words, restates, says, split_name

STANDARD: Final = "MCP JSON Schema Standards 1.0.1 (Brooklyn)"
"""The text whose rules these are."""

_MEASURED: Final = {
    **dict.fromkeys(gather("timeout delay duration interval ttl wait latency expiry age elapsed"), "milliseconds"),
    **dict.fromkeys(gather("width height"), "pixels"),
    **dict.fromkeys(gather("size memory"), "bytes"),
    **dict.fromkeys(gather("distance radius"), "metres"),
}
"""A word in a parameter's name → a unit that such a number often has."""

_UNITS: Final = gather(
    "ms millisecond milliseconds s sec secs second seconds m min mins minute minutes h hour hours day days week weeks"
    " month months year years byte bytes kb mb gb kib mib gib bit bits pixel pixels px em rem pt points cell cells"
    " character characters char chars line lines row rows column columns token tokens item items entry entries result"
    " results record records page pages count number many percent percentage ratio degrees metre metres meter meters"
    " km mm cm inch inches mile miles feet element elements message messages file files unit units"
)
_POSSESSIVE: Final = re.compile(r"['’]s\b")
"""Which is no second."""
_SAYS_OPTIONAL: Final = (
    *("option", "omit", "default", "only", "if ", "when ", "unless", "otherwise", "without", "instead", "leave"),
    *("left", "empty", "absent", "unset", "whether", "none", "extra", "additional", "also", "may ", "can ", " or "),
)
_CLOSED: Final = gather("type mode format level kind strategy direction")
_OPEN: Final = gather("mime content media entity relation file node event issue resource object data date document")
_SAYS_OPEN: Final = (
    *("e.g.", "such as", "for example", "for instance", "like ", "any ", "free", "name of", "regex", "pattern", "etc"),
    *("comma", "separated", "list of", "combination", "mime"),
)
_VALUE: Final = r"[A-Za-z0-9_.+-]{0,39}[A-Za-z0-9_+-]"
_ENDS: Final = r"(?=\s*(?:[.,;:()\[\]\n]|$))"
"""Behind the last of several values, where other words would make it a sentence."""
_QUOTED: Final = rf"['\"`]{_VALUE}['\"`]"
_LISTED: Final = (
    re.compile(
        rf"\b(?:one of|either|values?|options?|choices?)[ :(\[]{{1,3}}"
        rf"({_VALUE}(?:, {_VALUE}){{1,30}},? or {_VALUE})\b{_ENDS}",
        re.I,
    ),
    re.compile(rf"\bone of:? ({_VALUE}(?:, {_VALUE}){{1,30}})\b{_ENDS}", re.I),
    re.compile(rf"\(({_VALUE}(?:\|{_VALUE}){{1,30}})\)"),
    re.compile(rf"({_QUOTED}(?:, {_QUOTED}){{1,30}},? or {_QUOTED})"),
)
_BOUNDS: Final = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
_SAYS_KIND: Final = frozenset(("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "not", "if"))


def _check_context(subject: Subject) -> Iterator[Fault]:
    for parameter in parameters(subject):
        text = parameter.description
        if not text.strip():
            continue  # told elsewhere
        if restates(parameter.name, text):
            message = f"{parameter.name!r} is described by its name again: {quote(text)}"
            yield fault(message, parameter.path, fix="Say what it is for, in which form, and what happens without it.")
        elif unit := _find_missing_unit(parameter):
            fix = f"Say which unit, such as “… in {unit}”."
            yield fault(f"{parameter.name!r} is a number without a unit", parameter.path, fix=fix)
        elif _hides_optionality(parameter):
            fix = "Begin with “Optional.” and say what happens without it, or give a default."
            yield fault(f"{parameter.name!r} is optional and doesn't say so", parameter.path, fix=fix, level="info")


def _find_missing_unit(parameter: Parameter) -> str:
    named = split_name(parameter.name)
    unit = next((_MEASURED[word] for word in named if word in _MEASURED), "")
    if not unit or not parameter.is_number or "%" in parameter.description:
        return ""
    said = find_words(_POSSESSIVE.sub("", parameter.description[:READ]))
    return "" if _UNITS.intersection((*named, *said)) else unit


def _hides_optionality(parameter: Parameter) -> bool:
    if parameter.required or parameter.has("default") or parameter.types == {"boolean"}:
        return False
    return not says(parameter.description, *_SAYS_OPTIONAL)


def _check_closed(subject: Subject) -> Iterator[Fault]:
    for parameter in parameters(subject):
        if not parameter.is_string or parameter.has("enum", "const", "pattern", "format"):
            continue
        if listed := _find_listed(parameter.description):
            fix = f'Add "enum": {quote(listed)}.'
            yield fault(f"{parameter.name!r} lists its values in words only", parameter.path, fix=fix)
        elif _sounds_closed(parameter):
            fix = 'Add "enum": […], or say in the description that other values are taken too, with examples.'
            yield fault(
                f"{parameter.name!r} sounds like a closed set and takes any text", parameter.path, fix=fix, level="info"
            )


def _find_listed(text: str) -> list[str]:
    """The values that a description lists, where it doesn't say that there are others."""
    text = text[:READ]
    if not ("," in text or "|" in text) or says(text, *_SAYS_OPEN):
        return []
    found = next((match for pattern in _LISTED if (match := pattern.search(text))), None)
    values = re.findall(_VALUE, found[1]) if found else []
    return [each for each in values if each != "or"]


def _sounds_closed(parameter: Parameter) -> bool:
    words = split_name(parameter.name)
    if not words or words[-1] not in _CLOSED or not _OPEN.isdisjoint(words):
        return False
    return not says(parameter.description, *_SAYS_OPEN)


def _check_bounds(subject: Subject) -> Iterator[Fault]:
    for parameter in parameters(subject):
        if not parameter.is_number or parameter.has("enum", "const"):
            continue
        if missing := [names[0] for names in _BOUNDS if not parameter.has(*names)]:
            fix = f"Add {' and '.join(quote(each) for each in missing)}: what the tool can really take."
            yield fault(f"{parameter.name!r} has no {' and no '.join(missing)}", parameter.path, fix=fix)


def _check_inside(subject: Subject) -> Iterator[Fault]:
    for node in subject.inputs():
        if node.inside and is_object(node.schema) and is_opaque(node.schema):
            yield fault(f"{show(node.path)} is an object that doesn't say what is in it", node.path)


def _check_typed(subject: Subject) -> Iterator[Fault]:
    for node in subject.inputs():
        schema = node.schema
        if node.name and is_object(schema) and (_SAYS_KIND.isdisjoint(schema) or "any" in type_names(schema)):
            yield fault(f"{node.name!r} has no type", node.path)


def _takes(**properties: Json) -> Json:
    return {"inputSchema": {"type": "object", "properties": properties}}


def _number(description: str, **more: Any) -> Json:
    return {"type": "number", "description": description, **more}


_ENGINES: Final = ["chromium", "firefox", "webkit"]
_SIDES: Final[Json] = {"width": {"type": "number", "default": 1280}, "height": {"type": "number", "default": 720}}

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="B52",
        title="A parameter's description says what it is for, in which unit, and whether it may be left out",
        level="warning",
        profiles=("brooklyn",),
        why="A name said twice helps nobody, and a number without its unit is wrong by a thousand half of the time.",
        evidence=f"{STANDARD}, Parameter Descriptions and Missing Parameter Context",
        fix="Say its purpose, its unit and what happens without it.",
        good=example(
            _takes(timeout=_number("Timeout in milliseconds", default=5000, minimum=100, maximum=30000)),
        ),
        bad=example(_takes(browserId={"type": "string", "description": "Browser ID"})),
        check=_check_context,
    ),
    Rule(
        id="B55",
        title="Where only some values are taken, they are an enum",
        level="warning",
        profiles=("brooklyn",),
        why="A model invents values for an open text; from an enum it chooses.",
        evidence=f"{STANDARD}, Enum Constraints",
        fix='Add "enum".',
        good=example(_takes(engine={"type": "string", "description": "Browser engine to launch", "enum": _ENGINES})),
        bad=example(
            _takes(engine={"type": "string", "description": "Engine to launch: one of chromium, firefox, webkit"})
        ),
        check=_check_closed,
    ),
    Rule(
        id="B56",
        title="A number has a minimum and a maximum",
        level="warning",
        profiles=("brooklyn",),
        why="Without a range a model tries 0, -1 or a million, and the tool finds out what that does.",
        evidence=f"{STANDARD}, Numeric Constraints: always specify ranges",
        fix='Add "minimum" and "maximum".',
        good=example(
            _takes(quality=_number("JPEG quality (1-100, ignored for PNG)", minimum=1, maximum=100, default=90))
        ),
        bad=example(_takes(quality=_number("JPEG quality, ignored for PNG"))),
        check=_check_bounds,
    ),
    Rule(
        id="B57",
        title="An object lists its properties",
        level="warning",
        profiles=("brooklyn",),
        why="A model that isn't told what belongs into an object makes it up.",
        evidence=f"{STANDARD}, Object Properties",
        fix='Add "properties", or "additionalProperties" with the schema of its values where the names are free.',
        good=example(
            _takes(viewport={"type": "object", "properties": _SIDES, "description": "Browser viewport dimensions"})
        ),
        bad=example(_takes(viewport={"type": "object", "description": "Browser viewport dimensions"})),
        check=_check_inside,
    ),
    Rule(
        id="B60",
        title="Every parameter has a type",
        level="warning",
        profiles=("brooklyn",),
        why="A parameter that takes anything gets anything.",
        evidence=f"{STANDARD}, Type Safety",
        fix='Add "type", "enum", or the alternatives under "anyOf".',
        good=example(_takes(value={"type": "string", "description": "text to type into the field"})),
        bad=example(_takes(value={"description": "text to type into the field"})),
        check=_check_typed,
    ),
)
