"""JWT access tokens: which are accepted, and which must be refused."""

from __future__ import annotations

import base64
import hmac
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OctKey, OKPKey

from longshore.auth import Guard
from longshore.protocol.peer import Principal

from .conftest import METADATA, RESOURCE, bearer, error, guard, look_up, principal, refusal
from .issuer import Clock, Issuer, Key, b64, ec, join, jwt, rsa, short_rsa

ISSUER = "https://login.example.com"
EC = ec("ec")


def _guard(issuer: Issuer, clock: Clock, **settings: Any) -> Guard:
    return guard(issuer=ISSUER, jwks=issuer.jwks, clock=clock, **settings)


def _claims(clock: Clock, **claims: Any) -> dict[str, Any]:
    given = {"iss": ISSUER, "sub": "alice", "aud": RESOURCE, "exp": clock.now + 300, "scope": "read write", **claims}
    return {name: value for name, value in given.items() if value is not None}


def _refused(found: Guard, token: str) -> str:
    refused = refusal(look_up(found, bearer(token)))
    assert refused.status == 401
    assert f'error="invalid_token", error_description="{refused.text}"' in refused.challenge
    assert f'resource_metadata="{METADATA}"' in refused.challenge
    return refused.text


@pytest.fixture
def found(issuer: Issuer, clock: Clock) -> Guard:
    issuer.publish(EC, rsa())
    return _guard(issuer, clock)


# Accepted


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa(), "RS256"),
        (rsa(), "RS512"),
        (rsa(), "PS256"),
        (EC, "ES256"),
        (ec("p384", "P-384"), "ES384"),
        (ec("p521", "P-521"), "ES512"),
        (OKPKey.generate_key("Ed25519", {"kid": "ed"}), "EdDSA"),
        (OKPKey.generate_key("Ed25519", {"kid": "ed"}), "Ed25519"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_configured_algorithm_is_accepted(issuer: Issuer, clock: Clock, key: Key, algorithm: str) -> None:
    issuer.publish(key)
    found = _guard(issuer, clock, algorithms=[algorithm])
    outcome = look_up(found, bearer(jwt(key, algorithm, _claims(clock))))
    assert outcome == Principal("login.example.com:alice", frozenset({"read", "write"}))


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": "read  write"}, {"read", "write"}),
        ({"scope": None, "scp": ["read", "write"]}, {"read", "write"}),
        ({"scope": None, "scp": "read write"}, {"read", "write"}),
        ({"scope": "read", "scp": ["write"]}, {"read", "write"}),
        ({"scope": None}, set()),
        ({"scope": ""}, set()),
    ],
)
def test_scopes_come_from_scope_and_scp(found: Guard, clock: Clock, claims: dict[str, Any], scopes: set[str]) -> None:
    outcome = principal(look_up(found, bearer(jwt(EC, "ES256", _claims(clock, **claims)))))
    assert outcome.scopes == scopes


@pytest.mark.parametrize("audience", [RESOURCE, [RESOURCE], ["https://other.example", RESOURCE]])
def test_any_audience_that_contains_this_server_is_accepted(found: Guard, clock: Clock, audience: Any) -> None:
    assert principal(look_up(found, bearer(jwt(EC, "ES256", _claims(clock, aud=audience)))))


