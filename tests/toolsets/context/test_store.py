"""Adding, superseding, retracting, restoring and purging; files; limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshore.errors import StoreError, ToolError
from longshore.toolsets.context import forgetting
from longshore.toolsets.context.additions import ITEMS
from longshore.toolsets.context.checks import ATTRIBUTES_CHARACTERS, LINKS, NAME_CHARACTERS, TEXT_CHARACTERS
from longshore.toolsets.context.derived_names import NO_TEXT
from longshore.toolsets.context.place import is_address
from longshore.toolsets.context.postgres import PostgresDatabase
from longshore.toolsets.context.records import (
    FileState,
    ForgetMode,
    Moment,
    NewItem,
    NewLink,
    NewSource,
    NodeChange,
    Query,
    Targets,
)
from longshore.toolsets.context.schema import MIGRATIONS
from longshore.toolsets.context.selecting import NodeFilter
from longshore.toolsets.context.sqlite_file import SqliteFile
from longshore.toolsets.context.store import DAY, Store, StoreLimits

from .graphs import ME, Clock, fact, names, opened, texts


def outcomes(store: Store, *items: NewItem) -> list[str]:
    return [added.outcome for added in store.add(items, ME)]


# Adding


def test_the_same_again_changes_nothing(store: Store) -> None:
    item = fact("Database", "We use PostgreSQL.", links=(NewLink(to="Billing", relation="used_by"),))
    assert outcomes(store, item) == ["created"]
    before = store.status()
    assert outcomes(store, item) == ["unchanged"]
    after = store.status()
    assert (after.nodes, after.observations, after.edges, after.events) == (2, 1, 1, before.events)


def test_names_that_differ_in_spaces_and_case_are_merged(store: Store) -> None:
    assert outcomes(store, fact("Key rotation", "daily at noon")) == ["created"]
    assert outcomes(store, fact(" KEY   Rotation ", " daily at noon\n")) == ["unchanged"]
    assert outcomes(store, fact("key rotation", "by cron")) == ["merged"]
    assert texts(store, 1) == ["by cron", "daily at noon"]


DIFFERENT = [
    ("if a:\n    b()\n    c()", "if a:\n    b()\nc()"),
    ("a:\n  b: 1\n  c: 2", "a:\n  b: 1\nc: 2"),
    ("The area is 10² m", "The area is 102 m"),
    ("daily  at\nnoon", "daily at noon"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_texts_that_differ_in_any_character_are_different(store: Store, one: str, other: str) -> None:
    store.add([fact("A", one), fact("B", one)], ME)
    assert outcomes(store, fact("A", other)) == ["merged"]
    assert store.supersede(2, other, ME) != 2
    assert (texts(store, 1), texts(store, 2)) == (sorted((one, other)), [other])


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_a_file_in_which_only_spaces_have_changed_is_shown_as_it_is(store: Store, one: str, other: str) -> None:
    store.replace_file(state(), [symbol("f", one)], FILE)
    store.replace_file(state(hash_="2"), [symbol("f", other)], FILE)
    assert texts(store, 1) == [other]


def test_line_ends_and_composed_characters_make_no_other_text(store: Store) -> None:
    assert outcomes(store, fact("A", "caf\u00e9\nbar")) == ["created"]
    assert outcomes(store, fact("A", "cafe\u0301\r\nbar")) == ["unchanged"]


def test_symbols_of_a_file_are_told_apart_by_case(store: Store) -> None:
    items = [NewItem(kind="symbol", name=name, path="a.py", text=f"{name} x") for name in ("Parse", "parse")]
    assert outcomes(store, *items) == ["created", "created"]


def test_a_merge_adds_attributes_and_keeps_the_rest(store: Store) -> None:
    store.add([fact("a", "x", attributes={"team": "blue"}, importance=0.9)], ME)
    assert outcomes(store, fact("a", attributes={"since": 2})) == ["merged"]
    details = store.details(1)
    assert details is not None
    assert details.node.attributes == {"team": "blue", "since": 2}
    assert details.node.importance == 0.9


def test_an_item_without_a_name_is_named_by_its_first_line(store: Store) -> None:
    [added] = store.add([NewItem(text="Deploys need two approvals.\nSince May.")], ME)
    assert (added.kind, added.name) == ("note", "Deploys need two approvals.")


def test_names_that_older_stores_have_made_of_texts_are_found(place: str) -> None:
    database = (PostgresDatabase if is_address(place) else SqliteFile)(place, migrations=MIGRATIONS[:1])
    rows = [("It is 80.", "It is 80."), ("First", "First\nof two"), ("l" * 80, "l" * 100), ("Port", "Port 80 is open.")]
    with database.writing() as transaction:
        transaction.run(
            "INSERT INTO source (type, uri, session, client, actor, at) VALUES ('agent', '', '', '', '', 1)"
        )
        for id_, (name, text) in enumerate(rows, 1):
            sql = (
                "INSERT INTO node (kind, name, name_key, path, importance, pinned, attributes, created_at, updated_at,"
                " term_ids) VALUES ('note', ?, ?, '', 0.5, 0, '{}', 1, 1, ?)"
            )
            transaction.run(sql, (name, name.casefold(), b""))
            sql = (
                "INSERT INTO observation (node, text, text_hash, source, confidence, term_ids, valid_from, recorded_at)"
                " VALUES (?, ?, ?, 1, 1.0, ?, 1, 1)"
            )
            transaction.run(sql, (id_, text, text, b""))
    database.close()
    with opened(place) as store:
        assert [store.node(id_).has_derived_name for id_ in (1, 2, 3, 4)] == [True, True, True, False]
        assert store.check() == []


def test_links_name_items_of_the_same_call_ids_or_new_concepts(store: Store) -> None:
    first, second = store.add(
        [
            fact("a", "x", links=(NewLink(to="b", relation="depends_on"), NewLink(to="Kafka", kind="service"))),
            fact("b", "y"),
        ],
        ME,
    )
    [third] = store.add([fact("c", links=(NewLink(to=f"n{first.node}"),))], ME)
    details = store.details(first.node)
    assert details is not None
    ends = {(edge.relation, edge.from_node, edge.to_node) for edge in details.edges}
    [kafka] = first.linked
    expected = {("depends_on", first.node, second.node), ("related_to", first.node, kafka)}
    assert ends == expected | {("related_to", third.node, first.node)}
    assert details.neighbours[kafka].kind == "service"


def test_a_link_to_one_of_several_names_says_which_there_are(store: Store) -> None:
    store.add([fact("parse"), NewItem(kind="symbol", name="parse", path="a.py")], ME)
    with pytest.raises(ToolError, match=r"2 nodes are named 'parse': n1 \(fact\), n2 \(symbol in a.py\); link to one"):
        store.add([fact("x", links=(NewLink(to="parse"),))], ME)
    assert store.find("x") == []  # all or nothing
    [added] = store.add([fact("x", links=(NewLink(to="parse", kind="symbol"),))], ME)
    assert added.linked == ()


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (fact("", "  "), "neither a name nor a text"),
        (fact("a", "x" * (TEXT_CHARACTERS + 1)), "its text has 100,001 characters"),
        (fact("a" * (NAME_CHARACTERS + 1)), "its name has 501"),
        (fact("a", "x", valid_from=5, valid_to=5), "not after valid_from"),
        (fact("a", links=(NewLink(to="n99"),)), "no node n99"),
        (fact("a", links=(NewLink(to=" "),)), "needs a node's id or name"),
        (fact("a", links=(NewLink(to="b" * (NAME_CHARACTERS + 1)),)), "link's `to` has 501 characters"),
        (fact("a", links=(NewLink(to="b", relation="r" * 51),)), "link's relation has 51 characters"),
        (fact("a", links=(NewLink(to="b", weight=0.0),)), "link's weight is 0.0"),
        (fact("a", links=(NewLink(to="b", weight=float("nan")),)), "link's weight is nan"),
        (fact("a", links=(NewLink(to="b"),) * (LINKS + 1)), "links are 1,001"),
        (fact("a", importance=1.5), "importance is 1.5; it is a number from 0 to 1"),
        (fact("a", confidence=-0.1), "confidence is -0.1"),
        (fact("a", attributes={"x": "y" * ATTRIBUTES_CHARACTERS}), "attributes has 10,008 characters"),
        (fact("a", "x", valid_from=2**70), "larger than any id or time"),
        (fact("a", "x", contradicts=99), "no observation o99"),
    ],
)
def test_what_can_not_be_stored_is_refused_whole(store: Store, item: NewItem, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        store.add([fact("good", "text"), item], ME)
    assert store.status().nodes == 0


def test_limits_are_inclusive(store: Store) -> None:
    assert outcomes(store, fact("a" * NAME_CHARACTERS, "x" * TEXT_CHARACTERS)) == ["created"]
    assert len(store.add([fact(f"item {n}") for n in range(ITEMS)], ME)) == ITEMS
    with pytest.raises(ToolError, match="1,001 items"):
        store.add([fact(f"item {n}") for n in range(ITEMS + 1)], ME)


def test_any_text_is_stored_as_it_is_but_for_what_no_text_has(store: Store) -> None:
    odd = "quote ' \" ; DROP TABLE node; -- \u202e 🚀 \x01 tab\t"
    [added] = store.add([fact("odd\x00\nname", odd + "\ud800\x00end")], ME)
    assert texts(store, added.node) == [odd + "\ufffd\ufffdend"]
    assert store.find("odd\ufffd name")[0].id == added.node


def test_half_a_character_where_none_can_be_replaced_is_refused(store: Store) -> None:
    with pytest.raises(ToolError, match="half a character"):
        store.add([fact("a", "x", path="\udcff.py")], ME)


# The times at which something is true


def test_a_superseded_fact_was_true_until_then(store: Store, clock: Clock) -> None:
    [added] = store.add([fact("owner", "Ann owns it.")], ME)
    assert added.observation is not None
    then = clock.now
    second = store.supersede(added.observation, "Ben owns it.", ME, reason="handed over")
    assert texts(store, added.node) == ["Ben owns it."]
    assert texts(store, added.node, valid_at=then) == ["Ann owns it."]
    assert texts(store, added.node, valid_at=then - 1) == []
    with pytest.raises(ToolError, match=f"o1 is not current: o{second} has superseded it"):
        store.supersede(added.observation, "Cy owns it.", ME)


def test_a_correction_was_never_true_but_was_believed(store: Store, clock: Clock) -> None:
    [added] = store.add([fact("port", "It listens on 80.")], ME)
    then = clock.now
    store.supersede(1, "It listens on 8080.", ME, is_correction=True)
    assert texts(store, added.node, valid_at=then) == ["It listens on 8080."]
    assert texts(store, added.node, valid_at=then, known_at=then) == ["It listens on 80."]


def test_a_change_to_come_leaves_what_is_true_until_then(store: Store, clock: Clock) -> None:
    [added] = store.add([fact("office", "The office is in Rome.")], ME)
    moving = clock.now + 100
    store.supersede(1, "The office is in Bern.", ME, valid_from=moving)
    assert texts(store, added.node) == ["The office is in Rome."]
    assert names(store, "Bern") == []
    clock.now = moving
    assert texts(store, added.node) == ["The office is in Bern."]
    assert names(store, "Rome") == []
    assert texts(store, added.node, valid_at=moving - 1) == ["The office is in Rome."]


def test_the_same_text_with_other_times_is_recorded_again(store: Store, clock: Clock) -> None:
    store.add([fact("holiday", "Ann is away.")], ME)
    first, now = clock.now, clock.now
    assert outcomes(store, fact("holiday", "Ann is away.", valid_from=first - 500)) == ["merged"]
    assert texts(store, 1, valid_at=first - 400) == ["Ann is away."]
    assert texts(store, 1, valid_at=first - 400, known_at=now) == []
    assert outcomes(store, fact("holiday", "Ann is away.", valid_to=clock.now + 50)) == ["merged"]
    clock.now += 60
    assert texts(store, 1) == []
    assert outcomes(store, fact("holiday", "Ann is away.")) == ["merged"]  # again
    assert texts(store, 1) == ["Ann is away."]
    with pytest.raises(ToolError, match="end before it begins"):
        store.add([fact("holiday", "Ben is away.", valid_to=first)], ME)


def test_known_times_increase_although_clocks_differ(place: str) -> None:
    with opened(place, clock=lambda: 5_000) as ahead, opened(place, clock=lambda: 10) as behind:
        ahead.add([fact("a", "one")], ME)
        behind.supersede(1, "two", ME)
        ahead.supersede(2, "three", ME)
        assert texts(behind, 1) == texts(ahead, 1) == ["three"]
        details = ahead.details(1, with_history=True)
        assert details is not None
        assert [(o.recorded_at, o.superseded_at) for o in details.observations] == [
            (5_002, None),
            (5_001, 5_002),
            (5_000, 5_001),
        ]


def test_an_edge_ends_and_the_past_has_it(store: Store, clock: Clock) -> None:
    store.add([fact("a", "x", links=(NewLink(to="b", relation="calls"),))], ME)
    then = clock.now
    assert store.end_edge(1, ME) == 1
    with pytest.raises(ToolError, match="e1 is not current: it has ended"):
        store.end_edge(1, ME)
    now, past = store.neighbourhood([1]), store.neighbourhood([1], moment=Moment(valid_at=then))
    assert (len(now[0]), len(now[1]), len(past[0]), len(past[1])) == (1, 0, 2, 1)


def test_the_end_of_a_text_is_said_of_its_current_row_only(store: Store, clock: Clock) -> None:
    store.add([fact("port", "The port is 80.")], ME)
    store.supersede(1, "The port is 8080.", ME)
    later = clock.now + 10**6
    with pytest.raises(ToolError, match="o1 is not current: o2 has superseded it"):
        store.end_observation(1, ME, valid_to=later)
    store.retract(Targets(nodes=(1,)), ME)
    with pytest.raises(ToolError, match="o2 is not current: it was retracted; restore it first"):
        store.end_observation(2, ME, valid_to=later)
    assert store.find("port") == [] and texts(store, 1) == []


def test_an_end_is_of_now_of_the_past_or_still_to_come(store: Store, clock: Clock) -> None:
    store.add([fact(name, "works here", valid_from=100) for name in ("Ann", "Ben", "Cy")], ME)
    assert store.end_observation(1, ME) == 1
    assert store.end_observation(2, ME, valid_to=500, reason="left") == 2
    coming = clock.now + 50
    new = store.end_observation(3, ME, valid_to=coming)
    assert new == 4 and store.end_observation(4, ME, valid_to=coming) == 4, "again it changes nothing"
    assert [texts(store, node) for node in (1, 2, 3)] == [[], [], ["works here"]]
    assert [texts(store, node, valid_at=499) for node in (1, 2, 3)] == [["works here"]] * 3
    assert [texts(store, node, valid_at=500) for node in (1, 2)] == [["works here"], []]
    clock.now = coming
    assert texts(store, 3) == []
    assert store.end_observation(4, ME, valid_to=coming + 100) == 5, "it went on longer"
    assert texts(store, 3) == ["works here"]
    with pytest.raises(ToolError, match="if it was never true, retract it"):
        store.end_observation(5, ME, valid_to=100)


def test_a_text_is_not_superseded_from_before_its_beginning(store: Store, clock: Clock) -> None:
    store.add([fact("office", "Rome", valid_from=700)], ME)
    for valid_from in (600, 700):
        with pytest.raises(ToolError, match="with correction the new text takes its place"):
            store.supersede(1, "Bern", ME, valid_from=valid_from)
    assert store.supersede(1, "Bern", ME, valid_from=600, is_correction=True) == 2
    assert (texts(store, 1, valid_at=650), texts(store, 1, valid_at=701)) == (["Bern"], ["Bern"])
    coming = clock.now + 10**6
    store.add([fact("rent", "900", valid_from=coming)], ME)
    with pytest.raises(ToolError, match="with correction"):
        store.supersede(3, "950", ME)
    store.supersede(3, "950", ME, is_correction=True)
    assert (texts(store, 2), texts(store, 2, valid_at=coming)) == ([], ["950"])


def test_a_link_that_holds_twice_is_known_twice(store: Store, clock: Clock) -> None:
    works = (NewLink(to="Acme", relation="works_at"),)
    store.add([fact("Ann", links=works, valid_from=100, valid_to=200)], ME)
    assert outcomes(store, fact("Ann", links=works, valid_from=300)) == ["merged"]
    assert outcomes(store, fact("Ann", links=works, valid_from=300)) == ["unchanged"]
    assert [len(store.neighbourhood([1], moment=Moment(valid_at=at))[1]) for at in (99, 150, 250, 350)] == [0, 1, 0, 1]
    assert len(store.neighbourhood([1])[1]) == 1
    coming = clock.now + 50
    assert store.end_edge(2, ME, valid_to=coming) == 3
    clock.now = coming
    assert store.neighbourhood([1])[1] == []
    assert outcomes(store, fact("Ann", links=works)) == ["merged"]
    assert [edge.id for edge in store.neighbourhood([1])[1]] == [4]


def test_a_link_that_is_said_to_end_before_it_begins_is_refused(store: Store, clock: Clock) -> None:
    with pytest.raises(ToolError, match="end before it begins"):
        store.add([fact("Ann", links=(NewLink(to="Acme"),), valid_to=clock.now)], ME)


# Contradictions


def contradicted(store: Store, text: str) -> list[str]:
    """What is shown to contradict the hit with this text."""
    [hit] = [hit for hit in store.query(Query(text=text)).hits if hit.observations[0].text == text]
    return [each.observation.text for each in hit.contradictions if each.observation is not None]


def test_a_text_may_contradict_several(store: Store) -> None:
    store.add([fact(name, text) for name, text in (("a", "port 80"), ("b", "port 81"), ("c", "port 82"))], ME)
    store.mark_contradiction(3, 1, ME)
    store.mark_contradiction(3, 2, ME)
    assert contradicted(store, "port 82") == ["port 80", "port 81"]
    assert contradicted(store, "port 80") == contradicted(store, "port 81") == ["port 82"]
    store.supersede(2, "port 83", ME)
    assert contradicted(store, "port 82") == ["port 80"]


def test_a_contradiction_outlives_that_a_text_is_recorded_again(store: Store, clock: Clock) -> None:
    store.add([fact("a", "port 80"), fact("b", "port 81")], ME)
    store.mark_contradiction(1, 2, ME)
    store.end_observation(2, ME, valid_to=clock.now + 10**6)
    assert contradicted(store, "port 80") == ["port 81"]
    store.retract(Targets(nodes=(1,)), ME)
    store.restore(Targets(nodes=(1,)), ME)
    assert contradicted(store, "port 81") == ["port 80"]


def test_only_current_texts_contradict_each_other(store: Store) -> None:
    store.add([fact("a", "port 80"), fact("b", "port 81")], ME)
    store.supersede(1, "port 82", ME)
    for one, other in ((1, 2), (2, 1)):
        with pytest.raises(ToolError, match="o1 is not current: o3 has superseded it"):
            store.mark_contradiction(one, other, ME)
    with pytest.raises(ToolError, match="does not contradict itself"):
        store.mark_contradiction(2, 2, ME)


def test_a_known_text_is_added_again_with_a_contradiction(store: Store) -> None:
    store.add([fact("a", "port 80"), fact("b", "port 81")], ME)
    assert outcomes(store, fact("b", "port 81", contradicts=1)) == ["merged"]
    assert contradicted(store, "port 80") == ["port 81"]
    store.supersede(1, "port 82", ME)
    assert outcomes(store, fact("b", "port 81", contradicts=1)) == ["unchanged"], "it can be repeated"


# Forgetting


def test_what_was_retracted_can_be_restored(store: Store, clock: Clock) -> None:
    store.add([fact("a", "alpha", links=(NewLink(to="b"),)), fact("b", "beta")], ME)
    report = store.retract(Targets(nodes=(1,)), ME, reason="wrong")
    assert (report.nodes, report.observations, report.edges) == ((1,), (1,), (1,))
    between = clock.now
    assert names(store, "alpha") == []
    assert store.find("a") == []
    report = store.restore(Targets(nodes=(1,)), ME)
    assert (report.nodes, report.observations, report.edges) == ((1,), (3,), (2,))
    assert names(store, "alpha") == ["a", "b"]
    assert texts(store, 1, known_at=between) == []
    assert store.restore(Targets(nodes=(1,)), ME).nodes == ()


def test_a_retracted_name_that_is_added_again_is_restored_without_its_old_texts(store: Store) -> None:
    store.add([fact("a", "alpha")], ME)
    store.retract(Targets(nodes=(1,)), ME)
    assert outcomes(store, fact("A", "beta")) == ["restored"]
    assert texts(store, 1) == ["beta"]


def test_what_was_retracted_with_a_node_that_is_added_again_comes_back_by_its_own_id(store: Store) -> None:
    store.add([fact("a", "alpha")], ME)
    store.retract(Targets(nodes=(1,)), ME)
    store.add([fact("a", "beta")], ME)
    store.retract(Targets(nodes=(1,)), ME)
    assert store.restore(Targets(nodes=(1,)), ME).observations == (3,)
    assert texts(store, 1) == ["beta"], "what was wrong before does not come back with it"
    store.restore(Targets(observations=(1,)), ME)
    assert texts(store, 1) == ["alpha", "beta"]


@pytest.mark.parametrize("together", [True, False])
def test_an_edge_comes_back_with_the_last_of_its_ends(store: Store, together: bool) -> None:
    store.add([fact("a", links=(NewLink(to="b"),)), fact("b")], ME)
    for node in (1, 2):
        store.retract(Targets(nodes=(node,)), ME)
    for nodes in ((1, 2),) if together else ((1,), (2,)):
        report = store.restore(Targets(nodes=nodes), ME)
    assert len(report.edges) == 1 and len(store.neighbourhood([1])[1]) == 1
    store.retract(Targets(edges=report.edges), ME)
    store.retract(Targets(nodes=(1,)), ME)
    assert store.restore(Targets(nodes=(1,)), ME).edges == (), "it was retracted by itself"


def test_what_was_said_again_meanwhile_is_restored_as_one(store: Store) -> None:
    store.add([fact("a", "alpha", valid_from=100)], ME)
    store.retract(Targets(observations=(1,)), ME)
    store.add([fact("a", "alpha")], ME)
    store.restore(Targets(observations=(1,)), ME)
    assert texts(store, 1) == ["alpha"] == texts(store, 1, valid_at=100)


def test_a_link_to_a_retracted_name_restores_it_and_to_its_id_is_refused(store: Store) -> None:
    store.add([fact("a", links=(NewLink(to="b"),))], ME)
    store.retract(Targets(nodes=(2,)), ME)
    with pytest.raises(ToolError, match="n2 is retracted; restore it"):
        store.add([fact("c", links=(NewLink(to="n2"),))], ME)
    [added] = store.add([fact("c", links=(NewLink(to="B"),))], ME)
    assert added.linked == (2,)
    assert [node.name for node in store.find("b")] == ["b"]


def test_a_single_observation_is_retracted_and_restored(store: Store) -> None:
    store.add([fact("a", "alpha"), fact("a", "beta")], ME)
    store.retract(Targets(observations=(1,)), ME)
    assert texts(store, 1) == ["beta"]
    assert store.restore(Targets(observations=(1,)), ME).observations == (3,)
    assert texts(store, 1) == ["alpha", "beta"]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_purge_leaves_no_byte_of_the_text(store: Store, path: Path) -> None:
    secret = "xyzzypassword"
    source = NewSource(type="url", uri=f"https://{secret}.example")
    store.add([fact(f"token {secret}", f"The {secret} is here.", links=(NewLink(to="vault"),))], source)
    store.supersede(1, f"The {secret} was there.", source, reason=secret)
    store.change_node(1, NodeChange(name=f"renamed {secret}"), source)
    store.add([fact("other", "The safe is here.")], ME)
    assert any(secret.encode() in file.read_bytes() for file in path.parent.iterdir())
    report = store.purge(Targets(nodes=(1,)), ME)
    assert (report.nodes, report.observations, report.edges) == ((1,), (1, 2), (1,))
    assert store.status().superseded == 0
    for file in path.parent.iterdir():
        assert secret.encode() not in file.read_bytes(), file
    assert names(store, "safe here") == ["other"]
    assert store.check() == []


def test_a_purge_erases_the_text_in_all_rows_of_its_node(store: Store, clock: Clock, path: Path) -> None:
    store.add([fact("door", "The zanzibar code is 1234"), fact("other", "The zanzibar code is 1234")], ME)
    later = store.end_observation(1, ME, valid_to=clock.now + 10**6)
    store.retract(Targets(observations=(later,)), ME)
    [again] = store.restore(Targets(observations=(later,)), ME).observations
    assert [o.id for o in store.targeted(Targets(observations=(again,)), "purge").observations] == [1, later, again]
    assert store.purge(Targets(observations=(again,)), ME).observations == (1, later, again)
    details = store.details(1, with_history=True)
    assert details is not None and details.observations == ()
    assert names(store, "zanzibar") == ["other"]
    store.purge(Targets(nodes=(2,)), ME)
    for file in path.parent.iterdir():
        assert b"zanzibar" not in file.read_bytes(), file


def test_a_purged_edge_does_not_come_back(store: Store, clock: Clock) -> None:
    store.add([fact("a", links=(NewLink(to="b"),))], ME)
    store.retract(Targets(edges=(1,)), ME)
    [again] = store.restore(Targets(edges=(1,)), ME).edges
    assert store.purge(Targets(edges=(again,)), ME).edges == (1, again)
    assert store.neighbourhood([1])[1] == []


@pytest.mark.parametrize("is_superseded", [False, True])
def test_a_purge_erases_the_name_that_the_text_gave(store: Store, path: Path, is_superseded: bool) -> None:
    store.add([NewItem(text="zanzibar is the code\nof the door")], ME)
    if is_superseded:
        store.supersede(1, "the code is gone", ME)
    store.purge(Targets(observations=(1,)), ME)
    assert store.node(1).name == ("the code is gone" if is_superseded else NO_TEXT)
    assert names(store, "zanzibar") == []
    for file in path.parent.iterdir():
        assert b"zanzibar" not in file.read_bytes(), file


def test_a_purge_leaves_no_folder_of_a_path(store: Store, path: Path) -> None:
    store.add([NewItem(kind="doc", name="plan", path="zanzibar/merger/plan.md", text="see it now")], ME)
    store.purge(Targets(nodes=(1,)), ME)
    assert store.status().terms == 0
    for file in path.parent.iterdir():
        assert b"zanzibar" not in file.read_bytes(), file


def test_a_purged_observation_leaves_the_node(store: Store) -> None:
    store.add([fact("a", "alpha"), fact("a", "beta", contradicts=None)], ME)
    store.mark_contradiction(1, 2, ME)
    store.purge(Targets(observations=(1,)), ME)
    assert texts(store, 1) == ["beta"]
    details = store.details(1, with_history=True)
    assert details is not None
    assert details.contradicting == {}


def test_unknown_ids_are_named(store: Store) -> None:
    for targets, message in (
        (Targets(nodes=(7,)), "no node n7"),
        (Targets(observations=(7,)), "no observation o7"),
        (Targets(edges=(7,)), "no edge e7"),
    ):
        for use in (store.retract, store.restore, store.purge):
            with pytest.raises(ToolError, match=message):
                use(targets, ME)


# Nodes and events


def test_a_renamed_node_is_found_by_its_new_name_only(store: Store) -> None:
    store.add([fact("walrus", "x"), fact("penguin", "y")], ME)
    assert store.change_node(1, NodeChange(name="Otter", pinned=True), ME).pinned
    assert names(store, "walrus") == []
    assert names(store, "otter") == ["Otter"]
    for name, message in (("", "the name is empty"), ("x" * (NAME_CHARACTERS + 1), "the name has 501 characters")):
        with pytest.raises(ToolError, match=message):
            store.change_node(1, NodeChange(name=name), ME)
    with pytest.raises(ToolError, match="n2 is named 'PENGUIN' already"):
        store.change_node(1, NodeChange(name="PENGUIN"), ME)


def test_events_tell_what_happened_in_order(store: Store) -> None:
    store.add([fact("a", "alpha")], ME)
    store.supersede(1, "beta", ME, reason="new")
    store.retract(Targets(nodes=(1,)), ME)
    events = store.events()
    assert [event.operation for event in events] == ["create", "add", "add", "supersede", "retract", "retract"]
    assert events[3].detail == {"reason": "new"}
    assert {event.actor for event in events} == {"tester"}
    assert store.events(after=events[-2].sequence) == events[-1:]
    assert store.events(newest_first=True, limit=1, node=1) == events[-1:]


def test_old_events_are_dropped_beyond_a_limit(place: str) -> None:
    with opened(place, limits=StoreLimits(most_events=10)) as store:
        for number in range(30):
            store.add([fact(f"node {number}", "text")], ME)
        assert store.status().events == 10
        assert store.status().nodes == 30


def test_a_full_store_refuses_additions_and_can_be_emptied(place: str) -> None:
    with opened(place) as store:
        empty = store.status().bytes
    with opened(place, limits=StoreLimits(most_bytes=empty + 250_000)) as store:
        with pytest.raises(StoreError, match=r"its limit is \d MB; purge what is not needed, or raise max_bytes"):
            for number in range(1_000):
                store.add([fact(f"node {number}", f"word{number} " * 1_000)], ME)
        count = store.status().nodes
        assert 10 < count < 1_000
        store.supersede(1, "shorter", ME)
        store.purge(Targets(nodes=tuple(range(1, count))), ME)
        store.add([fact("again", "there is room")], ME)
        assert store.check() == []


def test_history_beyond_an_age_is_deleted_by_the_first_change_of_a_day(place: str, clock: Clock) -> None:
    with opened(place, clock=clock, limits=StoreLimits(history_days=1)) as store:
        store.add([fact("a", "alpha"), fact("b", "alpha")], ME)
        store.supersede(1, "beta", ME)
        store.supersede(2, "alphabet", ME)
        assert store.status().superseded == 2
        clock.now += 2 * DAY
        store.supersede(3, "alpha", ME)
        assert (store.status().superseded, texts(store, 1), texts(store, 2)) == (1, ["alpha"], ["alphabet"])
        assert store.check() == []


def test_old_history_is_deleted_some_rows_at_a_time(place: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "HISTORY_AT_ONCE", 2)
    with opened(place, clock=clock, limits=StoreLimits(history_days=1)) as store:
        store.add([fact("a", "0")], ME)
        for number in range(1, 6):
            store.supersede(number, str(number), ME)
        clock.now += 2 * DAY
        left = list[int]()
        for number in range(4):
            store.add([fact(f"b{number}")], ME)
            left.append(store.status().superseded)
        assert left == [3, 1, 0, 0]


# Files

FILE = NewSource(type="file", uri="a.py")


def state(path: str = "a.py", hash_: str = "1") -> FileState:
    return FileState(path=path, size=1, modified_ns=1, hash=hash_, parser="python 1")


def symbol(name: str, text: str, *calls: str, path: str = "a.py") -> NewItem:
    links = tuple(NewLink(to=call, relation="calls", kind="symbol", path=path) for call in calls)
    return NewItem(kind="symbol", name=name, path=path, text=text, links=links)


def test_a_changed_file_supersedes_what_it_said_and_nothing_else(store: Store, clock: Clock) -> None:
    store.replace_file(state(), [symbol("f", "old body", "g"), symbol("g", "same body"), symbol("h", "gone")], FILE)
    store.add([NewItem(kind="symbol", name="f", path="a.py", text="an agent's remark")], ME)
    then = clock.now
    added = store.replace_file(
        state(hash_="2"), [symbol("f", "new body", "k"), symbol("g", "same body"), symbol("k", "k")], FILE
    )
    assert [item.outcome for item in added] == ["merged", "unchanged", "created"]
    f, g, h = (store.find(name, include_retracted=True)[0] for name in "fgh")
    assert texts(store, f.id) == ["an agent's remark", "new body"]
    assert texts(store, f.id, valid_at=then) == ["an agent's remark", "old body"]
    assert h.retracted_at is not None
    details = store.details(f.id)
    assert details is not None
    assert [details.neighbours[edge.to_node].name for edge in details.edges] == ["k"]
    before = store.status().events
    store.replace_file(
        state(hash_="2"), [symbol("f", "new body", "k"), symbol("g", "same body"), symbol("k", "k")], FILE
    )
    assert store.status().events == before
    assert store.file_states() == {"a.py": state(hash_="2")}
    assert g.retracted_at is None


def test_what_agents_say_of_a_file_s_nodes_stays_when_the_file_is_no_more(store: Store) -> None:
    file = [symbol("f", "body", "g"), symbol("g", "other body")]
    store.replace_file(state(), file, FILE)
    store.add([symbol("f", "an agent's warning"), fact("note", links=(NewLink(to="g", kind="symbol"),))], ME)
    assert store.forget_file("a.py", FILE) == 2
    assert texts(store, 1) == ["an agent's warning"]
    assert len(store.neighbourhood([3])[1]) == 1, "the note is still linked to g"
    assert names(store, "body") == [] and store.names_in_files() == {}
    store.replace_file(state(), file, FILE)
    assert texts(store, 1) == ["an agent's warning", "body"]
    assert {(e.from_node, e.to_node) for e in store.neighbourhood([1], 2)[1]} == {(1, 2), (3, 2)}
    store.replace_file(state(hash_="2"), [symbol("f", "body")], FILE)
    assert texts(store, 2) == [] and len(store.neighbourhood([3])[1]) == 1


@pytest.mark.parametrize("how", ["the file is deleted", "a part of it is deleted"])
def test_what_has_left_its_file_is_found_as_of_before(store: Store, clock: Clock, how: str) -> None:
    store.replace_file(state(), [symbol("walrus", "the budget is 7"), symbol("other", "body")], FILE)
    then = clock.now
    if how == "the file is deleted":
        store.forget_file("a.py", FILE)
    else:
        store.replace_file(state(hash_="2"), [symbol("other", "body")], FILE)
    for moment in (Moment(valid_at=then), Moment(known_at=then), Moment(valid_at=then, known_at=then)):
        assert names(store, "budget", moment=moment) == ["walrus"]
        assert names(store, "walrus", moment=moment) == ["walrus"]
        assert [node.id for node in store.resolve("walrus", moment)] == [1]
    now = Moment(valid_at=clock.now)
    assert names(store, "budget") == names(store, "walrus", moment=now) == store.resolve("walrus", now) == []


def test_what_was_retracted_in_a_file_is_told_apart_from_what_left_it(store: Store) -> None:
    store.replace_file(state(), [symbol("f", "body"), symbol("g", "other body")], FILE)
    store.retract(Targets(nodes=(1,)), ME)
    store.forget_file("a.py", FILE)
    assert [node.id for node in store.choose(NodeFilter(path="a.py"), "restore")[0]] == [1]
    with pytest.raises(ToolError, match=r"n2 is not in a.py any more; ingest_path brings it back"):
        store.restore(Targets(nodes=(2,)), ME)
    assert store.restore(Targets(nodes=(1,)), ME).nodes == (1,)


@pytest.mark.parametrize("mode", ["retract", "purge"])
def test_a_file_whose_nodes_were_forgotten_is_to_be_read_again(store: Store, mode: ForgetMode) -> None:
    store.replace_file(state(), [symbol("f", "body")], FILE)
    store.forget(mode, Targets(nodes=(1,)), ME)
    assert store.file_states()["a.py"].parser != state().parser


def test_a_moved_file_keeps_its_nodes(store: Store) -> None:
    store.replace_file(state(), [symbol("f", "body"), NewItem(kind="file", name="a.py", path="a.py")], FILE)
    assert store.move_file("a.py", state("lib/b.py"), NewSource(type="file", uri="lib/b.py")) == 0
    assert {(node.id, node.name) for node in store.find("lib/b.py")} == {(1, "f"), (2, "lib/b.py")}
    assert list(store.file_states()) == ["lib/b.py"]
    assert names(store, "body", path="lib") == ["f"]
    changed = symbol("f", "other body", path="lib/b.py")
    store.replace_file(state("lib/b.py", "2"), [changed], NewSource(type="file", uri="lib/b.py"))
    assert texts(store, 1) == ["other body"]


def test_a_file_moved_to_where_one_was_before_is_replaced(store: Store) -> None:
    store.replace_file(state("b.py"), [symbol("f", "old", path="b.py")], NewSource(type="file", uri="b.py"))
    store.forget_file("b.py", ME)
    store.replace_file(state(), [symbol("f", "body"), symbol("g", "more")], FILE)
    moved = NewSource(type="file", uri="b.py")
    assert store.move_file("a.py", state("b.py"), moved) == 1
    store.replace_file(state("b.py"), [symbol("f", "body", path="b.py"), symbol("g", "more", path="b.py")], moved)
    assert {(node.name, node.path) for name in "fg" for node in store.find(name)} == {("f", "b.py"), ("g", "b.py")}
    assert store.observations(1)[0].text == "body"


def test_a_deleted_file_is_forgotten_and_may_come_back(store: Store) -> None:
    store.replace_file(state(), [symbol("f", "body")], FILE)
    assert store.forget_file("a.py", FILE) == 1
    assert names(store, "body") == []
    assert store.file_states() == {}
    assert store.replace_file(state(), [symbol("f", "body")], FILE)[0].outcome == "restored"
    assert names(store, "body") == ["f"]
