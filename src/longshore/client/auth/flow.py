"""From a refused request to a token: TokenAuthorizer for any number of servers, ServerCredentials for each of them.

Concurrent requests share one authorization. Each request stores the token it was sent with: if there is another token
meanwhile, the request is sent again with that one, without a login.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, final
from urllib.parse import urlunsplit

from msgspec import Struct
from msgspec.structs import replace

from longshore.client.auth.authorizer import AuthRequest, Headers
from longshore.client.auth.discovery import (
    MOST_SCOPE_CHARS,
    MOST_SCOPES,
    AuthServer,
    Challenge,
    ProtectedResource,
    choose_scopes,
    find_resource,
    find_server,
    read_challenge,
    split_scopes,
    valid_scopes,
)
from longshore.client.auth.dpop import USE_NONCE, Prover, can_sign
from longshore.client.auth.oauth_http import OAuthHttp, TryLater, UrlPolicy, plain_url, shown
from longshore.client.auth.token_store import Storage, TokenStore
from longshore.client.auth.tokens import GrantContext, GrantRefused, Identity, Tokens, refresh
from longshore.client.tasks import name_of, on_thread
from longshore.errors import AuthorizationError
from longshore.single_flight import SingleFlight

if TYPE_CHECKING:
    from longshore.http_client.response import HttpResponse

RETRY_SECONDS = 5.0
"""Between failed renewals of a token that is still valid."""
SAME_LOGINS = 2
"""Authorizations by one issuer for the same scopes, each because the server refused the last."""
ALL_LOGINS = 10
"""Authorizations for any reason that need a person: a hostile server may ask for new scopes each time."""
WINDOW_SECONDS = 600.0
CLOSE_SECONDS = 2.0
"""For a renewal to end on closing, and for a function of the caller's to react to its cancellation."""


class TokenAuthorizer:
    """Gets tokens by a grant, for any number of servers. No server sees the token of another.

    An Authorizer; subclasses implement `obtain`, and `identify` and `refused` if their grant has refresh tokens.
    `credential` is what is bound to one issuer: the caller's client_id, or empty for a workload; None for nothing.
    """

    needs_person = False
    """Whether a person logs in. Then refresh tokens are requested, and logins are limited."""

    def __init__(
        self,
        storage: Storage,
        profile: str,
        scopes: Iterable[str] | None,
        dpop: bool | str,
        issuer: str | None,
        credential: str | None = None,
    ) -> None:
        if dpop not in (True, False, "auto"):
            raise ValueError(f'dpop is True, False or "auto", not {dpop!r}')
        listed = dict.fromkeys(scopes.split(" ") if isinstance(scopes, str) else scopes or ())
        listed.pop("", None)
        if len(listed) > MOST_SCOPES:
            raise ValueError(f"scopes: at most {MOST_SCOPES}, and there are {len(listed)}")
        self.scopes = valid_scopes(listed)
        if len(self.scopes) != len(listed):
            what = f"scopes are texts of at most {MOST_SCOPE_CHARS} printable ASCII characters"
            raise ValueError(f"{what} without blanks and quotes")
        self.dpop = dpop
        self.issuer = issuer
        self.credential = credential
        self.store = TokenStore(storage, profile)
        self._servers: dict[str, ServerCredentials] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    async def obtain(self, context: GrantContext) -> Tokens:
        """Get new tokens. Raises AuthorizationError."""
        raise NotImplementedError

    def identify(self, server: AuthServer, client: Identity) -> Identity | None:  # noqa: ARG002
        """The client that tokens belong to, with its proof of identity; None if tokens can't be renewed."""
        return None

    async def refused(self, server: AuthServer, client_id: str, error: str) -> None:
        """A token endpoint refused to renew tokens: the registration may not be valid any more."""

    def auth_flow(self, request: AuthRequest) -> AsyncGenerator[Headers, HttpResponse]:
        return self.credentials_for(request.server).auth_flow(request)

    def credentials_for(self, url: str) -> ServerCredentials:
        """The credentials of the server at a URL, in one form and without a fragment. Raises AuthorizationError."""
        bare = url.partition("#")[0]
        parts = plain_url(bare)
        if parts is None:
            what = "the server's URL can't be used; give an absolute http(s) URL without a user"
            raise AuthorizationError(f"{what}, in ASCII (a host in other letters as xn--…)")
        key = urlunsplit((parts.scheme, parts.netloc.lower(), parts.path or "/", parts.query, ""))
        if key not in self._servers:
            self._servers[key] = ServerCredentials(self, key)
        return self._servers[key]

    async def close(self) -> None:
        await asyncio.gather(*(credentials.close() for credentials in self._servers.values()))


