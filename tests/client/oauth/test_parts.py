"""The parts without I/O: challenges, scopes, the budget, what is imported."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.addresses import URL_CHARS
from longshore.client.oauth import challenge, discovery, tokens
from longshore.client.oauth.addresses import split
from longshore.client.oauth.asking import Reply
from longshore.client.oauth.budget import ALL, SAME, WINDOW_SECONDS, Budget
from longshore.client.oauth.challenge import MOST_CHARS as MOST_CHALLENGE
from longshore.client.oauth.challenge import Demand, parse, read
from longshore.client.oauth.discovery import AuthServer
from longshore.client.oauth.flow import MOST_FIELDS, begin, read_code
from longshore.client.oauth.scopes import MOST, choose, words
from longshore.client.oauth.scopes import MOST_CHARS as MOST_SCOPE
from longshore.errors import AuthorizationError


@pytest.mark.parametrize(
    ("values", "demand"),
    [
        ([], Demand()),
        (["Bearer"], Demand()),
        (["Basic realm=x"], Demand()),
        (['Bearer error="insufficient_scope", scope="a b"'], Demand("insufficient_scope", "a b")),
        (["bearer ERROR=invalid_token,scope=a"], Demand("invalid_token", "a")),
        (['Bearer resource_metadata="https://h/x?a=b,c"'], Demand(metadata="https://h/x?a=b,c")),
        (["Bearer resource_metadata=https://h/x"], Demand(metadata="https://h/x")),
        (['Basic realm="a, Bearer scope=no", Bearer scope="yes"'], Demand(scope="yes")),
        (["Negotiate dG9rZW4=, Bearer scope=yes"], Demand(scope="yes")),
        (['Basic realm="x"', 'Bearer scope="yes"'], Demand(scope="yes")),
        ([r'Bearer error="a\"b\\c"'], Demand('a"b\\c')),
        (['DPoP error="use_dpop_nonce"'], Demand("use_dpop_nonce", dpop=True)),
        (['Bearer scope="a", DPoP algs="ES256"'], Demand(scope="a")),
        (['Bearer scope="a", scope="b"'], Demand(scope="a")),
        (['Bearer scope="never closed'], Demand()),
        (["Bearer , ,, scope=a"], Demand(scope="a")),
        (["Bearer realm = x , scope = a"], Demand(scope="a")),
    ],
)
def test_challenges(values: list[str], demand: Demand) -> None:
    assert read([("www-authenticate", value) for value in values]) == demand


@given(st.lists(st.text(st.sampled_from('Bearer DPoP="\\,;= \tab'), max_size=60), max_size=3))
def test_no_challenge_breaks_the_parser(values: list[str]) -> None:
    for each in parse(values):
        assert each.scheme == each.scheme.lower()


@pytest.mark.parametrize(("over", "scope"), [(-1, "ab"), (0, "ab"), (1, "a"), (2, None)])
def test_a_challenge_is_read_up_to_its_bound(over: int, scope: str | None) -> None:
    realm = "x" * (MOST_CHALLENGE + over - len("Bearer realm=, scope=ab"))
    assert read([("www-authenticate", f"Bearer realm={realm}, scope=ab")]).scope == scope


@pytest.mark.parametrize(
    ("challenged", "configured", "supported", "before", "listed", "chosen"),
    [
        ("", "", "", "", None, ""),
        ("a b", "", "c", "", None, "a b"),
        ("", "", "c d", "", None, "c d"),
        ("", "x", "c", "", None, "x"),
        ("a", "x", "c", "", None, "x a"),
        ("w", "", "c", "r", None, "r w"),
        ("r", "", "", "r", None, "r"),
        ("a", "", "", "", "a offline_access", "a offline_access"),
        ("", "", "", "", "offline_access", ""),
        ("a offline_access", "", "", "", "a", "a"),
        ("offline_access", "", "", "", None, ""),
        ("", "", "c offline_access", "", None, "c"),
        ("a", "offline_access", "", "", None, "a offline_access"),
        ("a", "offline_access", "", "", "a", "a"),
        ("w", "", "", "r offline_access", "offline_access", "r w offline_access"),
    ],
)
def test_scopes(challenged: str, configured: str, supported: str, before: str, listed: str | None, chosen: str) -> None:
    known = None if listed is None else words(listed)
    found = choose(words(challenged), words(configured), words(supported), words(before), known, refreshable=True)
    assert " ".join(found) == chosen


def test_without_a_use_for_it_no_refresh_token_is_asked_for() -> None:
    assert choose(("a",), (), (), (), ("offline_access",), refreshable=False) == ("a",)


def test_what_is_a_scope() -> None:
    assert words('a  b a "c" d\\ \x00 é') == ("a", "b")


def test_the_budget() -> None:
    budget = Budget(personal=True)
    budget.spend("i", ("a", "b"), 0.0, refused=False)
    for _ in range(SAME):
        budget.spend("i", ("a", "b"), 0.0, refused=True)
    with pytest.raises(AuthorizationError, match="still refuses after 3 authorizations, the last with the scopes b a"):
        budget.spend("i", ("b", "a"), WINDOW_SECONDS - 1, refused=True)
    budget.spend("other", ("a", "b"), 0.0, refused=True)
    budget.spend("i", ("a", "b"), WINDOW_SECONDS, refused=True)


@pytest.mark.parametrize("refused", [True, False])
def test_a_person_is_not_asked_for_ever(refused: bool) -> None:
    budget = Budget(personal=True)
    for n in range(ALL):
        budget.spend("i", (str(n),), 0.0, refused=refused)
    with pytest.raises(AuthorizationError, match=r"10 logins were begun in 10 minutes.*; the last: it gave a token"):
        budget.spend("i", ("new",), 0.0, refused=refused)


def test_a_login_that_fails_is_no_refusal() -> None:
    budget = Budget(personal=True)
    for n in range(ALL):
        budget.spend("i", ("a",), 0.0, refused=True)
        budget.fail(f"nobody came ({n})")
    with pytest.raises(AuthorizationError, match=r"10 logins were begun.*the last: nobody came \(9\)"):
        budget.spend("i", ("a",), WINDOW_SECONDS - 1, refused=True)
    budget.spend("i", ("a",), WINDOW_SECONDS, refused=True)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_so_long_a_challenge(over: int) -> None:
    before, after = 'Bearer x="', '", scope="a"'
    value = before + "y" * (challenge.MOST_CHARS + over - len(before + after)) + after
    assert read([("www-authenticate", value)]).scope == (None if over > 0 else "a")


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_so_long_a_token(over: int) -> None:
    token = "x" * (tokens._MOST_CHARS + over)
    assert tokens._secret(Reply(200, [], {"access_token": token}), "access_token") == (None if over > 0 else token)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_so_many_fields_in_the_answer_of_a_login(over: int) -> None:
    attempt = begin(AuthServer("https://as.example", "https://as.example/token"), "me", "http://127.0.0.1/")
    more = "&x=y" * (MOST_FIELDS - 2 + over)
    url = f"http://127.0.0.1/?code=c&state={attempt.state}{more}"
    with pytest.raises(AuthorizationError, match="can't be read") if over > 0 else nullcontext():
        assert read_code(attempt, url) == "c"


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_so_long_a_list_in_metadata(over: int) -> None:
    listed = [f"s{n}" for n in range(discovery.MOST_LISTED + over)]
    assert discovery._texts(listed) == tuple(listed[: discovery.MOST_LISTED])


@pytest.mark.parametrize("count", [MOST - 1, MOST, MOST + 1])
def test_so_many_scopes(count: int) -> None:
    assert len(words(" ".join(f"s{n}" for n in range(count)))) == min(count, MOST)
    assert len(words("x" * (MOST_SCOPE - 1))) == len(words("x" * MOST_SCOPE)) == 1 and not words("x" * (MOST_SCOPE + 1))


@pytest.mark.parametrize("size", [URL_CHARS - 1, URL_CHARS, URL_CHARS + 1])
def test_so_long_a_url(size: int) -> None:
    url = "https://as.example/".ljust(size, "x")
    assert (split(url) is not None) is (size <= URL_CHARS)


def test_a_program_may_get_tokens_that_expire_as_often_as_they_do() -> None:
    budget = Budget(personal=False)
    for _ in range(100):
        budget.spend("i", ("a",), 0.0, refused=False)


def test_a_client_loads_none_of_it() -> None:
    code = (
        "import sys, longshore.client\n"
        "print([name for name in sys.modules if 'oauth' in name or name in ('joserfc', 'cryptography', 'webbrowser')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_login_needs_no_library_to_sign() -> None:
    code = (
        "import sys; sys.modules['joserfc'] = None\n"
        "from longshore.client.oauth import OAuth, MemoryStorage\n"
        "OAuth(storage=MemoryStorage())\n"
        "from longshore.client.oauth.dpop import Prover\n"
        "from longshore.client.oauth.signing import can_sign\n"
        "assert not can_sign()\n"
        "try: Prover()\n"
        "except Exception as problem: print(problem)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "DPoP needs the library joserfc; install it with: pip install 'longshore[jwt]'\n"