def test_a_configured_audience_replaces_the_servers_address(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(EC)
    found = _guard(issuer, clock, audience="api://notes")
    assert principal(look_up(found, bearer(jwt(EC, "ES256", _claims(clock, aud="api://notes")))))
    assert "another server" in _refused(found, jwt(EC, "ES256", _claims(clock)))


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt", None])
def test_access_token_types_are_accepted_in_any_case(found: Guard, clock: Clock, kind: str | None) -> None:
    assert principal(look_up(found, bearer(jwt(EC, "ES256", _claims(clock), typ=kind))))


def test_times_within_the_leeway_are_accepted(found: Guard, clock: Clock) -> None:
    claims = _claims(clock, nbf=clock.now + 59, iat=clock.now + 59, exp=clock.now + 0.5)
    assert principal(look_up(found, bearer(jwt(EC, "ES256", claims))))


def test_a_token_without_kid_is_tried_with_each_fitting_key(issuer: Issuer, clock: Clock) -> None:
    keys = [ec(None), ec("b"), ec(None)]
    issuer.publish(rsa(), *keys)
    found = _guard(issuer, clock)
    for key in keys:
        assert principal(look_up(found, bearer(jwt(key, "ES256", _claims(clock), kid=None))))
    assert "signature" in _refused(found, jwt(ec(None), "ES256", _claims(clock)))


def test_the_key_header_and_the_cookie_carry_it_too(found: Guard, clock: Clock) -> None:
    token = jwt(EC, "ES256", _claims(clock)).encode()
    assert principal(look_up(found, {b"x-api-key": token}))
    assert principal(look_up(found, {b"cookie": b"longshore=" + token}))


def test_subjects_of_different_issuers_get_different_names(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(EC)
    cases = [
        ("https://h.example", "x", "h.example:x"),
        ("https://h.example/", "x", "h.example/:x"),
        ("https://h.example/tenant", "x", "h.example/tenant:x"),
        ("https://h.example:8443", "x", "h.example%3A8443:x"),
        ("https://h.example", "8443:x", "h.example:8443:x"),
        ("http://127.0.0.1:8443", "x", "http%3A//127.0.0.1%3A8443:x"),
    ]
    for url, subject, name in cases:
        found = guard(issuer=url, jwks=issuer.jwks, clock=clock)
        outcome = look_up(found, bearer(jwt(EC, "ES256", _claims(clock, iss=url, sub=subject))))
        assert principal(outcome).name == name
    assert len({name for *_, name in cases}) == len(cases)


# Refused


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"iss": "https://evil.example"}, "the access token comes from another issuer"),
        ({"iss": ISSUER + "/"}, "the access token comes from another issuer"),
        ({"iss": None}, "the access token comes from another issuer"),
        (
            {"aud": "https://other.example"},
            f"the access token was issued for another server: its aud must contain {RESOURCE}",
        ),
        ({"aud": RESOURCE + "/x"}, f"the access token was issued for another server: its aud must contain {RESOURCE}"),
        ({"aud": RESOURCE.upper()}, f"the access token was issued for another server: its aud must contain {RESOURCE}"),
        ({"aud": []}, f"the access token was issued for another server: its aud must contain {RESOURCE}"),
        ({"aud": None}, f"the access token was issued for another server: its aud must contain {RESOURCE}"),
        ({"exp": 1_800_000_000}, "the access token has expired"),
        ({"exp": 0}, "the access token has expired"),
        ({"exp": -1}, "the access token has expired"),
        ({"exp": None}, "the access token has no expiry"),
        ({"nbf": 1_800_000_061}, "the access token is not valid yet"),
        ({"iat": 1_800_000_061}, "the access token is not valid yet"),
        ({"sub": None}, "the access token does not say whom it is for"),
        ({"sub": None, "client_id": "c"}, "the access token does not say whom it is for"),
        ({"sub": ""}, "the access token does not say whom it is for"),
        ({"sub": "x" * 256}, "the access token does not say whom it is for"),
        ({"sub": "a\nb"}, "the access token does not say whom it is for"),
        ({"exp": "1900000000"}, "the access token is malformed"),
        ({"exp": True}, "the access token is malformed"),
        ({"exp": [1_900_000_000]}, "the access token is malformed"),
        ({"nbf": "x"}, "the access token is malformed"),
        ({"aud": {RESOURCE: 1}}, "the access token is malformed"),
        ({"aud": [RESOURCE, 1]}, "the access token is malformed"),
        ({"sub": 7}, "the access token is malformed"),
        ({"scope": {"admin": True}}, "the access token is malformed"),
    ],
)
def test_tokens_with_wrong_claims_are_refused(found: Guard, clock: Clock, claims: dict[str, Any], why: str) -> None:
    assert _refused(found, jwt(EC, "ES256", _claims(clock, **claims))) == why


