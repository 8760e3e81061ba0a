"""A claim: figures side by side, and the ratios between them that were promised."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One contestant's figure: the median over the rounds, and how far they spread."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)


@dataclass(frozen=True)
class Target:
    """`of`'s figure, over `against`'s, is at most (or at least) `limit`; without `against` the figure itself is."""

    of: str
    limit: float
    against: str | None = None
    at_most: bool = True


@dataclass(frozen=True)
class Verdict:
    target: Target
    measured: float
    met: bool


@dataclass
class Claim:
    name: str
    title: str
    unit: str
    base: str = ""  # rows without a target show their ratio to this one
    figures: dict[str, Figure] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)  # of Longshore's, where they are not the defaults
    notes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def add(self, name: str, values: Sequence[float]) -> None:
        """A contestant that failed has no values and gets no figure."""
        if values:
            self.figures[name] = Figure(tuple(values))

    def lowest(self, *names: str) -> str:
        """Which of these has the lowest figure; the first if none has one."""
        return min(self._measured(names), key=lambda name: self.figures[name].median, default=names[0])

    def highest(self, *names: str) -> str:
        """Which of these has the highest figure; the first if none has one."""
        return max(self._measured(names), key=lambda name: self.figures[name].median, default=names[0])

    def _measured(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name in self.figures]

    def judge(self, target: Target) -> Verdict | None:
        """None when a figure is missing."""
        measured = self.ratio(target.of, target.against) if target.against else self._median(target.of)
        if measured is None:
            return None
        return Verdict(target, measured, measured <= target.limit if target.at_most else measured >= target.limit)

    def ratio(self, name: str, against: str) -> float | None:
        """None when a figure is missing, or when there is nothing to divide by."""
        figure, base = self._median(name), self._median(against)
        return None if figure is None or not base else figure / base

    def _median(self, name: str) -> float | None:
        return self.figures[name].median if name in self.figures else None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "unit": self.unit,
            "figures": {
                name: {
                    "median": _rounded(figure.median),
                    "low": _rounded(figure.low),
                    "high": _rounded(figure.high),
                    "rounds": len(figure.values),
                }
                for name, figure in self.figures.items()
            },
            "targets": [self._target_as_json(target) for target in self.targets],
            "settings": self.settings,
            "notes": self.notes,
            "errors": len(self.errors),  # their texts can name directories of this machine
        }

    def _target_as_json(self, target: Target) -> dict[str, Any]:
        verdict = self.judge(target)
        return {
            "of": target.of,
            "against": target.against,
            "bound": "at most" if target.at_most else "at least",
            "limit": target.limit,
            "measured": _rounded(verdict.measured) if verdict else None,
            "met": verdict.met if verdict else None,
        }


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")
