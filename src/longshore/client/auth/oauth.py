"""OAuth: a person logs in with a browser, by the authorization code flow with PKCE.

The client registers itself with an issuer where it has to (RFC 7591). The registration is stored for the next login.
The tokens that were issued to it have its identity with them, so that it can be replaced: by one with more scopes or
another redirect URI, or because the issuer has deleted it.
"""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any, final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from longshore.client.auth.discovery import OFFLINE, AuthServer, split_scopes
from longshore.client.auth.flow import TokenAuthorizer
from longshore.client.auth.loopback import (
    DEFAULT_URI,
    MOST_FIELDS,
    LoginTimeout,
    LoopbackListener,
    Redirect,
    RedirectFunction,
    check_uri,
)
from longshore.client.auth.oauth_http import check_given_url, explain_refusal, one_line, shown
from longshore.client.auth.token_store import FileStorage, Storage, TokenStore
from longshore.client.auth.tokens import (
    BASIC,
    METHODS,
    NONE,
    POST,
    PRIVATE_KEY,
    GrantContext,
    GrantRefused,
    Identity,
    Tokens,
    refusal,
    request_tokens,
)
from longshore.errors import AuthorizationError

_UNKNOWN_CLIENT = ("invalid_client", "unauthorized_client")
"""Errors of an issuer that does not know the client."""
_STEP = "authorization"


class Application(Struct, frozen=True, array_like=True):
    """How the client describes itself."""

    name: str
    kind: str
    """`native` for a program on a person's machine, `web` for one on a server."""
    method: str | None = None
    """The authentication method that the caller insists on."""

    def key(self, issuer: str) -> str:
        """The key of its registration with an issuer, which no other issuer sees."""
        return f"client {issuer} {msgspec.json.encode(self).decode()}"


class Registration(Struct, frozen=True, omit_defaults=True):
    """A registration as it is stored."""

    client: Identity
    redirect: str
    scopes: tuple[str, ...] = ()
    """The registered scopes: some servers allow no others."""
    expires: float = 0


