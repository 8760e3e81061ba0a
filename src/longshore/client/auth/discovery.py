"""From a refused request to the authorization server: the challenge, then RFC 9728, then RFC 8414 or OpenID Connect.

The URLs are asked in the order that the specification fixes, and the documents are checked against their source: the
resource's metadata must be about this server, the authorization server's must name the very issuer that led there,
byte for byte. Otherwise a server could pass off another's identity as its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import SplitResult, urlunsplit

from msgspec import Struct

from longshore.client.auth.oauth_http import OAuthHttp, OAuthResponse, TryLater
from longshore.client.auth.scopes import valid_scopes
from longshore.client.auth.url_policy import covers, plain_url, shown, well_known
from longshore.errors import AuthorizationError

MOST_LISTED = 100
"""Entries that are read of one list in metadata. No more scopes than that are requested; other lists are shorter."""
MOST_CHALLENGE_CHARS = 16 << 10
"""Characters that are read of one WWW-Authenticate header. Real ones have a few hundred."""
_RESOURCE = "oauth-protected-resource"
_SERVER = "oauth-authorization-server"
_OPENID = "openid-configuration"
_SCHEME = re.compile(r"[ \t,]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?=[ \t]|,|$)[ \t]*")
_FIELD = re.compile(
    r"""[ \t,]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+.^_`|~0-9A-Za-z:/?=&@;-]+))"""
)
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))")
_ESCAPE = re.compile(r"\\(.)")


class SchemeChallenge(Struct, frozen=True):
    """The challenge of one scheme. Names of fields are in lower case; the first of two with the same name counts."""

    scheme: str
    fields: dict[str, str]


class Challenge(Struct, frozen=True):
    """A refusal's demands, over all its schemes that we support."""

    error: str = ""
    scope: str | None = None
    metadata: str | None = None
    dpop: bool = False
    """Only a token that is bound to a key is accepted."""


def read_challenge(headers: Iterable[tuple[str, str]]) -> Challenge:
    """Read the challenge in the headers of a 401 or 403."""
    found = parse_challenges(value for name, value in headers if name == "www-authenticate")
    ours = [each for each in found if each.scheme in ("bearer", "dpop")]

    def first(name: str) -> str | None:
        return next((each.fields[name] for each in ours if name in each.fields), None)

    schemes = {each.scheme for each in ours}
    return Challenge(first("error") or "", first("scope"), first("resource_metadata"), dpop=schemes == {"dpop"})


def challenge_description(headers: Iterable[tuple[str, str]]) -> str:
    """Why the server refuses, in its own words; empty if it does not say."""
    found = parse_challenges(value for name, value in headers if name == "www-authenticate")
    return next((each.fields["error_description"] for each in found if each.fields.get("error_description")), "")


def parse_challenges(values: Iterable[str]) -> list[SchemeChallenge]:
    """The challenges of all WWW-Authenticate headers. A malformed field ends its challenge."""
    found: list[SchemeChallenge] = []
    for value in values:
        text, at = value[:MOST_CHALLENGE_CHARS], 0
        while scheme := _SCHEME.match(text, at):
            fields: dict[str, str] = {}
            found.append(SchemeChallenge(scheme[1].lower(), fields))
            at = _read_fields(text, scheme.end(), fields)
    return found


def _read_fields(text: str, at: int, fields: dict[str, str]) -> int:
    token = _TOKEN68.match(text, at)
    if token and not _FIELD.match(text, at):
        return token.end()
    while field := _FIELD.match(text, at):
        value = field[3] if field[2] is None else _ESCAPE.sub(r"\1", field[2])
        fields.setdefault(field[1].lower(), value)
        at = field.end()
    return at


# -- metadata


class ProtectedResource(Struct, frozen=True):
    """The metadata of an MCP server as a protected resource."""

    issuers: tuple[str, ...]
    """The authorization servers that issue tokens for it."""
    identifier: str | None = None
    """How tokens name it, byte for byte. None for a server of 2025-03-26."""
    scopes: tuple[str, ...] = ()
    dpop: bool = False
    """It accepts tokens that are bound to a key."""
    dpop_required: bool = False
    without_metadata: bool = False
    """Its own origin is the authorization server, as in 2025-03-26."""
    derived: bool = False
    """It names no issuer: its own origin is used, with or without a slash at the end."""

    def has(self, issuer: str) -> bool:
        """Whether it accepts tokens of an issuer."""
        return issuer in self.issuers or (self.derived and issuer.removesuffix("/") in self.issuers)


class AuthServer(Struct, frozen=True):
    """The metadata of an authorization server, as far as we need it."""

    issuer: str
    token_endpoint: str
    authorization_endpoint: str = ""
    registration_endpoint: str = ""
    scopes: tuple[str, ...] | None = None
    auth_methods: tuple[str, ...] | None = None
    challenge_methods: tuple[str, ...] = ()
    sends_iss: bool = False
    takes_documents: bool = False
    """The identifier of a client may be the URL of a document about it."""
    dpop: bool = False
    assumed: bool = False
    """It publishes no metadata; these are the default endpoints of 2025-03-26."""


async def find_resource(http: OAuthHttp, server: str, named: str | None) -> ProtectedResource:
    """The metadata of a server: where its challenge says, else at the well-known URLs. Raises AuthorizationError."""
    for url in resource_metadata_urls(server, named):
        reply = await http.get(url, "the resource metadata at")
        if _has_document(reply, url) and reply.text("resource"):
            return _read_resource(reply, server, url)
    return ProtectedResource(issuers=(_root(_parts(server)),), without_metadata=True, derived=True)


def resource_metadata_urls(server: str, named: str | None) -> list[str]:
    """Where the metadata of a server may be, in order."""
    parts = _parts(server)
    places = [well_known(parts, _RESOURCE, path=True), well_known(parts, _RESOURCE, path=False)]
    return list(dict.fromkeys([named, *places] if named else places))


def _read_resource(reply: OAuthResponse, server: str, url: str) -> ProtectedResource:
    document, identifier = reply.document or {}, reply.text("resource")
    if not covers(identifier, server):
        what = f"the resource metadata at {shown(url)} is about {shown(identifier)}, not about this server"
        raise AuthorizationError(f"{what}; nothing was authorized. Its operator must correct `resource`")
    issuers = _texts(document.get("authorization_servers"))
    required = document.get("dpop_bound_access_tokens_required") is True
    return ProtectedResource(
        issuers=issuers or (_root(_parts(server)),),
        identifier=identifier,
        scopes=valid_scopes(_texts(document.get("scopes_supported"))),
        dpop=required or "ES256" in _texts(document.get("dpop_signing_alg_values_supported")),
        dpop_required=required,
        derived=not issuers,
    )


async def find_server(http: OAuthHttp, issuer: str, *, assume: bool, derived: bool = False) -> AuthServer:
    """The metadata of an issuer. `assume`: if it has none, the endpoints of 2025-03-26 are assumed.

    `derived`: no server named the issuer, so that it may name itself by its origin with or without a slash.
    """
    parts = http.policy.check(issuer, "the authorization server")
    for url in server_metadata_urls(parts):
        reply = await http.get(url, "the authorization server's metadata at")
        if _has_document(reply, url):
            root = issuer.removesuffix("/")
            return _read_server(http, reply, (root, root + "/") if derived else (issuer,), url)
    if assume:
        root = _root(parts)
        return AuthServer(
            issuer, f"{root}/token", f"{root}/authorize", f"{root}/register", challenge_methods=("S256",), assumed=True
        )
    asked = " and ".join(server_metadata_urls(parts))
    raise AuthorizationError(f"the authorization server {shown(issuer)} publishes no metadata; asked {asked}")


def server_metadata_urls(issuer: SplitResult) -> list[str]:
    """Where the metadata of an issuer may be, in order. With a path, the root belongs to another issuer."""
    path = issuer.path.rstrip("/")
    places = [well_known(issuer, _SERVER, path=True), well_known(issuer, _OPENID, path=True)]
    if path:
        places.append(urlunsplit((issuer.scheme, issuer.netloc, f"{path}/.well-known/{_OPENID}", "", "")))
    return places


def _read_server(http: OAuthHttp, reply: OAuthResponse, issuers: tuple[str, ...], url: str) -> AuthServer:
    document, issuer = reply.document or {}, reply.text("issuer")
    if issuer not in issuers:
        what = f"the metadata at {shown(url)} names the issuer {shown(issuer)}, not {shown(issuers[0])}"
        raise AuthorizationError(f"{what}; it was not used: it may be the metadata of another")
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
        if reply.text(name):
            http.policy.check(reply.text(name), f"the {name}")
    if not reply.text("token_endpoint"):
        raise AuthorizationError(f"the metadata at {shown(url)} has no token_endpoint")
    scopes, methods = document.get("scopes_supported"), document.get("token_endpoint_auth_methods_supported")
    return AuthServer(
        issuer=issuer,
        token_endpoint=reply.text("token_endpoint"),
        authorization_endpoint=reply.text("authorization_endpoint"),
        registration_endpoint=reply.text("registration_endpoint"),
        scopes=valid_scopes(_texts(scopes)) if isinstance(scopes, list) else None,
        auth_methods=_texts(methods) if isinstance(methods, list) else None,
        challenge_methods=_texts(document.get("code_challenge_methods_supported")),
        sends_iss=document.get("authorization_response_iss_parameter_supported") is True,
        takes_documents=document.get("client_id_metadata_document_supported") is True,
        dpop="ES256" in _texts(document.get("dpop_signing_alg_values_supported")),
    )


def _has_document(reply: OAuthResponse, url: str) -> bool:
    """Whether a URL has a document. Many servers answer unknown paths with a page, so that counts as none."""
    if reply.status >= 500 or reply.status == 429:
        raise TryLater(f"{shown(url)} answered with status {reply.status}; try again later")
    return reply.status == 200 and reply.document is not None


def _parts(server: str) -> SplitResult:
    parts = plain_url(server)
    assert parts is not None  # the policy has checked it
    return parts


def _root(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}"


def _texts(value: Any) -> tuple[str, ...]:
    """The texts of a list; none if it is no list."""
    listed: list[Any] = value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
    return tuple(each for each in listed if isinstance(each, str))[:MOST_LISTED]
