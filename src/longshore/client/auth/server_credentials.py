"""The tokens of one MCP server: put on requests, renewed before they expire, replaced when they are refused.

Concurrent requests share one authorization. Each request remembers which token it was sent with: if another token has
come meanwhile, the request is sent again with that one, and no one logs in.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable
from itertools import count
from typing import TYPE_CHECKING, Protocol, final

from msgspec import Struct
from msgspec.structs import replace

from longshore.client.auth.authorizer import AuthRequest, Headers
from longshore.client.auth.discovery import (
    AuthServer,
    Challenge,
    ProtectedResource,
    find_resource,
    find_server,
    read_challenge,
)
from longshore.client.auth.dpop import USE_NONCE, Prover, can_sign
from longshore.client.auth.login_limits import LoginBudget, SharedAuthorization
from longshore.client.auth.oauth_http import OAuthHttp, TryLater
from longshore.client.auth.scopes import choose_scopes, split_scopes
from longshore.client.auth.token_endpoint import GrantRefused, Identity, Purpose, Tokens, refresh
from longshore.client.auth.token_store import TokenStore
from longshore.client.auth.url_policy import UrlPolicy, shown
from longshore.errors import AuthorizationError

if TYPE_CHECKING:
    from longshore.http_client.response import HttpResponse

RETRY_SECONDS = 5.0
"""Between failed renewals of a token that is still valid."""

_numbers = count(1)


class GrantContext(Struct, frozen=True):
    """The input of a grant."""

    http: OAuthHttp
    store: TokenStore
    server: str
    """The URL of the MCP server, as tokens are stored for it."""
    purpose: Purpose
    client_id: str = ""
    """The client of the tokens that are to be renewed."""


class Grant(Protocol):
    """How tokens are obtained."""

    scopes: tuple[str, ...]
    dpop: bool | str
    issuer: str | None
    needs_person: bool
    """Whether a person logs in. Then refresh tokens are requested, and logins are limited."""

    async def obtain(self, context: GrantContext) -> Tokens: ...

    async def identify(self, context: GrantContext) -> Identity | None:
        """The client's identity for renewing tokens; None if it is not known any more."""
        ...

    async def refused(self, context: GrantContext, error: str) -> None:
        """A token endpoint refused `context.client_id`: the registration may not be valid any more."""
        ...


