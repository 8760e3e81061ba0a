"""Linting tools at registration: an error is logged or refuses the tool; warnings are left to `longshore lint`.

Servers with raw tools load this on a cold start, so the rules are imported only for tools that are not in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, final

import msgspec

from longshore.errors import RegistrationError
from longshore.registry.lint_cache import LintCache
from longshore.registry.source_location import caller
from longshore.registry.tool import Entry, category_of

if TYPE_CHECKING:
    from longshore.schema.lint.rule import Finding
    from longshore.schema.lint.tool_list import Declaration, LintedTool

LintPolicy = Literal["warn", "refuse", "off"]
_POLICIES: Final = ("warn", "refuse", "off")
MOST_WARNINGS: Final = 500
"""Warnings about one server's tools. Tools may be replaced any number of times."""
EXAMPLE_CHARACTERS: Final = 80
"""Characters of a wrong example in a message."""
TEXT_CHARACTERS: Final = 600
"""Characters of one message: names and values in it may have any length."""
ENFORCED: Final = frozenset({"E03"})
"""Rules that every server of ours keeps: results that are no objects are wrapped."""
MIXED: Final = frozenset({"W27", "B53", "B58"})
"""Warning rules with faults at error level. Other warning rules are not run at registration: they cost the most."""

_collecting: Final[list[list[RegistrationError]]] = []
"""The lists that collect refusals now. The last one gets them."""


@contextmanager
def collect_refusals() -> Generator[list[RegistrationError], None, None]:
    """Leave out tools that are refused, list the refusals here, and lint nothing.

    For the linter, which reports everything that is wrong with a server, not only the first refusal.
    """
    found: list[RegistrationError] = []
    _collecting.append(found)
    try:
        yield found
    finally:
        _collecting.pop()


def is_collecting() -> bool:
    """Whether refusals are collected now."""
    return bool(_collecting)


def collect(problem: RegistrationError) -> bool:
    """Add a refusal to those that are collected. False: none are."""
    if _collecting:
        _collecting[-1].append(problem)
    return is_collecting()


@final
class RegistrationLint:
    """Lints the tools of one server, and holds the warnings until they can be logged."""

    def __init__(
        self,
        server: str,
        policy: LintPolicy,
        categories: tuple[str, ...] | None,
        waived: Mapping[str, str],
    ) -> None:
        if policy not in _POLICIES:  # pyright: ignore[reportUnnecessaryContains]
            raise RegistrationError(caller(), f"standards={policy!r} is unknown", 'standards="warn", "refuse" or "off"')
        self.policy, self.categories, self.waived = policy, categories, waived
        self._server = server
        self._cache: LintCache | None = None
        self._warnings: list[tuple[Any, str]] = []
        """Places and texts. A place is read from the source file only when it is logged."""
        self._seen: set[tuple[str, str]] = set()
        if waived and policy != "off":
            self._recall(["waive", waived], lambda: (check_waivers(waived, caller()), True))

    def check(self, entries: Sequence[Entry]) -> None:
        """Raise RegistrationError for tools that are refused; else hold the warnings about them, all or none."""
        if self.policy == "off":
            return
        if is_collecting():
            self._collect(entries)
            return
        found: list[tuple[Entry, str]] = []
        for entry in entries:
            found += [(entry, text) for text in self._lint(entry)]
            if self.policy == "refuse" and entry.examples and not entry.raw:
                check_examples(entry)
        for entry, text in found:
            if (entry.name, text) not in self._seen and len(self._seen) <= MOST_WARNINGS:
                full = len(self._seen) == MOST_WARNINGS
                self._seen.add((entry.name, text))
                self._warnings.append((entry.where, "and more; see `longshore lint`" if full else text))

    def report(self, log: Callable[[str], None]) -> None:
        """Log the warnings found since the last report."""
        warnings, self._warnings = self._warnings, []  # another thread may report, too
        for where, text in warnings:
            log(f"{where}: {text}")

    def save(self) -> None:
        """Write the results to the cache for the next start."""
        if self._cache is not None:
            self._cache.save()

    def _collect(self, entries: Sequence[Entry]) -> None:
        """Collect the refusals that no rule reports."""
        for entry in entries:
            try:
                check_waivers(entry.waived, str(entry.where))
                if self.policy == "refuse" and entry.examples:
                    check_examples(entry)
            except RegistrationError as problem:
                collect(problem)

    def _lint(self, entry: Entry) -> list[str]:
        """The warnings about one tool. A tool whose whole description follows from its types has none."""
        usual = self.categories is None or (entry.documented and category_of(entry) in self.categories)
        if usual and not entry.raw and not entry.authored:
            return []
        # If the parts that the author wrote are known, the schema need not be inferred to see whether it changed.
        known = self.categories is None and entry.authored is not None and entry.authored is not True
        shown = entry.authored if known else _describe(entry)
        declared = [entry.name, entry.raw, entry.checks, category_of(entry), entry.examples, entry.errors, entry.waived]
        key = [shown, declared, [self.policy, self.categories, self.waived]]
        return self._recall(key, lambda: _lint_entry(self, entry))

    def _recall(self, key: Any, lint: Callable[[], tuple[list[str], bool]]) -> list[str]:
        if self._cache is None:
            self._cache = LintCache(self._server)
        return self._cache.recall(key, lint)


