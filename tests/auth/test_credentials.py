"""Exactly one credential, in exactly one place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.auth.credentials import MOST_BYTES, CredentialReader, MalformedCredential

from .conftest import error

READER = CredentialReader("X-API-Key", "longshore")
TOKEN = b"s3cret-s3cret-s3cret"


def _why(headers: dict[bytes, bytes], same_origin: bool = True) -> str:
    with pytest.raises(MalformedCredential) as caught:
        READER.find(headers, same_origin)
    return str(caught.value)


@pytest.mark.parametrize(
    "value",
    [b"Bearer " + TOKEN, b"bearer " + TOKEN, b"BEARER " + TOKEN, b"Bearer   " + TOKEN, b"Bearer " + TOKEN + b" \t"],
)
def test_a_bearer_token_is_found_in_the_authorization_header(value: bytes) -> None:
    assert READER.find({b"authorization": value}, False) == TOKEN


@pytest.mark.parametrize("token", [b"a", b"a=", b"a==", b"aZ09-._~+/", b"a" * MOST_BYTES])
def test_every_legal_character_may_be_in_a_token(token: bytes) -> None:
    for headers in ({b"authorization": b"Bearer " + token}, {b"x-api-key": token}, {b"cookie": b"longshore=" + token}):
        assert READER.find(headers, True) == token


def test_a_request_without_a_credential_is_refused() -> None:
    assert READER.find({}, True) is None
    assert READER.find({b"cookie": b"other=1; longshore2=x; xlongshore=y"}, True) is None
    assert READER.find({b"x-api-key-2": TOKEN, b"proxy-authorization": b"Bearer " + TOKEN}, True) is None


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "the Authorization header is not of the form: Bearer TOKEN"),
        (b"Basic dXNlcjpwYXNz", "the Authorization header is not of the form: Bearer TOKEN"),
        (b"BearerX " + TOKEN, "the Authorization header is not of the form: Bearer TOKEN"),
        (b"Bearer\t" + TOKEN, "the Authorization header is not of the form: Bearer TOKEN"),
        (TOKEN, "the Authorization header is not of the form: Bearer TOKEN"),
        (b"Bearer", "the token is empty"),
        (b"Bearer ", "the token is empty"),
        (b"Bearer  \t ", "the token is empty"),
        (b"Bearer a b", "the token holds characters that no token has"),
        (b"Bearer a,b", "the token holds characters that no token has"),
        (b'Bearer "a"', "the token holds characters that no token has"),
        (b"Bearer =a", "the token holds characters that no token has"),
        (b"Bearer a\r\nX: y", "the token holds characters that no token has"),
        (b"Bearer a\n", "the token holds characters that no token has"),
        (b"Bearer \xc3\xa9\xff\x00", "the token holds characters that no token has"),
        (b"Bearer " + b"a" * (MOST_BYTES + 1), "the token is longer than 8192 bytes"),
        (b"Bearer " + b"a" * 10_000_000, "the token is longer than 8192 bytes"),
    ],
)
def test_a_malformed_bearer_token_is_refused(value: bytes, why: str) -> None:
    assert _why({b"authorization": value}) == why


@pytest.mark.parametrize("value", [b"", b"a b", b"\xff", b"a" * (MOST_BYTES + 1), b"a\r\n"])
def test_a_malformed_key_or_cookie_is_refused(value: bytes) -> None:
    assert _why({b"x-api-key": value})
    assert _why({b"cookie": b"longshore=" + value + b"!; a=b"})


@pytest.mark.parametrize(
    "headers",
    [
        {b"authorization": b"Bearer " + TOKEN, b"x-api-key": TOKEN},
        {b"authorization": b"Bearer " + TOKEN, b"cookie": b"longshore=" + TOKEN},
        {b"x-api-key": TOKEN, b"cookie": b"longshore=" + TOKEN},
        {b"x-api-key": b"", b"cookie": b"longshore=" + TOKEN},
        {b"authorization": b"Basic x", b"x-api-key": TOKEN},
        {b"authorization": b"Bearer " + TOKEN, b"x-api-key": TOKEN, b"cookie": b"longshore=" + TOKEN},
    ],
)
def test_two_kinds_at_once_are_refused(headers: dict[bytes, bytes]) -> None:
    assert _why(headers).startswith("more than one credential")


def test_the_cookie_is_found_among_others() -> None:
    header = b"a=b;longshore=" + TOKEN + b" ;  c=d=e; f"
    assert READER.find({b"cookie": header}, True) == TOKEN


def test_a_cookie_from_another_origin_is_ignored() -> None:
    headers = {b"cookie": b"longshore=" + TOKEN}
    assert READER.find(headers, False) is None
    assert READER.find({**headers, b"authorization": b"Bearer other"}, False) == b"other"


def test_a_cookie_that_comes_twice_is_refused() -> None:
    assert _why({b"cookie": b"longshore=planted; longshore=" + TOKEN}) == (
        "the cookie comes twice; clear it and sign in again"
    )


def test_key_header_and_cookie_can_be_disabled_and_renamed() -> None:
    none = CredentialReader("", "")
    assert none.find({b"x-api-key": TOKEN, b"cookie": b"longshore=" + TOKEN + b"; =" + TOKEN, b"": TOKEN}, True) is None
    other = CredentialReader("Api_Token", "__Host-mcp")
    assert other.find({b"api_token": TOKEN}, False) == TOKEN
    assert other.find({b"cookie": b"__Host-mcp=" + TOKEN}, True) == TOKEN
    assert other.find({b"x-api-key": TOKEN}, True) is None


@pytest.mark.parametrize("name", ["Authorization", "cookie", "X Key", "X-Key:", "Schlüssel", "X\r\nY", "a" * 65])
def test_a_header_that_can_hold_no_key_is_refused(name: str) -> None:
    said = error(token="s3cret-s3cret-s3cret", key_header=name)
    assert said == 'auth.key_header: not a header that can hold a key; use "X-API-Key", or "" for none'


@pytest.mark.parametrize("name", ["a b", "a;b", "a=b", "a\r\nb", "é", "a" * 65])
def test_a_name_that_no_cookie_can_have_is_refused(name: str) -> None:
    said = error(token="s3cret-s3cret-s3cret", cookie=name)
    assert said == 'auth.cookie: not a name for a cookie; use letters, digits, - and _, or "" for none'


NOISE = st.one_of(st.binary(max_size=40), st.sampled_from([b"Bearer x", b"bearer ", b"longshore=a; longshore=b"]))


@given(st.dictionaries(st.sampled_from([b"authorization", b"x-api-key", b"cookie"]), NOISE), st.booleans())
def test_any_header_is_a_token_none_or_malformed(headers: dict[bytes, bytes], same_origin: bool) -> None:
    try:
        found = READER.find(headers, same_origin)
    except MalformedCredential as problem:
        assert str(problem).isascii()
        assert str(problem).isprintable()
    else:
        assert found is None or 0 < len(found) <= MOST_BYTES
