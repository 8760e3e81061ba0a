"""Rules about the texts of tools, their annotations, and the size of the list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from longshore.schema.kinds import as_object, is_object
from longshore.schema.lint.clients import CLIENTS
from longshore.schema.lint.rule import Check, Mend, RuleFault, ServerCheck
from longshore.schema.lint.rules.schemas import CONDITION
from longshore.schema.lint.tool_list import MOST_PARAMETERS, Json, LintedTool, ToolList, ToolParameter, as_text
from longshore.schema.output import count_tokens
from longshore.schema.phrase import cut, quote
from longshore.schema.walk import find_parts, rewrite

READ: Final = 20_000
"""Characters of one text that are read. No model reads more as a description."""
DESCRIPTION_UNITS: Final = CLIENTS["claude"].text_chars or 0
ANSWER_TOKENS: Final = 25_000
"""Tokens of a result that Claude Code shows to its model. A longer one goes to a file, with a preview."""
LIST_TOKENS: Final = 20_000
"""The most tokens of a list of tools: a tenth of a context of 200,000."""
UNBOUNDED: Final = 2**31 - 1
"""Bounds from here on are those of machine numbers, written by generators."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def split_name(name: str) -> list[str]:
    """`browserId`, `browser_id` and `browser-id` are the words browser and id."""
    return [word.lower() for word in _WORD.findall(name[:READ])]


def find_words(text: str) -> list[str]:
    """The words of a sentence in lower case."""
    return re.findall(r"[a-z]+", text[:READ].lower())


# -- descriptions


def _find_excess(text: str, what: str) -> str:
    """A message if Claude Code cuts the text. JavaScript counts UTF-16 units."""
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    message = f"{what} {units:,} characters; Claude Code passes on the first {DESCRIPTION_UNITS:,}"
    return message if units > DESCRIPTION_UNITS else ""


def _check_length(tool: LintedTool) -> Iterator[RuleFault]:
    if message := _find_excess(tool.description, "the description has"):
        yield RuleFault(message)


def _check_instructions(server: ToolList) -> Iterator[RuleFault]:
    if message := _find_excess(server.instructions or "", "the instructions have"):
        yield RuleFault(message, "instructions", "Say first what matters most, and leave the rest to the tools.")


def _check_described(tool: LintedTool) -> Iterator[RuleFault]:
    if not tool.description.strip():
        yield RuleFault("the tool has no description, so a model has only its name to go by")
    for parameter in tool.parameters:
        if not parameter.description.strip():
            message = f"the parameter {parameter.name!r} has no description"
            yield RuleFault(message, parameter.path, 'Add "description": what it is for, in which form and unit.')


# -- constraints that Codex drops

_DROPPED: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matching {}",
    "format": "as {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "default": "default {}",
}
"""Constraints that a client may drop → how a description says them."""
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_GROUPED: Final = re.compile(r"(?<=\d)[,_'\u2009\u202f](?=\d{3}(?!\d))")
_SPELLED: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SCALES: Final = (1, 60, 1_000, 1_024, 3_600, 60_000, 86_400, 1_000_000, 1 << 20, 1_000_000_000, 1 << 30, 0.01)
"""A bound in milliseconds or bytes may be said in seconds, minutes, MiB or percent."""
_PLACES: Final = 9
"""Decimal places that count: 0.07 is 7.000000000000001 percent."""
_SAYS_DEFAULT: Final = re.compile(r"default|omit|left out|otherwise|unless|unset|without|not (?:set|given)")
_SAYS_PATTERN: Final = re.compile(
    r"pattern|regex|match|form|such as|e\.g\.|example|like|letter|digit|character|hex|case|start|prefix|separated"
)
_SAYS_FORMAT: Final = {
    "date-time": "date|time|iso",
    "date": "date|day|yyyy",
    "uri": "ur[il]|link|address|http",
    "uri-reference": "ur[il]|link|path",
    "email": "mail",
    "uuid": "id",
    "hostname": "host|domain",
    "ipv4": "ip|address",
    "ipv6": "ip|address",
    "regex": "reg|pattern|expression",
    "byte": "base64|bytes",
    "binary": "base64|bytes|file",
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "float", "double"), ""),
}
"""A format → a pattern for texts that say it. Nothing need be said about formats of machine numbers."""
_NOTHING: Final = "(?!)"


