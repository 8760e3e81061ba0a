"""The in-flight table, walked by hypothesis: one answer for each request begun, none after a cancel, empty at rest."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from counts import count
from longshore.errors import ProtocolError
from longshore.protocol.peer import Peer
from longshore.protocol.revisions import REVISIONS
from longshore.protocol.session import Session

IDS = st.sampled_from([1, 7, "7", "", "a", 0, -1, 2**63 - 1])


class Row:
    """One request: what became of it."""

    def __init__(self, id: int | str) -> None:
        self.id = id
        self.answers = 0
        self.cancelled = False


class InFlight(RuleBasedStateMachine):
    begun = Bundle("begun")

    def __init__(self) -> None:
        super().__init__()
        self.session: Session[Row] = Session()
        self.open: dict[tuple[type, int | str], Row] = {}
        self.rows: list[Row] = []

    @rule(target=begun, id=IDS)
    def begin(self, id: int | str) -> Row:
        row = Row(id)
        if (type(id), id) in self.open:
            with pytest.raises(ProtocolError, match="in flight"):
                self.session.begin(id, row)
            row.cancelled = True  # refused: it may not be answered
        else:
            self.session.begin(id, row)
            self.open[type(id), id] = row
            self.rows.append(row)
        return row

    @rule(row=begun)
    def answer(self, row: Row) -> None:
        """A finished call tries to answer, however late and however often."""
        due = self.open.get((type(row.id), row.id)) is row
        assert self.session.end(row.id, row) == due
        if due:
            del self.open[type(row.id), row.id]
            row.answers += 1
        assert row.answers <= 1
        assert not (row.answers and row.cancelled)

    @rule(id=IDS)
    def cancel(self, id: int | str) -> None:
        row = self.session.cancel(id)
        assert row is self.open.pop((type(id), id), None)
        if row is not None:
            assert not row.answers
            row.cancelled = True

    @rule(row=consumes(begun))
    def forget(self, row: Row) -> None:
        """A handler that never comes back."""

    @invariant()
    def the_table_holds_what_is_open(self) -> None:
        assert list(self.session.rows.values()) == list(self.open.values())

    def teardown(self) -> None:
        for row in list(self.open.values()):
            self.answer(row)
        assert not self.session.rows
        assert all(row.answers + row.cancelled == 1 for row in self.rows)


TestInFlight = InFlight.TestCase
TestInFlight.settings = settings(max_examples=count(100), stateful_step_count=40, deadline=None)


def test_a_number_and_the_same_number_as_text_are_two_requests() -> None:
    session = Session[str]()
    session.begin(7, "number")
    session.begin("7", "text")
    assert session.cancel("7") == "text"
    assert session.end(7, "number")


def test_an_id_may_be_used_again_once_its_request_has_ended() -> None:
    session, first, second = Session[Row](), Row(1), Row(1)
    session.begin(1, first)
    with pytest.raises(ProtocolError, match="in flight"):
        session.begin(1, second)
    assert session.end(1, first)
    session.begin(1, second)
    assert not session.end(1, first)
    assert session.end(1, second)


def test_an_answer_of_the_client_is_taken_once() -> None:
    session = Session[str]()
    one, two = session.ask("a"), session.ask("b")
    assert one != two
    assert session.answered(one) == "a"
    assert session.answered(one) is None
    assert session.answered("longshore-99") is None
    assert session.answered(two) == "b"
    assert not session.asked


def test_a_second_handshake_replaces_the_first_and_drops_its_subscriptions() -> None:
    session = Session[str]()
    session.open(Peer(REVISIONS["2025-03-26"], {}, {}))
    session.initialized = True
    session.subscriptions.add("a://b")
    session.open(Peer(REVISIONS["2025-11-25"], {}, {}))
    assert session.require_peer("x").revision.name == "2025-11-25"
    assert not session.initialized and not session.subscriptions
