"""OAuth: a person logs in with a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, final

from longshore.client.auth.flow import authorization_url, begin_login, check_server, read_code
from longshore.client.auth.loopback import (
    DEFAULT_URI,
    LoginTimeout,
    LoopbackListener,
    Redirect,
    RedirectFunction,
    check_uri,
)
from longshore.client.auth.registration import (
    Application,
    Registration,
    delete_registration,
    load_registrations,
    mark_doubted,
    register,
)
from longshore.client.auth.server_credentials import GrantContext
from longshore.client.auth.token_authorizer import TokenAuthorizer
from longshore.client.auth.token_endpoint import (
    METHODS,
    NONE,
    PRIVATE_KEY,
    GrantRefused,
    Identity,
    Tokens,
    request_tokens,
)
from longshore.client.auth.token_storage import FileStorage, Storage
from longshore.client.auth.url_policy import check_given_url, plain_url, shown
from longshore.errors import AuthorizationError

_UNKNOWN_CLIENT = ("invalid_client", "unauthorized_client")
"""Errors of an issuer that does not know the client."""


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
        super().__init__(storage or FileStorage(), client_id or client_metadata_url or "", scopes, dpop, issuer)
        self._given = client_id, client_secret, private_key, algorithm
        self._document = _document(client_metadata_url)
        self._method = token_endpoint_auth_method
        self._application = Application(client_name, application_type, token_endpoint_auth_method)
        if redirect is not None:
            from longshore.registry.function import check_callback

            check_callback(redirect, "redirect", "url")
        self._redirect = redirect
        self._redirect_uri = check_uri(redirect_uri, listens=redirect is None) if redirect_uri else None

    async def obtain(self, context: GrantContext) -> Tokens:
        check_server(context.purpose.server)
        found = await self._log_in(context, reuse=True)
        if found is None:
            found = await self._log_in(context, reuse=False)
        assert found is not None  # None is for an earlier registration only
        return found

    async def identify(self, context: GrantContext) -> Identity | None:
        known = await self._configured(context)
        if known is not None:
            return known
        registered = await load_registrations(context.store, context.purpose.server.issuer)
        return next((each.identity for each in registered if each.client_id == context.client_id), None)

    async def refused(self, context: GrantContext, error: str) -> None:
        if error in _UNKNOWN_CLIENT and context.client_id != self._given[0]:
            await delete_registration(context.store, context.purpose.server.issuer, context.client_id)

    async def _log_in(self, context: GrantContext, *, reuse: bool) -> Tokens | None:
        """One login. `reuse`: with an earlier registration if there is one; None if the issuer does not know it."""
        redirect = await self._open_redirect(context)
        try:
            identity, reused = await self._get_identity(context, redirect.uri, reuse=reuse)
            try:
                return await _ask_person(context, identity, redirect)
            except (GrantRefused, LoginTimeout) as problem:
                if not reused:
                    raise
                await _check_registration(context, identity.client_id, problem)
                return None
        finally:
            await redirect.close()

    async def _get_identity(self, context: GrantContext, redirect: str, *, reuse: bool) -> tuple[Identity, bool]:
        """The identity at this issuer: configured, by a document, registered earlier, or registered now.

        Also whether it was registered earlier: the issuer may have deleted it.
        """
        known = await self._configured(context)
        if known is not None:
            return known, False
        server = context.purpose.server
        async with context.store.lock(f"register {server.issuer}"):
            for registered in await self._suiting(context):
                if registered.redirect == redirect and reuse:
                    return registered.identity, True
            if not server.registration_endpoint:
                what = f"registration: {shown(server.issuer)} lets no client register itself"
                raise AuthorizationError(f"{what}; register with it by hand and give OAuth(client_id=…)")
            scopes = context.purpose.scopes
            return await register(context.http, context.store, server, self._application, redirect, scopes), False

    async def _suiting(self, context: GrantContext) -> list[Registration]:
        known = await load_registrations(context.store, context.purpose.server.issuer)
        return [each for each in known if each.suits(self._application, context.purpose.scopes)]

    async def _configured(self, context: GrantContext) -> Identity | None:
        """The identity without a registration of our own."""
        client_id, secret, key, algorithm = self._given
        server = context.purpose.server
        if client_id is not None:
            await context.store.bind(client_id, server.issuer, given=self.issuer is not None)
            return Identity(client_id, secret, key, algorithm, self._method)
        if self._document is not None and server.takes_documents:
            signs = key is not None and PRIVATE_KEY in (server.auth_methods or (PRIVATE_KEY,))
            return Identity(self._document, None, key, algorithm, PRIVATE_KEY if signs else NONE)
        return None

    async def _open_redirect(self, context: GrantContext) -> Redirect:
        if self._redirect is not None:
            return RedirectFunction(self._redirect, self._redirect_uri or DEFAULT_URI)
        before = await self._suiting(context)
        return await LoopbackListener.open(self._redirect_uri, before[0].redirect if before else None)


async def _ask_person(context: GrantContext, identity: Identity, redirect: Redirect) -> Tokens:
    """Have the person log in, and exchange the code for tokens."""
    server = context.purpose.server
    attempt = begin_login(server, identity.client_id, redirect.uri)
    why = f"{context.server.partition('?')[0]} wants a login at {server.issuer}"
    back = await redirect.follow(authorization_url(attempt, context.purpose), attempt.state, why)
    form = {
        "grant_type": "authorization_code",
        "code": read_code(attempt, back),
        "redirect_uri": attempt.redirect,
        "code_verifier": attempt.verifier,
    }
    return await request_tokens(context.http, context.purpose, identity, form, "exchanging the code")


async def _check_registration(context: GrantContext, client_id: str, problem: GrantRefused | LoginTimeout) -> None:
    """Delete an earlier registration if a login failed because of it; else raise the problem again."""
    issuer = context.purpose.server.issuer
    if isinstance(problem, LoginTimeout):
        await mark_doubted(context.store, issuer, client_id)
        what = "; if the page said that this client is not known, the next try registers it again"
        raise LoginTimeout(problem.what + what) from None
    if problem.error not in _UNKNOWN_CLIENT:
        raise problem
    await delete_registration(context.store, issuer, client_id)


def _document(url: str | None) -> str | None:
    if url is None:
        return None
    parts = plain_url(check_given_url(url, "client_metadata_url"))
    if parts is None or parts.scheme != "https" or parts.path in ("", "/"):
        raise ValueError("client_metadata_url: expected an https URL with a path")
    return url