def _find_unsaid(parameter: ToolParameter, tool: LintedTool) -> dict[str, Any]:
    """The constraints of a parameter that neither its description nor the tool's mentions."""
    items = [part["items"] for part in parameter.parts if is_object(part.get("items"))]
    described = (as_text(part.get("description"))[:READ] for part in (*parameter.parts, *items))
    own, others = "\n".join((parameter.name[:READ], *described)).lower(), tool.description[:READ].lower()
    parts = [*parameter.parts, *(part for each in items for part in find_parts(each, tool.input))]
    found = {key: part[key] for part in reversed(parts) for key in _DROPPED if key in part}
    return {key: value for key, value in found.items() if not _is_said(key, value, own, others)}


def _is_said(key: str, value: Any, own: str, others: str) -> bool:
    """Whether the description of a parameter or its tool mentions this constraint.

    Another rule checks invalid values. A model expects an empty default.
    """
    if key == "default" and (not value or _SAYS_DEFAULT.search(own)):
        return True
    is_text = isinstance(value, str)
    if is_text and (value.lower() in own or value.lower() in others):
        return True
    if key == "pattern":
        return not is_text or _SAYS_PATTERN.search(own) is not None
    if key == "format":
        return not is_text or re.search(_SAYS_FORMAT.get(value, _NOTHING), own) is not None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return key != "default"
    obvious = (0,) if key == "exclusiveMinimum" else (0, 1) if key.startswith("min") else ()
    if key != "default" and (abs(value) >= UNBOUNDED or value in obvious):
        return True
    try:
        scaled = {round(abs(value) / scale, _PLACES) for scale in _SCALES}
    except OverflowError:  # an integer that no text mentions either
        return False
    return not scaled.isdisjoint(_find_numbers(own) | _find_numbers(others))


@lru_cache(16)  # every parameter needs the numbers of its tool's description
def _find_numbers(text: str) -> frozenset[float]:
    """The numbers in a text, in digits or in words."""
    digits = {float(found) for found in _NUMBER.findall(_GROUPED.sub("", text))}
    return frozenset(digits) | {float(_SPELLED.index(word)) for word in find_words(text) if word in _SPELLED}


def _phrase(unsaid: dict[str, Any]) -> str:
    """The words to add to a description: "at least 1, at most 100, default 20"."""
    words = {
        key: said.format(cut(value) if isinstance(value := unsaid[key], str) else quote(value))
        for key, said in _DROPPED.items()
        if key in unsaid
    }
    for least, most in (("minLength", "maxLength"), ("minItems", "maxItems")):
        if least in unsaid and unsaid[least] == unsaid.get(most):
            words[least] = words[least].replace("at least", "exactly")
            del words[most]
    return ", ".join(words.values())


def _find_fields(tool: LintedTool) -> Iterator[ToolParameter]:
    """The parameters and the properties of the objects in them, but for those that only hold under a condition."""
    fields = (node for node in tool.objects("inputSchema") if node.inside == "properties")
    for node in islice((node for node in fields if not CONDITION.search(node.path)), MOST_PARAMETERS):
        yield ToolParameter(node.name, node.path, find_parts(node.schema, tool.input), required=False)


def _check_repeated(tool: LintedTool) -> Iterator[RuleFault]:
    for field in _find_fields(tool):
        if unsaid := _find_unsaid(field, tool):
            message = f"Codex drops {', '.join(unsaid)} of {field.name!r}, and no description says it"
            fix = f"Add to its description: ({_phrase(unsaid)})."
            yield RuleFault(message, field.path, fix, "info" if set(unsaid) == {"default"} else None)


def _repeat_constraints(tool: Json) -> Json:
    linted = LintedTool(tool, ToolList())
    said = {
        id(field.parts[0]): f"{field.description} ({_phrase(unsaid)})".strip()
        for field in _find_fields(linted)
        if (unsaid := _find_unsaid(field, linted))
    }

    def describe(schema: Json) -> Json:
        return {**schema, "description": said[id(schema)]} if id(schema) in said else schema

    return {**tool, "inputSchema": rewrite(linted.input, describe)} if said else tool