async def call_user(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the caller's. A plain one may block, so it runs on a daemon thread."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*arguments)
    return await on_thread(function)(*arguments)


@final
class ServerCredentials:
    """The tokens of one server: put on requests, renewed before they expire, replaced when they are refused."""

    def __init__(self, grant: TokenAuthorizer, server: str) -> None:
        self._grant = grant
        self._store = grant.store
        self._server = server
        self._policy = UrlPolicy(server, grant.issuer)
        self._tokens: Tokens | None = None
        self._renewed = ""
        """The access token that the last renewal gave."""
        self._loaded = False
        self._prover: Prover | None = None
        self._budget = LoginBudget(needs_person=grant.needs_person)
        self._flight: SingleFlight[str, None] = SingleFlight()
        self._must_finish = False
        self.waiting = 0
        """Requests that wait for a token."""

    async def auth_flow(self, request: AuthRequest) -> AsyncGenerator[Headers, HttpResponse]:
        renewed = ""
        while True:
            if not self._loaded or _needs_renewal(self._tokens):
                await self._share(request, self._prepare)
            sent = self._tokens.access if self._tokens else ""
            response = yield self._headers(request)
            self._policy.note_peer(response.peer)
            if self._prover is not None:
                self._prover.save_nonce(self._server, response.headers)
            if response.status not in (401, 403) or not await self._answer(request, response, sent, renewed):
                return
            renewed = self._renewed

    def _headers(self, request: AuthRequest) -> Headers:
        tokens = self._tokens
        if tokens is None or tokens.is_expired:
            return []
        headers = [("Authorization", f"{tokens.kind} {tokens.access}")]
        if tokens.kind == "DPoP" and self._prover is not None:
            headers.append(("DPoP", self._prover.prove(request.method, request.url, tokens.access, request.body)))
        return headers

    async def _answer(self, request: AuthRequest, response: HttpResponse, sent: str, renewed: str) -> bool:
        """Get the tokens that a refusal asks for. False: it asks for none.

        `sent` is the access token that was refused; `renewed` the one that a renewal for this request gave: if that
        is refused too, a new authorization is needed.
        """
        challenge = read_challenge(response.headers)
        if self._tokens is not None and self._tokens.kind == "DPoP" and challenge.error == USE_NONCE:
            return True  # the next proof holds the nonce of this response
        if response.status != 401 and challenge.error != "insufficient_scope":
            return False
        renews = response.status == 401 and sent not in ("", renewed)
        is_mine = False
        while not is_mine and (self._tokens is None or self._tokens.access == sent):
            is_mine = self._flight.running("") is None
            await self._share(request, partial(self._authorize, challenge, renews))
        return True

    async def _share(self, request: AuthRequest, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the work, or await the same work in progress: cancelling one request does not cancel it for others.

        The client's deadlines stop if a person may have to log in.
        """
        task = self._flight.start("", work)
        self.waiting += 1
        if self._grant.needs_person:
            request.on_login(True)
        try:
            await asyncio.shield(task)
        except AuthorizationError as problem:
            raise copy(problem) from problem.__cause__  # one exception object must not be raised twice
        except Exception as problem:  # from a function or a storage of the caller's
            raise AuthorizationError(f"the authorization broke off with {name_of(problem)}") from problem
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if task.cancelled() and not (current and current.cancelling()):
                raise AuthorizationError("the client was closed while it was being authorized") from None
            raise
        finally:
            self.waiting -= 1
            if self._grant.needs_person:
                request.on_login(False)

    async def close(self) -> None:
        """End an authorization that no request waits for. A renewal may finish: a spent refresh token is lost."""
        task = self._flight.running("")
        if task is not None and self._must_finish and not self.waiting:
            await asyncio.wait((task,), timeout=CLOSE_SECONDS)
        if task is not None and not self.waiting:  # no other client has stored newer ones meanwhile
            task.cancel()
            await asyncio.wait((task,), timeout=CLOSE_SECONDS)

    # -- the work that requests share

    async def _prepare(self) -> None:
        """Before a request: load stored tokens, and renew them if they are about to expire."""
        if not self._loaded:
            stored = await self._store.tokens(self._server)
            if stored is not None and self._fits(stored):
                self._use(stored)
            self._loaded = True
        tokens = self._tokens
        if tokens is None or not _needs_renewal(tokens):
            return
        try:
            if tokens.refresh is not None:
                async with OAuthHttp(self._policy) as http:
                    resource = ProtectedResource(tokens.resource, (tokens.issuer,))
                    if await self._renew(http, await self._find_server(http, tokens.issuer, resource), resource):
                        return
        except AuthorizationError as problem:
            if tokens.is_expired and isinstance(problem, TryLater):
                raise
            # An expired token is not sent; the server's refusal then names its issuer.
            self._tokens = replace(self._tokens or tokens, renew=time.time() + RETRY_SECONDS)
            return
        if tokens.is_expired:
            self._tokens = None

    async def _authorize(self, challenge: Challenge, renews: bool) -> None:
        """After a refusal: renew the tokens, if that may help, otherwise get a new authorization."""
        async with OAuthHttp(self._policy) as http:
            resource = await find_resource(http, self._server, challenge.metadata)
            issuer = self._choose_issuer(resource)
            tokens = self._tokens
            if tokens and (tokens.issuer, tokens.resource) != (issuer, resource.resource):
                tokens = self._tokens = self._prover = None  # no issuer sees the tokens of another
            server = await self._find_server(http, issuer, resource)
            if (renews or tokens is None) and await self._renew(http, server, resource):
                return
            await self._obtain(http, resource, server, challenge)

    async def _find_server(self, http: OAuthHttp, issuer: str, resource: ProtectedResource) -> AuthServer:
        """The issuer's metadata, if it may see the caller's credentials."""
        server = await find_server(http, issuer, resource)
        if self._grant.credential is not None:
            await self._store.bind(self._grant.credential, server.issuer, given=self._grant.issuer is not None)
        return server

    async def _renew(self, http: OAuthHttp, server: AuthServer, resource: ProtectedResource) -> bool:
        """Use tokens that another process has stored meanwhile, else the refresh token. False: neither is valid.

        One process at a time exchanges a refresh token, the one that was stored last: an earlier one is spent.
        """
        async with self._store.process_lock():
            before = self._tokens
            stored = await self._stored(server.issuer, resource.resource)
            if stored is not None and self._fits(stored) and set(before.asked if before else ()) <= set(stored.asked):
                self._use(stored)
            tokens = self._tokens
            if tokens is None:
                return False
            if not tokens.is_stale and (before is None or tokens.access != before.access):
                return True
            client = tokens.client if tokens.refresh else None
            identity = self._grant.identify(server, client) if client else None
            error = ""
            if client is not None and identity is not None and identity.client_id == client.client_id:
                is_bound = tokens.kind == "DPoP"
                context = GrantContext(
                    http, self._server, server, tokens.resource, tokens.asked, self._prover, is_bound
                )
                self._must_finish = True
                try:
                    renewed = await refresh(context, identity, tokens)
                    self._use(renewed)
                    self._renewed = renewed.access
                    await self._store.save_tokens(self._server, renewed)
                    return True
                except GrantRefused as refused:
                    error = refused.error
                    await self._store.delete_tokens(self._server, tokens)
                finally:
                    self._must_finish = False
        if identity is not None:
            await self._grant.refused(server, identity.client_id, error)
        self._tokens = replace(tokens, refresh=None)
        return False

    async def _obtain(
        self, http: OAuthHttp, resource: ProtectedResource, server: AuthServer, challenge: Challenge
    ) -> None:
        grant, old = self._grant, self._tokens
        stored = await self._stored(server.issuer, resource.resource)
        scopes = choose_scopes(
            split_scopes(challenge.scope),
            grant.scopes,
            valid_scopes(resource.scopes or ()),
            (*(old.asked if old else ()), *(stored.asked if stored else ())),
            server.scopes and valid_scopes(server.scopes),
            refreshable=grant.needs_person,
        )
        # A bound token is never replaced by one that is not: a thief of the token could have asked for that.
        required = challenge.dpop or bool(resource.dpop_required) or (old is not None and old.kind == "DPoP")
        offered = all("ES256" in (each.dpop_algorithms or ()) for each in (resource, server))
        if grant.dpop is False and required:
            raise AuthorizationError("the server takes only tokens that are bound to a key; allow that by dpop=")
        prover = None
        if grant.dpop is True or required or (grant.dpop == "auto" and offered and can_sign()):
            prover = self._prover or Prover()
        insist = prover is not None and (grant.dpop is True or required)
        refused = old is not None and not old.is_expired
        self._budget.spend(server.issuer, scopes, time.monotonic(), refused=refused)
        try:
            context = GrantContext(http, self._server, server, resource.resource, scopes, prover, insist)
            found = await grant.obtain(context)
        except AuthorizationError as problem:
            self._budget.fail(problem.what)
            raise
        self._use(found, prover)
        await self._store.save_tokens(self._server, found)

    # -- small parts

    async def _stored(self, issuer: str, resource: str | None) -> Tokens | None:
        """The tokens of this issuer and resource in the storage, which other processes share."""
        stored = await self._store.tokens(self._server)
        return stored if stored and (stored.issuer, stored.resource) == (issuer, resource) else None

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
        self._tokens = tokens
        provers = (each for each in (prover, self._prover) if each is not None and each.key == tokens.key)
        self._prover = None if tokens.key is None else next(provers, None) or Prover(tokens.key)

    def _choose_issuer(self, resource: ProtectedResource) -> str:
        """The issuer that the caller named, the one of the current tokens, else the first."""
        wanted = self._grant.issuer
        if wanted is not None and not resource.has(wanted):
            named = ", ".join(map(shown, resource.issuers or (resource.origin,)))
            raise AuthorizationError(f"the server takes tokens of {named}, and issuer= says {wanted}; one must change")
        used = wanted or (self._tokens.issuer if self._tokens else None)
        return used if used is not None and resource.has(used) else resource.issuer


def _needs_renewal(tokens: Tokens | None) -> bool:
    return tokens is not None and tokens.is_stale and (tokens.refresh is not None or tokens.is_expired)


class _Login(Struct):
    """One authorization."""

    at: float
    issuer: str
    scopes: frozenset[str]
    refused: bool
    """Whether the server refused a token that had not expired."""
    failed: str = ""
    """Why it gave no token."""


@final
class LoginBudget:
    """Limits the authorizations for one server, so that one that refuses every token causes no endless logins."""

    def __init__(self, *, needs_person: bool) -> None:
        self._needs_person = needs_person
        self._logins: deque[_Login] = deque(maxlen=4 * ALL_LOGINS)

    def spend(self, issuer: str, scopes: tuple[str, ...], now: float, *, refused: bool) -> None:
        """Count one authorization. Raises AuthorizationError if there are too many."""
        while self._logins and now - self._logins[0].at >= WINDOW_SECONDS:
            self._logins.popleft()
        login = _Login(now, issuer, frozenset(scopes), refused)
        given = [each for each in self._logins if not each.failed]
        same = [each for each in given if each.refused and (each.issuer, each.scopes) == (issuer, login.scopes)]
        if refused and len(same) >= SAME_LOGINS:
            named = f", the last with the scopes {' '.join(scopes)}" if scopes else ""
            what = f"the server still refuses after {len(given)} authorizations{named}"
            raise AuthorizationError(f"{what}; ask its operator which account or scopes it takes")
        if self._needs_person and len(self._logins) >= ALL_LOGINS:
            what = f"{len(self._logins)} logins were begun in {WINDOW_SECONDS / 60:g} minutes, so no other is now"
            last = self._logins[-1].failed or "it gave a token, and the server wanted another"
            raise AuthorizationError(f"{what}; the last: {last}")
        self._logins.append(login)

    def fail(self, why: str) -> None:
        """The last authorization gave no token."""
        self._logins[-1].failed = why
