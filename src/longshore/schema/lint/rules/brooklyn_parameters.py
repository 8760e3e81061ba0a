"""The rules of the Brooklyn standard about parameters. Rules about words look for plain signs in English only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import is_array, is_object
from longshore.schema.lint.parameters import ToolParameter, is_opaque, parameters, type_names
from longshore.schema.lint.rule import Rule, RuleFault, fault
from longshore.schema.lint.tool_list import Json, LintedTool, example, show
from longshore.schema.lint.wording import READ, restates, split_name
from longshore.schema.phrase import quote

STANDARD: Final = "MCP JSON Schema Standards 1.0.1 (Brooklyn)"
TARGETS: Final = ("latest", "current", "byId")
"""How a browser is found without an id."""

# -- single parameters

_MEASURED: Final = (
    (re.compile("timeout|delay|duration|interval|ttl|wait|latency|expiry|age|elapsed"), "milliseconds"),
    (re.compile("width|height"), "pixels"),
    (re.compile("size|memory"), "bytes"),
    (re.compile("distance|radius"), "metres"),
)
"""A word in a number's name, and a unit that such a number often has."""
_UNIT: Final = re.compile(
    r"%|(?<![a-z'’])(?:ms|s|m|h|px|em|pt|km|mm|cm|[kmg]i?b|mins?|secs?|chars?|many|percent\w*|(?:milli)?seconds?|minutes?"
    r"|hours?|days?|weeks?|months?|years?|bytes?|pixels?|characters?|lines?|rows?|columns?|tokens?|items?|entries"
    r"|results?|pages?|counts?|numbers?|degrees|met(?:re|er)s?|miles?|elements?|messages?|files?|units?)(?![a-z])",
    re.I,
)
_SAYS_OPTIONAL: Final = re.compile(
    r"option|omit|default|only|\bif\b|\bwhen\b|unless|otherwise|without|instead|leave|left|empty|unset|none|also"
    r"|\bmay\b|\bcan\b|\bor\b",
    re.I,
)
_SAYS_OPEN: Final = re.compile(
    r"e\.g\.|such as|for example|for instance|like |any |name of|etc|separated|list of", re.I
)
_VALUE: Final = r"['\"`]?[A-Za-z0-9_.+-]{0,39}[A-Za-z0-9_+-]['\"`]?"
_QUOTED: Final = r"['\"`][A-Za-z0-9_.+-]{1,40}['\"`]"
_ENDS: Final = r"(?=\s*(?:[.;:()\[\]\n]|,(?! or )|$))"
"""After the last of several values: more words would make it a sentence."""
_LISTED: Final = re.compile(
    rf"\b(?:one of|values?|options?)[ :(\[]{{1,3}}({_VALUE}(?:, {_VALUE}){{1,30}}(?:,? or {_VALUE})?)\b{_ENDS}"
    rf"|\(({_VALUE}(?:\|{_VALUE}){{1,30}})\)"
    rf"|({_QUOTED}(?:, {_QUOTED}){{1,30}},? or {_QUOTED})",
    re.I,
)
_BOUNDS: Final = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
_SAYS_KIND: Final = frozenset(("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "not", "if"))


def _check_context(tool: LintedTool) -> Iterator[RuleFault]:
    for parameter in parameters(tool):
        text = parameter.description[:READ]
        if not text.strip():
            continue  # reported by W22
        if restates(parameter.name, text):
            message = f"{parameter.name!r} is described by its name again: {quote(text)}"
            yield fault(message, parameter.path, fix="Say what it is for, in which form, and what happens without it.")
        elif unit := _find_missing_unit(parameter, text):
            fix = f"Say which unit, such as “… in {unit}”."
            yield fault(f"{parameter.name!r} is a number without a unit", parameter.path, fix=fix)
        elif _hides_optionality(parameter, text):
            fix = "Begin with “Optional.” and say what happens without it, or give a default."
            yield fault(f"{parameter.name!r} is optional and doesn't say so", parameter.path, fix=fix, level="info")


def _find_missing_unit(parameter: ToolParameter, text: str) -> str:
    words = split_name(parameter.name)
    unit = next((unit for measured, unit in _MEASURED if any(map(measured.fullmatch, words))), "")
    if not unit or not parameter.is_number:
        return ""
    return "" if _UNIT.search(f"{' '.join(words)} {text}") else unit


def _hides_optionality(parameter: ToolParameter, text: str) -> bool:
    if parameter.required or parameter.has("default") or parameter.types == {"boolean"}:
        return False
    return _SAYS_OPTIONAL.search(text) is None


def _check_closed(tool: LintedTool) -> Iterator[RuleFault]:
    for parameter in parameters(tool):
        if not parameter.is_string or parameter.has("enum", "const", "pattern", "format"):
            continue
        if listed := _find_listed(parameter.description[:READ]):
            fix = f'Add "enum": {quote(listed)}.'
            yield fault(f"{parameter.name!r} lists its values in words only", parameter.path, fix=fix)


def _find_listed(text: str) -> list[str]:
    """The values that a description lists, unless it says that there are others."""
    found = None if _SAYS_OPEN.search(text) else _LISTED.search(text)
    values = re.findall(r"[A-Za-z0-9_.+-]+", next(filter(None, found.groups()))) if found else []
    return [each for each in values if each != "or"]


def _check_bounds(tool: LintedTool) -> Iterator[RuleFault]:
    for parameter in parameters(tool):
        if not parameter.is_number or parameter.has("enum", "const"):
            continue
        if missing := [names[0] for names in _BOUNDS if not parameter.has(*names)]:
            fix = f"Add {' and '.join(quote(each) for each in missing)}: what the tool can really take."
            yield fault(f"{parameter.name!r} has no {' and no '.join(missing)}", parameter.path, fix=fix)


def _check_inside(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.objects("inputSchema"):
        if node.inside and is_opaque(node.schema):
            yield fault(f"{show(node.path)} is an object that doesn't say what is in it", node.path)


def _check_typed(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.objects("inputSchema"):
        if node.name and (_SAYS_KIND.isdisjoint(node.schema) or "any" in type_names(node.schema)):
            yield fault(f"{node.name!r} has no type", node.path)


# -- parameters that depend on one another

_NAME: Final = r"['\"`“‘]?([A-Za-z_][\w.-]{0,63}?)['\"`”’]?"
_EITHER: Final = re.compile(rf"\beither {_NAME} or {_NAME}(?= (?:must|is|has|needs|should)\b|[.,;:)]|\s*$)", re.I)
_INSTEAD: Final = re.compile(rf"\boptional if {_NAME} (?:is )?(?:provided|given|set)", re.I)


def _check_either(tool: LintedTool) -> Iterator[RuleFault]:
    described = {each.name: each for each in parameters(tool)}
    words = set(re.findall(r"[\w.-]*\w", tool.description[:READ].lower()))
    for pair in sorted(_find_pairs(tool, described)):
        for name in pair:
            if described[name].required:
                message = f"one of {pair[0]!r} and {pair[1]!r} is needed, and {name!r} is required"
                fix = f'Take {name!r} out of "required".'
                yield fault(message, described[name].path, fix=fix, level="error")
        if not words.issuperset(name.lower() for name in pair):
            sentence = f"Either '{pair[0]}' or '{pair[1]}' must be provided."
            fix = f'Add to the description: "{sentence}", leave both out of "required", and check it in the tool.'
            yield fault(f"one of {pair[0]!r} and {pair[1]!r} is needed, and the description doesn't say so", fix=fix)


def _find_pairs(tool: LintedTool, described: dict[str, ToolParameter]) -> set[tuple[str, str]]:
    """The pairs of parameters of which one is needed: by the descriptions, or by `anyOf` at the root."""
    texts = (tool.description, *(each.description for each in described.values()))
    found = [pair for text in texts for pair in _EITHER.findall(text[:READ])]
    for name, parameter in described.items():
        found += [(name, other) for other in _INSTEAD.findall(parameter.description[:READ])]
    for choices in (tool.input.get(key) for key in ("anyOf", "oneOf")):
        if is_array(choices) and len(choices) == 2:
            found.append((_only_required(choices[0]), _only_required(choices[1])))
    pairs = ((min(pair), max(pair)) for pair in found)
    return {(one, other) for one, other in pairs if one != other and one in described and other in described}


def _only_required(choice: Any) -> str:
    names = choice.get("required") if is_object(choice) else None
    return names[0] if is_array(names) and len(names) == 1 and isinstance(names[0], str) else ""


def _check_target(tool: LintedTool) -> Iterator[RuleFault]:
    found = {each.name: each for each in parameters(tool)}
    browser = found.get("browserId") or found.get("browser_id")
    if browser is None:
        return
    if browser.required:
        yield fault(f"{browser.name!r} is required", browser.path, fix=f'Take {browser.name!r} out of "required".')
    target = found.get("target")
    wanted = '"target": {"type": "string", "enum": ["latest", "current", "byId"], "default": "latest"}'
    if target is None:
        message = f"{browser.name!r} without 'target': nothing says which browser is meant without it"
        yield fault(message, fix=f"Add {wanted}.")
    elif not _is_of_all(target.find("enum")) or target.find("default") != TARGETS[0]:
        yield fault("'target' is not the strategy that other browser tools have", target.path, fix=f"Write {wanted}.")


def _is_of_all(values: Any) -> bool:
    return is_array(values) and sorted(map(str, values)) == sorted(TARGETS)


# -- the rules


def _takes(**properties: Json) -> Json:
    return {"inputSchema": {"type": "object", "properties": properties}}


def _text(description: str, **more: Any) -> Json:
    return {"type": "string", "description": description, **more}


def _number(description: str, **more: Any) -> Json:
    return {"type": "number", "description": description, **more}


_ENGINES: Final = ["chromium", "firefox", "webkit"]
_SIDES: Final[Json] = {"width": {"type": "number", "default": 1280}, "height": {"type": "number", "default": 720}}
_WHICH: Final = "Optional targeting strategy when browserId is omitted or invalid."

PARAMETER_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="B52",
        title="A parameter's description says what it is for, in which unit, and whether it may be left out",
        level="warning",
        profiles=("brooklyn",),
        why="A repeated name tells a model nothing, and a number without a unit is often wrong by a thousand.",
        evidence=f"{STANDARD}, Parameter Descriptions and Missing Parameter Context",
        fix="Say its purpose, its unit and what happens without it.",
        good=example(
            _takes(timeout=_number("Timeout in milliseconds", default=5000, minimum=100, maximum=30000)),
        ),
        bad=example(_takes(browserId={"type": "string", "description": "Browser ID"})),
        check=_check_context,
    ),
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
        why="A model makes up what belongs into an object if the schema doesn't say it.",
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
