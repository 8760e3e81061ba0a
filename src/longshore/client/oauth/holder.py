"""The tokens of one server: put on requests, renewed before they expire, replaced when they are refused.

Requests run at once, a token is got once: whatever gets one is a flight that all join who need it. A request remembers
which token it carried. If that was refused while another came, it is sent again with the new one and nobody logs in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from itertools import count
from typing import Protocol, final

from msgspec import Struct
from msgspec.structs import replace

from longshore.client.oauth.addresses import Wall, shown
from longshore.client.oauth.asking import Asker, TryLater
from longshore.client.oauth.authorizer import Headers
from longshore.client.oauth.budget import Budget
from longshore.client.oauth.challenge import Demand
from longshore.client.oauth.cupboard import Cupboard
from longshore.client.oauth.discovery import AuthServer, Resource, find_resource, find_server
from longshore.client.oauth.dpop import USE_NONCE, Prover
from longshore.client.oauth.flights import Flights
from longshore.client.oauth.identity import Identity
from longshore.client.oauth.scopes import choose, words
from longshore.client.oauth.signing import can_sign
from longshore.client.oauth.tokens import GrantRefused, Purpose, Tokens, refresh
from longshore.errors import AuthorizationError

RETRY_SECONDS = 5.0
"""After a renewal that came to nothing, while the token is still good: before the next is tried."""


class Carried(Struct, frozen=True):
    """What the request that a task is sending carries: whose token, and which."""

    holder: Holder
    number: int


_carried: ContextVar[Carried | None] = ContextVar("longshore_carried", default=None)
_renewed: ContextVar[int] = ContextVar("longshore_renewed", default=0)
"""The token that was renewed because this task's request was refused. If that is refused too, a login is due."""
_numbers = count(1)


def carried() -> Carried | None:
    """What the request of this task carries; None if it is not known."""
    return _carried.get()


class Need(Struct, frozen=True):
    """All that a grant has to know."""

    asker: Asker
    cupboard: Cupboard
    server: str
    """The MCP server's URL, as tokens are kept for it."""
    purpose: Purpose
    client_id: str = ""
    """Whom the tokens to renew belong to."""


class Granting(Protocol):
    """How tokens are got."""

    scopes: tuple[str, ...]
    dpop: bool | str
    issuer: str | None
    refreshable: bool

    async def obtain(self, need: Need) -> Tokens: ...

    async def identify(self, need: Need) -> Identity | None:
        """Who we are, for renewing; None if that is not known any more."""
        ...

    async def refused(self, need: Need, error: str) -> None:
        """A token endpoint said no to `need.client_id`; what is known of us there may not hold any more."""
        ...