@final
class ServerCredentials:
    """The tokens of one server."""

    def __init__(self, grant: Grant, store: TokenStore, server: str) -> None:
        self._grant = grant
        self._store = store
        self._server = server
        self._policy = UrlPolicy(server, grant.issuer)
        self._tokens: Tokens | None = None
        self._number = 0
        """Identifies the current tokens within the process."""
        self._renewed = 0
        """The number of the tokens that came from the last renewal."""
        self._without_metadata = False
        self._loaded = False
        self._prover: Prover | None = None
        self._budget = LoginBudget(needs_person=grant.needs_person)
        self._shared = SharedAuthorization()

    async def auth_flow(self, request: AuthRequest) -> AsyncGenerator[Headers, HttpResponse]:
        renewed = 0
        while True:
            if not self._loaded or _needs_renewal(self._tokens):
                await self._wait_for(request, self._shared.run(self._prepare))
            sent = self._number if self._tokens else 0
            response = yield self._headers(request)
            self._policy.note_peer(response.peer)
            if self._prover is not None:
                self._prover.save_nonce(self._server, response.headers)
            if response.status not in (401, 403) or not await self._answer(request, response, sent, renewed):
                return
            renewed = self._renewed

    async def close(self) -> bool:
        """End an authorization that no request waits for. False: a request waits, of another client."""
        return await self._shared.close()

    @property
    def in_use(self) -> bool:
        """Whether a request waits for a token."""
        return self._shared.waiting

    def _headers(self, request: AuthRequest) -> Headers:
        tokens = self._tokens
        if tokens is None or tokens.is_expired(time.time()):
            return []
        headers = [("Authorization", f"{tokens.kind} {tokens.access}")]
        if tokens.kind == "DPoP" and self._prover is not None:
            headers.append(("DPoP", self._prover.prove(request.method, request.url, tokens.access, request.body)))
        return headers

    async def _wait_for(self, request: AuthRequest, work: Awaitable[None]) -> None:
        """Wait for an authorization. The client's deadlines stop if a person may have to log in."""
        if not self._grant.needs_person:
            await work
            return
        request.on_login(True)
        try:
            await work
        finally:
            request.on_login(False)

    async def _answer(self, request: AuthRequest, response: HttpResponse, sent: int, renewed: int) -> bool:
        """Get the tokens that a refusal asks for. False: it asks for none.

        `sent` is the number of the token that was refused; `renewed` of the one that a renewal for this request gave:
        if that is refused too, a new authorization is needed.
        """
        challenge = read_challenge(response.headers)
        if self._tokens is not None and self._tokens.kind == "DPoP" and challenge.error == USE_NONCE:
            return True  # the next proof holds the nonce of this response
        if response.status != 401 and challenge.error != "insufficient_scope":
            return False
        while True:
            if self._tokens is not None and self._number != sent:
                return True
            running = self._shared.running()
            if running is None:
                break
            await self._wait_for(request, self._shared.join(running))
        renews = response.status == 401 and (sent or self._number) not in (0, renewed)
        await self._wait_for(request, self._shared.run(lambda: self._authorize(challenge, renews)))
        return True

    # -- the work that requests share

    async def _prepare(self) -> None:
        """Before a request: load stored tokens, and renew them if they are about to expire."""
        if not self._loaded:
            tokens, self._without_metadata = await self._store.tokens(self._server)
            if tokens and self._fits(tokens):
                self._use(tokens)
            self._loaded = True
        tokens = self._tokens
        if tokens is None or not _needs_renewal(tokens):
            return
        try:
            async with OAuthHttp(self._policy) as http:
                if tokens.refresh and await self._renew(http, tokens, await self._find_server(http, tokens.issuer)):
                    return
        except AuthorizationError as problem:
            if tokens.is_expired(time.time()) and _is_temporary(problem):
                raise
            self._postpone_renewal()
            return  # an expired token is not sent; the server's refusal then names its issuer
        if tokens.is_expired(time.time()):
            self._tokens = None

    async def _authorize(self, challenge: Challenge, renews: bool) -> None:
        """After a refusal: renew the tokens, if that may help, else get a new authorization."""
        async with OAuthHttp(self._policy) as http:
            resource = await find_resource(http, self._server, challenge.metadata)
            issuer = self._choose_issuer(resource)
            tokens = self._tokens
            if tokens and (tokens.issuer, tokens.resource) != (issuer, resource.identifier):
                tokens = self._tokens = self._prover = None  # no issuer sees the tokens of another
            self._without_metadata = resource.without_metadata
            if renews and tokens and await self._use_newer(tokens):
                return
            server = await self._find_server(http, issuer, derived=resource.derived)
            if renews and tokens and await self._renew(http, tokens, server):
                return
            if tokens is None and await self._use_stored(http, resource, server):
                return
            await self._obtain(http, resource, server, challenge, tokens)

    async def _obtain(
        self, http: OAuthHttp, resource: ProtectedResource, server: AuthServer, challenge: Challenge, old: Tokens | None
    ) -> None:
        grant = self._grant
        scopes = choose_scopes(
            split_scopes(challenge.scope),
            grant.scopes,
            resource.scopes,
            await self._scopes_before(resource, server, old),
            server.scopes,
            refreshable=grant.needs_person,
        )
        refused = old is not None and not old.is_expired(time.time())
        # A bound token is never replaced by one that is not: a thief of the token could have asked for that.
        required = challenge.dpop or resource.dpop_required or (old is not None and old.kind == "DPoP")
        prover = self._choose_prover(required, resource.dpop and server.dpop)
        insist = prover is not None and (grant.dpop is True or required)
        purpose = Purpose(server, resource.identifier, scopes, prover, insist)
        self._budget.spend(server.issuer, scopes, time.monotonic(), refused=refused)
        try:
            found = await grant.obtain(GrantContext(http, self._store, self._server, purpose))
        except AuthorizationError as problem:
            self._budget.fail(problem.what)
            raise
        self._use(found, prover)
        await self._save()

    async def _scopes_before(
        self, resource: ProtectedResource, server: AuthServer, old: Tokens | None
    ) -> tuple[str, ...]:
        """The scopes that were requested before, also by another program that shares the storage."""
        stored, _ = await self._store.tokens(self._server)
        shared = stored is not None and (stored.issuer, stored.resource) == (server.issuer, resource.identifier)
        return (*(old.asked if old else ()), *(stored.asked if stored and shared else ()))

    # -- renewal

    async def _renew(self, http: OAuthHttp, tokens: Tokens, server: AuthServer) -> bool:
        """Use the refresh token. False: there is none, or it is not valid any more."""
        if tokens.refresh is None:
            return False
        purpose = Purpose(server, tokens.resource, tokens.asked, self._prover, tokens.kind == "DPoP")
        context = GrantContext(http, self._store, self._server, purpose, tokens.client_id)
        identity = await self._grant.identify(context)
        if identity is None or identity.client_id != tokens.client_id:
            return self._drop_refresh_token()
        try:
            return await self._exchange(http, tokens, purpose, identity)
        except GrantRefused as refused:
            if refused.temporary:
                raise
            await self._grant.refused(context, refused.error)
            return self._drop_refresh_token()

    async def _exchange(self, http: OAuthHttp, tokens: Tokens, purpose: Purpose, identity: Identity) -> bool:
        """Exchange the refresh token, one process at a time, and save the new tokens."""
        async with self._store.process_lock():
            if await self._use_newer(tokens):
                return True
            tokens = await self._latest(tokens)
            with self._shared.must_finish():
                try:
                    self._use(await refresh(http, purpose, identity, tokens), self._prover)
                    self._renewed = self._number
                    await self._save()
                except GrantRefused as refused:
                    if not refused.temporary:
                        await self._store.delete_tokens(self._server, tokens)
                    raise
        return True

    async def _use_newer(self, tokens: Tokens) -> bool:
        """Use tokens that another process has stored meanwhile: our refresh token is spent then."""
        stored, _ = await self._store.tokens(self._server)
        if stored is None or stored.access == tokens.access or stored.issuer != tokens.issuer:
            return False
        if stored.is_stale(time.time()) or not set(tokens.asked) <= set(stored.asked) or not self._fits(stored):
            return False
        self._use(stored)
        return True

    async def _latest(self, tokens: Tokens) -> Tokens:
        """The tokens whose refresh token is valid: another process may have spent ours."""
        stored, _ = await self._store.tokens(self._server)
        if stored is None or stored.refresh is None or not set(tokens.asked) <= set(stored.asked):
            return tokens
        return stored if _owner(stored) == _owner(tokens) and self._fits(stored) else tokens

    async def _use_stored(self, http: OAuthHttp, resource: ProtectedResource, server: AuthServer) -> bool:
        """Use tokens that another process has stored since we loaded ours, so that no one logs in twice."""
        stored, _ = await self._store.tokens(self._server)
        if stored is None or (stored.issuer, stored.resource) != (server.issuer, resource.identifier):
            return False
        if not self._fits(stored):
            return False
        self._use(stored)
        return not stored.is_stale(time.time()) or await self._renew(http, stored, server)

    # -- small parts

    def _fits(self, tokens: Tokens) -> bool:
        """Whether stored tokens match the caller's configuration, and their key can be read."""
        grant = self._grant
        if grant.issuer not in (None, tokens.issuer) or not set(grant.scopes) <= set(tokens.asked):
            return False
        if grant.dpop != "auto" and grant.dpop is not (tokens.kind == "DPoP"):
            return False
        try:
            return tokens.key is None or Prover(tokens.key).key == tokens.key
        except AuthorizationError:
            return False

    def _use(self, tokens: Tokens, prover: Prover | None = None) -> None:
        """Make these the current tokens. `prover` has their key, and the nonces that servers gave for it."""
        self._tokens, self._number = tokens, next(_numbers)
        if tokens.key is None:
            self._prover = None
        elif prover is not None and prover.key == tokens.key:
            self._prover = prover
        elif self._prover is None or self._prover.key != tokens.key:
            self._prover = Prover(tokens.key)

    def _postpone_renewal(self) -> None:
        if self._tokens is not None:
            self._tokens = replace(self._tokens, renew=time.time() + RETRY_SECONDS)

    def _drop_refresh_token(self) -> bool:
        if self._tokens is not None:
            self._tokens = replace(self._tokens, refresh=None)
        return False

    async def _save(self) -> None:
        if self._tokens is not None:
            await self._store.save_tokens(self._server, self._tokens, without_metadata=self._without_metadata)

    async def _find_server(self, http: OAuthHttp, issuer: str, *, derived: bool = False) -> AuthServer:
        return await find_server(http, issuer, assume=self._without_metadata, derived=derived)

    def _choose_issuer(self, resource: ProtectedResource) -> str:
        """The issuer that the caller named, the one of the current tokens, else the first."""
        wanted = self._grant.issuer
        if wanted is not None and not resource.has(wanted):
            named = ", ".join(map(shown, resource.issuers))
            raise AuthorizationError(f"the server takes tokens of {named}, and issuer= says {wanted}; one must change")
        used = wanted or (self._tokens.issuer if self._tokens else None)
        return used if used is not None and resource.has(used) else resource.issuers[0]

    def _choose_prover(self, required: bool, offered: bool) -> Prover | None:
        dpop = self._grant.dpop
        if dpop is False:
            if required:
                raise AuthorizationError("the server takes only tokens that are bound to a key; allow that by dpop=")
            return None
        if dpop is True or required or (offered and can_sign()):
            return self._prover or Prover()
        return None


def _needs_renewal(tokens: Tokens | None) -> bool:
    now = time.time()
    return tokens is not None and tokens.is_stale(now) and (tokens.refresh is not None or tokens.is_expired(now))


def _owner(tokens: Tokens) -> tuple[object, ...]:
    """Whose refresh token it is, and the key to use it."""
    return tokens.issuer, tokens.resource, tokens.client_id, tokens.key


def _is_temporary(problem: AuthorizationError) -> bool:
    return isinstance(problem, TryLater) or (isinstance(problem, GrantRefused) and problem.temporary)
