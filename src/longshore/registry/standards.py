"""Holding tools against the standards when they are declared.

On the cold-start path of servers with raw tools, so it imports nothing of the rules: what was found before is
remembered by `checked`, and `judging` comes in for what is new.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, final

from longshore.errors import RegistrationError
from longshore.registry.catalog import Catalog
from longshore.registry.source_location import caller
from longshore.registry.tool import Entry, category_of

if TYPE_CHECKING:
    from longshore.registry.checked import Checked

Policy = Literal["warn", "refuse", "off"]
_POLICIES = ("warn", "refuse", "off")
MOST_TOLD = 500
"""Lines about one server's tools: a log is no report, and tools can come and go for ever."""
SHOWN_CHARACTERS = 80
"""Of an example that is wrong: enough to know which it is."""
_deferring = _thread._local()  # pyright: ignore[reportPrivateUsage]  (threading costs a millisecond)


@contextmanager
def deferring() -> Generator[list[RegistrationError], None, None]:
    """On this thread, tools that can't be offered are left out and listed here, and no standard is held against any.

    For who wants to tell everything that is wrong with a server, not what is wrong first.
    """
    found: list[RegistrationError] = []
    before, _deferring.found = getattr(_deferring, "found", None), found
    try:
        yield found
    finally:
        _deferring.found = before


def is_deferring() -> bool:
    """Whether somebody on this thread collects what is wrong."""
    return getattr(_deferring, "found", None) is not None


def defer(problem: RegistrationError) -> bool:
    """Whether somebody on this thread collects such problems. Then this one is among them."""
    found = getattr(_deferring, "found", None)
    if found is not None:
        found.append(problem)
    return found is not None


class Stumble(Exception):
    """A rule failed itself, which is no fault of the tool's. Its texts are to be told, and not to be remembered."""


@final
class Standards:
    """What one server asks of its tools, and what was found that is still to be told."""

    def __init__(
        self,
        server: str,
        policy: Policy,
        categories: tuple[str, ...] | None,
        waived: Mapping[str, str],
        catalog: Catalog,
    ) -> None:
        self.policy = _known(policy)
        self.categories, self.waived = categories, waived
        self._server, self._catalog = server, catalog
        self._checked: Checked | None = None
        self._dotted: dict[str, set[str]] = {}
        """Names with a dot, by what they are to clients that know no dots."""
        self._found: list[tuple[Any, str]] = []
        self._told: set[tuple[str, str]] = set()
        if waived and policy != "off":
            self._verdict(["waive", waived], lambda: _judge_waivers(waived, caller()))

    def check(self, entries: Sequence[Entry]) -> None:
        """Refuse these tools, or keep what is to be told of them. All or nothing: what is told follows at the end."""
        if self.policy == "off":
            return
        if is_deferring():
            self._defer(entries)
            return
        found: list[tuple[Entry, str]] = []
        for entry in entries:
            found += [(entry, text) for text in self._look(entry)]
            found += [(entry, text) for text in self._compare(entry, entries)]
            if self.policy == "refuse" and entry.examples and not entry.raw:
                check_examples(entry)
        for entry, text in found:
            self._keep(entry, text)

    def _defer(self, entries: Sequence[Entry]) -> None:
        """For who collects what is wrong: what no rule finds, and would be refused all the same."""
        for entry in entries:
            try:
                if entry.waived:
                    _judge_waivers(entry.waived, str(entry.where))
                if self.policy == "refuse" and entry.examples:
                    check_examples(entry)
            except RegistrationError as problem:
                defer(problem)

    def _keep(self, entry: Entry, text: str) -> None:
        if (entry.name, text) not in self._told and len(self._told) <= MOST_TOLD:
            full = len(self._told) == MOST_TOLD
            self._told.add((entry.name, text))
            self._found.append((entry.where, "and more, which `longshore lint` tells" if full else text))

    def tell(self, hear: Callable[[str], None]) -> None:
        """Say what was found since the last time, each thing once."""
        found, self._found = self._found, []  # another thread may tell, too
        for where, text in found:
            hear(f"{where}: {text}")

    def save(self) -> None:
        """Remember what was looked at, so that the next start need not look again."""
        if self._checked is not None:
            self._checked.save()

    def _look(self, entry: Entry) -> list[str]:
        """What is wrong with a tool. Nothing can be, where all that clients are told follows from its types."""
        usual = self.categories is None or (entry.documented and category_of(entry) in self.categories)
        if usual and not entry.raw and not entry.odd:
            return []
        # Where the odd parts are known, all else follows from types, and is not worked out to see whether it changed.
        known = self.categories is None and entry.odd is not None and entry.odd is not True
        shown = entry.odd if known else _describe(entry)
        declared = [entry.name, entry.raw, entry.checks, category_of(entry), entry.examples, entry.errors, entry.waived]
        asked = [self.policy, self.categories, self.waived]
        try:
            return self._verdict([shown, declared, asked], lambda: _judge(self, entry, _describe(entry)))
        except Stumble as problem:
            return [*problem.args]

    def _verdict(self, subject: Any, judge: Callable[[], list[str]]) -> list[str]:
        if self._checked is None:
            from longshore.registry.checked import Checked

            self._checked = Checked(self._server)
        return self._checked.recall(subject, judge)

    def _compare(self, entry: Entry, beside: Sequence[Entry]) -> list[str]:
        """`a.b` and `a_b` are one name to clients that know no dots."""
        flat = entry.name.replace(".", "_")
        if flat != entry.name:
            self._dotted.setdefault(flat, set()).add(entry.name)
        elif flat not in self._dotted:
            return []
        names = {each.name for each in beside}
        twins = (name for name in (flat, *self._dotted[flat]) if name != entry.name)
        twin = next((name for name in twins if name in names or self._stays(name, entry)), None)
        return [] if twin is None else _judge_twins(self, entry, twin)

    def _stays(self, name: str, comes: Entry) -> bool:
        """Whether there is such a tool, and the toolset of the one that comes does not take its place."""
        there = self._catalog.tools.get(name)
        if there is None or there.toolset is None or comes.toolset is None:
            return there is not None
        return bool(there.toolset.name != comes.toolset.name)


