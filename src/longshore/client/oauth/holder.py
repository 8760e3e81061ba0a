"""The tokens of one server: put on requests, renewed before they expire, replaced when they are refused.

Requests run at once, a token is got once: whatever gets one is a flight that all join who need it. A request remembers
which token it carried. If that was refused while another came, it is sent again with the new one and nobody logs in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from itertools import count
from typing import Any, Protocol, final

from msgspec import Struct

from longshore.client.oauth.addresses import Wall, shown
from longshore.client.oauth.asking import Asker
from longshore.client.oauth.authorizer import Headers
from longshore.client.oauth.budget import Budget
from longshore.client.oauth.challenge import Demand
from longshore.client.oauth.cupboard import Cupboard
from longshore.client.oauth.discovery import AuthServer, Resource, find_resource, find_server
from longshore.client.oauth.dpop import USE_NONCE, Prover
from longshore.client.oauth.identity import Identity
from longshore.client.oauth.scopes import choose, words
from longshore.client.oauth.signing import can_sign
from longshore.client.oauth.tokens import GrantRefused, Purpose, Tokens, refresh
from longshore.errors import AuthorizationError

CLOSE_SECONDS = 2.0
"""How long a caller's own function may resist being cancelled."""


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
        """A token endpoint said no; what is known of us there may not hold any more."""
        ...


