"""Rules about the texts of tools, their annotations, and the size of the list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import is_object
from longshore.schema.lint.clients import CLIENTS
from longshore.schema.lint.parameters import ToolParameter, find_parts, parameters
from longshore.schema.lint.rule import COMMON, Level, Rule, RuleFault, fault
from longshore.schema.lint.tool_list import Json, LintedTool, ToolList, example
from longshore.schema.lint.wording import READ, find_unsaid, phrase, split_name
from longshore.schema.output import count_tokens

DESCRIPTION_UNITS: Final = CLIENTS["claude"].text_chars or 0
ANSWER_TOKENS: Final = 25_000
"""Tokens of a result that Claude Code shows to its model. A longer one goes to a file, with a preview."""
LIST_TOKENS: Final = 20_000
"""The most tokens of a list of tools: a tenth of a context of 200,000."""

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


def _count_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _check_length(tool: LintedTool) -> Iterator[RuleFault]:
    if (length := _count_units(tool.description)) > DESCRIPTION_UNITS:
        yield fault(f"the description has {length:,} characters; Claude Code passes on the first {DESCRIPTION_UNITS:,}")


def _check_instructions(server: ToolList) -> Iterator[RuleFault]:
    if (length := _count_units(server.instructions or "")) > DESCRIPTION_UNITS:
        message = f"the instructions have {length:,} characters; Claude Code passes on the first {DESCRIPTION_UNITS:,}"
        yield fault(message, "instructions", fix="Say first what matters most, and leave the rest to the tools.")


def _check_described(tool: LintedTool) -> Iterator[RuleFault]:
    if not tool.description.strip():
        yield fault("the tool has no description, so a model has only its name to go by")
    for parameter in parameters(tool):
        if not parameter.description.strip():
            message = f"the parameter {parameter.name!r} has no description"
            yield fault(message, parameter.path, fix='Add "description": what it is for, in which form and unit.')


def _check_repeated(tool: LintedTool) -> Iterator[RuleFault]:
    for parameter in parameters(tool):
        unsaid = find_unsaid(parameter, tool.description, tool.input)
        if unsaid:
            message = f"Codex drops {', '.join(unsaid)} of {parameter.name!r}, and no description says it"
            level: Level | None = "info" if set(unsaid) == {"default"} else None
            yield fault(message, parameter.path, fix=f"Add to its description: ({phrase(unsaid)}).", level=level)


def _repeat(tool: Json) -> Json:
    """The tool with every constraint repeated in a description."""
    linted = LintedTool(tool, ToolList())
    if not linted.properties:
        return tool
    said = {each.name: _say(each, linted) for each in parameters(linted)}
    return {**tool, "inputSchema": {**linted.input, "properties": {**linted.properties, **said}}}


def _say(parameter: ToolParameter, tool: LintedTool) -> Json:
    unsaid = find_unsaid(parameter, tool.description, tool.input)
    if not unsaid:
        return parameter.schema
    return {**parameter.schema, "description": f"{parameter.description} ({phrase(unsaid)})".strip()}


def _check_size(server: ToolList) -> Iterator[RuleFault]:
    count, tokens = len(server.tools), count_tokens(server.tools)
    for client in (CLIENTS["cursor"], CLIENTS["vscode"]):
        if passed := [words for most, words in client.tool_limits if count > most]:
            message = f"{count} tools, about {tokens:,} tokens: {', '.join(passed)}"
            yield fault(message, "tools", profiles=(client.profile,))
    if tokens > LIST_TOKENS:
        yield fault(f"the list of {count} tools costs about {tokens:,} tokens in every conversation", "tools")


def _check_paged(tool: LintedTool) -> Iterator[RuleFault]:
    verbs = split_name(tool.name)[:_VERB_AT]
    if not any(map(_ANSWERS_MANY.fullmatch, verbs)) or _SAYS_PAGING.search(tool.description, 0, READ):
        return
    pages = any(_PAGING.search(str(name)[:READ].lower()) for name in tool.properties)
    if not pages and _is_unbounded(tool.output):
        message = f"by its name it may answer more than {ANSWER_TOKENS:,} tokens, and no parameter pages it (a guess)"
        yield fault(message)


def _is_unbounded(output: Json | None) -> bool:
    """Whether the schema sets no limit to an answer. Without a schema it is text of any length."""
    if output is None:
        return True
    properties = output.get("properties")
    values = [each for each in properties.values() if is_object(each)] if is_object(properties) else []
    inner = [part for each in values for part in find_parts(each, output)]
    if len(inner) == 1 and inner[0].get("type") == "string":  # nothing but a text
        return inner[0].keys().isdisjoint(("maxLength", "enum", "const", "format"))
    return any(part.get("type") == "array" and "maxItems" not in part for part in inner)


def _check_hints(tool: LintedTool) -> Iterator[RuleFault]:
    words = split_name(tool.name)
    if not any(map(_DESTROYS.fullmatch, words)) or _READS.fullmatch(words[0]):
        return
    hints = _hints(tool.record)
    if not isinstance(hints.get("destructiveHint"), bool) and hints.get("readOnlyHint") is not True:
        yield fault(f"{tool.name!r} sounds as if it destroys something, and its annotations don't say whether")


def _hints(tool: Json) -> Json:
    found = tool.get("annotations")
    return found if is_object(found) else {}


def _hint(tool: Json) -> Json:
    """The tool with MCP's default written out."""
    if not any(_check_hints(LintedTool(tool, ToolList()))):
        return tool
    return {**tool, "annotations": {**_hints(tool), "destructiveHint": True}}


def _takes(**properties: Any) -> Json:
    return {"inputSchema": {"type": "object", "properties": properties}}


def _many(count: int) -> ToolList:
    tool = example({}).tools[0]
    return ToolList(tools=tuple({**tool, "name": f"get_weather_{number}"} for number in range(count)))


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
        title="A description repeats the constraints of a parameter",
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
    Rule(
        id="W28",
        title="A server lists at most 40 tools and costs at most 20,000 tokens",
        level="warning",
        profiles=("claude", "openai", "gemini", "vscode", "cursor"),
        why="Clients leave out the tools above their number, and every tool costs its tokens in every conversation.",
        evidence="Cursor took 40, later 80 (Snowflake-Labs/mcp #77), Windsurf 50 (go-mcp-mysql #3), VS Code 128 in a "
        "request (vscode-copilot-release #11653)",
        fix="List fewer tools: merge those that are alike, split the server, or let the operator choose toolsets.",
        good=_many(2),
        bad=_many(CLIENTS["cursor"].tool_limits[0][0] + 1),
        whole=_check_size,
    ),
)