def read_categories(categories: Sequence[str] | None) -> tuple[str, ...] | None:
    """The categories that a server declares."""
    if isinstance(categories, str):
        raise RegistrationError(caller(), f"categories={categories!r} is one text", f"categories=[{categories!r}]")
    if categories is None:
        return None
    try:
        found: tuple[Any, ...] = tuple(categories)
    except TypeError:
        found = (categories,)
    if not all(isinstance(each, str) for each in found):
        raise RegistrationError(caller(), f"categories={categories!r} is no list of texts", 'categories=["files", …]')
    return found


def read_waivers(waive: Mapping[str, str] | None) -> dict[str, str]:
    """What a server waives for all its tools."""
    if not isinstance(waive, Mapping) and waive is not None:
        raise RegistrationError(caller(), f"waive={waive!r} is no mapping", 'waive={"E04": "why"}')
    return dict(waive or {})


def _known(policy: Policy) -> Policy:
    if policy not in _POLICIES:  # pyright: ignore[reportUnnecessaryContains]
        raise RegistrationError(caller(), f"standards={policy!r} is unknown", 'standards="warn", "refuse" or "off"')
    return policy


def _describe(entry: Entry) -> dict[str, Any] | None:
    """None: it has a type that has no JSON Schema. The list says so, and leaves it out."""
    try:
        return entry.describe()
    except Exception:
        return None


def _judge(standards: Standards, entry: Entry, described: dict[str, Any] | None) -> list[str]:
    from longshore.registry.judging import judge

    return [] if described is None else judge(standards, entry, described)


def _judge_twins(standards: Standards, entry: Entry, twin: str) -> list[str]:
    from longshore.registry.judging import judge_twins

    return judge_twins(standards, entry, twin)


def _judge_waivers(waived: Mapping[str, str], where: str) -> list[str]:
    from longshore.registry.judging import judge_waivers

    judge_waivers(waived, where)
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
            what = f"B58: the tool {entry.name!r} does not take its example {_show(example)}: {'; '.join(faults)}"
            raise RegistrationError(str(entry.where), what, "correct the example") from None


def _show(example: Any) -> str:
    text = repr(example)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
