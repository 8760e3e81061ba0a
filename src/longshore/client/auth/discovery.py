"""From a refused request to the authorization server: the challenge, then RFC 9728, then RFC 8414 or OpenID Connect.

The URLs are asked in the order that the specification fixes, and the documents are checked against their source: the
resource's metadata must be about this server, the authorization server's must name the very issuer that led there, byte
for byte. Otherwise a server could claim the identity of another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar
from urllib.parse import SplitResult, urlunsplit

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from longshore.client.auth.oauth_http import OAuthHttp, TryLater, covers, plain_url, shown, well_known
from longshore.errors import AuthorizationError
from longshore.schema.kinds import is_array

T = TypeVar("T")
Texts = tuple[str, ...]

MOST_CHALLENGE_CHARS = 16 << 10
"""Characters that are read of one WWW-Authenticate header. Real ones have a few hundred."""
MOST_LISTED = 100
"""Elements that are read of a list in metadata."""
OFFLINE = "offline_access"
"""A scope that requests a refresh token, at authorization servers that list it."""
MOST_SCOPE_CHARS = 256
"""Of one scope. The longest in use are URLs of some 100."""
MOST_SCOPES = 100
"""In one request. They are part of the URL that a browser opens, and a person reads them."""
_SCOPE = re.compile(rf"[\x21\x23-\x5b\x5d-\x7e]{{1,{MOST_SCOPE_CHARS}}}")
_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_CHALLENGE_PART = re.compile(
    rf"""[ \t,]*(?:
        (?P<name>{_NAME})[ \t]*=[ \t]*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[!#$%&'*+.^_`|~0-9A-Za-z:/?=&@;-]+))
        |(?P<scheme>{_NAME})(?=[ \t,]|$)
        |[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))  # a token68, such as that of Negotiate
    )""",
    re.VERBOSE,
)


# -- scopes


def split_scopes(text: str | None) -> tuple[str, ...]:
    """The valid scopes in a text, each once, in order."""
    return valid_scopes((text or "").split(" "))


def valid_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """The valid scopes among these, each once, in order."""
    return tuple(dict.fromkeys(each for each in scopes if _SCOPE.fullmatch(each)))[:MOST_SCOPES]


def choose_scopes(
    challenged: tuple[str, ...],
    configured: tuple[str, ...],
    supported: tuple[str, ...],
    before: tuple[str, ...],
    listed: tuple[str, ...] | None,
    *,
    refreshable: bool,
) -> tuple[str, ...]:
    """The scopes of an authorization.

    They come from the challenge and the caller, else from the server's metadata. `before` was requested already:
    without it, other requests would fail. `listed` are the scopes of the authorization server: `offline_access` is
    requested if it is one of them and a refresh token can be used.
    """
    wanted = dict.fromkeys((*before, *configured, *challenged) if challenged or configured else (*before, *supported))
    explicit = OFFLINE in configured and listed is None
    wanted.pop(OFFLINE, None)
    if explicit or (wanted and refreshable and OFFLINE in (listed or ())):
        wanted[OFFLINE] = None
    return tuple(wanted)


# -- challenges


class Challenge(Struct, frozen=True):
    """A refusal's demands, over all its schemes that we support."""

    error: str = ""
    scope: str | None = None
    metadata: str | None = None
    dpop: bool = False
    """Only a token that is bound to a key is accepted."""


def read_challenge(headers: Iterable[tuple[str, str]]) -> Challenge:
    """Read the challenge in the headers of a 401 or 403."""
    ours = [(scheme, fields) for scheme, fields in parse_challenges(headers) if scheme in ("bearer", "dpop")]

    def first(name: str) -> str | None:
        return next((fields[name] for _, fields in ours if name in fields), None)

    only_dpop = {scheme for scheme, _ in ours} == {"dpop"}
    return Challenge(first("error") or "", first("scope"), first("resource_metadata"), dpop=only_dpop)


def challenge_description(headers: Iterable[tuple[str, str]]) -> str:
    """The server's own description of the refusal; empty if there is none."""
    said = (fields.get("error_description", "") for _, fields in parse_challenges(headers))
    return next(filter(None, said), "")


def parse_challenges(headers: Iterable[tuple[str, str]]) -> list[tuple[str, dict[str, str]]]:
    """The scheme and fields of each challenge, names in lower case. Of two fields with one name the first counts.

    A malformed field ends its header.
    """
    found: list[tuple[str, dict[str, str]]] = []
    for value in (value[:MOST_CHALLENGE_CHARS] for name, value in headers if name == "www-authenticate"):
        fields: dict[str, str] = {}
        at = 0
        while part := _CHALLENGE_PART.match(value, at):
            at = part.end()
            if part["scheme"]:
                fields = {}
                found.append((part["scheme"].lower(), fields))
            elif part["name"]:
                text = part["plain"] if part["quoted"] is None else re.sub(r"\\(.)", r"\1", part["quoted"])
                fields.setdefault(part["name"].lower(), text)
    return found


# -- metadata


