"""Finding nodes by words, names and links, at any moment."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longshore.toolsets.context import search
from longshore.toolsets.context.candidates import TERMS
from longshore.toolsets.context.derived_names import NO_TEXT
from longshore.toolsets.context.packing import pack
from longshore.toolsets.context.records import Moment, NewItem, NewLink, NodeChange, Query, Targets
from longshore.toolsets.context.store import Store

from .graphs import ME, Clock, fact, names, opened


@pytest.fixture
def project(store: Store) -> Store:
    store.add(
        [
            NewItem(kind="decision", name="Authentication", text="We sign tokens: JWT with RS256."),
            NewItem(kind="decision", name="Authentication", text="Keys are rotated daily by a cron job."),
            NewItem(kind="decision", name="Database", text="PostgreSQL holds orders and invoices."),
            NewItem(kind="symbol", name="parseHTTPResponse", path="src/net/http.py", text="def parse(self): ..."),
            NewItem(kind="file", name="src/net/http.py", path="src/net/http.py"),
            NewItem(kind="person", name="The Who", text="A band."),
        ],
        ME,
    )
    return store


def test_a_question_finds_what_has_some_of_its_words(project: Store) -> None:
    assert names(project, "How does JWT key rotation work?") == ["Authentication"]
    assert names(project, "which orders have no invoice") == ["Database"]


def test_words_of_several_observations_count_together(project: Store) -> None:
    project.add([fact("JWT", "A format of tokens.")], ME)
    [first, *_] = project.query(Query(text="JWT keys rotated")).hits
    assert first.node.name == "Authentication"
    assert first.observations[0].text == "Keys are rotated daily by a cron job."


def test_parts_of_identifiers_are_words(project: Store) -> None:
    assert names(project, "http response parsing")[0] == "parseHTTPResponse"
    assert names(project, "parse_http_response")[0] == "parseHTTPResponse"


def test_an_exact_name_or_path_comes_first(project: Store) -> None:
    project.add([fact(f"note {n}", "The database, the database, the database!") for n in range(20)], ME)
    hit = project.query(Query(text="DATABASE")).hits[0]
    assert (hit.node.name, hit.found_by) == ("Database", "name")
    assert names(project, "src/net/http.py")[0] == "src/net/http.py"
    assert names(project, "the who") == ["The Who"]


def test_a_typing_error_is_replaced_and_reported(project: Store) -> None:
    result = project.query(Query(text="postgrseql"))
    assert [hit.node.name for hit in result.hits] == ["Database"]
    [unknown] = result.unknown
    assert (unknown.word, unknown.nearest[0]) == ("postgrseql", "postgresql")
    assert names(project, "xqzw") == []


def test_linked_nodes_are_found_through_their_neighbour(project: Store) -> None:
    project.add([fact("Billing", "Runs at night.", links=(NewLink(to="Database", kind="decision"),))], ME)
    hits = project.query(Query(text="invoices")).hits
    assert [(hit.node.name, hit.found_by, hit.linked_from) for hit in hits] == [
        ("Database", "words", ""),
        ("Billing", "link", "Database"),
    ]
    assert names(project, "invoices kind:decision") == ["Database"]


def test_what_has_the_words_comes_before_the_file_that_it_is_in(store: Store) -> None:
    store.add([NewItem(kind="file", name="long.txt", path="long.txt")], ME)
    parts = [f"pelican {n}: the pelican migration is in week {n}" for n in range(6)]
    inside = (NewLink(to="long.txt", relation="part_of"),)
    store.add([NewItem(kind="section", name=f"part {n}", text=text, links=inside) for n, text in enumerate(parts)], ME)
    hits = store.query(Query(text="when is the pelican migration")).hits
    found_by = {hit.node.name: hit.found_by for hit in hits}
    assert found_by["long.txt"] == "link" and next(iter(found_by.values())) == "words"
    [only] = store.query(Query(text="when is the pelican migration", limit=1)).hits
    assert only.observations


def test_less_good_matches_come_before_the_chapter_of_the_best(store: Store) -> None:
    chapter = (NewLink(to="Chapter", kind="section", relation="part_of"),)
    store.add([NewItem(kind="section", name="keys", text="Rotate the signing keys.", links=chapter)], ME)
    pages = {n: f"Signing keys rotate every {n} days, or when one is lost." for n in (32, 64)}
    store.add([NewItem(kind="section", name=f"page {n}", text=text) for n, text in pages.items()], ME)
    assert names(store, "rotate signing keys") == ["keys", "page 32", "page 64", "Chapter"]


def test_a_hub_is_followed_in_part(store: Store) -> None:
    store.add([fact("hub", "centre", links=tuple(NewLink(to=f"leaf {n}") for n in range(500)))], ME)
    first, *leaves = names(store, "centre", limit=100)
    assert first == "hub"
    assert sorted(leaves) == [f"leaf {n}" for n in range(450, 500)], "the newest"


def test_what_a_heavier_link_leads_to_comes_first(store: Store) -> None:
    links = (NewLink(to="light"), NewLink(to="heavy", weight=3.0))
    store.add([fact("hub", "centre", links=links)], ME)
    assert names(store, "centre") == ["hub", "heavy", "light"]


def test_filters_by_kind_and_path(project: Store) -> None:
    assert names(project, "parse", kinds=("decision",)) == []
    assert names(project, "parse kind:symbol path:src/") == ["parseHTTPResponse"]
    assert names(project, "parse path:sr") == []
    result = project.query(Query(text="parse kind:decision,note"))
    assert (result.hits, result.filtered) == ((), 1)


def test_a_narrow_filter_is_found_behind_many_better_matches(store: Store) -> None:
    items = [NewItem(name=f"n{n} apple", text="apple " * 5) for n in range(900)]
    store.add([*items, NewItem(kind="rare", name="last", text="an apple among many other words of a longer text")], ME)
    assert names(store, "apple kind:rare") == ["last"]


def test_phrases_are_filters_unless_nothing_has_them(project: Store) -> None:
    assert names(project, '"cron job" keys orders') == ["Authentication"]
    result = project.query(Query(text='"job cron"'))
    assert [hit.node.name for hit in result.hits] == ["Authentication"]
    assert result.missing_phrases == ("job cron",)


def test_a_phrase_is_found_behind_many_better_matches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    far = fact("target", "filler words " * 40 + "the alpha beta protocol " + "more filler " * 40)
    store.add([far, *(fact(f"k{n}", f"beta alpha {n}") for n in range(600))], ME)
    result = store.query(Query(text='"no such" "alpha beta"'))
    assert [hit.node.name for hit in result.hits] == ["target"]
    assert result.missing_phrases == ("no such",)
    monkeypatch.setattr(search, "PHRASE_NODES", 100)
    result = store.query(Query(text='"alpha beta"'))
    assert "None of the best 100 nodes has the phrase" in pack(result).text


def test_superseded_text_is_found_in_its_time_only(project: Store, clock: Clock) -> None:
    then = clock.now
    [hit] = project.query(Query(text="cron")).hits
    project.supersede(hit.observations[0].id, "A service rotates the keys.", ME)
    assert names(project, "cron") == []
    assert names(project, "cron", moment=Moment(valid_at=then)) == ["Authentication"]
    assert names(project, "service", moment=Moment(valid_at=then)) == []
    assert names(project, "cron", moment=Moment(known_at=then)) == ["Authentication"]


def test_words_of_no_text_are_of_no_other_time(store: Store) -> None:
    store.add([NewItem(kind="doc", name="Plan", path="zanzibar/merger/plan.md", text="see it now")], ME)
    store.add([fact("walrus")], ME)
    store.change_node(2, NodeChange(name="penguinpool"), ME)
    store.add([fact("PenguinPool")], ME)
    for word in ("zanzibar", "merger", "now", "walrus", "pool"):
        [unknown] = store.query(Query(text=word)).unknown
        assert not unknown.is_past, word
    assert store.check() == []


def test_a_retracted_node_is_found_as_known_before(project: Store, clock: Clock) -> None:
    then = clock.now
    project.retract(Targets(nodes=tuple(node.id for node in project.find("Database"))), ME)
    assert names(project, "invoices") == []
    assert names(project, "invoices", moment=Moment(valid_at=then)) == []
    assert names(project, "invoices", moment=Moment(known_at=then)) == ["Database"]


def test_a_node_is_not_found_before_it_was_there(store: Store, clock: Clock) -> None:
    then = clock.now
    store.add([fact("newcomer"), fact("history", "true long ago", valid_from=1)], ME)
    assert names(store, "newcomer history", moment=Moment(valid_at=then)) == ["history"]


def test_a_node_of_which_only_an_edge_is_known_is_found_in_its_time(store: Store) -> None:
    store.add([NewItem(kind="person", name="Ann", links=(NewLink(to="Acme", relation="works_at"),), valid_from=10)], ME)
    store.end_edge(1, ME, valid_to=20)
    for query in ("Ann", "Acme"):
        assert set(names(store, query, moment=Moment(valid_at=15))) == {"Ann", "Acme"}
        assert names(store, query, moment=Moment(valid_at=5)) == names(store, query, moment=Moment(valid_at=25)) == []


def test_only_links_of_the_asked_time_are_followed(store: Store) -> None:
    store.add([fact("Acme", "A company.", valid_from=1)], ME)
    link = NewLink(to="Acme", relation="works_at")
    store.add([fact("Ann", "An engineer.", valid_from=1), fact("Ann", links=(link,), valid_from=10)], ME)
    store.end_edge(1, ME, valid_to=20)
    assert names(store, "engineer", moment=Moment(valid_at=5)) == ["Ann"]
    assert names(store, "engineer", moment=Moment(valid_at=15)) == ["Ann", "Acme"]
    assert names(store, "engineer", moment=Moment(valid_at=25)) == names(store, "engineer") == ["Ann"]


def test_a_node_without_a_text_is_contradicted_too(store: Store) -> None:
    store.add([fact("Kafka", "We use Kafka.")], ME)
    store.add([fact("No broker", links=(NewLink(to="Kafka", relation="contradicts"),))], ME)
    for query, other in (("Kafka", "No broker"), ("No broker", "Kafka")):
        [hit] = store.query(Query(text=query, limit=1)).hits
        assert [c.name for c in hit.contradictions] == [other]


def test_a_hub_of_contradictions_hides_none_of_another_hit(store: Store) -> None:
    store.add([fact("hub", "zebra"), fact("other", "zebra")], ME)
    links = (NewLink(to="hub", relation="contradicts"),)
    store.add([fact(f"c{n}", f"against {n}", links=links) for n in range(120)], ME)
    store.add([fact("last", "against it", links=(NewLink(to="other", relation="contradicts"),))], ME)
    hits = {hit.node.name: hit for hit in store.query(Query(text="zebra", limit=2)).hits}
    assert [c.name for c in hits["other"].contradictions] == ["last"]
    assert len(hits["hub"].contradictions) == 100


def test_a_node_without_a_name_is_named_by_what_is_true(store: Store, clock: Clock) -> None:
    clock.now = 100
    said = ("The price is 10 EUR.", "The port is 8080.", "Bob is on call.", "Carol has the admin key.")
    store.add([NewItem(text=text, valid_from=10) for text in said], ME)
    store.supersede(2, "The port is 9090.", ME, valid_from=50)
    store.end_observation(3, ME, valid_to=20)
    store.retract(Targets(observations=(4,)), ME)
    store.supersede(1, "The price is 12 EUR.", ME, valid_from=1_000_000)
    for text, at, shown in (
        ("price", None, ["The price is 10 EUR."]),
        ("12 EUR", None, ["The price is 10 EUR."]),
        ("price", 2_000_000, ["The price is 12 EUR."]),
        ("port", None, ["The port is 9090."]),
        ("port", 20, ["The port is 8080."]),
        ("8080", None, []),
        ("who is on call", None, []),
        ("Bob is on call.", 15, ["Bob is on call."]),
        ("who has the admin key", None, []),
        ("Carol has the admin key.", 200, []),
    ):
        assert names(store, text, moment=Moment(valid_at=at)) == shown, (text, at)
    assert names(store, "kind:note") == ["The price is 10 EUR.", "The port is 9090."]
    assert [store.node(n).name for n in (1, 2, 3, 4)] == ["The price is 10 EUR.", "The port is 9090.", NO_TEXT, NO_TEXT]
    [price] = store.resolve("n1", Moment(valid_at=2_000_000))
    assert price.name == "The price is 12 EUR."
    store.add([fact("Shop", "It sells.", links=(NewLink(to="n4"), NewLink(to="n1", relation="contradicts")))], ME)
    assert names(store, "sells") == ["Shop", "The price is 10 EUR."]
    [shop, price_hit] = store.query(Query(text="sells")).hits
    assert [c.name for c in shop.contradictions] == [price_hit.node.name]
    store.rebuild_index()
    assert names(store, "12") == []
    before = clock.now
    store.supersede(store.observations(2)[0].id, "The port is 7070.", ME)
    store.retract(Targets(nodes=(2,)), ME)
    assert store.node(2).name == "The port is 7070.", "what may be restored"
    assert names(store, "port", moment=Moment(known_at=before)) == ["The port is 9090."]
    store.change_node(4, NodeChange(name="Admin key"), ME)
    assert names(store, "admin")[0] == "Admin key", "a name of its own is shown without a text, too"


def test_contradictions_are_shown_with_both_sides(store: Store) -> None:
    store.add([fact("port", "It listens on 80.")], ME)
    store.add([fact("port", "It listens on 8080.", contradicts=1)], ME)
    store.add([fact("proxy", "The proxy has port 80.", links=(NewLink(to="port", relation="contradicts"),))], ME)
    hits = {hit.node.name: hit for hit in store.query(Query(text="listens port proxy")).hits}
    said = {c.observation.text for c in hits["port"].contradictions if c.observation}
    assert said == {"It listens on 80.", "It listens on 8080.", "The proxy has port 80."}
    assert [c.name for c in hits["proxy"].contradictions] == ["port"]
    store.retract(Targets(observations=(1,), edges=(1,)), ME)
    assert all(hit.contradictions == () for hit in store.query(Query(text="port")).hits)


def test_importance_and_recency_order_equal_matches(store: Store, clock: Clock) -> None:
    store.add([fact("old", "apple"), fact("mean", "apple", importance=0.1), fact("great", "apple", importance=1.0)], ME)
    clock.now += 90 * 86_400_000_000
    store.add([fact("new", "apple")], ME)
    assert names(store, "apple") == ["great", "new", "old", "mean"]


def test_pages_have_all_hits_once(store: Store) -> None:
    store.add([fact(f"item {n}", "apple") for n in range(250)], ME)
    first = store.query(Query(text="apple", limit=100))
    assert (first.total, first.more) == (100, True)
    seen = [name for start in range(0, 260, 20) for name in names(store, "apple", limit=20, offset=start)]
    assert sorted(seen) == sorted(f"item {n}" for n in range(250))


HOSTILE = [
    '"',
    "\"\"\" '''",
    "' OR 1=1 --",
    "NEAR(a b) AND NOT c* ^d {x}: (",
    "name:keys -rotated",
    "keys\x00rotated",
    "🚀🔥",
    "%_\\",
    "the of and",
    "\ud800 lone",
    "keys " * 10_000,
    " ".join(f"word{n}" for n in range(10_000)),
    "a" * 100_000,
    'kind: path: kind:""',
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_queries_are_only_words(project: Store, text: str) -> None:
    result = project.query(Query(text=text))
    assert all(hit.score > 0 for hit in result.hits)
    assert ("keys" in text) <= ("Authentication" in [hit.node.name for hit in result.hits])


def test_a_query_of_many_known_words_searches_the_rarest(store: Store) -> None:
    common = [f"common{n}" for n in range(TERMS)]
    store.add([fact(f"n{n}", " ".join(common)) for n in range(5)] + [fact("rare", "needle")], ME)
    assert "rare" in names(store, " ".join([*common, "needle"]))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_any_query_has_an_answer(project: Store, text: str) -> None:
    project.query(Query(text=text))


def test_two_copies_rank_alike(tmp_path: Path) -> None:
    """Equal stores give equal scores, in whatever order their rows were written."""
    items = [fact(f"f{n}", f"alpha{n % 3} beta{n % 5} gamma " * (1 + n % 4)) for n in range(60)]
    results = []
    for order in (items, items[::-1]):
        with opened(tmp_path / f"{len(results)}.db", clock=Clock()) as store:
            store.add(order, ME)
            hits = store.query(Query(text="alpha1 beta2 gamma", limit=60)).hits
            results.append({hit.node.name: round(hit.score, 12) for hit in hits})
    assert results[0] == results[1]