# -- options of the server


def read_categories(categories: Sequence[str] | None) -> tuple[str, ...] | None:
    """The categories that a server declares."""
    if categories is None:
        return None
    if isinstance(categories, str):
        raise RegistrationError(caller(), f"categories={categories!r} is one text", f"categories=[{categories!r}]")
    try:
        found: tuple[Any, ...] = tuple(categories)
    except TypeError:
        found = (categories,)
    if not all(isinstance(each, str) for each in found):
        raise RegistrationError(caller(), f"categories={categories!r} is no list of texts", 'categories=["files", …]')
    return found


def read_waivers(waive: Mapping[str, str] | None) -> dict[str, str]:
    """The rules that a server waives for all its tools."""
    if not isinstance(waive, Mapping) and waive is not None:
        raise RegistrationError(caller(), f"waive={waive!r} is no mapping", 'waive={"E04": "why"}')
    return dict(waive or {})


def check_waivers(waived: Mapping[str, str], where: str) -> list[str]:
    """Refuse a waiver of an unknown rule, or without a reason. Returns no warnings."""
    if not waived:
        return []
    from longshore.nearest import nearest
    from longshore.schema.lint.rules import RULES

    ids = [each.id for each in RULES]
    for rule, reason in waived.items():
        if rule not in ids:
            near = nearest(str(rule).upper(), ids)
            fix = f"did you mean {near!r}?" if near else "docs/lint-rules.md has all rules"
            raise RegistrationError(where, f"waive={{{rule!r}: …}}: there is no such rule", fix)
        if not isinstance(reason, str) or not reason.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RegistrationError(where, f"{rule} is waived without a reason", f'waive={{{rule!r}: "why"}}')
    return []


def check_examples(entry: Entry) -> None:
    """Refuse an example that the tool itself would refuse."""
    from longshore.schema.output import encode

    for example in entry.examples:
        raw = encode(example)
        try:
            entry.decode(raw)
        except Exception as problem:
            faults = entry.explain(raw, problem).faults or (str(problem),)
            shown = _cut(repr(example), EXAMPLE_CHARACTERS)
            what = f"B58: the tool {entry.name!r} does not take its example {shown}: {'; '.join(faults)}"
            raise RegistrationError(str(entry.where), what, "correct the example") from None


# -- running the rules


