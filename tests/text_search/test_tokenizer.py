"""Texts as terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.text_search.query_text import QUERY_WORDS, parse
from longshore.text_search.stemming import stem
from longshore.text_search.tokenizer import TERM_CHARACTERS, to_all_terms, to_terms


@pytest.mark.parametrize(
    "words",
    [
        "rotate rotates rotated rotating rotation rotations",
        "connect connects connected connecting connection connections",
        "authenticate authentication authenticated",
        "key keys",
        "fly flies flying flew flown",
        "buy buys buying bought",
        "run runs running ran",
        "go goes going went gone",
        "write writes writing wrote written",
        "find finds finding found",
        "pay pays paid",
        "hop hopping hops",
        "happy happiness",
        "class classes",
        "parse parsed parsing parses",
        "depend depends depending dependent",
        "configure configured configuring configures",
        "die dies",
    ],
)
def test_forms_of_a_word_have_one_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


@pytest.mark.parametrize(("one", "other"), [("universe", "unit"), ("bus", "bush"), ("this", "thing"), ("ring", "red")])
def test_different_words_have_different_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", max_size=30))
def test_a_stem_is_not_longer_than_its_word_and_one(word: str) -> None:
    assert len(stem(word)) <= len(word) + 1
    assert bool(stem(word)) == bool(word)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("parseHTTPResponse", ["parsehttpresponse", "pars", "http", "respons"]),
        ("get_current_user", ["get_current_user", "get", "current", "user"]),
        ("os.path.join", ["os.path.join", "os", "path", "join"]),
        ("__init__", ["init"]),
        ("utf8", ["utf8", "utf"]),
        ("The quick, quick fox.", ["quick", "quick", "fox"]),
        ("to be or not to be", ["to", "be", "or", "not", "to", "be"]),
        ("Ｆｕｌｌｗｉｄｔｈ ﬁle", ["fullwidth", "file"]),
        ("naïve café", ["naiv", "cafe"]),
        ("ΣΊΣΥΦΟΣ", ["σισυφοσ"]),
        ("brød smørrebrød", ["brod", "smorrebrod"]),
        ("Größe GRÖẞE grosse", ["gross", "gross", "gross"]),
        ("þing Łódź œuvre ışık IŞIK", ["thing", "lodz", "oeuvr", "isik", "isik"]),
        ("əlifba dəftər_2", ["əlifba", "dəftər_2", "dəftər"]),
        ("東京都庁", ["東京", "京都", "都庁"]),
        ("京", ["京"]),
        ("Python入門", ["python", "入門"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("🚀 ✨ --- \x00 ''", []),
        ("", []),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert to_terms(text) == terms


def test_names_keep_their_stop_words() -> None:
    assert to_all_terms("The Who") == ["the", "who"]
    assert to_terms("The Who sell out") == ["sell"]


def test_long_words_are_cut() -> None:
    assert [len(term) for term in to_terms("x" * 1000)] == [TERM_CHARACTERS]


@given(st.text())
def test_any_text_has_terms_that_are_words(text: str) -> None:
    for term in to_terms(text):
        assert 0 < len(term) <= TERM_CHARACTERS * 2
        assert not set(term) & set(" \n\x00\"'%*()")


@given(st.text())
def test_any_query_is_read(text: str) -> None:
    query = parse(text)
    assert set(query.terms) <= set(to_all_terms(text))


def test_a_query_has_words_and_phrases() -> None:
    query = parse('how do "JWT  Keys" rotate, “in  Production” NEAR(x*) AND "single"')
    assert query.phrases == ("jwt keys", "in production")
    assert list(query.words) == ["JWT", "Keys", "rotate", "Production", "NEAR", "x", "single"]


def test_a_query_of_stop_words_keeps_them() -> None:
    assert parse("who are you").terms == ["who", "ar", "you"]


def test_a_long_query_is_cut() -> None:
    assert len(parse(" ".join(f"w{n:04}" for n in range(10_000))).words) == QUERY_WORDS