@final
class Holder:
    """Holds the tokens of one server. `asker` gives what asks, for it is made anew after a close."""

    def __init__(self, granting: Granting, cupboard: Cupboard, server: str, asker: Callable[[Wall], Asker]) -> None:
        self._granting = granting
        self._cupboard = cupboard
        self._server = server
        self._wall = Wall(server, granting.issuer)
        self._asker = asker
        self._tokens: Tokens | None = None
        self._number = 0
        self._old = False
        self._loaded = False
        self._renewed = 0
        self._prover: Prover | None = None
        self._budget = Budget(personal=granting.refreshable)
        self._flights = Flights()

    # -- what the channel asks

    async def headers(self, method: str, url: str, body: bytes) -> Headers:
        """The headers with the token, renewed if it is about to expire; none if there is no token that is good."""
        if not self._loaded or _wants_renewal(self._tokens):
            await self._flights.together(self._prepare)
        _carried.set(Carried(self, self._number if self._tokens else 0))
        tokens = self._tokens
        if tokens is None or tokens.is_over(time.time()):
            return []
        found = [("Authorization", f"{tokens.kind} {tokens.access}")]
        if tokens.kind == "DPoP" and self._prover is not None:
            found.append(("DPoP", self._prover.prove(method, url, tokens.access, body)))
        return found

    def heard(self, headers: Headers) -> None:
        """Take the nonce of an answer."""
        if self._prover is not None:
            self._prover.hear(self._server, headers)

    async def challenged(self, status: int, demand: Demand) -> bool:
        """Get what a refusal asks for. False: it asks for nothing that could be got."""
        known = _carried.get()
        number = known.number if known is not None and known.holder is self else None
        if self._tokens is not None and self._tokens.kind == "DPoP" and demand.error == USE_NONCE:
            return True  # the nonce was heard, and the next proof holds it
        if status != 401 and demand.error != "insufficient_scope":
            return False
        while True:
            if number is not None and self._tokens is not None and self._number != number:
                _renewed.set(self._renewed)
                return True
            flight = self._flights.under_way()
            if flight is None:
                break
            await self._flights.join(flight)
        renews = status == 401 and (number or self._number) not in (0, _renewed.get())
        await self._flights.together(lambda: self._authorize(demand, renews))
        _renewed.set(self._renewed)
        return True

    async def close(self) -> bool:
        """End what nobody waits for any more. False: somebody waits, another client of the same server."""
        return await self._flights.close()

    @property
    def waiting(self) -> bool:
        """Whether somebody waits for a token."""
        return self._flights.waiting

    # -- what is done

    async def _prepare(self) -> None:
        """Before a request: find what is kept, renew what is about to expire."""
        if not self._loaded:
            tokens, self._old = await self._cupboard.tokens(self._server)
            if tokens and self._fits(tokens):
                self._take(tokens)
            self._loaded = True
        tokens = self._tokens
        if tokens is None or not _wants_renewal(tokens):
            return
        try:
            if tokens.refresh and await self._renew(tokens, await self._find(tokens.issuer)):
                return
        except AuthorizationError as problem:
            if tokens.is_over(time.time()) and _is_temporary(problem):
                raise
            self._put_off()
            return  # if it is over it is not sent, and the server's refusal says who issues tokens now
        if tokens.is_over(time.time()):
            self._tokens = None

    async def _authorize(self, demand: Demand, renews: bool) -> None:
        """After a refusal: renew, if that may help, else get a new authorization."""
        resource = await find_resource(self._asker(self._wall), self._server, demand.metadata)
        issuer = self._pick(resource)
        tokens = self._tokens
        if tokens and (tokens.issuer, tokens.resource) != (issuer, resource.identifier):
            tokens = self._tokens = self._prover = None  # what one issuer gave is none of another's business
        self._old = resource.old
        if renews and tokens and await self._use_newer(tokens):
            return
        server = await self._find(issuer, derived=resource.derived)
        if renews and tokens and await self._renew(tokens, server):
            return
        if tokens is None and await self._use_stored(resource, server):
            return
        await self._obtain(resource, server, demand, tokens)

    async def _obtain(self, resource: Resource, server: AuthServer, demand: Demand, old: Tokens | None) -> None:
        granting = self._granting
        scopes = choose(
            words(demand.scope),
            granting.scopes,
            resource.scopes,
            await self._asked(resource, server, old),
            server.scopes,
            refreshable=granting.refreshable,
        )
        refused = old is not None and not old.is_over(time.time())
        # A token that is bound is never given up for one that is not: who stole it could have asked for that.
        required = demand.dpop or resource.dpop_required or (old is not None and old.kind == "DPoP")
        prover = self._choose_prover(required, resource.dpop and server.dpop)
        insist = prover is not None and (granting.dpop is True or required)
        purpose = Purpose(server, resource.identifier, scopes, prover, insist)
        self._budget.spend(server.issuer, scopes, time.monotonic(), refused=refused)
        try:
            found = await granting.obtain(self._need(purpose))
        except AuthorizationError as problem:
            self._budget.fail(problem.what)
            raise
        self._take(found, prover)
        await self._keep()

    async def _asked(self, resource: Resource, server: AuthServer, old: Tokens | None) -> tuple[str, ...]:
        """What was asked for before, by us or by another program that shares the storage: it needs that still."""
        stored, _ = await self._cupboard.tokens(self._server)
        shared = stored is not None and (stored.issuer, stored.resource) == (server.issuer, resource.identifier)
        return (*(old.asked if old else ()), *(stored.asked if stored and shared else ()))

    async def _renew(self, tokens: Tokens, server: AuthServer) -> bool:
        """Use the refresh token. False: there is none, or it is not good any more."""
        if tokens.refresh is None:
            return False
        purpose = Purpose(server, tokens.resource, tokens.asked, self._prover, tokens.kind == "DPoP")
        need = self._need(purpose, tokens.client_id)
        identity = await self._granting.identify(need)
        if identity is None or identity.client_id != tokens.client_id:
            return self._give_up()
        try:
            return await self._exchange(tokens, purpose, identity)
        except GrantRefused as refused:
            if refused.temporary:
                raise
            await self._granting.refused(need, refused.error)
            return self._give_up()

    async def _exchange(self, tokens: Tokens, purpose: Purpose, identity: Identity) -> bool:
        """Give the refresh token for another one, alone among all processes, and keep what comes."""
        async with self._cupboard.alone():
            if await self._use_newer(tokens):
                return True
            tokens = await self._latest(tokens)
            self._flights.precious = True
            try:
                self._take(await refresh(self._asker(self._wall), purpose, identity, tokens), self._prover)
                self._renewed = self._number
                await self._keep()
            except GrantRefused as refused:
                if not refused.temporary:
                    await self._cupboard.drop(self._server, tokens)
                raise
            finally:
                self._flights.precious = False
        return True

    async def _use_newer(self, tokens: Tokens) -> bool:
        """Use what another process has put into the storage meanwhile, for our refresh token is spent then."""
        stored, _ = await self._cupboard.tokens(self._server)
        if stored is None or stored.access == tokens.access or stored.issuer != tokens.issuer:
            return False
        if stored.is_stale(time.time()) or not set(tokens.asked) <= set(stored.asked) or not self._fits(stored):
            return False
        self._take(stored)
        return True

    async def _latest(self, tokens: Tokens) -> Tokens:
        """Those whose refresh token is to be sent: another process may have spent ours, and be as late as we are."""
        stored, _ = await self._cupboard.tokens(self._server)
        if stored is None or stored.refresh is None or not set(tokens.asked) <= set(stored.asked):
            return tokens
        return stored if _owner(stored) == _owner(tokens) and self._fits(stored) else tokens

    async def _use_stored(self, resource: Resource, server: AuthServer) -> bool:
        """Use what another process has brought since we looked: nobody is to log in who has just done that."""
        stored, _ = await self._cupboard.tokens(self._server)
        if stored is None or (stored.issuer, stored.resource) != (server.issuer, resource.identifier):
            return False
        if not self._fits(stored):
            return False
        self._take(stored)
        return not stored.is_stale(time.time()) or await self._renew(stored, server)

    # -- small parts

    def _fits(self, tokens: Tokens) -> bool:
        """Whether stored tokens are what the caller wants. Others are of an earlier configuration, or a broken key."""
        granting = self._granting
        if granting.issuer not in (None, tokens.issuer) or not set(granting.scopes) <= set(tokens.asked):
            return False
        if granting.dpop != "auto" and granting.dpop is not (tokens.kind == "DPoP"):
            return False
        try:
            return tokens.key is None or Prover(tokens.key).key == tokens.key
        except AuthorizationError:
            return False

    def _take(self, tokens: Tokens, prover: Prover | None = None) -> None:
        """Use these tokens. `prover` is that of their key, with the nonces that it has heard."""
        self._tokens, self._number = tokens, next(_numbers)
        if tokens.key is None:
            self._prover = None
        elif prover is not None and prover.key == tokens.key:
            self._prover = prover
        elif self._prover is None or self._prover.key != tokens.key:
            self._prover = Prover(tokens.key)

    def _put_off(self) -> None:
        """Renewing came to nothing for now: requests must not ask for it one by one."""
        if self._tokens is not None:
            self._tokens = replace(self._tokens, renew=time.time() + RETRY_SECONDS)

    def _give_up(self) -> bool:
        """The refresh token is not good any more."""
        if self._tokens is not None:
            self._tokens = replace(self._tokens, refresh=None)
        return False

    async def _keep(self) -> None:
        if self._tokens is not None:
            await self._cupboard.keep(self._server, self._tokens, old=self._old)

    async def _find(self, issuer: str, *, derived: bool = False) -> AuthServer:
        return await find_server(self._asker(self._wall), issuer, old=self._old, derived=derived)

    def _need(self, purpose: Purpose, client_id: str = "") -> Need:
        return Need(self._asker(self._wall), self._cupboard, self._server, purpose, client_id)

    def _pick(self, resource: Resource) -> str:
        """The issuer to go to: the one that the caller insists on, the one that we have been to, else the first."""
        wanted = self._granting.issuer
        if wanted is not None and not resource.has(wanted):
            named = ", ".join(map(shown, resource.issuers))
            raise AuthorizationError(f"the server takes tokens of {named}, and issuer= says {wanted}; one must change")
        used = wanted or (self._tokens.issuer if self._tokens else None)
        return used if used is not None and resource.has(used) else resource.issuers[0]

    def _choose_prover(self, required: bool, offered: bool) -> Prover | None:
        dpop = self._granting.dpop
        if dpop is False:
            if required:
                raise AuthorizationError("the server takes only tokens that are bound to a key; allow that by dpop=")
            return None
        if dpop is True or required or (offered and can_sign()):
            return self._prover or Prover()
        return None


def _wants_renewal(tokens: Tokens | None) -> bool:
    """Whether there is something to do about the tokens before a request."""
    now = time.time()
    return tokens is not None and tokens.is_stale(now) and (tokens.refresh is not None or tokens.is_over(now))


def _owner(tokens: Tokens) -> tuple[object, ...]:
    """Whose refresh token it is, and what it takes to use it."""
    return tokens.issuer, tokens.resource, tokens.client_id, tokens.key


def _is_temporary(problem: AuthorizationError) -> bool:
    return isinstance(problem, TryLater) or (isinstance(problem, GrantRefused) and problem.temporary)
