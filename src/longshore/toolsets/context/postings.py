"""The index: the terms of each text. It is written in the transaction that changes the texts.

A term's postings are rows (node, observation, frequency, length); observation 0 is the node's name and path. Each text
stores its term ids, so its postings are found without an index of their own.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Container, Iterable
from typing import Any, Final, final

from longshore.text_search.tokenizer import VERSION, terms_of_word, to_all_terms, to_terms, to_words
from longshore.toolsets.context.database import Transaction, batches, marks
from longshore.toolsets.context.rows import text_hash

INDEX_VERSION: Final = 100 * VERSION + 2
"""Of the tokenizer, and of what is made here and of texts: their hashes are made again with the index, too."""
NAME: Final = 0
"""The observation of postings that are of a node's name."""


def terms_of_name(name: str, path: str) -> Counter[str]:
    """The terms of a node's name, and of its path's last parts: folders are too common to tell nodes apart."""
    return Counter(to_all_terms(name)) + Counter(set(to_all_terms(path.rpartition("/")[2])))


def terms_of_text(text: str) -> Counter[str]:
    return Counter(to_terms(text))


def words_by_term(texts: Iterable[str], posted: Container[str]) -> dict[str, str]:
    """One word for each term of these texts in the index, to display in its place."""
    found = dict[str, str]()
    for text in texts:
        for word in set(to_words(text)):
            terms = terms_of_word(word)
            for term in terms:
                # The parts of an identifier are displayed as stems; a word with only that term replaces them.
                if term in posted and (len(terms) == 1 or term not in found):
                    found[term] = word.lower() if len(terms) == 1 else term
    return found


@final
class Postings:
    """Changes of the index within one transaction.

    `flush` writes the counts; call it last. It deletes terms without postings: each stored term is a word of a current
    or closed text.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._ids = dict[str, int]()
        self._texts = Counter[int]()
        """By term: how many more current texts have it."""
        self._nodes = self._observations = self._length = 0
        self._unused = set[int]()
        """Terms that may have no postings: new ones, and those of removed postings."""

    def declare(self, words: dict[str, str]) -> None:
        """Store these terms, with the words to display for them."""
        known = self._look_up(words)
        missing = [(term, word) for term, word in words.items() if term not in known]
        if missing:
            sql = "INSERT INTO term (text, word, texts) VALUES (?, ?, 0) ON CONFLICT (text) DO NOTHING"
            self._transaction.run_many(sql, missing)
            known = self._look_up({term for term, _ in missing})
            self._unused.update(known[term] for term, _ in missing)

    def term_ids(self, terms: Counter[str]) -> bytes:
        """The ids of the terms of a text, as they are stored with it. All of them must be declared."""
        return array("I", [self._ids[term] for term in terms]).tobytes()

    def add(self, node: int, observation: int, terms: Counter[str]) -> None:
        """Add a text as current. All of its terms must be declared."""
        length = terms.total()
        ids = [self._ids[term] for term in terms]
        rows = [(self._ids[term], 1, node, observation, count, length) for term, count in terms.items()]
        rows.sort()  # by term: rows of a term are adjacent in the table
        columns = ("term", "is_current", "node", "observation", "frequency", "length")
        self._transaction.insert("posting", columns, rows)
        self._unused.difference_update(ids)
        self._count(ids, observation, length, 1)

    def close(self, node: int, observation: int, term_ids: bytes) -> None:
        """Mark a text as superseded or retracted: only questions about the past find it."""
        self._move(node, observation, term_ids, 1, 0)

    def reopen(self, node: int, observation: int, term_ids: bytes) -> None:
        """Mark a closed text as current again."""
        self._move(node, observation, term_ids, 0, 1)

    def remove(self, node: int, observation: int, term_ids: bytes, *, is_current: bool) -> None:
        """Delete a text's postings."""
        ids = array("I", term_ids).tolist()
        if is_current:
            self._count(ids, observation, self._length_of(ids, node, observation), -1)
        sql = "DELETE FROM posting WHERE term = ? AND is_current = ? AND node = ? AND observation = ?"
        self._transaction.run_many(sql, [(term, int(is_current), node, observation) for term in ids])
        self._unused.update(ids)

    def flush(self) -> None:
        """Write the counts of terms and texts."""
        changed = [(count, term) for term, count in sorted(self._texts.items()) if count]
        self._transaction.run_many("UPDATE term SET texts = texts + ? WHERE id = ?", changed)
        if self._nodes or self._observations or self._length:
            sql = "UPDATE totals SET nodes = nodes + ?, texts = texts + ?, terms = terms + ? WHERE id = 1"
            self._transaction.run(sql, (self._nodes, self._observations, self._length))
        for batch in batches(sorted(self._unused)):
            sql = "NOT EXISTS (SELECT 1 FROM posting WHERE posting.term = term.id)"
            self._transaction.run(f"DELETE FROM term WHERE id IN ({marks(batch)}) AND {sql}", batch)
        if self._unused:
            self._ids.clear()
            self._unused.clear()
        self._texts.clear()
        self._nodes = self._observations = self._length = 0

    def _look_up(self, terms: Iterable[str]) -> dict[str, int]:
        for batch in batches(term for term in terms if term not in self._ids):
            self._ids.update(self._transaction.rows(f"SELECT text, id FROM term WHERE text IN ({marks(batch)})", batch))
        return self._ids

    def _move(self, node: int, observation: int, term_ids: bytes, old: int, new: int) -> None:
        ids = array("I", term_ids).tolist()
        length = self._length_of(ids, node, observation)
        sql = "UPDATE posting SET is_current = ? WHERE term = ? AND is_current = ? AND node = ? AND observation = ?"
        self._transaction.run_many(sql, [(new, term, old, node, observation) for term in ids])
        self._count(ids, observation, length, new - old)

    def _length_of(self, ids: list[int], node: int, observation: int) -> int:
        if not ids:
            return 0
        sql = "SELECT length FROM posting WHERE term = ? AND is_current IN (0, 1) AND node = ? AND observation = ?"
        row = self._transaction.row(sql, (ids[0], node, observation))
        return int(row[0]) if row else 0

    def _count(self, ids: list[int], observation: int, length: int, sign: int) -> None:
        for term in ids:
            self._texts[term] += sign
        if observation == NAME:
            self._nodes += sign
        else:
            self._observations += sign
            self._length += sign * length


