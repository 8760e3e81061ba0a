"""Finding nodes by words.

1. The query is words and phrases, of which no character is an operator; `kind:x` and `path:x` are filters. 2.
Candidates have any of the words (BM25), or are named exactly as the query. If there are hardly any, words that no text
has are replaced by known words with a similar spelling. 3. A walk from the best candidates (personalised PageRank)
ranks all, and adds what they are linked with, behind them. 4. Importance, pins and recent facts count a little.

Only what holds at the query's moment is read, so nothing superseded is shown as current. A query with filters and no
words lists the nodes that pass the filters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import chain
from typing import Final, Literal, final

from msgspec.structs import replace

from longshore.text_search.query_text import QueryText, parse, plain
from longshore.text_search.tokenizer import to_terms
from longshore.toolsets.context.candidates import (
    TERMS,
    KnownTerm,
    Totals,
    best_observations,
    count_at_other_times,
    look_up,
    nodes_with_all,
    read_totals,
    score,
    words_like,
)
from longshore.toolsets.context.contradictions import contradictions_of
from longshore.toolsets.context.database import Row, Transaction, batches, marks
from longshore.toolsets.context.ranking import (
    LIGHTER,
    RESTART,
    SEED_POWER,
    SEEDS,
    link_weights,
    page_rank,
    preference,
    seed_shares,
)
from longshore.toolsets.context.reading import known_nodes, named_nodes, observations_of
from longshore.toolsets.context.records import (
    Hit,
    Microseconds,
    Observation,
    Query,
    QueryResult,
    UnknownTerm,
)
from longshore.toolsets.context.rows import (
    holds,
    is_past,
    name_key,
    sources_by_id,
    was_there,
)
from longshore.toolsets.context.selecting import SELECTED, NodeFilter, check_kinds, where_chosen

POOL: Final = 100
"""Candidates that are ranked; with phrases, which are looked for in their texts, five times as many."""
PHRASE_NODES: Final = 5_000
"""Nodes with all words of a phrase whose texts are read. More take a second."""
FEW: Final = 3
"""With fewer candidates, unknown words are taken for typing errors."""
LINKS: Final = 50
"""Of one node, in each direction, that the walk follows."""
LINKED: Final = 50
"""Hits that only links lead to."""
EXPANDED: Final = 30
"""Neighbours of the best candidates whose own links the walk follows."""
BELOW: Final = 0.999
"""How good a hit that only links lead to can be, beside the one that leads to it and has the words: a file with many
matching parts is not to come before them."""
EXACT: Final = 2.0
"""How much better than the best other candidate a node is that is named as the query."""
NEAREST_WORDS: Final = 5
"""Unknown words for which known ones are looked for."""
SHOWN_OBSERVATIONS: Final = 20
"""Of one hit."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_FILTER: Final = re.compile(r'(?<!\S)(kind|path):(?:"([^"]+)"|(\S+))')


def search(transaction: Transaction, query: Query, now: Microseconds) -> QueryResult:
    """The hits of a query. Raises ToolError."""
    return _Search(transaction, with_filters(query), now).result()


def with_filters(query: Query) -> Query:
    """The query with the filters in its text as fields. Raises ToolError for too many."""
    kinds, path = list(query.kinds), query.path
    for name, quoted, word in _FILTER.findall(query.text):
        if name == "kind":
            kinds += [kind for kind in (quoted or word).split(",") if kind]
        else:
            path = quoted or word
    kinds = list(dict.fromkeys(kinds))
    check_kinds(kinds)
    text = _SURROGATE.sub(" ", _FILTER.sub(" ", query.text))
    path = path.removeprefix("./").rstrip("/")
    return replace(query, text=text, kinds=tuple(kinds), path=path)


@final
class _Search:
    """One query in one transaction."""

    def __init__(self, transaction: Transaction, query: Query, now: Microseconds) -> None:
        self._transaction, self._query = transaction, query
        self._moment, self._past = query.moment, is_past(query.moment)
        self._now = now
        self._valid_at = now if query.moment.valid_at is None else query.moment.valid_at
        self._known_at = now if query.moment.known_at is None else query.moment.known_at
        self._text: QueryText = parse(query.text)
        self._totals: Totals = read_totals(transaction)
        self._is_phrase_cut = False
        self._rows = dict[int, Row]()
        """The data of examined nodes for filters and preferences."""

    def result(self) -> QueryResult:
        if not self._text.words and (self._query.kinds or self._query.path):
            return self._listed()
        known = look_up(self._transaction, self._text.terms, past=self._past)
        terms = list(known.values())
        scores = self._score(terms)
        found = self._first(scores, self._pool)
        unknown = [word for word, own in self._text.words.items() if not any(term in known for term in own)]
        past = self._known_at_other_times(unknown)
        like = dict[str, list[KnownTerm]]()
        if len(found) < FEW:
            mistyped = [word for word in unknown if word not in past]
            like = {word: words_like(self._transaction, word) for word in mistyped[:NEAREST_WORDS]}
            if replacing := [term for near in like.values() for term in near]:
                terms += replacing
                scores = self._score(terms)
                found = self._first(scores, self._pool)
        missing = tuple[str, ...]()
        if self._text.phrases:
            found, missing = self._with_phrases(found, scores, known)
        exact = self._exact(found)
        ranked, linked = self._rank(found | exact)
        words = tuple(
            UnknownTerm(word=word, nearest=tuple(term.word for term in like.get(word, ())), is_past=word in past)
            for word in unknown
        )
        return QueryResult(
            query=self._query,
            hits=self._hits(ranked, linked, exact, terms),
            total=len(ranked),
            more=len(found) >= self._pool,
            unknown=words,
            missing_phrases=missing,
            phrase_nodes=PHRASE_NODES if self._is_phrase_cut else None,
            filtered=0 if ranked else len(scores),
            other_times=0 if ranked else self._count_at_other_times([*terms, *chain(*past.values())]),
            words=len(self._text.words),
            is_cut=self._text.is_cut or len(known) > TERMS,
            nodes=self._totals.nodes,
        )

    def _listed(self) -> QueryResult:
        """The nodes that pass the filters: pinned ones first, then the most recently changed."""
        where, values = where_chosen(NodeFilter(kinds=self._query.kinds, path=self._query.path))
        sql = f"SELECT id FROM node WHERE {where} ORDER BY pinned DESC, updated_at DESC, id DESC LIMIT ?"
        rows = self._transaction.rows(sql, (*values, SELECTED))
        listed = [(node, 0.0) for node in self._passing([row[0] for row in rows])]
        return QueryResult(
            query=self._query,
            hits=self._hits(listed, {}, {}, []),
            total=len(listed),
            more=len(rows) == SELECTED,
            filtered=0 if listed else self._totals.nodes,
            nodes=self._totals.nodes,
        )

    def _known_at_other_times(self, words: Sequence[str]) -> dict[str, list[KnownTerm]]:
        """The unknown words that texts of other times have, with their terms."""
        if not words or self._past:
            return {}
        terms = [term for word in words for term in self._text.words[word]]
        known = look_up(self._transaction, terms, past=True)
        found = {word: [known[term] for term in self._text.words[word] if term in known] for word in words}
        return {word: own for word, own in found.items() if own}

    def _count_at_other_times(self, terms: Sequence[KnownTerm]) -> int:
        return count_at_other_times(self._transaction, terms, self._moment, self._now)

    @property
    def _pool(self) -> int:
        wanted = max(POOL, self._query.offset + self._query.limit)
        return 5 * wanted if self._text.phrases else wanted

    # -- candidates

    def _score(self, terms: list[KnownTerm]) -> dict[int, float]:
        return score(self._transaction, terms, self._totals, self._moment, self._now)

    def _first(self, scores: Mapping[int, float], most: int) -> dict[int, float]:
        """The best nodes that pass the filters, in order."""
        found = dict[int, float]()
        left = dict(scores)
        count = most
        while left and len(found) < most:
            best = nsmallest(count, left.items(), key=lambda pair: (-pair[1], pair[0]))
            for node in self._passing([node for node, _ in best]):
                if len(found) < most:
                    found[node] = scores[node]
            for node, _ in best:
                del left[node]
            count *= 4  # a selective filter must also end in bounded time
        return found

    def _passing(self, nodes: list[int]) -> list[int]:
        """The nodes that exist at the moment and pass the filters, in the same order."""
        columns = (
            "id, kind, path, importance, pinned, updated_at, created_at, retracted_at, name, retracted_as,"
            " has_derived_name"
        )
        for batch in batches(node for node in nodes if node not in self._rows):
            rows = self._transaction.rows(f"SELECT {columns} FROM node WHERE id IN ({marks(batch)})", batch)
            self._rows.update((row[0], row) for row in rows)
        passing = [node for node in nodes if node in self._rows and self._passes(self._rows[node])]
        if derived := {node for node in passing if self._rows[node][10]}:
            # Such a node has only the name of its texts.
            saying = known_nodes(self._transaction, derived, self._moment, self._now, by_edges=False)
            passing = [node for node in passing if node not in derived or node in saying]
        if not self._past:
            return passing
        young = {node for node in passing if self._rows[node][6] > min(self._valid_at, self._known_at)}
        # Created later: it counts if an observation or edge of it was true then.
        seen = known_nodes(self._transaction, young, self._moment, self._now)
        return [node for node in passing if node not in young or node in seen]

    def _passes(self, row: Row) -> bool:
        kind, path = row[1], row[2]
        if not was_there(row[7], row[9], self._moment, self._now):
            return False
        if self._query.kinds and kind not in self._query.kinds:
            return False
        wanted = self._query.path
        return not wanted or path == wanted or path.startswith(wanted + "/")

    def _exact(self, found: Mapping[int, float]) -> dict[int, float]:
        """Nodes with the query as their name or path."""
        text = self._query.text.strip().strip('"')
        if not text or len(text) > 500:
            return {}
        where = "(name_key IN (?, ?) AND has_derived_name = 0) OR (path = ? AND path <> '' AND name = path)"
        sql = f"SELECT id FROM node WHERE {where} ORDER BY id LIMIT ?"
        rows = self._transaction.rows(sql, (name_key(text, ""), name_key(text, "/"), text, POOL))
        best = max(found.values(), default=1.0)
        return {node: EXACT * best + found.get(node, 0.0) for node in self._passing([row[0] for row in rows])}

    def _with_phrases(
        self, found: dict[int, float], scores: Mapping[int, float], known: Mapping[str, KnownTerm]
    ) -> tuple[dict[int, float], tuple[str, ...]]:
        """The hits that contain each phrase, or all of them for a phrase that none contains; and those phrases.

        A phrase is searched in the best hits, and in all nodes that have all of its words.
        """
        texts, missing = dict[int, str](), list[str]()
        has_all = len(found) < self._pool
        for phrase in self._text.phrases:
            candidates = found if has_all else found | self._with_words(phrase, scores, known)
            texts |= self._plain_texts(node for node in candidates if node not in texts)
            having = {node: value for node, value in candidates.items() if phrase in texts[node]}
            if having:
                found, has_all = having, True
            else:
                missing.append(phrase)
        return found, tuple(missing)

    def _with_words(self, phrase: str, scores: Mapping[int, float], known: Mapping[str, KnownTerm]) -> dict[int, float]:
        """The best nodes that have all words of a phrase."""
        terms = to_terms(phrase)
        if any(term not in known for term in terms):
            return {}
        having = nodes_with_all(self._transaction, [known[term] for term in terms], self._moment, self._now)
        self._is_phrase_cut |= len(having) > PHRASE_NODES
        return self._first({node: scores[node] for node in having if node in scores}, PHRASE_NODES)

    def _plain_texts(self, nodes: Iterable[int]) -> dict[int, str]:
        """The names and texts of nodes, normalised for the search of phrases."""
        listed = list(nodes)
        said = observations_of(self._transaction, listed, self._moment, self._now)
        return {
            node: plain(" \n ".join((self._name_in_search(node), *(o.text for o in said.get(node, ())))))
            for node in listed
        }

    def _name_in_search(self, node: int) -> str:
        return "" if self._rows[node][10] else self._rows[node][8]

    # -- ranking

    def _rank(self, found: dict[int, float]) -> tuple[list[tuple[int, float]], dict[int, int]]:
        """All hits in order with their ranks; and for each hit found only by links, the best node linked to it."""
        order = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
        shares = seed_shares(dict(order[:SEEDS]))
        weights = self._links_around(shares)
        ranks = page_rank(shares, weights) if weights else dict(shares)
        for node, value in order[SEEDS:]:
            # The share of the restart if the walk began at this node, too.
            best, best_value = order[0]
            share = RESTART * shares[best] * (value / best_value) ** SEED_POWER
            ranks[node] = max(ranks.get(node, 0.0), share)
        linked = self._first({node: rank for node, rank in ranks.items() if node not in found}, LINKED)
        leading = dict[int, int]()
        for node in linked:
            near = [other for other in weights[node] if other in found or other in linked]
            if near:
                leading[node] = min(near, key=lambda other: (other not in found, -ranks[other], other))
        hits = {node: self._preferred(node, rank) for node, rank in ranks.items() if node in found}
        highest = max(hits.values(), default=0.0)
        linked_hits = {
            node: min(self._preferred(node, ranks[node]), BELOW * hits.get(lead, highest))
            for node, lead in leading.items()
        }
        return sorted((hits | linked_hits).items(), key=lambda pair: (-pair[1], pair[0])), leading

    def _links_around(self, shares: Mapping[int, float]) -> dict[int, dict[int, float]]:
        """The links of the seeds, and of the neighbours with the highest rank."""
        edges = self._links(shares)
        if not edges:
            return {}
        weights = link_weights(edges.values())
        reached = dict[int, float]()
        for seed, share in shares.items():
            total = max(1.0, sum(weights.get(seed, {}).values()))
            for node, weight in weights.get(seed, {}).items():
                if node not in shares:
                    reached[node] = reached.get(node, 0.0) + share * weight / total
        further = nsmallest(EXPANDED, reached.items(), key=lambda pair: (-pair[1], pair[0]))
        return link_weights((edges | self._links(node for node, _ in further)).values())

    def _links(self, nodes: Iterable[int]) -> dict[int, tuple[int, int, float]]:
        """Edges from and to these nodes at the moment, the newest of each, with their weights for the walk."""
        condition, values = holds("edge", self._moment, self._now)
        found = dict[int, tuple[int, int, float]]()
        listed = sorted(nodes)
        for end in ("from_node", "to_node"):
            newest = f"{end} = node.id AND {condition} ORDER BY id DESC LIMIT {LINKS}"
            join = self._transaction.join_picked("edge", newest)
            for batch in batches(listed):
                sql = (
                    f"SELECT edge.id, edge.from_node, edge.to_node, edge.weight, edge.relation FROM node {join}"
                    f" WHERE node.id IN ({marks(batch)}) ORDER BY edge.id"
                )
                for id_, start, to, weight, relation in self._transaction.rows(sql, (*values, *batch)):
                    found[id_] = (start, to, weight * LIGHTER.get(relation, 1.0))
        return found

    def _preferred(self, node: int, rank: float) -> float:
        _, kind, _, importance, is_pinned, updated_at, *_ = self._rows[node]
        return rank * preference(kind, importance, bool(is_pinned), updated_at, self._valid_at)

    # -- what is shown

    def _hits(
        self,
        ranked: list[tuple[int, float]],
        linked: Mapping[int, int],
        exact: Mapping[int, float],
        terms: list[KnownTerm],
    ) -> tuple[Hit, ...]:
        page = ranked[self._query.offset : self._query.offset + self._query.limit]
        shown = [node for node, _ in page]
        leading = {linked[node] for node in shown if node in linked}
        nodes = named_nodes(self._transaction, leading.union(shown), self._moment, self._now)
        observations = self._best_first(shown, terms)
        said_by = {node: observations.get(node, []) for node in shown}
        contradictions = contradictions_of(self._transaction, said_by, self._moment, self._now)
        said = {
            node: [*observations.get(node, ()), *(c.observation for c in contradictions.get(node, ()) if c.observation)]
            for node in shown
        }
        sources = sources_by_id(self._transaction, {each.source for listed in said.values() for each in listed})
        return tuple(
            Hit(
                node=nodes[node],
                score=rank,
                found_by=self._found_by(node, linked, exact),
                linked_from=nodes[linked[node]].name if node in linked else "",
                observations=tuple(observations.get(node, ())),
                contradictions=tuple(contradictions.get(node, ())),
                sources={each.source: sources[each.source] for each in said[node]},
            )
            for node, rank in page
        )

    def _found_by(
        self, node: int, linked: Mapping[int, int], exact: Mapping[int, float]
    ) -> Literal["words", "name", "link", "filter"]:
        if not self._text.words:
            return "filter"
        return "name" if node in exact else "link" if node in linked else "words"

    def _best_first(self, nodes: list[int], terms: list[KnownTerm]) -> dict[int, list[Observation]]:
        """The observations of the displayed nodes, the best matches first, then the newest."""
        found = observations_of(self._transaction, nodes, self._moment, self._now)
        several = [node for node in nodes if len(found.get(node, ())) > 1]
        if several and terms:
            values = best_observations(self._transaction, several, terms, self._totals, past=self._past)
            for node in several:
                found[node].sort(key=lambda o: (-values.get(o.id, 0.0), -o.id))
        return {node: listed[:SHOWN_OBSERVATIONS] for node, listed in found.items()}
