"""From a refused request to the authorization server that can help: RFC 9728, then RFC 8414 or OpenID Connect.

The places are asked in the order that the specification fixes, and the answers are held to what they must say of
themselves: the resource's metadata must be about this server, the authorization server's must name the very issuer
that led there, byte for byte. Otherwise a server could lend us the identity of another.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import SplitResult, urlunsplit

from msgspec import Struct

from longshore.client.oauth.addresses import covers, shown, split, well_known
from longshore.client.oauth.asking import Asker, Reply, TryLater
from longshore.client.oauth.scopes import clean
from longshore.errors import AuthorizationError

MOST_LISTED = 100
"""Entries that are taken of one list in metadata. No more scopes than that are asked for; other lists are shorter."""
_RESOURCE = "oauth-protected-resource"
_SERVER = "oauth-authorization-server"
_OPENID = "openid-configuration"


class Resource(Struct, frozen=True):
    """What a server says of itself as a protected resource."""

    issuers: tuple[str, ...]
    """Who issues tokens for it."""
    identifier: str | None = None
    """How tokens name it, byte for byte. None: a server of 2025-03-26 has no such name."""
    scopes: tuple[str, ...] = ()
    dpop: bool = False
    """It takes tokens that are bound to a key."""
    dpop_required: bool = False
    old: bool = False
    """It has no metadata: its own origin is the authorization server, as in 2025-03-26."""
    derived: bool = False
    """It names no issuer; the one here is its own origin, and whether that has a slash at its end is not known."""

    def has(self, issuer: str) -> bool:
        """Whether an issuer is one of its."""
        return issuer in self.issuers or (self.derived and issuer.removesuffix("/") in self.issuers)


class AuthServer(Struct, frozen=True):
    """What an authorization server says of itself, as far as we need it."""

    issuer: str
    token_endpoint: str
    authorization_endpoint: str = ""
    registration_endpoint: str = ""
    scopes: tuple[str, ...] | None = None
    auth_methods: tuple[str, ...] | None = None
    challenge_methods: tuple[str, ...] = ()
    sends_iss: bool = False
    takes_documents: bool = False
    """A client's identifier may be the URL of a document about it."""
    dpop: bool = False
    assumed: bool = False
    """It published nothing; these are the endpoints that 2025-03-26 falls back to."""


async def find_resource(asker: Asker, server: str, named: str | None) -> Resource:
    """The metadata of a server: where its challenge says, else at the well-known places. Raises AuthorizationError."""
    for url in resource_places(server, named):
        reply = await asker.get(url, "the resource metadata at")
        if _is_there(reply, url) and reply.text("resource"):
            return _read_resource(reply, server, url)
    return Resource(issuers=(_root(_parts(server)),), old=True, derived=True)


def resource_places(server: str, named: str | None) -> list[str]:
    """Where the metadata of a server may be, in order, each once."""
    parts = _parts(server)
    places = [well_known(parts, _RESOURCE, path=True), well_known(parts, _RESOURCE, path=False)]
    return list(dict.fromkeys([named, *places] if named else places))


def _read_resource(reply: Reply, server: str, url: str) -> Resource:
    document, identifier = reply.document or {}, reply.text("resource")
    if not covers(identifier, server):
        what = f"the resource metadata at {shown(url)} is about {shown(identifier)}, not about this server"
        raise AuthorizationError(f"{what}; nothing was authorized. Whoever runs the server must correct `resource`")
    issuers = _texts(document.get("authorization_servers"))
    required = document.get("dpop_bound_access_tokens_required") is True
    return Resource(
        issuers=issuers or (_root(_parts(server)),),
        identifier=identifier,
        scopes=clean(_texts(document.get("scopes_supported"))),
        dpop=required or "ES256" in _texts(document.get("dpop_signing_alg_values_supported")),
        dpop_required=required,
        derived=not issuers,
    )


async def find_server(asker: Asker, issuer: str, *, old: bool, derived: bool = False) -> AuthServer:
    """The metadata of an issuer. `old`: if it has none, the endpoints of 2025-03-26 are assumed.

    `derived`: nobody named the issuer, so that it may call itself by its origin with or without a slash.
    """
    parts = asker.wall.check(issuer, "the authorization server")
    for url in server_places(parts):
        reply = await asker.get(url, "the authorization server's metadata at")
        if _is_there(reply, url):
            root = issuer.removesuffix("/")
            return _read_server(asker, reply, (root, root + "/") if derived else (issuer,), url)
    if old:
        root = _root(parts)
        return AuthServer(
            issuer, f"{root}/token", f"{root}/authorize", f"{root}/register", challenge_methods=("S256",), assumed=True
        )
    asked = " and ".join(server_places(parts))
    raise AuthorizationError(f"the authorization server {shown(issuer)} publishes no metadata; asked {asked}")


def server_places(issuer: SplitResult) -> list[str]:
    """Where the metadata of an issuer may be, in order. For one with a path, the root belongs to somebody else."""
    path = issuer.path.rstrip("/")
    places = [well_known(issuer, _SERVER, path=True), well_known(issuer, _OPENID, path=True)]
    if path:
        places.append(urlunsplit((issuer.scheme, issuer.netloc, f"{path}/.well-known/{_OPENID}", "", "")))
    return places


def _read_server(asker: Asker, reply: Reply, issuers: tuple[str, ...], url: str) -> AuthServer:
    document, issuer = reply.document or {}, reply.text("issuer")
    if issuer not in issuers:
        what = f"the metadata at {shown(url)} names the issuer {shown(issuer)}, not {shown(issuers[0])}"
        raise AuthorizationError(f"{what}; it was not used, for it may be another's")
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
        if reply.text(name):
            asker.wall.check(reply.text(name), f"the {name}")
    if not reply.text("token_endpoint"):
        raise AuthorizationError(f"the metadata at {shown(url)} has no token_endpoint")
    scopes, methods = document.get("scopes_supported"), document.get("token_endpoint_auth_methods_supported")
    return AuthServer(
        issuer=issuer,
        token_endpoint=reply.text("token_endpoint"),
        authorization_endpoint=reply.text("authorization_endpoint"),
        registration_endpoint=reply.text("registration_endpoint"),
        scopes=clean(_texts(scopes)) if isinstance(scopes, list) else None,
        auth_methods=_texts(methods) if isinstance(methods, list) else None,
        challenge_methods=_texts(document.get("code_challenge_methods_supported")),
        sends_iss=document.get("authorization_response_iss_parameter_supported") is True,
        takes_documents=document.get("client_id_metadata_document_supported") is True,
        dpop="ES256" in _texts(document.get("dpop_signing_alg_values_supported")),
    )


def _is_there(reply: Reply, url: str) -> bool:
    """Whether a place holds a document. Many servers answer what they don't have with a page, so that counts as no."""
    if reply.status >= 500 or reply.status == 429:  # too many ask, so there may well be one
        raise TryLater(f"{shown(url)} answered with status {reply.status}; try again later")
    return reply.status == 200 and reply.document is not None


def _parts(server: str) -> SplitResult:
    parts = split(server)
    assert parts is not None  # the wall has seen it
    return parts


def _root(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}"


def _texts(value: Any) -> tuple[str, ...]:
    """The texts of a list, as far as it is one."""
    listed: list[Any] = value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
    return tuple(each for each in listed if isinstance(each, str))[:MOST_LISTED]