@final
class OAuth(TokenAuthorizer):
    """Logs a person in where a server asks for it: `Client(url, auth=OAuth())`.

    - `client_id`, `client_secret` or `private_key`: a registration that was made by hand. Give the `issuer` with them;
      without it they are for the first authorization server that a server names.
    - `client_metadata_url`: a document on the web that describes the client, if the authorization server supports that.
    - With neither, the client registers itself, as `client_name` and `application_type`.
    - `scopes`: requested beside those that the server asks for.
    - `redirect`: a function from the URL to open to the URL that it led back to, instead of browser and listener.
    - `storage`: for registrations and tokens; by default a file in the user's config folder.
    - `dpop`: whether tokens are bound to a key; "auto" if the server supports it.
    """

    needs_person = True

    def __init__(
        self,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        private_key: str | dict[str, Any] | None = None,
        algorithm: str = "ES256",
        client_metadata_url: str | None = None,
        client_name: str = "Longshore",
        scopes: Iterable[str] | None = None,
        redirect: Callable[[str], Any] | None = None,
        redirect_uri: str | None = None,
        storage: Storage | None = None,
        token_endpoint_auth_method: str | None = None,
        application_type: str = "native",
        issuer: str | None = None,
        dpop: bool | str = "auto",
    ) -> None:
        if application_type not in ("native", "web"):
            raise ValueError(f'application_type is "native" or "web", not {application_type!r}')
        if token_endpoint_auth_method not in (None, *METHODS):
            raise ValueError(f"token_endpoint_auth_method is one of {', '.join(METHODS)}")
        if client_id is None and client_secret is not None:
            raise ValueError("client_secret needs the client_id that it belongs to")
        if client_id is None and client_metadata_url is None and private_key is not None:
            raise ValueError("private_key needs the client_id or the client_metadata_url that it belongs to")
        if client_metadata_url is not None:
            parts = urlsplit(check_given_url(client_metadata_url, "client_metadata_url"))
            if parts.scheme != "https" or parts.path in ("", "/"):
                raise ValueError("client_metadata_url: expected an https URL with a path")
        if redirect is not None:
            from longshore.registry.function import check_callback

            check_callback(redirect, "redirect", "url")
        profile = client_id or client_metadata_url or ""
        super().__init__(storage or FileStorage(), profile, scopes, dpop, issuer, client_id)
        self._given = Identity(profile, client_secret, private_key, algorithm, token_endpoint_auth_method)
        self._application = Application(client_name, application_type, token_endpoint_auth_method)
        self._redirect = redirect
        self._redirect_uri = check_uri(redirect_uri, listens=redirect is None) if redirect_uri else None

    async def obtain(self, context: GrantContext) -> Tokens:
        server = context.server
        if not server.authorization_endpoint:
            fix = "use a grant without a login, such as ClientCredentials"
            raise AuthorizationError(f"{_STEP}: {shown(server.issuer)} has no authorization_endpoint; {fix}")
        if "S256" not in (server.challenge_methods or ()):
            what = f"{_STEP}: {shown(server.issuer)} does not say that it supports PKCE with S256"
            raise AuthorizationError(f"{what} (code_challenge_methods_supported), so a code could be stolen; not used")
        found = await self._log_in(context, reuse=True)
        if found is None:
            found = await self._log_in(context, reuse=False)
        assert found is not None  # None is for an earlier registration only
        return found

    def identify(self, server: AuthServer, client: Identity) -> Identity | None:
        return self._configured(server) or client

    async def refused(self, server: AuthServer, client_id: str, error: str) -> None:
        if error in _UNKNOWN_CLIENT:
            key = self._application.key(server.issuer)
            registered = await load_registration(self.store, key)
            if registered is not None and registered.client.client_id == client_id:
                await self.store.write(key, None)

    async def _log_in(self, context: GrantContext, *, reuse: bool) -> Tokens | None:
        """One login. `reuse`: with an earlier registration if there is one; None if the issuer does not know it."""
        key = self._application.key(context.server.issuer)
        before = await load_registration(self.store, key)
        redirect: Redirect
        if self._redirect is not None:
            redirect = RedirectFunction(self._redirect, self._redirect_uri or DEFAULT_URI)
        else:
            redirect = await LoopbackListener.open(self._redirect_uri, before.redirect if before else None)
        try:
            identity, reused = await self._get_identity(context, redirect.uri, reuse=reuse)
            try:
                return await _ask_person(context, identity, redirect)
            except LoginTimeout:
                if not reused:
                    raise
                await self.store.write(key, None)
                hint = "; if the page said that this client is not known, the next try registers it again"
                raise LoginTimeout(hint) from None
            except GrantRefused as problem:
                if not reused or problem.error not in _UNKNOWN_CLIENT:
                    raise
                await self.store.write(key, None)
                return None
        finally:
            await redirect.close()

    async def _get_identity(self, context: GrantContext, redirect: str, *, reuse: bool) -> tuple[Identity, bool]:
        """The identity at this issuer: configured, by a document, registered earlier, or registered now.

        Also whether it was registered earlier: the issuer may have deleted it.
        """
        known = self._configured(context.server)
        if known is not None:
            return known, False
        async with self.store.lock():  # concurrent logins register once
            found = await load_registration(self.store, self._application.key(context.server.issuer))
            if reuse and found and found.redirect == redirect and set(context.scopes) <= set(found.scopes):
                return found.client, True
            return await register(context, self.store, self._application, redirect), False

    def _configured(self, server: AuthServer) -> Identity | None:
        """The identity without a registration of our own."""
        given = self._given
        if self.credential is not None:
            return given
        if given.client_id and server.takes_documents:
            signs = given.private_key is not None and PRIVATE_KEY in (server.auth_methods or (PRIVATE_KEY,))
            return replace(given, method=PRIVATE_KEY if signs else NONE)
        return None


async def _ask_person(context: GrantContext, identity: Identity, redirect: Redirect) -> Tokens:
    """Have the person log in, and exchange the code for tokens."""
    server, state, verifier = context.server, token_urlsafe(32), token_urlsafe(64)
    fields = {
        "response_type": "code",
        "client_id": identity.client_id,
        "redirect_uri": redirect.uri,
        "state": state,
        "code_challenge": urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    if context.resource:
        fields["resource"] = context.resource
    if context.scopes:
        fields["scope"] = " ".join(context.scopes)
    if OFFLINE in context.scopes:
        fields["prompt"] = "consent"  # OpenID Connect gives no refresh token otherwise
    endpoint = server.authorization_endpoint or ""
    url = f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(fields)}"
    why = f"{context.mcp_server.partition('?')[0]} wants a login at {server.issuer}"
    code = read_code(server, state, await redirect.follow(url, state, why))
    form = {"code": code, "redirect_uri": redirect.uri, "code_verifier": verifier}
    return await request_tokens(context, identity, {"grant_type": "authorization_code", **form}, "exchanging the code")


