"""The answers of the browser tools: the page's text within a fence that it can't forge, and effects of an action."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from longshore.registry.token_budget import LEAST_TOKENS, count_tokens, fit_ends
from longshore.toolsets.browser.events import clean, without_unseen
from longshore.toolsets.browser.snapshot import SnapshotLine, fold_behind, outline, render, shorten_texts
from longshore.toolsets.browser.tab import Arrival, Outcome

Shown = Literal["none", "auto", "full"]
"""The tokens of a page's text in the answer of a navigation."""
FENCE_TOKENS: Final = 60
"""The room for the fence around a page's text. A longer address is cut."""
LEAST_ANSWER: Final = LEAST_TOKENS + FENCE_TOKENS
"""The least budget of an answer: the least page and the fence."""
_MOST_ORIGIN: Final = 80


def fence(place: str, url: str, text: str) -> str:
    """A page's text between two lines with a random word, which the page can't know."""
    word, text = secrets.token_hex(4), without_unseen(text)
    return f"[{place} {origin_of(url)}, untrusted until {word}]\n{text}\n[{word}]"


def origin_of(url: str) -> str:
    """Scheme, host and port of an address, cut to a length for answers."""
    place = re.split("[?#]", url, maxsplit=1)[0]
    scheme, separator, rest = place.partition("://")
    shown = f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}" if separator else place
    return clean(shown, _MOST_ORIGIN)


def room_for_page(max_tokens: int) -> int:
    """The tokens left for a page's text within the fence."""
    return max_tokens - FENCE_TOKENS


def show_page(lines: Sequence[SnapshotLine], max_tokens: int) -> str:
    """The page's lines with long texts cut if they fit, else its outline."""
    lines = fold_behind(lines)
    shorter, is_cut = shorten_texts(lines)
    page = render(shorter, max_tokens)
    if not page.complete:
        return outline(lines, max_tokens)
    return f"{page.text}\n[long texts are cut: browser_read]" if is_cut else page.text


def show_arrival(arrival: Arrival, notes: Iterable[str], max_tokens: int, shown: Shown = "auto") -> str:
    """The result of a navigation, and the page."""
    head = [f"{arrival.url} {arrival.title!r}"]
    head += [arrival.note] if arrival.note else []
    head = [*notes, *head, *show_events(arrival.events)]
    match shown:
        case "none":
            return _join(head, "", max_tokens)
        case "full":
            room = max_tokens - count_tokens("\n".join(head)) - 1
            return _join(head, render(fold_behind(arrival.lines), max(LEAST_TOKENS, room)).text, max_tokens)
        case "auto":
            return _join(head, show_page(arrival.page, max_tokens), max_tokens)


def show_outcome(outcome: Outcome, notes: Iterable[str], max_tokens: int) -> str:
    """The result of steps, and the changes of the page."""
    head = [outcome.line]
    if outcome.failed:
        head.append(f"then failed: {outcome.failed}")
    if outcome.url is not None or outcome.page is not None:
        head.append(f"now at {outcome.url or 'the same address, loaded again'}")
    if outcome.title is not None:
        head.append(f"title {outcome.title!r}")
    head += [*notes, *show_events(outcome.events)]
    if outcome.page is not None:
        return _join(head, show_page(outcome.page, max_tokens), max_tokens)
    return _join(head, outcome.diff or ("" if outcome.closed else "nothing changed on the page"), max_tokens)


def show_events(events: Iterable[str]) -> list[str]:
    return [f"! {event}" for event in events]


def _join(head: Sequence[str], text: str, max_tokens: int) -> str:
    return fit_ends("\n".join([*head, *([text] if text else [])]), max_tokens, "browser_snapshot shows the page")