@final
class Holder:
    """Holds the tokens of one server. `asker` gives what asks, for it is made anew after a close."""

    def __init__(self, granting: Granting, cupboard: Cupboard, server: str, asker: Callable[[Wall], Asker]) -> None:
        self._granting = granting
        self._cupboard = cupboard
        self._server = server
        self._wall = Wall(server)
        self._asker = asker
        self._tokens: Tokens | None = None
        self._number = 0
        self._old = False
        self._loaded = False
        self._renewed = 0
        self._prover: Prover | None = None
        self._budget = Budget(personal=granting.refreshable)
        self._flight: asyncio.Task[None] | None = None
        self._waiting = 0

    # -- what the channel asks

    async def headers(self, method: str, url: str, body: bytes) -> Headers:
        """The headers with the token, renewed if it is about to expire; none if there is no token."""
        if not self._loaded or (self._tokens and self._tokens.is_stale(time.time())):
            await self._together(self._prepare)
        _carried.set(Carried(self, self._number if self._tokens else 0))
        tokens = self._tokens
        if tokens is None:
            return []
        found = [("Authorization", f"{tokens.kind} {tokens.access}")]
        if tokens.kind == "DPoP" and self._prover is not None:
            found.append(("DPoP", self._prover.prove(method, url, tokens.access, body)))
        return found

    def heard(self, headers: Headers) -> bool:
        """Take the nonce of an answer. False: there was no new one."""
        return self._prover is not None and self._prover.hear(self._server, headers)

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
            flight = self._under_way()
            if flight is None:
                break
            await self._join(flight)
        renews = status == 401 and (number or self._number) not in (0, _renewed.get())
        await self._together(lambda: self._authorize(demand, renews))
        _renewed.set(self._renewed)
        return True

    async def close(self) -> bool:
        """End what nobody waits for any more. False: somebody waits, another client of the same server."""
        flight = self._under_way()
        if flight is not None and not self._waiting:
            flight.cancel()
            await asyncio.wait((flight,), timeout=CLOSE_SECONDS)
        return not self._waiting

    @property
    def waiting(self) -> bool:
        """Whether somebody waits for a token."""
        return self._waiting > 0

    # -- one at a time

    async def _together(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work, or wait for what is being done."""
        flight = self._under_way()
        if flight is None:
            flight = self._flight = asyncio.get_running_loop().create_task(work())
            flight.add_done_callback(self._landed)
        await self._join(flight)

    def _under_way(self) -> asyncio.Task[None] | None:
        """The flight to join. One of another event loop has ended with it."""
        flight = self._flight
        return flight if flight is not None and flight.get_loop() is asyncio.get_running_loop() else None

    async def _join(self, flight: asyncio.Task[None]) -> None:
        """Wait for it. Who stops waiting does not stop it for the others."""
        self._waiting += 1
        try:
            await asyncio.shield(flight)
        except AuthorizationError as problem:
            raise AuthorizationError(problem.what) from None  # each who waits gets an error of its own
        except Exception as problem:  # a function or a storage of the caller's
            raise AuthorizationError(f"the authorization broke off with {type(problem).__name__}") from problem
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if flight.cancelled() and not (task and task.cancelling()):
                raise AuthorizationError("the client was closed while it was being authorized") from None
            raise
        finally:
            self._waiting -= 1

    def _landed(self, flight: asyncio.Task[None]) -> None:
        if self._flight is flight:
            self._flight = None
        if not flight.cancelled():
            flight.exception()  # looked at, though everyone who waited may have left

    # -- what is done

    async def _prepare(self) -> None:
        """Before a request: find what is kept, renew what is about to expire."""
        if not self._loaded:
            tokens, self._old = await self._cupboard.tokens(self._server)
            if tokens and set(self._granting.scopes) <= set(tokens.asked):
                self._take(tokens)
            self._loaded = True
        tokens = self._tokens
        if tokens is None or not tokens.is_stale(time.time()):
            return
        try:
            if await self._renew(tokens, await self._find(tokens.issuer)):
                return
        except AuthorizationError:
            if tokens.is_over(time.time()):
                raise
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
        server = await self._find(issuer)
        if renews and tokens and await self._renew(tokens, server):
            return
        await self._obtain(resource, server, demand, tokens)

    async def _obtain(self, resource: Resource, server: AuthServer, demand: Demand, old: Tokens | None) -> None:
        granting = self._granting
        scopes = choose(
            words(demand.scope),
            granting.scopes,
            resource.scopes,
            old.asked if old else (),
            server.scopes,
            refreshable=granting.refreshable,
        )
        refused = old is not None and not old.is_over(time.time())
        self._budget.spend(server.issuer, scopes, time.monotonic(), refused=refused)
        required = demand.dpop or resource.dpop_required
        self._prover = self._choose_prover(required, resource.dpop and server.dpop)
        insist = granting.dpop is True or required
        purpose = Purpose(server, resource.identifier, scopes, self._prover, insist and self._prover is not None)
        self._take(await granting.obtain(self._need(purpose)))
        await self._keep()

    async def _renew(self, tokens: Tokens, server: AuthServer) -> bool:
        """Use the refresh token. False: there is none, or it is not good any more."""
        if tokens.refresh is None:
            return False
        purpose = Purpose(server, tokens.resource, tokens.asked, self._prover, tokens.kind == "DPoP")
        identity = await self._granting.identify(self._need(purpose))
        if identity is None or identity.client_id != tokens.client_id:
            return False
        async with self._cupboard.alone():
            if await self._use_newer(tokens):
                return True
            try:
                self._take(await refresh(self._asker(self._wall), purpose, identity, tokens))
            except GrantRefused as refused:
                if refused.temporary:
                    raise
                await self._granting.refused(self._need(purpose), refused.error)
                await self._cupboard.drop(self._server, tokens)
                return False
            self._renewed = self._number
            await self._keep()
        return True

    async def _use_newer(self, tokens: Tokens) -> bool:
        """Use what another process has put into the storage meanwhile, for our refresh token is spent then."""
        stored, _ = await self._cupboard.tokens(self._server)
        if stored is None or stored.access == tokens.access or stored.issuer != tokens.issuer:
            return False
        if stored.is_stale(time.time()) or not set(tokens.asked) <= set(stored.asked):
            return False
        self._take(stored)
        return True

    # -- small parts

    def _take(self, tokens: Tokens) -> None:
        self._tokens, self._number = tokens, next(_numbers)
        if tokens.key and (self._prover is None or self._prover.key != tokens.key):
            self._prover = Prover(tokens.key)

    async def _keep(self) -> None:
        if self._tokens is not None:
            await self._cupboard.keep(self._server, self._tokens, old=self._old)

    async def _find(self, issuer: str) -> AuthServer:
        return await find_server(self._asker(self._wall), issuer, old=self._old)

    def _need(self, purpose: Purpose) -> Need:
        return Need(self._asker(self._wall), self._cupboard, self._server, purpose)

    def _pick(self, resource: Resource) -> str:
        """The issuer to go to: the one that the caller insists on, the one that we have been to, else the first."""
        wanted = self._granting.issuer
        if wanted is not None and wanted not in resource.issuers:
            named = ", ".join(map(shown, resource.issuers))
            raise AuthorizationError(f"the server takes tokens of {named}, and issuer= says {wanted}; one must change")
        used = wanted or (self._tokens.issuer if self._tokens else None)
        return used if used in resource.issuers else resource.issuers[0]

    def _choose_prover(self, required: bool, offered: bool) -> Prover | None:
        dpop = self._granting.dpop
        if dpop is False:
            if required:
                raise AuthorizationError("the server takes only tokens that are bound to a key; allow that by dpop=")
            return None
        if dpop is True or required or (offered and can_sign()):
            return self._prover or Prover()
        return None