def test_an_infinite_expiry_is_refused(found: Guard, clock: Clock) -> None:
    for number in ("1e999", "NaN", "Infinity", "9" * 400):
        header = b64(json.dumps({"alg": "ES256", "kid": "ec"}).encode())
        payload = json.dumps(_claims(clock, exp=0)).replace('"exp": 0', f'"exp": {number}')
        signed = f"{header}.{b64(payload.encode())}"
        from joserfc.jws import JWSRegistry

        token = signed + "." + b64(JWSRegistry.algorithms["ES256"].sign(signed.encode(), EC))
        assert _refused(found, token)


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ({"alg": "none"}, "the access token is signed in a way that is not accepted here"),
        ({"alg": "None"}, "the access token is signed in a way that is not accepted here"),
        ({"alg": "NONE"}, "the access token is signed in a way that is not accepted here"),
        ({"alg": ""}, "the access token is signed in a way that is not accepted here"),
        ({"alg": "HS256"}, "the access token is signed in a way that is not accepted here"),
        ({"alg": "RS384"}, "the access token is signed in a way that is not accepted here"),
        ({"alg": "es256"}, "the access token is signed in a way that is not accepted here"),
        ({"alg": None}, "the access token is malformed"),
        ({"alg": ["ES256"]}, "the access token is malformed"),
        ({"kid": ["ec"]}, "the access token is malformed"),
        ({"kid": 1}, "the access token is malformed"),
        ({"kid": {"$ne": ""}}, "the access token is malformed"),
        ({"kid": "../../../../dev/null"}, "the access token is signed with a key that its issuer does not have"),
        ({"kid": "' OR 1=1 --"}, "the access token is signed with a key that its issuer does not have"),
        ({"kid": ""}, "the access token is signed with a key that its issuer does not have"),
        ({"kid": "EC"}, "the access token is signed with a key that its issuer does not have"),
        ({"kid": "rsa"}, "the access token is signed with a key that its issuer does not have"),
        ({"typ": "logout+jwt"}, "this kind of token is not an access token"),
        ({"typ": "dpop+jwt"}, "this kind of token is not an access token"),
        ({"crit": ["exp"]}, "this kind of token is not an access token"),
        ({"crit": ["b64"], "b64": False}, "this kind of token is not an access token"),
    ],
)
def test_tokens_with_wrong_headers_are_refused(found: Guard, clock: Clock, header: dict[str, Any], why: str) -> None:
    whole = {"alg": "ES256", "kid": "ec", "typ": "JWT", **header}
    for signature in ("", b64(b"x" * 64)):
        token = f"{join(whole, _claims(clock))}.{signature}"
        assert _refused(found, token) == why


