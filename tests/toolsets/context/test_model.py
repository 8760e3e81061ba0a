"""The store answers each question about each moment as a simple model does, which copies all beliefs at each change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from counts import count
from longshore.errors import ToolError
from longshore.toolsets.context.records import (
    Details,
    Edge,
    FileState,
    Moment,
    NewItem,
    NewLink,
    NewSource,
    Observation,
    Query,
    Targets,
)
from services import PostgresServer

from .graphs import ME, Clock, fact, opened, postgres_place

NAMES = ("first", "second", "third")
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")
OFFSETS = st.none() | st.integers(-30, 30)
"""When something begins or ends, relative to now."""


Link = tuple[str, str]
"""The names at both ends of an edge; all edges of the model have one relation."""
LINKS: tuple[Link, ...] = (("first", "second"), ("second", "first"), ("second", "third"))
RELATION = "knows"
FILE = "notes.md"
PARTS = ("introduction", "appendix")
"""Names of what is in the file, of which only the file says something."""
OF_FILE = NewSource(type="file", uri=FILE)


@dataclass
class Belief:
    """That a text, or an edge, is true from one time to another. An open one is a current row of the store."""

    text: str
    begins: int
    ends: int | None
    is_open: bool = True
    claims: frozenset[int] = frozenset()
    """Numbers of what somebody has said, of which marks say what contradicts what."""

    def holds(self, at: int) -> bool:
        return self.begins <= at and (self.ends is None or at < self.ends)

    def overlaps(self, other: Belief) -> bool:
        return (other.ends is None or self.begins < other.ends) and (self.ends is None or other.begins < self.ends)


def bring_back(beliefs: list[Belief], old: Belief) -> None:
    """Believe again what was retracted, for as long as that or what was said since then says."""
    same = [b for b in beliefs if b.is_open and b.text == old.text and b.overlaps(old)]
    ends = [b.ends for b in (old, *same)]
    begins = min(b.begins for b in (old, *same))
    last = None if None in ends else max(end for end in ends if end is not None)
    if not any((b.begins, b.ends) == (begins, last) for b in same):
        beliefs[:] = [b for b in beliefs if not any(b is each for each in same)]
        claims = frozenset().union(*(b.claims for b in (old, *same)))
        beliefs.append(Belief(old.text, begins, last, claims=claims))


class Machine(RuleBasedStateMachine):
    """Names and parts are nodes.

    `beliefs` has, for each time at which something changed, what was believed from then on.
    """

    def __init__(self, new_place: Callable[[], AbstractContextManager[str]]) -> None:
        super().__init__()
        self.clock = Clock()
        self.context = ExitStack()
        place = self.context.enter_context(new_place())
        self.store = self.context.enter_context(opened(place, clock=self.clock))
        self.nodes: dict[str, int] = {}
        self.parts: dict[str, int] = {}
        nothing: dict[str | Link, list[Belief]] = {each: [] for each in (*NAMES, *PARTS, *LINKS)}
        self.beliefs: list[tuple[int, dict[str | Link, list[Belief]]]] = [(0, nothing)]
        self.gone: set[str] = set()
        """Nodes that are retracted."""
        self.waiting: list[tuple[str | Link, Belief]] = []
        """What was retracted together with a node, and comes back with it."""
        self.claims = 0
        self.contradicting: set[frozenset[int]] = set()

    def teardown(self) -> None:
        assert self.store.check() == []
        self.context.close()

    # -- what the model does

    def change(self, of: str | Link) -> list[Belief]:
        """A new copy of all beliefs from now on; those of one node or link, to change."""
        self.beliefs.append((self.clock.now, deepcopy(self.beliefs[-1][1])))
        return self.beliefs[-1][1][of]

    def believed(self, of: str | Link, valid_at: int, known_at: int) -> list[str]:
        state = next(state for at, state in reversed(self.beliefs) if at <= known_at)
        return sorted(belief.text for belief in state[of] if belief.holds(valid_at))

    def open_ones(self, of: str | Link) -> list[Belief]:
        return [belief for belief in self.beliefs[-1][1][of] if belief.is_open]

    def said(self) -> frozenset[int]:
        self.claims += 1
        return frozenset({self.claims})

    def added(self, name: str, node: int) -> None:
        """A node is there, and new if it was not. What was retracted with it stays retracted."""
        self.nodes[name] = node
        if name in self.gone:
            self.gone.remove(name)
            self.waiting = [(of, b) for of, b in self.waiting if name not in (of if isinstance(of, tuple) else (of,))]

    def draw(self, data: st.DataObject, among: Iterable[str | Link]) -> tuple[str | Link, Belief] | None:
        choices = [(of, b) for of in among for b in self.open_ones(of)]
        return data.draw(st.sampled_from(choices)) if choices else None

    # -- what both do

    @rule(name=st.sampled_from(NAMES), text=st.sampled_from(WORDS))
    def add(self, name: str, text: str) -> None:
        [added] = self.store.add([fact(name, text)], ME)
        self.added(name, added.node)
        self.believe(name, text, self.clock.now, None)

    @rule(
        name=st.sampled_from(NAMES), text=st.sampled_from(WORDS), begins=st.integers(-30, 30), length=st.integers(1, 40)
    )
    def add_for_some_time(self, name: str, text: str, begins: int, length: int) -> None:
        if any(b.text == text for b in self.open_ones(name)):
            return  # what then happens to the known one has tests of its own
        begins += self.clock.now
        [added] = self.store.add([fact(name, text, valid_from=begins, valid_to=begins + length)], ME)
        self.added(name, added.node)
        self.change(name).append(Belief(text, begins, begins + length, claims=self.said()))

    @rule(link=st.sampled_from(LINKS))
    def link(self, link: Link) -> None:
        start, to = link
        if to in self.nodes and to not in self.gone:
            [added] = self.store.add([fact(start, links=(NewLink(to=f"n{self.nodes[to]}", relation=RELATION),))], ME)
            self.added(start, added.node)
            self.believe(link, RELATION, self.clock.now, None)

    @rule(link=st.sampled_from(LINKS), begins=st.integers(-30, 30), length=st.integers(1, 40))
    def link_for_some_time(self, link: Link, begins: int, length: int) -> None:
        start, to = link
        begins += self.clock.now
        times = Belief(RELATION, begins, begins + length)
        if to in self.nodes and to not in self.gone and not any(b.overlaps(times) for b in self.open_ones(link)):
            new = NewLink(to=f"n{self.nodes[to]}", relation=RELATION)
            [added] = self.store.add([fact(start, links=(new,), valid_from=begins, valid_to=begins + length)], ME)
            self.added(start, added.node)
            self.change(link).append(times)

    def believe(self, of: str | Link, text: str, begins: int, ends: int | None) -> None:
        beliefs = self.change(of)
        if not any(b.is_open and b.text == text and b.holds(begins) for b in beliefs):
            beliefs.append(Belief(text, begins, ends, claims=self.said()))

    @rule(data=st.data(), text=st.sampled_from(WORDS), offset=OFFSETS, is_correction=st.booleans())
    def supersede(self, data: st.DataObject, text: str, offset: int | None, is_correction: bool) -> None:
        drawn = self.draw(data, self.nodes)
        if drawn is None or text == drawn[1].text:
            return
        name, chosen = drawn
        old = self.row_of(name, chosen)
        valid_from = None if offset is None else self.clock.now + offset
        starts = chosen.begins if is_correction else self.clock.now + 1
        begins = starts if valid_from is None else valid_from
        try:
            self.store.supersede(old, text, ME, valid_from=valid_from, is_correction=is_correction)
        except ToolError:
            assert not is_correction and begins <= chosen.begins, "what has not begun is only corrected"
            return
        assert is_correction or begins > chosen.begins
        beliefs, now = self.change(name), self.clock.now
        belief = next(b for b in beliefs if b == chosen)
        known = any(b.is_open and b.text == text and b.holds(begins) for b in beliefs)
        if is_correction:
            beliefs.remove(belief)
        else:
            belief.ends = begins if belief.ends is None else min(belief.ends, begins)
            belief.is_open = begins > now
        if not known:
            ends = chosen.ends
            beliefs.append(
                Belief(text, begins, ends if ends is not None and ends > begins else None, True, self.said())
            )

    @rule(data=st.data(), offset=OFFSETS)
    def end(self, data: st.DataObject, offset: int | None) -> None:
        drawn = self.draw(data, [*self.nodes, *LINKS])
        if drawn is None:
            return
        of, chosen = drawn
        row = self.row_of(of, chosen)
        finish = self.store.end_edge if isinstance(of, tuple) else self.store.end_observation
        valid_to = None if offset is None else self.clock.now + offset
        ends = self.clock.now + 1 if valid_to is None else valid_to
        try:
            finish(row, ME, valid_to=valid_to)
        except ToolError:
            assert ends <= chosen.begins, "what has begun can end"
            return
        assert ends > chosen.begins or ends == chosen.ends
        belief = next(b for b in self.change(of) if b == chosen)
        extends = belief.ends is not None and ends >= belief.ends
        belief.ends, belief.is_open = ends, ends > self.clock.now or extends

    @rule(data=st.data())
    def retract_one(self, data: st.DataObject) -> None:
        if drawn := self.draw(data, [*self.nodes, *LINKS]):
            of, chosen = drawn
            row = (self.row_of(of, chosen),)
            targets = Targets(edges=row) if isinstance(of, tuple) else Targets(observations=row)
            self.store.retract(targets, ME)
            self.change(of).remove(chosen)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def retract_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self.store.retract(Targets(nodes=(self.nodes[name],)), ME)
        if name not in self.gone:
            self.gone.add(name)
            self.change(name)
            for of, beliefs in self.beliefs[-1][1].items():
                if of == name or (isinstance(of, tuple) and name in of):
                    self.waiting += [(of, b) for b in beliefs if b.is_open]
                    beliefs[:] = [b for b in beliefs if not b.is_open]

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def restore_nodes(self, data: st.DataObject) -> None:
        names = data.draw(st.lists(st.sampled_from(sorted(self.gone)), min_size=1, unique=True))
        self.store.restore(Targets(nodes=tuple(self.nodes[name] for name in names)), ME)
        self.gone -= set(names)
        self.change(names[0])
        state = self.beliefs[-1][1]
        for of, belief in list(self.waiting):
            ends = of if isinstance(of, tuple) else (of,)
            if set(ends) & set(names) and not set(ends) & self.gone:
                self.waiting.remove((of, belief))
                bring_back(state[of], belief)

    @rule(data=st.data())
    def contradict(self, data: st.DataObject) -> None:
        one, other = self.draw(data, self.nodes), self.draw(data, self.nodes)
        if one and other and one != other:
            self.store.mark_contradiction(self.row_of(*one), self.row_of(*other), ME)
            for claim in one[1].claims:
                self.contradicting |= {frozenset({claim, another}) for another in other[1].claims}

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def purge_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self.store.purge(Targets(nodes=(self.nodes.pop(name),)), ME)
        self.gone.discard(name)
        self.waiting = [(of, b) for of, b in self.waiting if of != name and name not in of]
        for _, state in self.beliefs:
            for of in state:
                if of == name or (isinstance(of, tuple) and name in of):
                    state[of] = []

    @rule(said=st.dictionaries(st.sampled_from(PARTS), st.sampled_from(WORDS)))
    def save_file(self, said: dict[str, str]) -> None:
        """The file says these texts, and nothing else; without any it is deleted."""
        if said:
            items = [NewItem(kind="section", name=part, text=text, path=FILE) for part, text in said.items()]
            state = FileState(path=FILE, size=1, modified_ns=1, hash="", parser="")
            self.parts |= {added.name: added.node for added in self.store.replace_file(state, items, OF_FILE)}
        else:
            self.store.forget_file(FILE, OF_FILE)
        for part in PARTS:
            beliefs = self.change(part)
            for belief in [b for b in beliefs if b.is_open and b.text != said.get(part)]:
                belief.ends, belief.is_open = self.clock.now, False
            if part in said and not any(b.is_open for b in beliefs):
                beliefs.append(Belief(said[part], self.clock.now, None))

    @rule()
    def add_nothing(self) -> None:
        try:
            self.store.add([fact("", "")], ME)
        except ToolError:
            return
        raise AssertionError("an item without a name or text was added")

    def row_of(self, of: str | Link, belief: Belief) -> int:
        found = self.store.details(self.nodes[of[0] if isinstance(of, tuple) else of], with_history=True)
        assert found is not None
        rows: list[Observation | Edge] = [o for o in found.observations if o.text == belief.text]
        if isinstance(of, tuple):
            ends = (self.nodes[of[0]], self.nodes[of[1]])
            rows = [edge for edge in found.edges if (edge.from_node, edge.to_node) == ends]
        [row] = [r.id for r in rows if r.is_current and (r.valid_from, r.valid_to) == (belief.begins, belief.ends)]
        return row

    # -- what must hold

    @invariant()
    def each_moment_is_exact(self) -> None:
        now = self.clock.now
        for name, node in (self.nodes | self.parts).items():
            current = sorted(o.text for o in self.store.observations(node))
            assert current == self.believed(name, self.clock.now, self.clock.now), name
            for valid_at in (now - 60, now - 20, now - 3, now, now + 15):
                for known_at in (now - 40, now - 2, now):
                    moment = Moment(valid_at=valid_at, known_at=known_at)
                    found = self.store.details(node, moment)
                    assert found is not None
                    assert sorted(o.text for o in found.observations) == self.believed(name, valid_at, known_at)
                    self.links_are_exact(name, found, valid_at, known_at)

    def links_are_exact(self, name: str, found: Details, valid_at: int, known_at: int) -> None:
        for start, to in LINKS:
            if start == name and to in self.nodes:
                ends = (self.nodes[start], self.nodes[to])
                edges = [edge.relation for edge in found.edges if (edge.from_node, edge.to_node) == ends]
                assert edges == self.believed((start, to), valid_at, known_at), (start, to)

    @invariant()
    def contradictions_are_shown(self) -> None:
        hits = self.store.query(Query(text=" ".join(WORDS))).hits
        state, now = self.beliefs[-1][1], self.clock.now
        shown = {name: [b for b in state[name] if b.holds(now)] for name in (*self.nodes, *self.parts)}
        for hit in hits:
            expected = [
                b.text
                for b in (b for beliefs in shown.values() for b in beliefs)
                if any(
                    frozenset({claim, other}) in self.contradicting
                    for own in shown[hit.node.name]
                    for claim in own.claims
                    for other in b.claims
                    if own is not b
                )
            ]
            assert sorted(c.observation.text for c in hit.contradictions if c.observation) == sorted(expected)

    @invariant()
    def words_find_what_is_true_now(self) -> None:
        for word in WORDS:
            hits = self.store.query(Query(text=word)).hits
            now = self.clock.now
            having = {name for name in self.nodes | self.parts if word in self.believed(name, now, now)}
            found = {hit.node.name for hit in hits if hit.found_by != "link"}
            assert found == having, word

    @invariant()
    def words_find_what_was_true_then(self) -> None:
        """Also what has left its file; of a retracted node nothing is found, as known since then."""
        before = sorted({at for at, _ in self.beliefs})[-2:][0]
        for at, known_at in ((before, None), (before, before)):
            for word in WORDS:
                hits = self.store.query(Query(text=word, moment=Moment(valid_at=at, known_at=known_at))).hits
                found = {hit.node.name for hit in hits if hit.found_by != "link"}
                known = self.clock.now if known_at is None else known_at
                having = {name for name in self.nodes | self.parts if word in self.believed(name, at, known)}
                assert having - self.gone <= found <= having, (word, at, known_at)


@contextmanager
def file_place() -> Iterator[str]:
    with TemporaryDirectory() as folder:
        yield str(Path(folder, "context.db"))


def test_each_moment_is_answered_as_the_model_does() -> None:
    wanted = settings(max_examples=count(25), stateful_step_count=25, deadline=None)
    run_state_machine_as_test(lambda: Machine(file_place), settings=wanted)


def test_each_moment_is_answered_by_postgres_as_the_model_does(postgres: PostgresServer) -> None:
    wanted = settings(max_examples=count(5), stateful_step_count=15, deadline=None)
    run_state_machine_as_test(lambda: Machine(lambda: postgres_place(postgres)), settings=wanted)
