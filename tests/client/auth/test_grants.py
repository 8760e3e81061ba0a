"""Tokens without a login."""

from __future__ import annotations

from typing import Any

import pytest
from joserfc.jwk import ECKey, OKPKey, RSAKey

from longshore.client.auth import ClientCredentials, EnterpriseManaged, JwtBearer
from longshore.errors import AuthorizationError

from .conftest import talk
from .oauth_servers import AuthorizationServer, LoopbackServer, ProtectedServer, Received, Refused, Reply, running

JAG = "urn:ietf:params:oauth:token-type:id-jag"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_client_credentials_with_a_secret_give_a_token(
    authority: AuthorizationServer, server: ProtectedServer, method: str
) -> None:
    authority.metadata["token_endpoint_auth_methods_supported"] = [method]
    authority.clients["me"] = {"token_endpoint_auth_method": method, "client_secret": "s"}
    assert talk(server, ClientCredentials("me", "s", scopes=["a"]), calls=2) == ["hello"] * 2
    [asked] = [each for each in authority.asked if each.path == "/token"]
    assert asked.form["scope"] == "a" and asked.form["resource"] == server.mcp
    assert "s" not in asked.form.values() or method == "client_secret_post"


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ("ES256", ECKey.generate_key("P-256")),
        ("ES384", ECKey.generate_key("P-384")),
        ("RS256", RSAKey.generate_key(2048)),
        ("PS256", RSAKey.generate_key(2048)),
        ("Ed25519", OKPKey.generate_key("Ed25519")),
    ],
)
@pytest.mark.parametrize("form", ["pem", "jwk"])
def test_client_credentials_with_a_private_key_give_a_token(
    authority: AuthorizationServer, server: ProtectedServer, algorithm: str, key: Any, form: str
) -> None:
    authority.metadata["token_endpoint_auth_methods_supported"] = ["private_key_jwt"]
    authority.clients["me"] = {"token_endpoint_auth_method": "private_key_jwt"}
    authority.public_keys["me"] = key
    given = key.as_pem(private=True).decode() if form == "pem" else key.as_dict(private=True)
    assert talk(server, ClientCredentials("me", private_key=given, algorithm=algorithm)) == ["hello"]


@pytest.mark.parametrize(("key", "algorithm"), [("hush", "ES256"), ({"kty": "hush"}, "RS256"), ("hush", "HS256")])
def test_an_invalid_key_is_not_shown(
    authority: AuthorizationServer, server: ProtectedServer, key: Any, algorithm: str
) -> None:
    authority.metadata["token_endpoint_auth_methods_supported"] = None
    with pytest.raises(AuthorizationError, match=r"private key can't be used|no algorithm") as caught:
        talk(server, ClientCredentials("me", private_key=key, algorithm=algorithm))
    assert "hush" not in str(caught.value)


def test_client_credentials_take_a_secret_or_a_key() -> None:
    for options in ({}, {"client_secret": "x", "private_key": "y"}):
        with pytest.raises(ValueError, match="client_secret or a private_key"):
            ClientCredentials("me", **options)  # type: ignore[arg-type]


def test_a_refused_client_is_an_error(authority: AuthorizationServer, server: ProtectedServer) -> None:
    with pytest.raises(AuthorizationError, match=r"client credentials.*invalid_client") as caught:
        talk(server, ClientCredentials("me", "hush-hush"))
    assert "hush-hush" not in str(caught.value)


def test_a_token_without_a_lifetime_is_used(authority: AuthorizationServer, server: ProtectedServer) -> None:
    authority.clients["me"] = {"token_endpoint_auth_method": "client_secret_basic", "client_secret": "s"}
    authority.seconds, authority.gives_refresh = 0, False
    assert talk(server, ClientCredentials("me", "s")) == ["hello"]


def test_a_workload_gets_a_token_for_its_assertion(authority: AuthorizationServer, server: ProtectedServer) -> None:
    authority.public_keys["vouched"] = True
    authority.clients["work"] = {"token_endpoint_auth_method": "none"}

    async def fetch() -> str:
        return "vouched\n"

    for source in ("vouched", lambda: "vouched", fetch):
        assert talk(server, JwtBearer(source)) == ["hello"]
        assert talk(server, JwtBearer(source, client_id="work")) == ["hello"]


def test_a_refused_assertion_is_tried_once(authority: AuthorizationServer, server: ProtectedServer) -> None:
    auth = JwtBearer("forged-assertion")
    for _ in range(2):
        with pytest.raises(AuthorizationError, match=r"workload identity.*(invalid_grant|refused before)") as caught:
            talk(server, auth)
        assert "forged-assertion" not in str(caught.value)
    assert authority.count("/token") == 1 and authority.count("/authorize") == authority.count("/register") == 0


@pytest.mark.parametrize("source", [lambda: None, "", "two words", lambda: b"x"])
def test_an_invalid_assertion_is_an_error(authority: AuthorizationServer, server: ProtectedServer, source: Any) -> None:
    with pytest.raises(AuthorizationError, match="assertion= gave no token"):
        talk(server, JwtBearer(source))


class Company(LoopbackServer):
    """A company's login, which vouches for its people."""

    def __init__(self, authority: AuthorizationServer) -> None:
        super().__init__()
        self.authority = authority
        self.kind = JAG

    def handle(self, received: Received) -> Reply:
        form = received.form
        assert form["grant_type"].endswith(":token-exchange") and form["requested_token_type"] == JAG
        assert form["subject_token_type"].endswith(":id_token") and form["audience"] == self.authority.issuer
        if form["subject_token"] != "person":
            return Refused("invalid_grant", f"{form['subject_token']} is unknown").said
        self.authority.public_keys[f"grant-{form['resource']}"] = True
        document = {"access_token": f"grant-{form['resource']}", "issued_token_type": self.kind, "token_type": "N_A"}
        return Reply(200, document)


def test_an_id_token_is_exchanged_for_an_access_token(authority: AuthorizationServer, server: ProtectedServer) -> None:
    company = Company(authority)
    authority.clients["me"] = {"token_endpoint_auth_method": "client_secret_basic", "client_secret": "s"}
    with running(company):

        def enterprise(token: str) -> EnterpriseManaged:
            return EnterpriseManaged(
                id_token=token,
                idp_token_endpoint=f"{company.url}/token",
                idp_client_id="here",
                client_id="me",
                client_secret="s",
            )

        assert talk(server, enterprise("person"), calls=2) == ["hello"] * 2
        assert company.count("/token") == authority.count("/token") == 1
        with pytest.raises(AuthorizationError, match=r"enterprise login.*is the id_token still valid") as caught:
            talk(server, enterprise("stranger"))
        assert "stranger" not in str(caught.value)
        company.kind = "urn:ietf:params:oauth:token-type:access_token"
        with pytest.raises(AuthorizationError, match="did not give the grant"):
            talk(server, enterprise("person"))


def test_an_identity_provider_over_plain_http_is_refused() -> None:
    with pytest.raises(ValueError, match="idp_token_endpoint: expected an https URL"):
        EnterpriseManaged(id_token="x", idp_token_endpoint="http://idp.example/t", idp_client_id="a", client_id="b")
