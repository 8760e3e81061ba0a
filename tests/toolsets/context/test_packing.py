"""Answers that fit their token budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.registry.token_budget import count_tokens
from longshore.toolsets.context.packing import excerpt, indented, pack, show_time
from longshore.toolsets.context.records import (
    Contradiction,
    Hit,
    Moment,
    NewItem,
    NewLink,
    NewSource,
    Node,
    Observation,
    Query,
    QueryResult,
    Source,
    Targets,
    UnknownTerm,
)
from longshore.toolsets.context.store import Store

from .graphs import ME, Clock, fact

TEXTS = st.text(max_size=400) | st.text(alphabet='\n"\\\x01 a', max_size=3_000) | st.text(min_size=200, max_size=2_000)
NAMES = st.text(max_size=500) | st.text(alphabet='"\\\U0001f600', max_size=500)
KINDS = st.just("fact") | st.text(alphabet='"', max_size=50)
"""JSON makes two characters of some of these."""

WORDS_64 = " ".join(f"b{one}{other}k" for one in "cdfgjlmn" for other in "cdfgjlmn")


@st.composite
def results(draw: st.DrawFn) -> QueryResult:
    hits = []
    for number in range(draw(st.integers(0, 12))):
        observations = tuple(
            Observation(
                id=n,
                node=number,
                text=draw(TEXTS),
                source=1,
                valid_from=draw(st.integers(-(2**62), 2**62)),
                recorded_at=0,
            )
            for n in range(draw(st.integers(0, 4)))
        )
        node = Node(id=number, kind=draw(KINDS), name=draw(NAMES), path=draw(NAMES))
        source = Source(id=1, type="url", uri=draw(st.text(max_size=300)))
        against = tuple(Contradiction(node=1, name="x", observation=o) for o in observations[:2])
        link = draw(st.booleans())
        hits.append(
            Hit(
                node=node,
                score=1.0,
                found_by="link" if link else "words",
                linked_from=draw(st.text(max_size=500)) if link else "",
                observations=observations,
                contradictions=against,
                sources={1: source},
            )
        )
    total = len(hits) + draw(st.integers(0, 1_000_000))
    words = st.lists(st.text(max_size=200), max_size=20)
    unknown = tuple(UnknownTerm(word=word, nearest=tuple(draw(words)[:3])) for word in draw(words))
    query = Query(text=draw(TEXTS), kinds=tuple(draw(words)), moment=Moment(valid_at=draw(st.none() | st.integers())))
    return QueryResult(
        query=query,
        hits=tuple(hits),
        total=total,
        more=draw(st.booleans()),
        unknown=unknown,
        missing_phrases=tuple(draw(words)),
        filtered=draw(st.integers(0, 10**6)),
        words=1,
        nodes=10**6,
    )


@given(results(), st.integers(100, 3_000))
def test_no_answer_is_over_its_budget(result: QueryResult, max_tokens: int) -> None:
    packed = pack(result, max_tokens)
    assert count_tokens(packed.text) <= max_tokens
    assert packed.shown >= min(1, len(result.hits))


def test_a_hit_whose_line_is_cut_leaves_no_room_twice(store: Store) -> None:
    name = '\U0001f600"\\' * 40
    store.add([NewItem(kind="k" * 50, name=name, path='"\\' * 100, text="gamma " * 200)], ME)
    for tokens in range(100, 200):
        packed = pack(store.query(Query(text="gamma zzzq zzzw")), tokens)
        assert count_tokens(packed.text) <= tokens and packed.shown == 1


@given(TEXTS, st.integers(0, 500))
def test_an_excerpt_fits(text: str, room: int) -> None:
    from longshore.registry.token_budget import json_length

    assert json_length(indented(excerpt(text, {"a"}, room))) - 2 <= max(room, 0)


def test_an_answer_has_a_line_for_each_hit_and_labelled_texts(store: Store) -> None:
    store.add(
        [
            NewItem(kind="decision", name="Auth", text="JWT it is."),
            NewItem(kind="symbol", name="sign", path="src/jwt.py", text="def sign(): ...\n# n1 decision: forged"),
            fact("Night job", "Runs late.", links=(NewLink(to="Auth"),)),
        ],
        NewSource(type="file", uri="docs/auth.md"),
    )
    packed = pack(store.query(Query(text="jwt")))
    assert packed.text == (
        "3 hits:\n"
        "n2 symbol: “sign” (src/jwt.py)\n"
        "  [o2 from file docs/auth.md, 1970-01-01] def sign(): ...\n"
        "    # n1 decision: forged\n"
        "n1 decision: “Auth”\n"
        "  [o1 from file docs/auth.md, 1970-01-01] JWT it is.\n"
        "n3 fact: “Night job”, linked with “Auth”\n"
        "  [o3 from file docs/auth.md, 1970-01-01] Runs late."
    )
    assert (packed.shown, packed.next_offset) == (3, None)


def test_each_hit_gets_a_text_before_one_gets_two(store: Store) -> None:
    store.add([fact(f"apple {n}", f"apple {letter} {n} " + "word " * 60) for n in range(5) for letter in "xyz"], ME)
    lines = pack(store.query(Query(text="apple")), 300).text.splitlines()
    heads = [place for place, line in enumerate(lines) if line.startswith("n")]
    assert len(heads) == 5
    assert all(lines[place + 1].startswith("  [o") for place in heads)


def test_a_repeated_text_is_shown_once(store: Store) -> None:
    store.add([fact("one", "Apples are red."), fact("two", "Apples are red!")], ME)
    assert pack(store.query(Query(text="apples"))).text.count("are red") == 1


def test_a_cursor_leads_through_all_hits(store: Store) -> None:
    store.add([fact(f"apple {n}", "x" * 300) for n in range(40)], ME)
    seen, offset = 0, 0
    while True:
        packed = pack(store.query(Query(text="apple", offset=offset, limit=10)), 150)
        seen += packed.shown
        if packed.next_offset is None:
            break
        assert f'cursor "{packed.next_offset}"' in packed.text
        offset = packed.next_offset
    assert seen == 40
    assert "beyond" in pack(store.query(Query(text="apple", offset=99))).text


def test_an_empty_answer_says_why(store: Store) -> None:
    def said(text: str, **fields: object) -> str:
        return pack(store.query(Query(text=text, **fields))).text  # type: ignore[arg-type]

    assert said("anything").startswith("Nothing is stored yet: add_context")
    store.add([NewItem(kind="decision", name="Auth", text="JWT it is.")], ME)
    assert said("🚀").startswith("The query has no words")
    assert said("kubernetes").startswith("No hits. Nothing here has: kubernetes. 1 node searched.")
    assert "1 node has words of the query, but not with kind task and path src." in said("jwt kind:task path:src")
    assert said("jwt", moment=Moment(known_at=1)).startswith("No hits. Only as known at 1970-01-01T00:00:00Z.")


def test_what_only_texts_of_other_times_have_is_said(store: Store, clock: Clock) -> None:
    store.add([fact("fair", "The fair runs in the park.", valid_from=100, valid_to=200), fact("zoo", "a walrus")], ME)
    store.supersede(2, "a penguin", ME)

    def said(text: str, **fields: Any) -> str:
        return pack(store.query(Query(text=text, **fields))).text

    other = "1 text of other times has words of it: give as_of, or get_context with history."
    assert said("runs park").startswith(f"No hits. {other} 2 nodes searched.")
    assert said("walrus").startswith(f"No hits. Only texts of other times have: walrus. {other}")
    assert said("runs", moment=Moment(valid_at=300)).count(other) == 1
    assert said("runs", moment=Moment(valid_at=150)).startswith("1 hit")
    assert "Only texts of other times have: walrus." in said("walrus zoo")
    assert "Nothing here has: gnu." in said("walrus gnu") and other in said("walrus gnu")
    store.retract(Targets(nodes=(1,)), ME)
    assert other in said("runs park")


@pytest.mark.parametrize(("query", "is_cut"), [(WORDS_64, False), (WORDS_64 + " walrus", True), ("w1 " * 7_000, True)])
def test_a_query_that_is_cut_says_so(store: Store, query: str, is_cut: bool) -> None:
    store.add([fact("words", WORDS_64 + " walrus")], ME)
    text = pack(store.query(Query(text=query))).text
    said = "The query is long: only its first 20,000 characters and 64 rarest words were searched for."
    assert (said in text) is is_cut


def test_filters_without_words_list_nodes(store: Store) -> None:
    store.add([fact(f"f{n}", "apple", path=f"src/{n}.py") for n in range(150)], ME)
    store.add([NewItem(kind="task", name="do"), fact("pin", pinned=True), fact("gone")], ME)
    store.add([fact("f7", "pear", path="src/7.py")], ME)
    store.retract(Targets(nodes=(153,)), ME)
    first = store.query(Query(text="kind:fact"))
    assert (first.total, [hit.node.name for hit in first.hits[:3]]) == (151, ["pin", "f7", "f149"])
    assert pack(first).text.startswith("151 hits, 1–10 shown") and first.hits[1].observations
    rest = store.query(Query(text="", kinds=("fact",), offset=10, limit=200))
    assert len({hit.node.id for hit in (*first.hits, *rest.hits)}) == 151
    assert [hit.node.name for hit in store.query(Query(text="", path="src/3.py")).hits] == ["f3"]
    assert pack(store.query(Query(text="kind:gnu"))).text == "No node is of kind gnu."
    assert pack(store.query(Query(text="?!"))).text.startswith("The query has no words")


def test_notes_come_before_the_hits(store: Store) -> None:
    store.add([fact("Database", "PostgreSQL it is.")], ME)
    text = pack(store.query(Query(text='postgrseql "it isn\'t"', moment=Moment(valid_at=10**15)))).text
    assert text.splitlines()[1:4] == [
        "Only what was true at 2001-09-09T01:46:40Z, as known today.",
        'No text has the phrase "it isn\'t"; these have its words.',
        "Nothing here has: postgrseql (searched for instead: postgresql, postgr).",
    ]


def test_contradictions_stand_beside_their_hit(store: Store) -> None:
    store.add([fact("port", "It listens on 80.")], ME)
    store.add([fact("proxy", "The port is 8080.", contradicts=1)], ME)
    lines = pack(store.query(Query(text="listens"))).text.splitlines()
    assert lines[2] == "  contradicted by n2 “proxy”: [o2 from agent tester, 1970-01-01] The port is 8080."


def test_a_long_text_is_shown_around_the_words(store: Store) -> None:
    text = "\n".join(f"line {n}" for n in range(100)) + "\nthe needle is here\n" + "\n".join("tail" for _ in range(100))
    store.add([fact("haystack", text)], ME)
    packed = pack(store.query(Query(text="needle")), 120)
    assert "needle is here" in packed.text
    assert "lines before" in packed.text


FILLER = "The committee reviewed many unrelated items of the deploy agenda. " * 150
"""It has one word of the question, in each sentence."""
NEEDLE = "The deploy password rotation happens every 45 days by Zelda. "


@pytest.mark.parametrize("before", [FILLER, f"# Minutes\n\n{FILLER}\n\n", FILLER.replace(" ", ""), '"' * 500, ""])
@pytest.mark.parametrize("after", [FILLER, f"\n\n{FILLER}"])
@pytest.mark.parametrize("tokens", [200, 2_000])
def test_a_long_line_is_shown_around_the_words(store: Store, before: str, after: str, tokens: int) -> None:
    store.add([fact("minutes", before + NEEDLE + after)], ME)
    text = pack(store.query(Query(text="how often does deploy password rotation happen")), tokens).text
    assert NEEDLE.strip() in " ".join(text.split())
    assert before in text or "characters before" in text or "lines before" in text


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (-(2**70), "0001-01-01T00:00:00Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
        (-620_092_800_000_000, "1950-05-09T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (0, "1970-01-01T00:00:00Z"),
        (253_402_300_799_000_000, "9999-12-31T23:59:59Z"),
        (2**70, "9999-12-31T23:59:59Z"),
    ],
)
def test_any_time_is_shown(at: int, shown: str) -> None:
    assert show_time(at) == shown


def test_a_fact_from_before_1970_is_shown_with_its_year(store: Store) -> None:
    began = -620_092_800_000_000
    store.add([fact("Grace", "Grace joined the laboratory.", valid_from=began)], ME)
    text = pack(store.query(Query(text="laboratory", moment=Moment(valid_at=began + 10**15 // 2)))).text
    assert "1950-05-09] Grace joined" in text and "Only what was true at 1966-" in text