def declaration_of(entry: Entry, waived: Mapping[str, str]) -> Declaration:
    """The declaration of a tool; `waived` are the server's waivers. A mounted tool has only a place."""
    from longshore.schema.lint.tool_list import Declaration

    if entry.toolset is not None and entry.toolset.rank:
        return Declaration(where=str(entry.where), waived=waived, foreign=True)
    return Declaration(
        category=category_of(entry),
        examples=entry.examples,
        errors=entry.errors,
        waived={**waived, **entry.waived},
        where=str(entry.where),
        typed=not entry.raw,
        checks=entry.checks,
    )


def _describe(entry: Entry) -> dict[str, Any] | None:
    """The tool as it is listed. None: one of its types has no JSON Schema, so it is in no list."""
    try:
        return entry.describe()
    except Exception:
        return None


def _lint_entry(lint: RegistrationLint, entry: Entry) -> tuple[list[str], bool]:
    """One warning for each rule that a tool breaks, and whether all rules could be run. Raises for a refusal."""
    from longshore.schema.lint.tool_list import LintedTool, ToolList

    described = _describe(entry)
    if described is None:
        return [], True
    check_waivers(entry.waived, str(entry.where))
    if lint.policy == "refuse" and entry.raw:
        check_examples(entry)
    declared = declaration_of(entry, lint.waived)
    listed, failed = _as_sent(described, declared.where), list[str]()
    server = ToolList(tools=(listed,), declared={entry.name: declared}, categories=lint.categories)
    warnings: list[str] = []
    for first, *others in _find_errors(LintedTool(listed, server), failed):
        more = f" (and {len(others)} more)" if others else ""
        what, fix = _cut(f"{first.rule}: the tool {entry.name!r}: {first.message}{more}"), _fix(first.fix, first.rule)
        if lint.policy == "refuse" or "mcp" in first.profiles:
            raise RegistrationError(declared.where, what, fix)
        warnings.append(f"{what}; {fix}")
    return [*warnings, *(f"the tool {entry.name!r} could not be checked by {each}" for each in failed)], not failed


def _as_sent(described: dict[str, Any], where: str) -> dict[str, Any]:
    """A tool as clients read it: a tuple is an array there, an icon an object. Refuses one that has no JSON form."""
    try:
        sent: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(described))
    except Exception as problem:  # with it the whole list could not be sent
        why = "it holds itself, or is too deep" if isinstance(problem, RecursionError) else problem
        what = _cut(f"the tool {described['name']!r} has no form in JSON: {why}")
        raise RegistrationError(where, what, "use only dicts, lists, strings, numbers, booleans and None") from None
    return sent


def _find_errors(tool: LintedTool, failed: list[str]) -> list[list[Finding]]:
    """The findings at error level by rule; those that MCP itself forbids first.

    A rule that raises is added to `failed`, and the others still run.
    """
    from longshore.schema.lint.rule import COMMON
    from longshore.schema.lint.rules import RULES
    from longshore.schema.lint.run import check_rule

    profiles = frozenset[Any](COMMON if tool.server.categories is None else (*COMMON, "brooklyn"))
    left_out = ENFORCED.union(tool.declared.waived if tool.declared else ())
    found: list[list[Finding]] = []
    for rule in RULES:
        can_fail = rule.level == "error" or rule.id in MIXED
        if not can_fail or rule.id in left_out or profiles.isdisjoint(rule.profiles):
            continue
        try:
            errors = [each for each in check_rule(tool, rule) if each.level == "error"]
        except Exception as problem:
            failed.append(_cut(f"{rule.id}: {problem!r}"))
            continue
        if ours := [each for each in errors if not profiles.isdisjoint(each.profiles)]:
            found.append(sorted(ours, key=_is_of_client))
    return sorted(found, key=lambda errors: _is_of_client(errors[0]))


def _is_of_client(finding: Finding) -> bool:
    """Whether only some clients forbid it, not MCP."""
    return "mcp" not in finding.profiles


def _fix(fix: str, rule: str) -> str:
    return f"{_cut(fix).rstrip('.')} (longshore lint --explain {rule})"


def _cut(text: str, most: int = TEXT_CHARACTERS) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
