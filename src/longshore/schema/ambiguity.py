"""Whether a pattern could take a backtracking engine exponential time: `^(a+)+$`, `(\\w+\\s?)*$`, `^(a|aa)+$`.

It can where a loop may match one text in two ways: an engine that fails behind it tries all of them, which double with
each round. The pattern is read by Python's own parser and written as a Glushkov automaton, which has a state for each
character of the pattern. The loop is ambiguous if two of its states can both come next for one character and both lead
back, or if one state can come next by two loops that are nested.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from importlib import import_module
from itertools import product
from typing import Any, Final, NamedTuple, final

MOST_CHARS: Final = 1_000
MOST_STATES: Final = 100
"""The states are compared with each other. Patterns that have more are not judged, and so not warned of."""
MOST_STEPS: Final = 500_000
"""Of comparing them: half a second."""
MOST_COPIES: Final = 32
"""Of the body of `{2,32}`, which is written out. If there may be more it counts as `+`; if there must, as unknown."""

_parser: Any = import_module("re._parser")
_ALL: Final = (1 << 256) - 1
_BEYOND_ASCII: Final = _ALL ^ ((1 << 128) - 1)
_UPPER: Final = ((1 << 26) - 1) << ord("A")
_BAR: Final = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\|", re.DOTALL)
"""A bar outside of sets. Python's parser takes `a|b` for `[ab]`, and so `a|a` for `a`, unless more stands there."""
_CATEGORIES: Final = {"DIGIT": r"[0-9]", "SPACE": r"\s", "WORD": r"[A-Za-z0-9_]"}


def is_ambiguous(pattern: str) -> bool:
    """Whether a loop in the pattern is ambiguous. False also for what can't be told."""
    if len(pattern) > MOST_CHARS:
        return False
    named = re.sub(r"\(\?<(?![=!])", "(?P<", pattern)  # as Python spells it
    apart = _BAR.sub(lambda found: found[1] or "|(?=)", named)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sets that may mean something else one day
            return _Automaton().judge(_parser.parse(apart))
    except (re.error, RecursionError, OverflowError, _Unknown):
        return False


class _Unknown(Exception):
    """Something that no automaton can be made of, or too much of it."""


class _Ambiguous(Exception):
    pass


class _Part(NamedTuple):
    """A part of the pattern: whether it may be empty, and the states that it may begin and end with."""

    empty: bool = True
    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()

    def then(self, other: _Part) -> _Part:
        first = self.first | other.first if self.empty else self.first
        last = self.last | other.last if other.empty else other.last
        return _Part(self.empty and other.empty, first, last)


@final
class _Automaton:
    def __init__(self) -> None:
        self._chars: list[int] = []
        """The characters of each state, as a bit set. Those beyond ASCII share 128 bits."""
        self._next: dict[int, set[int]] = {}
        self._before: dict[int, set[int]] = defaultdict(set)
        self._steps = 0
        self._ignores_case = False

    def judge(self, tree: Any) -> bool:
        self._ignores_case = bool(tree.state.flags & re.IGNORECASE)
        try:
            self._sequence(tree)
        except _Ambiguous:
            return True
        for state, after in self._next.items():
            for each in after:
                self._before[each].add(state)
        return any(self._diverges(state) for state in self._next)

    def _sequence(self, items: Iterable[Any]) -> _Part:
        return reduce(self._join, (self._item(str(op), value) for op, value in items), _Part())

    def _join(self, one: _Part, other: _Part) -> _Part:
        for state in one.last:
            self._next[state] |= other.first
        return one.then(other)

    def _item(self, op: str, value: Any) -> _Part:
        match op:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                return self._state(_characters(op, value, self._ignores_case))
            case "SUBPATTERN":
                return self._group(*value)
            case "BRANCH":
                parts = [self._sequence(branch) for branch in value[1]]
                return _Part(
                    any(part.empty for part in parts),
                    frozenset().union(*(part.first for part in parts)),
                    frozenset().union(*(part.last for part in parts)),
                )
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeat(*value)
            case "AT" | "ASSERT" | "ASSERT_NOT":
                return _Part()
            case _:
                raise _Unknown

    def _group(self, _: int | None, added: int, removed: int, body: Any) -> _Part:
        outside = self._ignores_case
        self._ignores_case = bool((outside * re.IGNORECASE | added) & ~removed & re.IGNORECASE)
        part = self._sequence(body)
        self._ignores_case = outside
        return part

    def _state(self, chars: int) -> _Part:
        state = len(self._chars)
        if state == MOST_STATES:
            raise _Unknown
        self._chars.append(chars)
        self._next[state] = set()
        return _Part(False, frozenset((state,)), frozenset((state,)))

    def _repeat(self, least: int, most: int, body: Any) -> _Part:
        if least > MOST_COPIES:
            raise _Unknown
        copies = [self._sequence(body) for _ in range(least)]
        part = reduce(self._join, copies, _Part())
        if most > MOST_COPIES:
            return self._join(part, self._loop(self._sequence(body)))
        rest = _Part()
        for _ in range(most - least):  # each may only come after the one before it
            rest = self._join(self._sequence(body), rest)._replace(empty=True)
        return self._join(part, rest)

    def _loop(self, body: _Part) -> _Part:
        for state in body.last:
            if self._next[state] & body.first:
                raise _Ambiguous
            self._next[state] |= body.first
        return body._replace(empty=True)

    def _diverges(self, origin: int) -> bool:
        """Whether one text leads from a state back to itself in two ways."""
        both = self._reach(origin, self._next) & self._reach(origin, self._before)
        return any(one != other for one, other in both)

    def _reach(self, origin: int, steps: dict[int, set[int]]) -> set[tuple[int, int]]:
        """The pairs of states that two readings of one text lead to, from a state or back to it."""
        found: set[tuple[int, int]] = set()
        waiting = [(origin, origin)]
        while waiting:
            one, other = waiting.pop()
            for pair in product(steps[one], steps[other]):
                self._steps += 1
                if pair not in found and self._chars[pair[0]] & self._chars[pair[1]]:
                    found.add(pair)
                    waiting.append(pair)
            if self._steps > MOST_STEPS:
                raise _Unknown
        return found


def _characters(op: str, value: Any, ignores_case: bool) -> int:
    match op:
        case "LITERAL":
            chars = 1 << int(value if value < 128 else 128 + value % 128)
            return _both_cases(chars) if ignores_case else chars
        case "NOT_LITERAL":
            return _ALL ^ _characters("LITERAL", value, ignores_case) if value < 128 else _ALL
        case "RANGE":
            low, high = value
            beyond = _BEYOND_ASCII if high >= 128 else 0
            chars = sum(1 << char for char in range(low, min(high, 127) + 1)) | beyond
            return _both_cases(chars) if ignores_case else chars
        case "CATEGORY":
            return _category(str(value))
        case "IN":
            negated = str(value[0][0]) == "NEGATE"
            members = [_characters(str(inner), each, ignores_case) for inner, each in value[negated:]]
            chars = reduce(int.__or__, members, 0)
            return (_ALL ^ chars) | _BEYOND_ASCII if negated else chars
        case _:
            return _ALL


def _both_cases(chars: int) -> int:
    return chars | (chars & _UPPER) << 32 | (chars & _UPPER << 32) >> 32


def _category(name: str) -> int:
    kind = name.rsplit("_", 1)[-1]
    chars = sum(1 << char for char in range(128) if re.match(_CATEGORIES[kind], chr(char)))
    return _ALL ^ chars if "NOT" in name else chars
