"""The result of a query as text that fits a token budget: a line for each hit, then their best observations.

Stored text is the word of its source, never an instruction: each observation is labelled with where it comes from, and
its further lines are indented by four, so that none can imitate a line of the server, which is indented by two at most.
Names have no source of their own, and stand in quotes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, final

from msgspec import Struct

from longshore.invisible import CONTROLS, MARKS, TAGS
from longshore.registry.token_budget import CHARACTERS_PER_TOKEN, cut_line, fit_ends, json_length
from longshore.text_search.query_text import QUERY_CHARACTERS, parse
from longshore.text_search.tokenizer import to_terms
from longshore.toolsets.context.candidates import TERMS
from longshore.toolsets.context.checks import to_word
from longshore.toolsets.context.records import (
    Contradiction,
    Hit,
    Microseconds,
    Moment,
    Node,
    Observation,
    Query,
    QueryResult,
    Source,
)

DEFAULT_TOKENS: Final = 2_000
NAME_CHARACTERS: Final = 120
"""Of a name or path, in a hit's line."""
COUNTS_CHARACTERS: Final = 120
"""For the line of counts, which is not known before the rest is."""
LEAST_TEXT: Final = 120
"""Less of a text is not worth its label."""
PIECE: Final = 120
"""Characters of a part of a long line: an excerpt begins at one."""
REPEATED: Final = 0.9
"""Two texts that have so much of their terms in common say the same, and one is shown."""
_WORDS_SHOWN: Final = 8
_CUT: Final = (
    f"The query is long: only its first {QUERY_CHARACTERS:,} characters and {TERMS} rarest words were searched for."
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST: Final = -62_135_596_800_000_000
_LATEST: Final = 253_402_300_799_000_000
"""The first second of the year 1 and the last one of 9999, beyond which no calendar goes."""
_PIECE: Final = re.compile(rf".{{1,{PIECE}}}(?:\s|\Z)|.{{1,{PIECE}}}", re.DOTALL)
_QUOTES: Final = {ord(mark): '"' for mark in "“”"}
_UNSEEN: Final = re.compile(f"[{CONTROLS}{MARKS}{TAGS}]")


class Packed(Struct, frozen=True):
    """An answer."""

    text: str
    shown: int
    next_offset: int | None
    """Where the next hits begin, if there are more."""


def pack(result: QueryResult, max_tokens: int = DEFAULT_TOKENS) -> Packed:
    """The result as text of at most so many tokens, with a note on omissions."""
    if not result.hits:
        return Packed(fit_ends(_explain_empty(result), max_tokens), 0, None)
    return _Packing(result, max_tokens).packed()


@final
class _Packing:
    """Builds the answer to one query."""

    def __init__(self, result: QueryResult, max_tokens: int) -> None:
        self._result = result
        self._terms = set(parse(result.query.text).terms)
        self._notes = list[str]()
        self._room = max_tokens * CHARACTERS_PER_TOKEN // 3
        for note in notes_of(result):
            self._take(cut_line(note, max_tokens), self._notes)
        used = sum(json_length(note) + 2 for note in self._notes)
        self._room = max_tokens * CHARACTERS_PER_TOKEN - used - COUNTS_CHARACTERS
        self._lines = list[str]()
        self._texts = list[list[str]]()
        self._seen = list[set[str]]()

    def packed(self) -> Packed:
        for hit in self._result.hits:
            if not self._take(line := _hit_line(hit), self._lines):
                if not self._lines:
                    self._lines.append(cut := cut_line(line, self._room - 2))
                    self._room = max(0, self._room - json_length(cut) - 2)
                    self._texts.append([])
                break
            self._texts.append([])
        shown = len(self._lines)
        self._add_contradictions(shown)
        for place, observation in self._in_turn(shown):
            self._add_text(place, observation)
        blocks = ["\n".join([line, *texts]) for line, texts in zip(self._lines, self._texts, strict=True)]
        end = self._result.query.offset + shown
        has_more = end < self._result.total or self._result.more
        text = "\n".join([_counts(self._result, shown), *self._notes, *blocks])
        return Packed(text, shown, end if has_more else None)

    def _take(self, text: str, lines: list[str]) -> bool:
        """Add a text if it fits."""
        cost = json_length(text) + 2
        if cost > self._room:
            return False
        lines.append(text)
        self._room -= cost
        return True

    def _in_turn(self, shown: int) -> Iterator[tuple[int, Observation]]:
        """The best observation of each hit, then the second of each, and so on."""
        hits = self._result.hits[:shown]
        for turn in range(max((len(hit.observations) for hit in hits), default=0)):
            for place, hit in enumerate(hits):
                if turn < len(hit.observations):
                    yield place, hit.observations[turn]

    def _add_text(self, place: int, observation: Observation) -> None:
        terms = set(to_terms(observation.text))
        if any(len(terms & seen) >= REPEATED * len(terms | seen) for seen in self._seen):
            return
        # In the first round each hit reserves the share of the later ones; the rest goes to the next.
        waiting = sum(not texts for texts in self._texts[place:]) if not self._texts[place] else 1
        share = self._room // max(1, waiting)
        label = source_label(observation, self._result.hits[place].sources.get(observation.source))
        around = json_length(label) + 5
        room = min(max(share - around, LEAST_TEXT), self._room - around)
        if room < LEAST_TEXT and json_length(observation.text) > room:
            return
        body = excerpt(observation.text, self._terms, room)
        if body and self._take(indented(f"{label} {body}"), self._texts[place]):
            self._seen.append(terms)

    def _add_contradictions(self, shown: int) -> None:
        """A contradiction comes before all texts: without it a text would seem undisputed."""
        for place, hit in enumerate(self._result.hits[:shown]):
            for each in hit.contradictions:
                self._take(indented(cut_line(_contradiction(each, hit), 400)), self._texts[place])


def _counts(result: QueryResult, shown: int) -> str:
    total = f"{result.total:,}{' or more' if result.more else ''} hits" if result.total != 1 else "1 hit"
    offset = result.query.offset
    if not offset and shown == result.total and not result.more:
        return f"{total}:"
    following = f'; cursor "{offset + shown}" gives the next' if offset + shown < result.total or result.more else ""
    return f"{total}, {offset + 1}–{offset + shown} shown{following}:"


def notes_of(result: QueryResult) -> list[str]:
    """Notes to read before the hits."""
    notes = _times(result.query.moment)
    looked_in = "No text" if result.phrase_nodes is None else f"None of the best {result.phrase_nodes:,} nodes"
    notes += [f'{looked_in} has the phrase "{phrase}"; these have its words.' for phrase in result.missing_phrases]
    notes += _unknown(result)
    return notes + ([_CUT] if result.is_cut else [])


def _times(moment: Moment) -> list[str]:
    """The times of a query, unless it was about the present."""
    known = "as known today" if moment.known_at is None else f"as known at {show_time(moment.known_at)}"
    if moment.valid_at is not None:
        return [f"Only what was true at {show_time(moment.valid_at)}, {known}."]
    return [] if moment.known_at is None else [f"Only {known}."]


def _unknown(result: QueryResult) -> list[str]:
    """The words that no text has at all, or that none has at the moment of the query."""
    nowhere = [f"{term.word}{_nearest(term.nearest)}" for term in result.unknown if not term.is_past]
    past = [term.word for term in result.unknown if term.is_past]
    said = (("Nothing here has", nowhere), ("Only texts of other times have", past))
    return [f"{what}: {_some_words(words)}." for what, words in said if words]


def _some_words(words: list[str]) -> str:
    more = len(words) - _WORDS_SHOWN
    return ", ".join(words[:_WORDS_SHOWN]) + (f" and {many(more, 'more word')}" if more > 0 else "")


def _nearest(words: tuple[str, ...]) -> str:
    return f" (searched for instead: {', '.join(words)})" if words else ""


def _explain_empty(result: QueryResult) -> str:
    """The reason for an empty result: "nothing was found" differs from "nothing is known"."""
    query = result.query
    if query.offset and result.total:
        return f"There {'is' if result.total == 1 else 'are'} only {many(result.total, 'hit')}; the cursor is beyond."
    if not result.nodes and not result.filtered and not result.other_times:
        return "Nothing is stored yet: add_context adds what is worth remembering, ingest_path reads files."
    if not result.words and (query.kinds or query.path):
        return " ".join([f"No node is of {_filters(query)}.", *_times(query.moment)])
    if not result.words:
        return "The query has no words to look for: name what the text could say, in a few words."
    lines = ["No hits.", *_times(query.moment)]
    if result.filtered:
        wanted = _filters(query) or "what was asked for"
        has = "has" if result.filtered == 1 else "have"
        lines.append(f"{many(result.filtered, 'node')} {has} words of the query, but not with {wanted}.")
    else:
        lines += _unknown(result)
    if result.other_times:
        has = "has" if result.other_times == 1 else "have"
        fix = "give as_of, or get_context with history"
        lines.append(f"{many(result.other_times, 'text')} of other times {has} words of it: {fix}.")
    lines += [_CUT] if result.is_cut else []
    lines.append(f"{many(result.nodes, 'node')} searched. Other words for the same thing may find it.")
    return " ".join(lines)


def _filters(query: Query) -> str:
    kinds = [f"kind{'s' * (len(query.kinds) > 1)} {', '.join(query.kinds)}"] if query.kinds else []
    return " and ".join([*kinds, f"path {query.path}"] if query.path else kinds)


def _hit_line(hit: Hit) -> str:
    line = node_line(hit.node)
    return f"{line}, linked with {quoted(hit.linked_from)}" if hit.found_by == "link" else line


def node_line(node: Node) -> str:
    """A node's id, kind, name and path."""
    line = f"n{node.id} {to_word(node.kind)}: {quoted(node.name)}"
    if node.path and node.path != node.name:
        line += f" ({plain_or_quoted(node.path)})"
    return line


def quoted(name: str) -> str:
    """A name in quotes that it can't close: an agent or a file chose it, and no label names its source."""
    return f"“{cut_line(one_line(name).translate(_QUOTES), NAME_CHARACTERS)}”"


def plain_or_quoted(text: str) -> str:
    """A path or the name of a client: in quotes if it contains text that could imitate a part of the line."""
    return cut_line(text, NAME_CHARACTERS) if text == to_word(text) else quoted(text)


def one_line(text: str) -> str:
    """A stored text without line ends and invisible control characters."""
    return " ".join(_UNSEEN.sub(" ", text).split())


def source_label(observation: Observation, source: Source | None) -> str:
    """Where a text comes from, such as `[o3 from agent alice, 2026-11-18]`."""
    return f"[o{observation.id} from {source_name(source)}, {show_time(observation.valid_from)[:10]}]"


def source_name(source: Source | None) -> str:
    """A source in few words, such as `agent alice`."""
    if source is None:
        return "an unknown source"
    return (
        f"{source.type} {plain_or_quoted(name)}"
        if (name := source.uri or source.actor or source.client)
        else source.type
    )


def many(count: int, noun: str) -> str:
    """`1 node` or `2 nodes`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _contradiction(each: Contradiction, hit: Hit) -> str:
    observation, says = each.observation, ""
    if observation is not None:
        says = f": {source_label(observation, hit.sources.get(observation.source))} {one_line(observation.text)}"
    return f"contradicted by n{each.node} {quoted(each.name)}{says}"


def indented(text: str) -> str:
    """A line of the server that quotes a text: the lines of that text are indented further than the server's."""
    return "  " + "\n    ".join(text.splitlines())


def excerpt(text: str, terms: set[str], room: int) -> str:
    """A text cut to this many JSON characters after indentation: whole, or the passage with the most of the terms."""
    cost = json_length(indented(text)) - 2
    if cost <= room:
        return text
    start = _best_start(_pieces(text), terms, room // 2)
    before = text[:start]
    if len((before + "|").splitlines()) > len(before.splitlines()):  # a line begins there
        lines = len(before.splitlines())
        mark = f"… ({many(lines, 'line')} before)\n" if lines else ""
    else:
        mark = f"… ({start:,} characters before) "
    kept = text[start : start + max(0, room)]
    while kept and json_length(indented(mark + kept)) + 40 > room:
        over = json_length(indented(mark + kept)) + 40 - room
        kept = kept[: -max(1, over // 6)]
    left = len(text) - start - len(kept)
    return f"{mark}{kept.rstrip()}{f'… ({left:,} characters more)' if left else ''}" if kept.strip() else ""


def _pieces(text: str) -> Iterator[str]:
    """The lines of a text, long ones in pieces."""
    for line in text.splitlines(keepends=True):
        yield from [line] if len(line) <= PIECE else _PIECE.findall(line)


def _best_start(pieces: Iterable[str], terms: set[str], room: int) -> int:
    """The position in the text that most of the terms follow closely; 0 if its beginning has as many.

    If it fits, the position is some characters before the first of them.
    """
    found = [(piece, terms.intersection(to_terms(piece))) for piece in pieces]
    having, used, end = Counter[str](), 0, 0
    best, best_value = 0, (0, 0)
    for start, (piece, leaving) in enumerate(found):
        while end < len(found) and (end <= start or used + len(found[end][0]) + 4 <= room):
            used += len(found[end][0]) + 4
            having.update(found[end][1])
            end += 1
        if (value := (len(+having), having.total())) > best_value:
            best, best_value = start, value
        used -= len(piece) + 4
        having.subtract(leaving)
    if best:
        best = next(place for place in range(best, len(found)) if found[place][1]) - (room > 2 * PIECE)
    return sum(len(piece) for piece, _ in found[:best])


def show_time(at: Microseconds) -> str:
    """A time in UTC as ISO 8601, to the second."""
    seconds = min(max(at, _EARLIEST), _LATEST) // 1_000_000
    return f"{(_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()}Z"
