"""The parts without I/O: challenges, scopes, the budget, what is imported."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.addresses import URL_CHARS
from longshore.client.auth import tokens
from longshore.client.auth.discovery import MOST_CHALLENGE_CHARS as MOST_CHALLENGE
from longshore.client.auth.discovery import MOST_SCOPE_CHARS as MOST_SCOPE
from longshore.client.auth.discovery import MOST_SCOPES as MOST
from longshore.client.auth.discovery import (
    AuthServer,
    Challenge,
    choose_scopes,
    parse_challenges,
    read_challenge,
    split_scopes,
)
from longshore.client.auth.flow import ALL_LOGINS as ALL
from longshore.client.auth.flow import SAME_LOGINS as SAME
from longshore.client.auth.flow import WINDOW_SECONDS, LoginBudget
from longshore.client.auth.loopback import MOST_FIELDS
from longshore.client.auth.oauth import read_code
from longshore.client.auth.oauth_http import OAuthHttp, OAuthResponse, UrlPolicy, plain_url
from longshore.errors import AuthorizationError


@pytest.mark.parametrize(
    ("values", "demand"),
    [
        ([], Challenge()),
        (["Bearer"], Challenge()),
        (["Basic realm=x"], Challenge()),
        (['Bearer error="insufficient_scope", scope="a b"'], Challenge("insufficient_scope", "a b")),
        (["bearer ERROR=invalid_token,scope=a"], Challenge("invalid_token", "a")),
        (['Bearer resource_metadata="https://h/x?a=b,c"'], Challenge(metadata="https://h/x?a=b,c")),
        (["Bearer resource_metadata=https://h/x"], Challenge(metadata="https://h/x")),
        (['Basic realm="a, Bearer scope=no", Bearer scope="yes"'], Challenge(scope="yes")),
        (["Negotiate dG9rZW4=, Bearer scope=yes"], Challenge(scope="yes")),
        (['Basic realm="x"', 'Bearer scope="yes"'], Challenge(scope="yes")),
        ([r'Bearer error="a\"b\\c"'], Challenge('a"b\\c')),
        (['DPoP error="use_dpop_nonce"'], Challenge("use_dpop_nonce", dpop=True)),
        (['Bearer scope="a", DPoP algs="ES256"'], Challenge(scope="a")),
        (['Bearer scope="a", scope="b"'], Challenge(scope="a")),
        (['Bearer scope="never closed'], Challenge()),
        (["Bearer , ,, scope=a"], Challenge(scope="a")),
        (["Bearer realm = x , scope = a"], Challenge(scope="a")),
    ],
)
def test_challenges_are_parsed(values: list[str], demand: Challenge) -> None:
    assert read_challenge([("www-authenticate", value) for value in values]) == demand


@given(st.lists(st.text(st.sampled_from('Bearer DPoP="\\,;= \tab'), max_size=60), max_size=3))
def test_no_challenge_breaks_the_parser(values: list[str]) -> None:
    for scheme, fields in parse_challenges(("www-authenticate", value) for value in values):
        assert scheme == scheme.lower() and all(name == name.lower() for name in fields)


@pytest.mark.parametrize(("over", "scope"), [(-1, "ab"), (0, "ab"), (1, "a"), (2, None)])
def test_a_challenge_is_read_up_to_its_bound(over: int, scope: str | None) -> None:
    realm = "x" * (MOST_CHALLENGE + over - len("Bearer realm=, scope=ab"))
    assert read_challenge([("www-authenticate", f"Bearer realm={realm}, scope=ab")]).scope == scope


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
def test_which_scopes_are_requested(
    challenged: str, configured: str, supported: str, before: str, listed: str | None, chosen: str
) -> None:
    known = None if listed is None else split_scopes(listed)
    found = choose_scopes(
        split_scopes(challenged),
        split_scopes(configured),
        split_scopes(supported),
        split_scopes(before),
        known,
        refreshable=True,
    )
    assert " ".join(found) == chosen


def test_a_program_requests_no_refresh_token() -> None:
    assert choose_scopes(("a",), (), (), (), ("offline_access",), refreshable=False) == ("a",)


def test_invalid_scopes_are_left_out() -> None:
    assert split_scopes('a  b a "c" d\\ \x00 é') == ("a", "b")


def test_authorizations_for_the_same_scopes_are_bounded() -> None:
    budget = LoginBudget(needs_person=True)
    budget.spend("i", ("a", "b"), 0.0, refused=False)
    for _ in range(SAME):
        budget.spend("i", ("a", "b"), 0.0, refused=True)
    with pytest.raises(AuthorizationError, match="still refuses after 3 authorizations, the last with the scopes b a"):
        budget.spend("i", ("b", "a"), WINDOW_SECONDS - 1, refused=True)
    budget.spend("other", ("a", "b"), 0.0, refused=True)
    budget.spend("i", ("a", "b"), WINDOW_SECONDS, refused=True)


@pytest.mark.parametrize("refused", [True, False])
def test_logins_are_bounded(refused: bool) -> None:
    budget = LoginBudget(needs_person=True)
    for n in range(ALL):
        budget.spend("i", (str(n),), 0.0, refused=refused)
    with pytest.raises(AuthorizationError, match=r"10 logins were begun in 10 minutes.*; the last: it gave a token"):
        budget.spend("i", ("new",), 0.0, refused=refused)


def test_a_failed_login_does_not_count_as_refused_token() -> None:
    budget = LoginBudget(needs_person=True)
    for n in range(ALL):
        budget.spend("i", ("a",), 0.0, refused=True)
        budget.fail(f"nobody came ({n})")
    with pytest.raises(AuthorizationError, match=r"10 logins were begun.*the last: nobody came \(9\)"):
        budget.spend("i", ("a",), WINDOW_SECONDS - 1, refused=True)
    budget.spend("i", ("a",), WINDOW_SECONDS, refused=True)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_length_of_a_token_is_bounded(over: int) -> None:
    token = "x" * (tokens._MOST_CHARS + over)
    response = OAuthResponse(200, [], {"access_token": token, "token_type": "bearer", "expires_in": "60"})
    server = AuthServer("https://as.example", "https://as.example/token")
    context = tokens.GrantContext(OAuthHttp(UrlPolicy("https://h.example/")), "https://h.example/", server, None, ())
    with pytest.raises(AuthorizationError, match="no access token") if over > 0 else nullcontext():
        assert tokens._read_response(response, context, None, "it").access == token


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_fields_of_a_login_s_answer_are_bounded(over: int) -> None:
    server = AuthServer("https://as.example", "https://as.example/token")
    more = "&x=y" * (MOST_FIELDS - 2 + over)
    url = f"http://127.0.0.1/?code=c&state=right{more}"
    with pytest.raises(AuthorizationError, match="can't be read") if over > 0 else nullcontext():
        assert read_code(server, "right", url) == "c"


@pytest.mark.parametrize("count", [MOST - 1, MOST, MOST + 1])
def test_the_number_of_scopes_is_bounded(count: int) -> None:
    assert len(split_scopes(" ".join(f"s{n}" for n in range(count)))) == min(count, MOST)
    assert len(split_scopes("x" * (MOST_SCOPE - 1))) == len(split_scopes("x" * MOST_SCOPE)) == 1 and not split_scopes(
        "x" * (MOST_SCOPE + 1)
    )


@pytest.mark.parametrize("size", [URL_CHARS - 1, URL_CHARS, URL_CHARS + 1])
def test_the_length_of_a_url_is_bounded(size: int) -> None:
    url = "https://as.example/".ljust(size, "x")
    assert (plain_url(url) is not None) is (size <= URL_CHARS)


def test_authorizations_without_a_person_are_not_bounded() -> None:
    budget = LoginBudget(needs_person=False)
    for _ in range(100):
        budget.spend("i", ("a",), 0.0, refused=False)


def test_importing_the_client_imports_no_oauth() -> None:
    code = (
        "import sys, longshore.client\n"
        "print([name for name in sys.modules if 'oauth' in name or name in ('joserfc', 'cryptography', 'webbrowser')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_login_needs_no_library_to_sign() -> None:
    code = (
        "import sys; sys.modules['joserfc'] = None\n"
        "from longshore.client.auth import OAuth, MemoryStorage\n"
        "OAuth(storage=MemoryStorage())\n"
        "from longshore.client.auth.dpop import Prover, can_sign\n"
        "assert not can_sign()\n"
        "try: Prover()\n"
        "except Exception as problem: print(problem)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "DPoP needs the library joserfc; install it with: pip install 'longshore[jwt]'\n"