def test_the_public_key_is_no_hmac_secret(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(rsa())
    found = _guard(issuer, clock)
    for secret in (rsa().as_pem(private=False), rsa().as_der(private=False), json.dumps(issuer.keys[0]).encode()):
        signed = join({"alg": "HS256", "kid": "rsa"}, _claims(clock))
        token = f"{signed}.{b64(hmac.digest(secret, signed.encode(), 'sha256'))}"
        assert "not accepted" in _refused(found, token)


def test_a_symmetric_key_in_the_set_is_not_used(issuer: Issuer, clock: Clock) -> None:
    secret = OctKey.generate_key(256, {"kid": "oct"})
    issuer.publish(secret.as_dict(private=True), EC)
    signed = join({"alg": "ES256", "kid": "oct"}, _claims(clock))
    assert "does not have" in _refused(_guard(issuer, clock), f"{signed}.{b64(b'x' * 64)}")


def test_a_key_that_the_token_brings_along_is_ignored(found: Guard, issuer: Issuer, clock: Clock) -> None:
    evil = ec("ec")
    for header in (
        {"jwk": evil.as_dict(private=False)},
        {"jku": f"{issuer.url}/evil"},
        {"x5u": f"{issuer.url}/evil"},
        {"x5c": ["AAAA"]},
    ):
        assert _refused(found, jwt(evil, "ES256", _claims(clock), **header)) == (
            "the signature of the access token is wrong"
        )
    assert [path for _, path in issuer.asked] == ["/jwks"]


def test_wrong_signatures_are_refused(found: Guard, clock: Clock) -> None:
    token = jwt(EC, "ES256", _claims(clock))
    head, payload, signature = token.split(".")
    forged = b64(json.dumps(_claims(clock, sub="root")).encode())
    raw = base64.urlsafe_b64decode(signature + "==")
    wrong = [
        f"{head}.{forged}.{signature}",
        f"{head}.{payload}.",
        f"{head}.{payload}.{b64(raw[:-1])}",
        f"{head}.{payload}.{b64(raw + b'x')}",
        f"{head}.{payload}.{b64(bytes(64))}",
        f"{head}.{payload}.{b64(raw[32:] + raw[:32])}",
        f"{head}.{payload}.{b64(bytes([raw[0] ^ 1]) + raw[1:])}",
    ]
    assert {_refused(found, token) for token in wrong} == {"the signature of the access token is wrong"}
    assert principal(look_up(found, bearer(token)))


def test_a_wrong_rsa_signature_is_refused(found: Guard, clock: Clock) -> None:
    signed = join({"alg": "RS256", "kid": "rsa"}, _claims(clock))
    for signature in ("", b64(bytes(256)), b64(b"\xff" * 256), b64(b"\xff" * 3000)):
        assert "signature" in _refused(found, f"{signed}.{signature}")


@pytest.mark.parametrize(
    "token",
    [
        "eyJ.e30.x",
        "eyJhbGciOiJFUzI1NiJ9.e30",
        "eyJhbGciOiJFUzI1NiJ9.e30.x.y.z",
        "eyJhbGciOiJFUzI1NiJ9..",
        "..",
        "e30.e30.eA",
        "eyJ" + "A" * 8000 + ".e30.eA",
        b64(b'{"alg":"ES256","x":' + b"[" * 2900 + b"]" * 2900 + b"}") + ".e30.eA",
        b64(b'{"alg":"ES256"} ') + "x.e30.eA",
        b64(b'{"alg":"ES256","kid":"\xff"}') + ".e30.eA",
        b64(b'{"alg":"ES256"}') + "A.e30.eA",
    ],
)
def test_malformed_tokens_are_refused(found: Guard, token: str) -> None:
    refused = refusal(look_up(found, bearer(token)))
    assert refused.status == 401


def test_a_token_with_an_illegal_character_is_refused(found: Guard) -> None:
    assert refusal(look_up(found, bearer("eyJhbGciOiJFUzI1NiJ9.e30=.eA"))).status == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELD = st.sampled_from(["alg", "kid", "typ", "crit", "jwk", "iss", "sub", "aud", "exp", "nbf", "scope", "scp"])
FIELDS = st.dictionaries(FIELD, JSON | st.sampled_from(["ES256", "ec", "JWT", ISSUER, RESOURCE]), max_size=6)


@given(header=FIELDS, claims=FIELDS | JSON, signature=st.binary(max_size=80))
def test_unsigned_tokens_are_refused(
    tmp_path_factory: pytest.TempPathFactory, header: dict[str, Any], claims: Any, signature: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "jwks.json"
    path.write_text(json.dumps({"keys": [EC.as_dict(private=False)]}))
    found = guard(issuer=ISSUER, jwks=str(path))
    for fields in (header, {"alg": "ES256", "kid": "ec"}):
        refused = refusal(look_up(found, bearer(f"{join(fields, claims)}.{b64(signature)}")))
        assert refused.status == 401


def test_keys_that_may_not_sign_are_not_used(issuer: Issuer, clock: Clock) -> None:
    encrypting, other, operations = (
        ec("enc", use="enc"),
        ec("other", alg="ES384"),
        ec("ops", key_ops=["sign", "deriveBits"]),
    )
    padded = {**short_rsa(), "kid": "padded", "n": b64(bytes(200) + base64.urlsafe_b64decode(short_rsa()["n"] + "=="))}
    issuer.publish(encrypting, other, operations, short_rsa(), padded, {"kty": "RSA", "n": "é", "e": "AQAB"}, EC)
    found = _guard(issuer, clock)
    for key in (encrypting, other):
        assert "does not have" in _refused(found, jwt(key, "ES256", _claims(clock)))
    assert refusal(look_up(found, bearer(jwt(operations, "ES256", _claims(clock))))).status == 401
    for kid in ("short", "padded"):
        signed = join({"alg": "RS256", "kid": kid}, _claims(clock))
        assert "does not have" in _refused(found, f"{signed}.{b64(bytes(128))}")


def test_a_key_of_another_curve_is_not_used(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(ec("p384", "P-384"))
    signed = join({"alg": "ES256", "kid": "p384"}, _claims(clock))
    assert "does not have" in _refused(_guard(issuer, clock), f"{signed}.{b64(bytes(96))}")


def test_a_refusal_repeats_nothing_of_a_bad_token(found: Guard, clock: Clock) -> None:
    token = jwt(EC, "ES256", _claims(clock, sub="carol-the-secret", aud="https://secret.example"))
    refused = refusal(look_up(found, bearer(token)))
    assert "secret" not in refused.challenge + refused.text
    assert token.split(".")[2] not in repr(refused)


# Cached


def test_a_verified_token_is_cached_until_it_expires(found: Guard, issuer: Issuer, clock: Clock) -> None:
    headers = bearer(jwt(EC, "ES256", _claims(clock)))
    assert found.check(headers, False) is None
    outcome = look_up(found, headers)
    assert found.check(headers, False) == outcome
    clock.now += 299
    assert found.check(headers, False) == outcome
    clock.now += 1
    assert found.check(headers, False) is None
    assert refusal(look_up(found, headers)).text == "the access token has expired"
    assert len(issuer.asked) == 1


def test_a_refused_token_is_not_remembered_as_good(found: Guard, clock: Clock) -> None:
    headers = bearer(jwt(EC, "ES256", _claims(clock, nbf=clock.now + 100)))
    assert refusal(look_up(found, headers))
    assert found.check(headers, False) is None
    clock.now += 50
    assert principal(look_up(found, headers))


def test_every_request_needs_the_configured_scopes(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(EC)
    found = _guard(issuer, clock, scopes=["admin"])
    headers = bearer(jwt(EC, "ES256", _claims(clock)))
    for outcome in (look_up(found, headers), found.check(headers, False)):
        assert refusal(outcome).status == 403
        assert 'error="insufficient_scope", scope="admin"' in refusal(outcome).challenge


# Settings


@pytest.mark.parametrize("name", ["none", "HS256", "HS512", "rs256", "", "A128KW"])
def test_unsafe_algorithms_are_refused(issuer: Issuer, name: str) -> None:
    said = error(issuer=ISSUER, jwks=issuer.jwks, algorithms=["ES256", name])
    assert said.startswith(f"auth.algorithms: {name!r} is not accepted; choose from RS256, ")


def test_an_empty_list_of_algorithms_is_refused(issuer: Issuer) -> None:
    said = error(issuer=ISSUER, jwks=issuer.jwks, algorithms=[])
    assert said == "auth.algorithms: empty, so no access token would be accepted"


def test_a_key_set_needs_an_issuer(issuer: Issuer) -> None:
    assert error(jwks=issuer.jwks) == (
        "auth.issuer: not set; auth.jwks needs it, to be compared with the `iss` of tokens"
    )


def test_a_jwks_url_without_tls_is_refused() -> None:
    assert error(issuer=ISSUER, jwks="http://login.example.com/jwks") == (
        "auth.jwks: expected an https URL; http is for loopback only"
    )
    assert "auth.jwks: expected an absolute http(s) URL" in error(issuer=ISSUER, jwks="file:///etc/jwks")


def test_keys_may_come_from_a_file(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [EC.as_dict(private=False)]}))
    found = guard(issuer=ISSUER, jwks=str(path), clock=clock)
    assert principal(look_up(found, bearer(jwt(EC, "ES256", _claims(clock)))))
    new = ec("new")
    path.write_text(json.dumps({"keys": [new.as_dict(private=False)]}))
    clock.now += 30
    assert principal(look_up(found, bearer(jwt(new, "ES256", _claims(clock)))))
    path.unlink()
    clock.now += 30
    refused = refusal(look_up(found, bearer(jwt(ec("newer"), "ES256", _claims(clock)))))
    assert refused.status == 503
    assert "can't be read" in (found.trouble or "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "can't be read: no such file or directory"),
        ("", "is not a JWKS document"),
        ("[]", "is not a JWKS document"),
        ('{"keys": {}}', "is not a JWKS document"),
        ('{"keys": []}', "holds no key that can be used"),
        ('{"keys": [{"kty": "oct", "k": "AAAA"}]}', "holds no key that can be used"),
        ('{"keys": [{"kty": "EC", "crv": "P-256"}]}', "holds no key that can be used"),
        (
            '{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}',
            "holds no key that can be used",
        ),
        ('{"keys": [{"kty": "RSA", "n": 7, "e": []}]}', "holds no key that can be used"),
        ('{"keys": [{"kty": ["EC"]}]}', "holds no key that can be used"),
        ("[" * 100_000, "is not a JWKS document"),
    ],
)
def test_a_file_without_keys_is_refused(tmp_path: Path, text: str | None, why: str) -> None:
    path = tmp_path / "jwks.json"
    if text is not None:
        path.write_text(text)
    said = error(issuer=ISSUER, jwks=str(path))
    assert said.startswith(f"auth.jwks: '{path}'")
    assert said.endswith(why)


def test_without_the_extra_the_fix_is_named() -> None:
    program = """
import sys
sys.modules["joserfc"] = None
from longshore.auth import Guard
from longshore.config.sections import AuthConfig
Guard(AuthConfig(token="s3cret-s3cret-s3cret"), {}, resource="https://h/mcp")
try:
    Guard(AuthConfig(issuer="https://h", jwks="https://h/jwks"), {}, resource="https://h/mcp")
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "ConfigError auth.jwks: checking a JWT needs a package more: pip install 'longshore[jwt]'\n"


def test_static_tokens_do_not_load_the_jwt_library() -> None:
    program = """
import sys
from longshore.auth import Guard
from longshore.config.sections import AuthConfig
Guard(AuthConfig(token="s3cret-s3cret-s3cret"), {}, resource="https://h/mcp")
print(*[name for name in ("joserfc", "cryptography", "http.client") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "\n"
