"""Refusals, word by word."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.auth import Guard
from longshore.auth.credentials import Challenges
from longshore.config.sections import TokenConfig
from longshore.protocol.peer import Principal

from .conftest import METADATA, bearer, guard, refusal
from .issuer import Issuer

TOKEN = "s3cret-s3cret-s3cret"


def _with_server(issuer: Issuer, **settings: object) -> Guard:
    return guard(
        {"ann": TokenConfig(token=TOKEN, scopes=["read"])},
        issuer="https://login.example.com",
        introspection_url=issuer.introspection,
        introspection_client="c",
        introspection_secret="s",
        **settings,
    )


def test_a_request_without_a_credential_is_refused(issuer: Issuer) -> None:
    refused = refusal(_with_server(issuer, scopes=["mcp", "base"]).check({}, False))
    assert refused.status == 401
    assert refused.challenge == f'Bearer resource_metadata="{METADATA}", scope="base mcp"'
    assert refused.text == "this server asks for a credential and there is none"


def test_without_an_authorization_server_the_challenge_has_a_realm() -> None:
    assert refusal(guard(token=TOKEN).check({}, False)).challenge == 'Bearer realm="mcp"'
    assert refusal(guard(token=TOKEN, scopes=["mcp"]).check({}, False)).challenge == 'Bearer scope="mcp"'


def test_a_cookie_of_another_site_is_no_credential(issuer: Issuer) -> None:
    headers = {b"cookie": b"longshore=" + TOKEN.encode()}
    found = _with_server(issuer)
    assert refusal(found.check(headers, False)).challenge == f'Bearer resource_metadata="{METADATA}"'
    assert found.check(headers, True) == Principal("ann", frozenset({"read"}))


def test_a_malformed_credential_gets_400(issuer: Issuer) -> None:
    refused = refusal(_with_server(issuer).check({b"authorization": b"Bearer"}, False))
    assert refused.status == 400
    assert refused.challenge == (
        f'Bearer error="invalid_request", error_description="the token is empty", resource_metadata="{METADATA}"'
    )
    assert refused.text == "the token is empty"


def test_a_credential_of_another_scheme_counts_as_none(issuer: Issuer) -> None:
    for found in (_with_server(issuer), guard(token=TOKEN, scopes=["mcp"])):
        nothing = refusal(found.check({}, False))
        refused = refusal(found.check({b"authorization": b"Basic x"}, False))
        assert (refused.status, refused.challenge) == (nothing.status, nothing.challenge)
        assert "error" not in refused.challenge
        assert refused.text == "the Authorization header is not of the form: Bearer TOKEN"


def test_a_bad_token_gets_401_with_a_description() -> None:
    refused = refusal(guard(token=TOKEN).check(bearer("x" * 20), False))
    assert refused.status == 401
    assert refused.challenge == (
        'Bearer error="invalid_token", error_description="the token is not one that this server knows"'
    )


def test_a_caller_without_the_scopes_of_every_request_gets_403(issuer: Issuer) -> None:
    refused = refusal(_with_server(issuer, scopes=["mcp", "read"]).check(bearer(TOKEN), False))
    assert refused.status == 403
    assert refused.challenge == (
        'Bearer error="insufficient_scope", scope="mcp read", '
        f'resource_metadata="{METADATA}", '
        'error_description="this needs scopes that the credential does not have: mcp"'
    )


def test_a_caller_without_the_scopes_of_an_operation_gets_403(issuer: Issuer) -> None:
    ann = Principal("ann", frozenset({"read"}))
    refused = _with_server(issuer).forbid(ann, frozenset({"read", "write", "delete"}))
    assert refused.status == 403
    assert refused.challenge == (
        'Bearer error="insufficient_scope", scope="delete read write", '
        f'resource_metadata="{METADATA}", '
        'error_description="this needs scopes that the credential does not have: delete write"'
    )
    assert refused.text == "this needs scopes that the credential does not have: delete write"


def test_an_operation_needs_what_every_request_needs(issuer: Issuer) -> None:
    refused = _with_server(issuer, scopes=["mcp"]).forbid(Principal("x", frozenset({"mcp"})), frozenset({"write"}))
    assert 'scope="mcp write"' in refused.challenge


def test_offline_access_is_never_named(issuer: Issuer) -> None:
    found = _with_server(issuer, scopes=["mcp", "offline_access"])
    assert 'scope="mcp"' in refusal(found.check({}, False)).challenge


def test_a_refusal_without_configuration_has_a_realm() -> None:
    refused = guard().forbid(Principal("x", frozenset()), frozenset({"write"}))
    assert (refused.status, "resource_metadata" in refused.challenge) == (403, False)


@pytest.mark.parametrize("nasty", ['a"b', "a\\b", "a\r\nX-Evil: 1", "a\0", "é", "\x7f", "\u2028", '", error="x'])
def test_no_text_escapes_from_a_challenge_value(nasty: str) -> None:
    made = Challenges(None, frozenset()).insufficient(frozenset({nasty}), frozenset({nasty}))
    assert made.challenge.count('"') == 6
    assert made.challenge.isascii()
    assert made.challenge.isprintable()
    assert "\\" not in made.challenge


WHOLE = re.compile(r'Bearer [a-z_]+="[\x20-\x21\x23-\x5b\x5d-\x7e]*"(, [a-z_]+="[\x20-\x21\x23-\x5b\x5d-\x7e]*")*')


@given(st.frozensets(st.text(max_size=8), max_size=3), st.text(max_size=20))
def test_every_challenge_parses(scopes: frozenset[str], text: str) -> None:
    made = Challenges("https://h/x", scopes)
    for refused in (made.missing, made.malformed(text), made.invalid(text), made.insufficient(scopes, scopes)):
        assert WHOLE.fullmatch(refused.challenge)


@pytest.mark.parametrize(
    "headers",
    [bearer(TOKEN + "x"), {b"authorization": b"Digest " + TOKEN.encode()}, {b"x-api-key": TOKEN.encode() + b" \xff"}],
)
def test_a_refusal_repeats_neither_the_credential_nor_the_caller(headers: dict[bytes, bytes]) -> None:
    refused = refusal(guard({"ann": TokenConfig(token=TOKEN)}).check(headers, False))
    assert "s3cret" not in refused.challenge + refused.text
    assert "ann" not in refused.challenge + refused.text
    assert "ann" not in repr(guard(token=TOKEN).forbid(Principal("ann", frozenset()), frozenset({"write"})))