class ProtectedResource(Struct, frozen=True):
    """The metadata of an MCP server as a protected resource (RFC 9728), as far as we need them."""

    resource: str | None = None
    """How tokens name it, byte for byte. None for a server of 2025-03-26, which has no metadata."""
    issuers: Texts | None = field(name="authorization_servers", default=None)
    scopes: Texts | None = field(name="scopes_supported", default=None)
    dpop_algorithms: Texts | None = field(name="dpop_signing_alg_values_supported", default=None)
    dpop_required: bool | None = field(name="dpop_bound_access_tokens_required", default=None)
    origin: str = ""

    @property
    def issuer(self) -> str:
        """The first authorization server that issues tokens for it; its own origin if it names none."""
        return self.issuers[0] if self.issuers else self.origin

    def has(self, issuer: str) -> bool:
        """Whether it accepts tokens of an issuer. Its own origin may be written with a slash at the end or without."""
        return issuer in self.issuers if self.issuers else issuer.removesuffix("/") == self.origin


class AuthServer(Struct, frozen=True):
    """The metadata of an authorization server (RFC 8414), as far as we need them."""

    issuer: str = ""
    token_endpoint: str = ""
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    scopes: Texts | None = field(name="scopes_supported", default=None)
    auth_methods: Texts | None = field(name="token_endpoint_auth_methods_supported", default=None)
    challenge_methods: Texts | None = field(name="code_challenge_methods_supported", default=None)
    sends_iss: bool | None = field(name="authorization_response_iss_parameter_supported", default=None)
    takes_documents: bool | None = field(name="client_id_metadata_document_supported", default=None)
    """The identifier of a client may be the URL of a document about it."""
    dpop_algorithms: Texts | None = field(name="dpop_signing_alg_values_supported", default=None)
    assumed: bool = False
    """It publishes no metadata; these are the default endpoints of 2025-03-26."""


async def find_resource(http: OAuthHttp, server: str, named: str | None) -> ProtectedResource:
    """The metadata of a server: where its challenge says, else at the well-known URLs. Raises AuthorizationError."""
    parts = plain_url(server)
    assert parts is not None  # the policy has checked it
    origin = f"{parts.scheme}://{parts.netloc}"
    for url in resource_metadata_urls(parts, named):
        found = await _get_metadata(http, url, "the resource metadata at", ProtectedResource)
        if found is None or not found.resource:
            continue
        if not covers(found.resource, server):
            what = f"the resource metadata at {shown(url)} is about {shown(found.resource)}, not about this server"
            raise AuthorizationError(f"{what}; nothing was authorized. Its operator must correct `resource`")
        return replace(found, origin=origin)
    return ProtectedResource(origin=origin)


def resource_metadata_urls(server: SplitResult, named: str | None) -> list[str]:
    """Where the metadata of a server may be, in order."""
    places = [well_known(server, "oauth-protected-resource", path=path) for path in (True, False)]
    return list(dict.fromkeys([named, *places] if named else places))


async def find_server(http: OAuthHttp, issuer: str, resource: ProtectedResource) -> AuthServer:
    """The metadata of an issuer of a resource. Raises AuthorizationError.

    If the resource has no metadata and its issuer neither, the endpoints of 2025-03-26 are assumed.
    """
    parts = http.policy.check(issuer, "the authorization server")
    for url in server_metadata_urls(parts):
        found = await _get_metadata(http, url, "the authorization server's metadata at", AuthServer)
        if found is None:
            continue
        if found.issuer != issuer and (resource.issuers or not resource.has(found.issuer)):
            what = f"the metadata at {shown(url)} names the issuer {shown(found.issuer)}, not {shown(issuer)}"
            raise AuthorizationError(f"{what}; it was not used: it may be the metadata of another")
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
            if getattr(found, name):
                http.policy.check(getattr(found, name), f"the {name}")
        if not found.token_endpoint:
            raise AuthorizationError(f"the metadata at {shown(url)} has no token_endpoint")
        return replace(found, assumed=False)
    if resource.resource is not None:
        asked = " and ".join(server_metadata_urls(parts))
        raise AuthorizationError(f"the authorization server {shown(issuer)} publishes no metadata; asked {asked}")
    origin = f"{parts.scheme}://{parts.netloc}"
    endpoints = f"{origin}/token", f"{origin}/authorize", f"{origin}/register"
    return AuthServer(issuer, *endpoints, challenge_methods=("S256",), assumed=True)


def server_metadata_urls(issuer: SplitResult) -> list[str]:
    """Where the metadata of an issuer may be, in order. With a path, the root belongs to another issuer."""
    path = issuer.path.rstrip("/")
    places = [well_known(issuer, name, path=True) for name in ("oauth-authorization-server", "openid-configuration")]
    if path:
        places.append(urlunsplit((issuer.scheme, issuer.netloc, f"{path}/.well-known/openid-configuration", "", "")))
    return places


async def _get_metadata(http: OAuthHttp, url: str, what: str, kind: type[T]) -> T | None:
    """The metadata at a URL; None if there are none: many servers answer unknown paths with a page."""
    reply = await http.get(url, what)
    if reply.status >= 500 or reply.status == 429:
        raise TryLater(f"{shown(url)} answered with status {reply.status}; try again later")
    if reply.status != 200 or not reply.document:
        return None
    fields = {name: value[:MOST_LISTED] if is_array(value) else value for name, value in reply.document.items()}
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as problem:
        raise AuthorizationError(f"{what} {shown(url)} are malformed: {problem}") from None