def read_code(server: AuthServer, state: str, url: str) -> str:
    """The code in the URL that the browser came back to, if it belongs to this login. Raises AuthorizationError.

    No part of an answer is used or shown before its state and its issuer are checked. The issuer (RFC 9207) is
    compared as a text, without normalization. It must be there if the metadata promise it.
    """
    try:
        pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise AuthorizationError(f"{_STEP}: the answer can't be read; log in again") from None
    fields = dict(pairs)
    names, issuer = [name for name, _ in pairs], shown(server.issuer)
    if any(names.count(name) > 1 for name in ("code", "state", "iss", "error", "error_description")):
        raise AuthorizationError(f"{_STEP}: the answer names something twice; it was not used")
    if not compare_digest(fields.get("state", "").encode(), state.encode()):
        raise AuthorizationError(f"{_STEP}: the answer does not belong to this login (another state); log in again")
    if "iss" not in fields and server.sends_iss:
        what = f"{issuer} promises to name itself in its answers (iss), and this one does not"
        raise AuthorizationError(f"{_STEP}: {what}; it was not used")
    if fields.get("iss", server.issuer) != server.issuer:
        what = f"the answer names another issuer than the one that was asked, {issuer}"
        raise AuthorizationError(f"{_STEP}: {what}; it was not used: it may be an attempt to steal the code")
    if "error" in fields:
        said = one_line(f"{fields['error']}: {fields.get('error_description', '')}")
        raise refusal(f"{_STEP}: {issuer} refused: {said}", fields["error"], 400)
    if not fields.get("code"):
        raise AuthorizationError(f"{_STEP}: the answer holds no code; log in again")
    return fields["code"]


# -- registration


async def load_registration(store: TokenStore, key: str) -> Registration | None:
    """A registration that has not expired."""
    try:
        found = msgspec.convert(await store.read(key), Registration)
    except msgspec.ValidationError:  # a malformed record counts as none
        return None
    return None if 0 < found.expires <= time.time() else found


async def register(context: GrantContext, store: TokenStore, application: Application, redirect: str) -> Identity:
    """Register the client, also for the scopes of its earlier registration. Raises AuthorizationError."""
    server, key = context.server, application.key(context.server.issuer)
    if not server.registration_endpoint:
        what = f"registration: {shown(server.issuer)} lets no client register itself"
        raise AuthorizationError(f"{what}; register with it by hand and give OAuth(client_id=…)")
    before = await load_registration(store, key)
    scopes = tuple(dict.fromkeys((*(before.scopes if before else ()), *context.scopes)))
    # Without a secret if possible, as a program on a person's machine has none.
    method = next((each for each in (NONE, BASIC, POST) if each in (server.auth_methods or (NONE,))), NONE)
    document: dict[str, Any] = {
        "client_name": application.name,
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": application.method or method,
        "application_type": application.kind,
        **({"scope": " ".join(scopes)} if scopes else {}),
    }
    response = await context.http.post_json(server.registration_endpoint, "registration: the endpoint", document)
    if response.status not in (200, 201) and server.assumed:
        what = "the server wants a token, but says nowhere how to get one by OAuth"
        raise AuthorizationError(what, fix="if you have one, give it by {}", options=("auth",))
    if response.status not in (200, 201):
        what = f"registration: {shown(server.issuer)} refused: {explain_refusal(response)}"
        fix = "register with it by hand and give client_id= (and client_secret=, if it gave one)"
        raise AuthorizationError(what, fix=fix)
    client_id, secret = response.text("client_id"), response.text("client_secret") or None
    if not client_id or not client_id.isprintable():
        raise AuthorizationError(f"registration: {shown(server.issuer)} gave no client_id")
    agreed = response.text("token_endpoint_auth_method")
    expires: Any = response.document.get("client_secret_expires_at")
    # A method without its secret is of no use: then it is chosen when it is needed.
    usable = agreed in METHODS and (secret is not None or agreed not in (BASIC, POST))
    client = Identity(client_id, secret, method=agreed if usable else None, registered=True)
    made = Registration(
        client,
        redirect,
        scopes=(*scopes, *split_scopes(response.text("scope"))),
        expires=float(expires) if isinstance(expires, (int, float)) and 0 < expires < 1e12 else 0,
    )
    await store.write(key, msgspec.to_builtins(made))
    return client