def needs_rebuild(transaction: Transaction) -> bool:
    """Whether the index was built by another version of the tokenizer or of this module."""
    row = transaction.row("SELECT tokenizer FROM totals WHERE id = 1")
    return row is None or row[0] != INDEX_VERSION


def rebuild(transaction: Transaction) -> int:
    """Rebuild the whole index from the texts; return their number."""
    for table in ("posting", "term"):
        transaction.run(f"DELETE FROM {table}")
    transaction.run("UPDATE totals SET tokenizer = ?, nodes = 0, texts = 0, terms = 0 WHERE id = 1", (INDEX_VERSION,))
    postings, done = Postings(transaction), 0
    name = "CASE WHEN has_derived_name = 1 THEN '' ELSE name END"  # its text has these words
    for table, columns in (("node", f"id, 0, {name}, path"), ("observation", "node, id, text, ''")):
        ended = "retracted_at" if table == "node" else "superseded_at"
        last = 0
        while rows := transaction.rows(
            f"SELECT {columns}, {ended} IS NULL FROM {table} WHERE id > ? ORDER BY id LIMIT 500", (last,)
        ):
            last = rows[-1][0 if table == "node" else 1]
            _rebuild_some(transaction, postings, rows)
            done += len(rows)
    postings.flush()
    return done


def _rebuild_some(transaction: Transaction, postings: Postings, rows: list[tuple[Any, ...]]) -> None:
    counted = [terms_of_text(row[2]) if row[1] else terms_of_name(row[2], row[3]) for row in rows]
    postings.declare(words_by_term((text for row in rows for text in row[2:4]), set[str]().union(*counted)))
    for (node, observation, text, _, is_current), terms in zip(rows, counted, strict=True):
        ids = postings.term_ids(terms)
        postings.add(node, observation, terms)
        if not is_current:
            postings.close(node, observation, ids)
        if observation:
            sql = "UPDATE observation SET term_ids = ?, text_hash = ? WHERE id = ?"
            transaction.run(sql, (ids, text_hash(text), observation))
        else:
            transaction.run("UPDATE node SET term_ids = ? WHERE id = ?", (ids, node))