# -- the list, answers, annotations

_ANSWERS_MANY: Final = re.compile("list|search|find|query|dump|export|grep|scan|read")
_VERB_AT: Final = 2
"""The verb of a name is its first word, or its second after the thing: `list_cities`, `browser_find`."""
_PAGING: Final = re.compile(
    r"limit|offset|cursor|page|max|count|top|first|last|head|tail|size|start|end|range|lines|depth|number|since|until"
    r"|before|after|filename|index"
)
_SAYS_PAGING: Final = re.compile(
    r"at a time|at most|up to|\bpag(?:e|es|ed|ing)\b|\blimit|truncat|preview|\bfirst \d", re.I
)
_DESTROYS: Final = re.compile("delete|drop|rm|remove|kill|destroy|purge|wipe|erase|truncate|terminate|unlink")
_READS: Final = re.compile("get|list|read|show|search|find|describe|count|is|has|check|view|preview|drag")


def _check_size(server: ToolList) -> Iterator[RuleFault]:
    count, tokens = len(server.tools), count_tokens(server.tools)
    for client in (CLIENTS["cursor"], CLIENTS["vscode"]):
        if passed := [words for most, words in client.tool_limits if count > most]:
            message = f"{count} tools, about {tokens:,} tokens: {', '.join(passed)}"
            yield RuleFault(message, "tools", profiles=(client.profile,))
    if tokens > LIST_TOKENS:
        yield RuleFault(f"the list of {count} tools costs about {tokens:,} tokens in every conversation", "tools")


def _check_paged(tool: LintedTool) -> Iterator[RuleFault]:
    verbs = split_name(tool.name)[:_VERB_AT]
    if not any(map(_ANSWERS_MANY.fullmatch, verbs)) or _SAYS_PAGING.search(tool.description, 0, READ):
        return
    pages = any(_PAGING.search(name[:READ].lower()) for name in tool.properties)
    if not pages and _is_unbounded(tool.record.get("outputSchema")):
        message = f"by its name it may answer more than {ANSWER_TOKENS:,} tokens, and no parameter pages it (a guess)"
        yield RuleFault(message)


def _is_unbounded(output: Any) -> bool:
    """Whether the schema sets no limit to an answer. Without a schema it is text of any length."""
    if not is_object(output):
        return True
    values = [each for each in as_object(output.get("properties")).values() if is_object(each)]
    inner = [part for each in values for part in find_parts(each, output)]
    if len(inner) == 1 and inner[0].get("type") == "string":  # only a text
        return inner[0].keys().isdisjoint(("maxLength", "enum", "const", "format"))
    return any(part.get("type") == "array" and "maxItems" not in part for part in inner)


def _check_hints(tool: LintedTool) -> Iterator[RuleFault]:
    words = split_name(tool.name)
    if not any(map(_DESTROYS.fullmatch, words)) or _READS.fullmatch(words[0]):
        return
    hints = as_object(tool.record.get("annotations"))
    if not isinstance(hints.get("destructiveHint"), bool) and hints.get("readOnlyHint") is not True:
        yield RuleFault(f"{tool.name!r} sounds as if it destroys something, and its annotations don't say whether")


def _add_hint(tool: Json) -> Json:
    """The tool with MCP's default written out."""
    if not any(_check_hints(LintedTool(tool, ToolList()))):
        return tool
    return {**tool, "annotations": {**as_object(tool.get("annotations")), "destructiveHint": True}}


CHECKS: Final[dict[str, Check]] = {
    "W21": _check_length,
    "W22": _check_described,
    "W25": _check_repeated,
    "W31": _check_paged,
    "W32": _check_hints,
}
SERVER_CHECKS: Final[dict[str, ServerCheck]] = {"W21": _check_instructions, "W28": _check_size}
MENDS: Final[dict[str, Mend]] = {"W25": _repeat_constraints, "W32": _add_hint}
