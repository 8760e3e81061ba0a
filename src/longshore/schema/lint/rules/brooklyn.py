"""The rules of the Brooklyn standard, which a team chooses. Rules about words look for plain signs in English only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from longshore.schema.kinds import as_array, as_object
from longshore.schema.lint.rule import Check, Mend, RuleFault
from longshore.schema.lint.rules.schemas import check_inputs, is_opaque
from longshore.schema.lint.rules.texts import READ, find_words, split_name
from longshore.schema.lint.tool_list import Json, LintedTool, ToolParameter, types_of
from longshore.schema.phrase import cut, quote

COMPLEX: Final = 3
"""The most parameters that a tool may have without an example."""
LABEL_CHARS: Final = 60
"""A description that is longer than its name by more than this does not merely repeat it."""
TARGETS: Final = ("latest", "current", "byId")
"""How a browser is found without an id."""

# -- categories

_KEBAB: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ABBREVIATED: Final = {
    "nav": "navigation",
    "cfg": "configuration",
    "conf": "configuration",
    "mgmt": "management",
    "util": "utilities",
    "utils": "utilities",
    "misc": "other",
    "sys": "system",
    "perf": "performance",
}


def _check_category(tool: LintedTool) -> Iterator[RuleFault]:
    category, declared = tool.category, tool.server.categories
    if not category or (declared is not None and category in declared):
        return
    whole = "-".join(_ABBREVIATED.get(word, word) for word in category.split("-"))
    if not _KEBAB.fullmatch(category):
        kebab = _to_kebab(category)
        fix = f"Call it {cut(kebab)!r}." if kebab else ""
        yield RuleFault(f"the category {cut(category)!r} is not lower-case-with-hyphens", fix=fix)
    elif declared is not None:
        near = get_close_matches(category, declared, 1) or list(declared[:5])
        fix = f"Use {', '.join(cut(each) for each in near)}, or declare it." if near else "Declare it."
        yield RuleFault(f"the category {cut(category)!r} is not declared by the server", fix=fix)
    elif whole != category:
        short = next(word for word in category.split("-") if word in _ABBREVIATED)
        message = f"the category {cut(category)!r} abbreviates {short!r}"
        yield RuleFault(message, fix=f"Call it {whole!r}.", level="warning")


def _to_kebab(category: str) -> str:
    """Empty for a category in another alphabet: only its author can transcribe it."""
    return "-".join(split_name(category)) if category.isascii() else ""


def _mend_category(tool: Json) -> Json:
    meta = as_object(tool.get("_meta"))
    category = meta.get("longshore/category")
    kebab = _to_kebab(category) if isinstance(category, str) and not _KEBAB.fullmatch(category) else ""
    return {**tool, "_meta": {**meta, "longshore/category": kebab}} if kebab else tool


# -- the texts and declarations of a tool

_TAG: Final = re.compile(r"\A(?:\[[^\]]{1,40}\]|\([^)]{1,40}\))[\s:]*(?=\S)")
"""“[DEPRECATED]” or “(beta)” before the sentence."""
_SENTENCE: Final = re.compile(r"[\W_]*([A-Za-z][A-Za-z'-]*)(?:[^.!?;:\n]|[.!?;:](?!\s))*")
_OBJECT: Final = "(?:an?|the|all|any|each|every|one|this|these|that|its?|your|whether|what|which|how)"
"""Words that begin the object of a verb."""
_NO_VERB: Final = (
    "(?:an?|the|i|you|we|this|these|that|its?|for|with|of|in|on|at|from|to|by|all|any|each|every|is|are|can|will|tool"
    "|utility|helper|function|when|if|returns)"
)
_NOUN: Final = "(?:[a-z]+(?:tion|ment|ity)|api|tool|helper|manager|service|support)"
_NO_ACTION: Final = {
    rf"{_NO_VERB}\b|[a-z]+ of\b": "{first!r} is no action",
    rf"[a-z]{{3,}}[^aisu]s {_OBJECT}\b": "{first!r} tells about the tool; write it as an order",
    rf"(?!.*\b{_OBJECT}\b)(?:[a-z]+ ){{1,3}}{_NOUN}\Z": "{words!r} names a thing",
    r"[a-z]+ (?:something|stuff|things)\b": "{words!r} leaves open what",
}
"""Patterns for the words of a sentence that does not begin with an action ("Text extraction") → the reason."""


def _check_action(tool: LintedTool) -> Iterator[RuleFault]:
    text = _TAG.sub("", tool.description[:READ].strip(), count=1)
    sentence = _SENTENCE.match(text)
    if sentence is None or (not text.isascii() and not text.lstrip("\"'`*_#( ")[:1].isascii()):
        return
    words = " ".join(find_words(sentence[0]))
    if reason := next((reason for pattern, reason in _NO_ACTION.items() if re.match(pattern, words)), ""):
        said = reason.format(first=sentence[1][:40], words=words)
        yield RuleFault(f"the description does not begin with an action: {said}")


def _check_examples(tool: LintedTool) -> Iterator[RuleFault]:
    from longshore.schema.cost import compile_bounded

    examples = () if tool.ours is None else tool.ours.examples
    if tool.ours is not None and len(tool.properties) > COMPLEX and not examples:
        message = f"{len(tool.properties)} parameters and no example"
        yield RuleFault(message, fix="Add examples=[{…}], a whole call each.")
    validator = compile_bounded(tool.input, if_unknown=False) if examples else None
    if validator is None:
        return  # reported by E13
    for number, given in enumerate(examples):
        try:
            lines = validator.errors(given)
        except Exception:
            lines = ["it is not JSON"]
        for line in lines[:1]:
            message = f"example {quote(given)} breaks the tool's own schema: {line}"
            fix = "Correct the example, or the schema if the example is right."
            yield RuleFault(message, f"examples[{number}]", fix, "error")


def _check_errors(tool: LintedTool) -> Iterator[RuleFault]:
    if tool.ours is not None and not tool.ours.errors and tool.required:
        yield RuleFault("a call can go wrong, and no error is declared")


def _check_present(tool: LintedTool) -> Iterator[RuleFault]:
    if not tool.name:
        yield RuleFault("the tool has no name", fix='Add "name".')
    if not tool.description.strip():
        yield RuleFault("the tool has no description", fix='Add "description": what it does and when to use it.')
    if tool.ours is not None and not tool.category:
        fix = "Add category=, or make it part of a toolset, whose name counts."
        yield RuleFault("the tool has no category", fix=fix)


# -- the texts of a parameter

_EMPTY: Final = re.compile(
    "an?|the|of|for|to|value|parameter|argument|input|option|field|string|number|integer|boolean|object|array|optional"
    "|required|this"
)
"""Words that add nothing to a name."""
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


def _check_context(tool: LintedTool) -> Iterator[RuleFault]:
    for parameter in tool.parameters:
        name, path, text = parameter.name, parameter.path, parameter.description[:READ]
        needs_word = not (parameter.required or parameter.has("default") or parameter.types == {"boolean"})
        if not text.strip():
            continue  # reported by W22
        if _restates(name, text):
            fix = "Say what it is for, in which form, and what happens without it."
            yield RuleFault(f"{name!r} is described by its name again: {quote(text)}", path, fix)
        elif unit := _find_missing_unit(parameter, text):
            yield RuleFault(f"{name!r} is a number without a unit", path, f"Say which unit, such as “… in {unit}”.")
        elif needs_word and not _SAYS_OPTIONAL.search(text):
            fix = "Begin with “Optional.” and say what happens without it, or give a default."
            yield RuleFault(f"{name!r} is optional and doesn't say so", path, fix, "info")


def _restates(name: str, text: str) -> bool:
    """Whether a description only repeats the name: "Browser ID" for `browserId`."""
    if len(text) > LABEL_CHARS + len(name):
        return False
    if not text.isascii():  # perhaps another language
        return text.strip() == name
    said = {word.removesuffix("s") for word in find_words(text) if not _EMPTY.fullmatch(word)}
    return said <= {word.removesuffix("s") for word in split_name(name)}


def _find_missing_unit(parameter: ToolParameter, text: str) -> str:
    words = split_name(parameter.name)
    unit = next((unit for measured, unit in _MEASURED if any(map(measured.fullmatch, words))), "")
    return unit if parameter.is_number and not _UNIT.search(f"{' '.join(words)} {text}") else ""


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


def _check_closed(tool: LintedTool) -> Iterator[RuleFault]:
    for parameter in tool.parameters:
        text = parameter.description[:READ]
        if parameter.types != {"string"} or parameter.has("enum", "const", "pattern", "format"):
            continue
        if not _SAYS_OPEN.search(text) and (found := _LISTED.search(text)):
            listed = re.findall(r"[A-Za-z0-9_.+-]+", next(filter(None, found.groups())))
            fix = f'Add "enum": {quote([each for each in listed if each != "or"])}.'
            yield RuleFault(f"{parameter.name!r} lists its values in words only", parameter.path, fix)


def _check_bounds(tool: LintedTool) -> Iterator[RuleFault]:
    for parameter in tool.parameters:
        bounds = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}
        missing = [name for name, other in bounds.items() if not parameter.has(name, other)]
        if missing and parameter.is_number and not parameter.has("enum", "const"):
            fix = f"Add {' and '.join(quote(each) for each in missing)}: what the tool can really take."
            yield RuleFault(f"{parameter.name!r} has no {' and no '.join(missing)}", parameter.path, fix)


_SAYS_KIND: Final = frozenset(("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "not", "if"))


def _check_typed(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.objects("inputSchema"):
        if node.name and (_SAYS_KIND.isdisjoint(node.schema) or "any" in types_of(node.schema)):
            yield RuleFault(f"{node.name!r} has no type", node.path)


# -- parameters that depend on one another

_NAME: Final = r"['\"`“‘]?([A-Za-z_][\w.-]{0,63}?)['\"`”’]?"
_EITHER: Final = re.compile(rf"\beither {_NAME} or {_NAME}(?= (?:must|is|has|needs|should)\b|[.,;:)]|\s*$)", re.I)
_INSTEAD: Final = re.compile(rf"\boptional if {_NAME} (?:is )?(?:provided|given|set)", re.I)


def _check_either(tool: LintedTool) -> Iterator[RuleFault]:
    described = {each.name: each for each in tool.parameters}
    words = set(re.findall(r"[\w.-]*\w", tool.description[:READ].lower()))
    for pair in sorted(_find_pairs(tool, described)):
        needed = f"one of {pair[0]!r} and {pair[1]!r} is needed, and"
        for name in pair:
            if described[name].required:
                fix = f'Take {name!r} out of "required".'
                yield RuleFault(f"{needed} {name!r} is required", described[name].path, fix, "error")
        if not words.issuperset(name.lower() for name in pair):
            sentence = f"Either '{pair[0]}' or '{pair[1]}' must be provided."
            fix = f'Add to the description: "{sentence}", leave both out of "required", and check it in the tool.'
            yield RuleFault(f"{needed} the description doesn't say so", fix=fix)


def _find_pairs(tool: LintedTool, described: dict[str, ToolParameter]) -> set[tuple[str, str]]:
    """The pairs of parameters of which one is needed: by the descriptions, or by `anyOf` at the root."""
    texts = (tool.description, *(each.description for each in described.values()))
    found = [pair for text in texts for pair in _EITHER.findall(text[:READ])]
    for name, parameter in described.items():
        found += [(name, other) for other in _INSTEAD.findall(parameter.description[:READ])]
    for key in ("anyOf", "oneOf"):
        match tool.input.get(key):
            case [{"required": [str(one)]}, {"required": [str(other)]}]:
                found.append((one, other))
            case _:
                pass
    pairs = ((min(pair), max(pair)) for pair in found)
    return {(one, other) for one, other in pairs if one != other and one in described and other in described}


def _check_target(tool: LintedTool) -> Iterator[RuleFault]:
    found = {each.name: each for each in tool.parameters}
    browser, target = found.get("browserId") or found.get("browser_id"), found.get("target")
    if browser is None:
        return
    if browser.required:
        fix = f'Take {browser.name!r} out of "required".'
        yield RuleFault(f"{browser.name!r} is required", browser.path, fix)
    wanted = '"target": {"type": "string", "enum": ["latest", "current", "byId"], "default": "latest"}'
    if target is None:
        message = f"{browser.name!r} without 'target': nothing says which browser is meant without it"
        yield RuleFault(message, fix=f"Add {wanted}.")
    elif {*map(str, as_array(target.find("enum")))} != {*TARGETS} or target.find("default") != TARGETS[0]:
        message = "'target' is not the strategy that other browser tools have"
        yield RuleFault(message, target.path, f"Write {wanted}.")


CHECKS: Final[dict[str, Check]] = {
    "I40": _check_category,
    "B51": _check_action,
    "B52": _check_context,
    "B53": _check_either,
    "B54": _check_target,
    "B55": _check_closed,
    "B56": _check_bounds,
    "B57": check_inputs(
        lambda node: bool(node.inside) and is_opaque(node.schema),
        "{} is an object that doesn't say what is in it",
    ),
    "B58": _check_examples,
    "B59": _check_errors,
    "B60": _check_typed,
    "B61": _check_present,
}
MENDS: Final[dict[str, Mend]] = {"I40": _mend_category}
