"""Ranking: personalised PageRank around the best matches, and mild preferences. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from longshore.toolsets.context.records import Microseconds

SEEDS: Final = 20
"""Best matches from which the walk begins."""
SEED_POWER: Final = 3
"""Scores are raised to it: the walk is to begin at the best few."""
RESTART: Final = 0.5
"""How much of the walk goes back to the seeds in each step."""
STEPS: Final = 4
PART_OF: Final = "part_of"
LIGHTER: Final[Mapping[str, float]] = {PART_OF: 0.1}
"""By relation: how much of a link's weight the walk follows. A question seldom means the chapter of which a section has
the words: on ingested documents and code, following it whole put the chapter before better matches."""
RECENT_BONUS: Final = 0.1
HALF_LIFE_DAYS: Final = 30
FACT_KINDS: Final = frozenset(("fact", "decision", "note", "task", "episode"))
"""Kinds of which the newer one is a little likelier to be meant. Code and documents don't age."""
PINNED_FACTOR: Final = 1.1
_DAY: Final = 86_400_000_000

Weights = Mapping[int, Mapping[int, float]]
"""For each node, its neighbours and the weights of the links to them."""


def link_weights(edges: Iterable[tuple[int, int, float]]) -> dict[int, dict[int, float]]:
    """The neighbours of each node: links count in both directions."""
    weights = dict[int, dict[int, float]]()
    for one, other, weight in edges:
        if one != other:
            for start, end in ((one, other), (other, one)):
                links = weights.setdefault(start, {})
                links[end] = links.get(end, 0.0) + weight
    return weights


def seed_shares(scores: Mapping[int, float]) -> dict[int, float]:
    """The share of the walk that begins at each of these nodes. Their order is that of the scores' mapping."""
    highest = max(scores.values(), default=0.0)
    if highest <= 0.0:
        return {}
    powers = {node: (score / highest) ** SEED_POWER for node, score in scores.items()}
    total = sum(powers.values())
    return {node: power / total for node, power in powers.items()}


def page_rank(shares: Mapping[int, float], weights: Weights) -> dict[int, float]:
    """The stationary distribution of a walk that restarts at the seeds: nodes near many good matches rank high.

    Links of a node whose weights sum to less than 1 are followed by that share of the walk only.
    """
    ranks = dict(shares)
    totals = {node: sum(links.values()) for node, links in weights.items()}
    for _ in range(STEPS):
        following = dict[int, float]()
        stranded = 0.0
        for node, rank in ranks.items():
            total = totals.get(node, 0.0)
            if total < 1.0:
                stranded += rank * (1.0 - total)  # the share that follows no link restarts
            if not total:
                continue
            moved = (1.0 - RESTART) * rank / max(1.0, total)
            for neighbour, weight in weights[node].items():
                following[neighbour] = following.get(neighbour, 0.0) + moved * weight
        for node, share in shares.items():
            following[node] = following.get(node, 0.0) + (RESTART + (1.0 - RESTART) * stranded) * share
        ranks = following
    return ranks


def preference(kind: str, importance: float, is_pinned: bool, updated_at: Microseconds, now: Microseconds) -> float:
    """A factor near 1 for importance, a pin, or a recent fact. It orders matches, and adds none."""
    factor = 0.75 + 0.5 * importance
    if is_pinned:
        factor *= PINNED_FACTOR
    if kind in FACT_KINDS:
        age_days = max(0, now - updated_at) / _DAY
        factor *= 1.0 + RECENT_BONUS * 2.0 ** (-age_days / HALF_LIFE_DAYS)
    return factor
