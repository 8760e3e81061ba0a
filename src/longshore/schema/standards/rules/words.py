"""Rules about what a tool says of itself: descriptions, hints, and the size of what it answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import is_object
from longshore.schema.standards.constraint import find_unsaid, phrase
from longshore.schema.standards.parameter import Parameter, find_parts, parameters
from longshore.schema.standards.rule import COMMON, Fault, Level, Rule, fault
from longshore.schema.standards.subject import Json, Subject, Surface, example
from longshore.schema.standards.vocabulary import gather
from longshore.schema.standards.wording import READ, split_name

DESCRIPTION_UNITS: Final = 2048
"""UTF-16 units of a description, or of instructions, that Claude Code passes on. It counts as JavaScript does."""

ANSWER_TOKENS: Final = 25_000
"""Tokens of a result that Claude Code shows to its model. Longer ones go to a file, with a preview."""

_PAGING: Final = gather(
    "limit offset cursor page pages max maximum count top first last head tail size start end range lines from to"
    " depth n num number since until before after filename index"
)
_SAYS_PAGING: Final = re.compile(
    r"at a time|at most|up to|\bpag(?:e|es|ed|ing)\b|\blimit|truncat|preview|\bfirst \d", re.I
)
_MANY: Final = gather("list search find query dump export grep scan read")
_VERB_AT: Final = 2
"""The verb of a name is its first word, or its second after the thing: `list_cities`, `browser_find`."""
_DESTROYS: Final = gather("delete drop rm remove kill destroy purge wipe erase truncate terminate uninstall unlink")
_READS: Final = gather("get list read show search find describe count is has check view preview")


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _check_length(subject: Subject) -> Iterator[Fault]:
    if (length := _length(subject.description)) > DESCRIPTION_UNITS:
        yield fault(f"the description has {length:,} characters; Claude Code passes on the first {DESCRIPTION_UNITS:,}")


def _check_instructions(surface: Surface) -> Iterator[Fault]:
    if (length := _length(surface.instructions or "")) > DESCRIPTION_UNITS:
        message = f"the instructions have {length:,} characters; Claude Code passes on the first {DESCRIPTION_UNITS:,}"
        yield fault(message, "instructions", fix="Say first what matters most, and leave the rest to the tools.")


def _check_described(subject: Subject) -> Iterator[Fault]:
    if not subject.description.strip():
        yield fault("the tool has no description, so a model has only its name to go by")
    for parameter in parameters(subject):
        if not parameter.description.strip():
            message = f"the parameter {parameter.name!r} has no description"
            yield fault(message, parameter.path, fix='Add "description": what it is for, in which form and unit.')


def _check_repeated(subject: Subject) -> Iterator[Fault]:
    for parameter in parameters(subject):
        unsaid = find_unsaid(parameter, subject.description, subject.input)
        if unsaid:
            message = f"Codex drops {', '.join(unsaid)} of {parameter.name!r}, and no description says it"
            level: Level | None = "info" if set(unsaid) == {"default"} else None
            yield fault(message, parameter.path, fix=f"Add to its description: ({phrase(unsaid)}).", level=level)


def _repeat(tool: Json) -> Json:
    """The tool whose descriptions say what its schema says."""
    subject = Subject(tool, Surface())
    if not subject.properties:
        return tool
    said = {each.name: _say(each, subject) for each in parameters(subject)}
    return {**tool, "inputSchema": {**subject.input, "properties": {**subject.properties, **said}}}


def _say(parameter: Parameter, subject: Subject) -> Json:
    unsaid = find_unsaid(parameter, subject.description, subject.input)
    if not unsaid:
        return parameter.schema
    return {**parameter.schema, "description": f"{parameter.description} ({phrase(unsaid)})".strip()}


def _check_paged(subject: Subject) -> Iterator[Fault]:
    if _MANY.isdisjoint(split_name(subject.name)[:_VERB_AT]) or _SAYS_PAGING.search(subject.description, 0, READ):
        return
    asked = {word for name in subject.properties for word in split_name(str(name))}
    if _PAGING.isdisjoint(asked) and _is_unbounded(subject.output):
        message = f"by its name it may answer more than {ANSWER_TOKENS:,} tokens, and no parameter pages it (a guess)"
        yield fault(message)


def _is_unbounded(output: Json | None) -> bool:
    """Whether an answer has no end by its schema. Where there is none, it is text of any length."""
    if output is None:
        return True
    found = output.get("properties")
    inner = [part for each in _values(found) for part in find_parts(each, output)]
    if len(inner) == 1 and inner[0].get("type") == "string":  # nothing but a text
        return inner[0].keys().isdisjoint(("maxLength", "enum", "const", "format"))
    return any(part.get("type") == "array" and "maxItems" not in part for part in inner)


def _values(properties: Any) -> list[Json]:
    return [each for each in properties.values() if is_object(each)] if is_object(properties) else []


def _check_hints(subject: Subject) -> Iterator[Fault]:
    words = split_name(subject.name)
    if not _DESTROYS.intersection(words) or words[0] in _READS or "drag" in words:
        return
    hints = _hints(subject.tool)
    if not isinstance(hints.get("destructiveHint"), bool) and hints.get("readOnlyHint") is not True:
        yield fault(f"{subject.name!r} sounds as if it destroys something, and its annotations don't say whether")


def _hints(tool: Json) -> Json:
    found = tool.get("annotations")
    return found if is_object(found) else {}


def _hint(tool: Json) -> Json:
    """What MCP takes for granted where nothing is said, said."""
    if not any(_check_hints(Subject(tool, Surface()))):
        return tool
    return {**tool, "annotations": {**_hints(tool), "destructiveHint": True}}


def _takes(**properties: Any) -> Json:
    return {"inputSchema": {"type": "object", "properties": properties}}


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="W21",
        title="Descriptions and instructions have at most 2,048 characters",
        level="warning",
        profiles=("claude",),
        why="Claude Code cuts what is longer and appends “... [truncated]”; the model never sees the rest.",
        evidence="Claude Code 2.1.197: of a description of 20,000 characters 2,048 reached the model",
        fix="Say first what the tool does and when to use it; move the rest to parameter descriptions or a help tool.",
        good=example({"description": "Get the weather of a city. Use it for today and the six days after."}),
        bad=example({"description": "Get the weather of a city. " * 80}),
        check=_check_length,
        whole=_check_instructions,
    ),
    Rule(
        id="W22",
        title="A tool and each of its parameters has a description",
        level="warning",
        profiles=(*COMMON, "brooklyn"),
        why="The model picks a tool and fills its parameters by what their descriptions say, and guesses without.",
        evidence="Claude Code 2.1.197, Codex 0.166 and Gemini CLI 0.61 send an empty text where there is none",
        fix='Add "description": what the tool does and when to use it.',
        good=example(_takes(city={"type": "string", "description": "the city's name in English"})),
        bad=example(_takes(city={"type": "string"})),
        check=_check_described,
    ),
    Rule(
        id="W25",
        title="What the schema demands of a parameter, a description says too",
        level="warning",
        profiles=("openai",),
        why="Codex keeps types, enums and descriptions only. The model does not see the rest, and its calls fail.",
        evidence="Codex 0.166 sent tools without minimum, pattern, format, default and title",
        fix="Repeat the constraint in the parameter's description.",
        good=example(
            _takes(
                days={"type": "integer", "description": "days to look ahead, at most 14", "minimum": 1, "maximum": 14}
            )
        ),
        bad=example(_takes(days={"type": "integer", "description": "days to look ahead", "minimum": 1, "maximum": 14})),
        check=_check_repeated,
        mend=_repeat,
    ),
    Rule(
        id="W31",
        title="A tool that may answer a lot can answer in pages",
        level="info",
        profiles=("claude",),
        why="Claude Code puts an answer of more than 25,000 tokens into a file and shows a preview of 2 KB.",
        evidence="Claude Code 2.1.197 with a result of 400 KB. Whether a tool answers as much is guessed by its name",
        fix='Add a parameter such as "limit" or "cursor", or say in the description how much it answers at most.',
        good=example({"name": "list_cities", **_takes(cursor={"type": "string", "description": "for the next page"})}),
        bad=example({"name": "list_cities", "description": "List the cities that have a weather station"}),
        check=_check_paged,
    ),
    Rule(
        id="W32",
        title="A tool that sounds destructive says whether it is",
        level="warning",
        profiles=("mcp", "claude", "openai", "vscode"),
        why="Clients decide by the annotations whether they ask a person first.",
        evidence="MCP 2025-03-26 and later, ToolAnnotations: destructiveHint counts as true where it is left out",
        fix='Add "annotations": {"destructiveHint": true}, or false if nothing is lost.',
        good=example({"name": "delete_city", "annotations": {"destructiveHint": True}}),
        bad=example({"name": "delete_city", "description": "Delete a city and its history"}),
        check=_check_hints,
        mend=_hint,
    ),
)
