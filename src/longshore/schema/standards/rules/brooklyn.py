"""The rules of the Brooklyn standard about a tool as a whole: what it is called, filed under and shown with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final

from longshore.schema.kinds import is_object
from longshore.schema.phrase import cut, quote
from longshore.schema.standards.rule import Fault, Rule, fault
from longshore.schema.standards.rules import relations, values
from longshore.schema.standards.rules.values import STANDARD
from longshore.schema.standards.subject import Facts, Json, Subject, example
from longshore.schema.standards.wording import find_fault_of_action, split_name

COMPLEX: Final = 3
"""Parameters of the largest tool that explains itself without an example."""

_KEBAB: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SHORT: Final = {
    "nav": "navigation",
    "cfg": "configuration",
    "conf": "configuration",
    "mgmt": "management",
    "mgr": "management",
    "util": "utilities",
    "utils": "utilities",
    "misc": "other",
    "sys": "system",
    "msg": "messages",
    "img": "images",
    "pkg": "packages",
    "ctx": "context",
    "perf": "performance",
    "proc": "processes",
    "svc": "services",
    "srv": "servers",
}


def _check_category(subject: Subject) -> Iterator[Fault]:
    category, declared = subject.category, subject.surface.categories
    if not category or (declared is not None and category in declared):
        return
    if not _KEBAB.fullmatch(category):
        kebab = _to_kebab(category)
        fix = f"Call it {cut(kebab)!r}." if kebab else ""
        yield fault(f"the category {cut(category)!r} is not lower-case-with-hyphens", fix=fix)
    elif declared is not None:
        near = get_close_matches(category, declared, 1) or list(declared[:5])
        fix = f"Use {', '.join(cut(each) for each in near)}, or declare it." if near else "Declare it."
        yield fault(f"the category {cut(category)!r} is none of those that the server declares", fix=fix)
    elif short := [word for word in category.split("-") if word in _SHORT]:
        whole = "-".join(_SHORT.get(word, word) for word in category.split("-"))
        yield fault(
            f"the category {cut(category)!r} abbreviates {short[0]!r}", fix=f"Call it {whole!r}.", level="warning"
        )


def _to_kebab(category: str) -> str:
    """Nothing for one in letters of other alphabets: only its author knows how it is written in these."""
    return "-".join(split_name(category)) if category.isascii() else ""


def _mend_category(tool: Json) -> Json:
    meta = tool.get("_meta")
    category = meta.get("longshore/category") if is_object(meta) else None
    kebab = _to_kebab(category) if isinstance(category, str) and not _KEBAB.fullmatch(category) else ""
    return {**tool, "_meta": {**meta, "longshore/category": kebab}} if is_object(meta) and kebab else tool


def _check_action(subject: Subject) -> Iterator[Fault]:
    if reason := find_fault_of_action(subject.description):
        yield fault(f"the description does not begin with an action: {reason}")


def _check_examples(subject: Subject) -> Iterator[Fault]:
    facts = subject.known
    if facts is None:
        return
    count = len(subject.properties)
    if count > COMPLEX and not facts.examples:
        yield fault(f"{count} parameters and no example", fix="Add examples=[{…}], a whole call each.")
    for number, line in _find_broken(subject.input, facts.examples):
        message = f"example {quote(facts.examples[number])} breaks the tool's own schema: {line}"
        fix = "Correct the example, or the schema if the example is right."
        yield fault(message, f"examples[{number}]", fix=fix, level="error")


def _find_broken(schema: Json, examples: tuple[Any, ...]) -> Iterator[tuple[int, str]]:
    from longshore.schema.cost import compile_bounded

    validator = compile_bounded(schema, if_unknown=False) if examples else None
    if validator is None:
        return  # told by the rules about schemas
    for number, given in enumerate(examples):
        try:
            lines = validator.errors(given)
        except Exception:
            lines = ["it is not JSON"]
        yield from ((number, line) for line in lines[:1])


def _check_errors(subject: Subject) -> Iterator[Fault]:
    facts = subject.known
    if facts is not None and not facts.errors and subject.required:
        yield fault("a call can go wrong, and no error is declared")


def _check_present(subject: Subject) -> Iterator[Fault]:
    if not subject.name:
        yield fault("the tool has no name", fix='Add "name".')
    if not subject.description.strip():
        yield fault("the tool has no description", fix='Add "description": what it does and when to use it.')
    if subject.known is not None and not subject.category:
        yield fault("the tool has no category", fix="Add category=, or make it part of a toolset, whose name counts.")


def _filed(category: str) -> Any:
    return example({"_meta": {"longshore/category": category}})


def _takes(count: int) -> Json:
    names = ("city", "country", "language", "day")[:count]
    properties = {name: {"type": "string", "description": f"which {name} to report on"} for name in names}
    return {"inputSchema": {"type": "object", "properties": properties, "required": ["city"]}}


_OWN: Final[tuple[Rule, ...]] = (
    Rule(
        id="I40",
        title="Categories are lower-case-with-hyphens, whole words, and declared",
        level="error",
        profiles=("brooklyn",),
        why="Tools are found by category. One that is spelt in two ways is two categories.",
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
        why="A model copies an example. One that the server refuses is worse than none.",
        evidence=f"{STANDARD}, Tool Definition Structure and Tool Definition Validation",
        fix="Add examples that the tool accepts.",
        good=example(_takes(4), facts=Facts(category="weather", examples=({"city": "Paris", "day": "today"},))),
        bad=example(_takes(4), facts=Facts(category="weather")),
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
        good=example(_takes(1), facts=Facts(category="weather", errors={"no such city": "check the spelling"})),
        bad=example(_takes(1), facts=Facts(category="weather")),
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
        good=example({}, facts=Facts(category="weather")),
        bad=example({"description": ""}, facts=Facts()),
        check=_check_present,
    ),
)

RULES: Final[tuple[Rule, ...]] = (*_OWN, *relations.RULES, *values.RULES)
