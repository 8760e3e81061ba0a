"""The rules of the Brooklyn standard about a tool as a whole. A team chooses the standard for itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final

from longshore.schema.kinds import is_object
from longshore.schema.lint.rule import Rule, RuleFault, fault
from longshore.schema.lint.rules.brooklyn_parameters import PARAMETER_RULES, STANDARD
from longshore.schema.lint.tool_list import Declaration, Json, LintedTool, ToolList, example
from longshore.schema.lint.wording import READ, find_words, split_name
from longshore.schema.phrase import cut, quote

COMPLEX: Final = 3
"""The most parameters that a tool may have without an example."""

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


# -- the tool as a whole


def _check_category(tool: LintedTool) -> Iterator[RuleFault]:
    category, declared = tool.category, tool.server.categories
    if not category or (declared is not None and category in declared):
        return
    if not _KEBAB.fullmatch(category):
        kebab = _to_kebab(category)
        fix = f"Call it {cut(kebab)!r}." if kebab else ""
        yield fault(f"the category {cut(category)!r} is not lower-case-with-hyphens", fix=fix)
    elif declared is not None:
        near = get_close_matches(category, declared, 1) or list(declared[:5])
        fix = f"Use {', '.join(cut(each) for each in near)}, or declare it." if near else "Declare it."
        yield fault(f"the category {cut(category)!r} is not declared by the server", fix=fix)
    elif short := [word for word in category.split("-") if word in _ABBREVIATED]:
        whole = "-".join(_ABBREVIATED.get(word, word) for word in category.split("-"))
        message = f"the category {cut(category)!r} abbreviates {short[0]!r}"
        yield fault(message, fix=f"Call it {whole!r}.", level="warning")


def _to_kebab(category: str) -> str:
    """Empty for a category in another alphabet: only its author can transcribe it."""
    return "-".join(split_name(category)) if category.isascii() else ""


def _mend_category(tool: Json) -> Json:
    meta = tool.get("_meta")
    category = meta.get("longshore/category") if is_object(meta) else None
    kebab = _to_kebab(category) if isinstance(category, str) and not _KEBAB.fullmatch(category) else ""
    return {**tool, "_meta": {**meta, "longshore/category": kebab}} if is_object(meta) and kebab else tool


_TAG: Final = re.compile(r"\A(?:\[[^\]]{1,40}\]|\([^)]{1,40}\))[\s:]*(?=\S)")
"""“[DEPRECATED]” or “(beta)” before the sentence."""
_SENTENCE: Final = re.compile(r"[\W_]*([A-Za-z][A-Za-z'-]*)(?:[^.!?;:\n]|[.!?;:](?!\s))*")
_NO_VERB: Final = re.compile(
    "an?|the|i|you|we|this|these|that|its?|for|with|of|in|on|at|from|to|by|all|any|each|every|is|are|can|will|tool|utility"
    "|helper|function|when|if|returns"
)
"""First words of a sentence about the tool."""
_OBJECT: Final = re.compile("an?|the|all|any|each|every|one|this|these|that|its?|your|whether|what|which|how")
"""Words that begin the object of a verb."""
_THIRD_PERSON: Final = re.compile(r"[a-z]{3,}[^aisu]s")
_LABEL: Final = re.compile(r"(?:[a-z]+ ){1,3}(?:[a-z]+(?:tion|ment|ity)|api|tool|helper|manager|service|support)")
"""A noun phrase: "Search functionality", "Text extraction"."""


def _check_action(tool: LintedTool) -> Iterator[RuleFault]:
    if reason := _find_fault_of_action(tool.description):
        yield fault(f"the description does not begin with an action: {reason}")


def _find_fault_of_action(text: str) -> str:
    """Why a description in English does not begin with an action; empty if nothing shows that."""
    text = _TAG.sub("", text[:READ].strip(), count=1)
    sentence = _SENTENCE.match(text)
    if sentence is None or (not text.isascii() and not text.lstrip("\"'`*_#( ")[:1].isascii()):
        return ""
    first, words = sentence[1][:40], find_words(sentence[0])
    after = words[1] if len(words) > 1 else ""
    if _NO_VERB.fullmatch(words[0]) or after == "of":
        return f"{first!r} is no action"
    if _THIRD_PERSON.fullmatch(words[0]) and _OBJECT.fullmatch(after):
        return f"{first!r} tells about the tool; write it as an order"
    if not any(map(_OBJECT.fullmatch, words)) and _LABEL.fullmatch(" ".join(words)):
        return f"{' '.join(words)!r} names a thing"
    return ""


def _check_examples(tool: LintedTool) -> Iterator[RuleFault]:
    declared = tool.ours
    if declared is None:
        return
    count = len(tool.properties)
    if count > COMPLEX and not declared.examples:
        yield fault(f"{count} parameters and no example", fix="Add examples=[{…}], a whole call each.")
    for number, line in _find_invalid(tool.input, declared.examples):
        message = f"example {quote(declared.examples[number])} breaks the tool's own schema: {line}"
        fix = "Correct the example, or the schema if the example is right."
        yield fault(message, f"examples[{number}]", fix=fix, level="error")


def _find_invalid(schema: Json, examples: tuple[Any, ...]) -> Iterator[tuple[int, str]]:
    from longshore.schema.cost import compile_bounded

    validator = compile_bounded(schema, if_unknown=False) if examples else None
    if validator is None:
        return  # reported by E13
    for number, given in enumerate(examples):
        try:
            lines = validator.errors(given)
        except Exception:
            lines = ["it is not JSON"]
        yield from ((number, line) for line in lines[:1])


def _check_errors(tool: LintedTool) -> Iterator[RuleFault]:
    if tool.ours is not None and not tool.ours.errors and tool.required:
        yield fault("a call can go wrong, and no error is declared")


def _check_present(tool: LintedTool) -> Iterator[RuleFault]:
    if not tool.name:
        yield fault("the tool has no name", fix='Add "name".')
    if not tool.description.strip():
        yield fault("the tool has no description", fix='Add "description": what it does and when to use it.')
    if tool.ours is not None and not tool.category:
        yield fault("the tool has no category", fix="Add category=, or make it part of a toolset, whose name counts.")


def _filed(category: str) -> ToolList:
    return example({"_meta": {"longshore/category": category}})


def _takes(count: int) -> Json:
    names = ("city", "country", "language", "day")[:count]
    properties = {name: {"type": "string", "description": f"which {name} to report on"} for name in names}
    return {"inputSchema": {"type": "object", "properties": properties, "required": ["city"]}}


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="I40",
        title="Categories are lower-case-with-hyphens, whole words, and declared",
        level="error",
        profiles=("brooklyn",),
        why="Tools are found by category. A category with two spellings is two categories.",
        evidence=f"{STANDARD}, Category System and Inconsistent Categorization",
        fix="Use lower-case words joined by hyphens, out of those that the server declares.",
        good=_filed("browser-lifecycle"),
        bad=_filed("Browser_Lifecycle"),
        check=_check_category,
        mend=_mend_category,
    ),
    Rule(
        id="B51",
        title="A description begins with what the tool does",
        level="warning",
        profiles=("brooklyn",),
        why="A model looks for an action. A noun phrase, or a sentence about the tool, leaves it to guess which.",
        evidence=f"{STANDARD}, Action-Oriented Descriptions",
        fix='Begin with the verb, as an order: "Navigate browser to a specific URL and wait for page load".',
        good=example({"description": "Navigate browser to a specific URL and wait for page load"}),
        bad=example({"description": "URL navigation functionality"}),
        check=_check_action,
    ),
    Rule(
        id="B58",
        title="A tool with many parameters has examples, and examples keep the schema",
        level="warning",
        profiles=("brooklyn",),
        why="A model copies an example. A wrong example is worse than none.",
        evidence=f"{STANDARD}, Tool Definition Structure and Tool Definition Validation",
        fix="Add examples that the tool accepts.",
        good=example(
            _takes(4), declared=Declaration(category="weather", examples=({"city": "Paris", "day": "today"},))
        ),
        bad=example(_takes(4), declared=Declaration(category="weather")),
        check=_check_examples,
    ),
    Rule(
        id="B59",
        title="A tool declares its common errors",
        level="info",
        profiles=("brooklyn",),
        why="A model that knows what can go wrong, and what helps, tries the right thing next.",
        evidence=f"{STANDARD}, Tool Definition Structure",
        fix='Add errors={"no such city": "check the spelling"}.',
        good=example(
            _takes(1), declared=Declaration(category="weather", errors={"no such city": "check the spelling"})
        ),
        bad=example(_takes(1), declared=Declaration(category="weather")),
        check=_check_errors,
    ),
    Rule(
        id="B61",
        title="A tool has a name, a category and a description",
        level="error",
        profiles=("brooklyn",),
        why="Without one of them a tool can't be called, found or understood.",
        evidence=f"{STANDARD}, Tool Definition Validation: the build fails",
        fix="Add what is missing.",
        good=example({}, declared=Declaration(category="weather")),
        bad=example({"description": ""}, declared=Declaration()),
        check=_check_present,
    ),
    *PARAMETER_RULES,
)
