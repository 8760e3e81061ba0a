"""One mounted server, as a toolset whose tools come when it has said what they are."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, final

from longshore.errors import ClientError, ConnectError, RegistrationError, ToolError
from longshore.registry.catalog import Catalog
from longshore.registry.source_location import caller
from longshore.registry.toolset import Toolset, ToolsetHandle
from longshore.telemetry.recorder import Recorder

if TYPE_CHECKING:
    from longshore.client.client import Client
    from longshore.mounting.calls import Calls
    from longshore.mounting.keeper import Keeper
    from longshore.mounting.surface import Surface
    from longshore.registry.tool import Entry
    from longshore.server.call import Call

TOLD = 20
TOLD_SECONDS = 60.0
"""What whoever runs us is told of one server: at most so much within so long."""


@final
class Mount(Toolset):
    """Connects on the loop that calls run on, when it is first wanted there. Until then it costs next to nothing.

    `changed` hears of resources that should be read again, `arrived` that there are other resources than before.
    """

    def __init__(
        self,
        target: Any,
        prefix: str,
        timeout: float | Literal[False] | None,
        catalog: Catalog,
        recorder: Recorder,
        changed: Callable[[str], None],
        arrived: Callable[[], None],
    ) -> None:
        self.prefix = prefix
        self.holder = ToolsetHandle(self)
        self.holder.name = prefix
        self._target, self.timeout = target, timeout
        self._catalog, self._recorder = catalog, recorder
        self._client: Client | None = None
        self._calls: Calls | None = None
        self._keeper: Keeper | None = None
        self._changed, self._arrived = changed, arrived
        self._watched: frozenset[str] = frozenset()
        self._surfaces: dict[str, Surface] = {}
        self._taken: dict[str, list[str]] = {}
        """Of each list, the names that others have."""
        self._odd: list[str] = []
        """What was odd about what it said, as far as it was told."""
        self._told, self._told_since = 0, monotonic()
        self.left_out: dict[str, list[str]] = {}
        """Of each list, what could not be used, and why."""
        if getattr(target, "relaying", None) is not None:
            self._relay_now()
        else:
            _check(target)

    # -- for the server

    def keeper(self) -> Keeper:
        """Who keeps the connection, on the loop that runs. Begins with it, if nobody does yet."""
        from longshore.mounting.keeper import Keeper

        if self.holder.removed:
            raise ToolError(f"the mounted server {self.prefix!r} was unmounted")
        keeper = self._keeper
        if keeper is None or not keeper.alive:
            self._collect_problems()
            client = self._relayed()
            keeper = self._keeper = Keeper(self.prefix, client, self._take_over, self._tell, self._changed)
            keeper.following.follow(self._watched)
        return keeper

    def _collect_problems(self) -> None:
        """Report the problems of a `Server` in this process as our own."""
        recorder: Recorder | None = getattr(self._target, "recorder", None)
        if recorder is not None and recorder.fallback is None:
            recorder.fallback = lambda: self._recorder.report

    @property
    def pending(self) -> bool:
        """Whether it is still to be found out what the server offers, and worth waiting for."""
        keeper = self._keeper
        return keeper is None or not keeper.alive or keeper.pending

    @property
    def ready(self) -> bool:
        return self._keeper is not None and self._keeper.alive and self._keeper.is_ready

    @property
    def absence(self) -> str | None:
        """Why the server can't be used, if it is known that it can't."""
        keeper = self._keeper
        if keeper is None or not keeper.alive or keeper.is_ready or keeper.pending:
            return None
        return keeper.absence()

    async def settled(self) -> None:
        """Wait until it is known what the server offers, or for as long as a list waits for that."""
        if not self.holder.removed:
            await self.keeper().settled()

    def watch(self, uris: frozenset[str]) -> None:
        """Clients of ours watch these resources of the server's."""
        self._watched = uris
        if self._keeper is not None and self._keeper.alive:
            self._keeper.following.follow(uris)

    async def stop(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None and keeper.alive:
            await keeper.stop()

    def status(self) -> dict[str, Any]:
        keeper = self._keeper
        if keeper is None:
            return {"state": "not started"}
        known: dict[str, Any] = {"state": keeper.state, "seconds": round(monotonic() - keeper.since, 1)}
        if keeper.problem is not None:
            known["problem"] = keeper.problem.what
        if keeper.state == "ready":
            server = keeper.client.server
            known |= {"server": server.name, "version": server.version, "revision": server.revision}
        left_out = [line for lines in self.left_out.values() for line in lines]
        return known | ({"left_out": left_out[:20]} if left_out else {})

    async def ready_client(self, call: Call) -> Client:
        """Wait until the server is there. Nobody's place is taken meanwhile. Raises ToolError, which says why not."""
        from longshore.mounting.keeper import in_time

        keeper = self.keeper()
        if keeper.is_ready or not call.running:
            return await keeper.ready(in_time(call))
        seconds = in_time(call)
        call.executor.pause(call)
        try:
            return await keeper.ready(seconds)
        finally:
            call.executor.resume(call)

    # -- for its entries

    async def call_tool(self, name: str, arguments: Any, call: Call) -> dict[str, Any]:
        return await self._passing().call_tool(name, arguments, call)

    async def ask(self, method: str, params: dict[str, Any], call: Call) -> dict[str, Any]:
        return await self._passing().ask(method, params, call)

    def _passing(self) -> Calls:
        self.keeper()
        assert self._calls is not None
        return self._calls

    # -- the client

    def _relayed(self) -> Client:
        """The client, which hands on to us what it does not answer itself. The same one on every loop."""
        from longshore.client.client import Client
        from longshore.client.relay import Relay
        from longshore.mounting.calls import Calls
        from longshore.mounting.questions import RELAYED

        if self._client is None:
            client = self._target if isinstance(self._target, Client) else Client(self._target)
            calls = self._calls = Calls(self.prefix, self.ready_client, lambda: self._keeper is None, self._warn)
            calls.own = client.relaying.begin(Relay(RELAYED, calls.flights.ask, calls.flights.log, self._lost))
            self._client = client
        return self._client

    def _relay_now(self) -> None:
        """A client that its author made is taken over at once, so that who uses it elsewhere hears of it."""
        try:
            self._relayed()
        except ClientError:
            fix = "mount a client of its own: app.mount(Client(…), prefix=…)"
            raise RegistrationError(caller(), "this client is open already, or mounted", fix) from None

    def _lost(self, problem: Any) -> None:
        if self._keeper is not None:
            self._keeper.lost(problem)

    def _warn(self, text: str) -> None:
        self._tell("warning", f"mounted {self.prefix}: {text}")

    def _tell(self, level: Any, text: str) -> None:
        """Tell whoever runs us, but not without end: a bad server could fill any log."""
        now = monotonic()
        if now - self._told_since > TOLD_SECONDS:
            self._told_since, self._told = now, 0
        self._told += 1
        if self._told <= TOLD:
            self._recorder.problem(level, text)
        elif self._told == TOLD + 1:
            self._recorder.problem("warning", f"mounted {self.prefix}: there is more to tell, but not within a minute")

    # -- what it offers

    async def _take_over(self, client: Client, kinds: set[str]) -> None:
        """Have the catalog hold what the server offers now."""
        from longshore.mounting.surface import REFUSED, Reader, unlisted

        reader = Reader(self.prefix, self.holder, self, self.timeout, self._aliases_of)
        for kind in sorted(kinds):
            try:
                surface = await reader.read(client, kind)
            except REFUSED as problem:
                self._note(kind, [unlisted(kind, problem)])  # what it offered before may still be there
                continue
            if not self.holder.removed:
                self._put(surface)
        left_out = client.relaying.left_out
        self._note("entries", left_out)
        known = {*left_out, *self._odd, *client.absent.values()}
        for text in [each for each in client.problems if each not in known]:
            if len(self._odd) < TOLD:
                self._odd.append(text)
                self._tell("notice", f"mounted {self.prefix}: {text}")

    def _aliases_of(self, name: str) -> tuple[str, ...]:
        """What a tool was called before. No list tells it, so it is known only of a server in this process."""
        engine: Any = getattr(self._target, "engine", None)
        entry: Entry | None = None if engine is None else engine.tools.get(name)
        return () if entry is None else entry.aliases

    def _put(self, surface: Surface) -> None:
        before = self._surfaces.get(surface.part)
        if surface.definitions == ({} if before is None else before.definitions):
            self._note_left_out(surface)
            return
        self._surfaces[surface.part] = surface
        self._fit(surface)
        if before is not None:
            self._tell_changed(surface.part, before.definitions, surface.definitions)

    def refit(self) -> None:
        """Offer what others had the names of, where those are free now."""
        for surface in tuple(self._surfaces.values()):
            names: dict[str, Any] = getattr(self._catalog, surface.part)
            if any(name not in names for name in self._taken.get(surface.part, ())):
                self._fit(surface)

    def _fit(self, surface: Surface) -> None:
        taken = self._catalog.swap(self.holder, surface.part, surface.made, surface.completions)
        self._taken[surface.part] = taken
        self._note_left_out(surface)
        if surface.part == "resources":
            self._arrived()

    def _note_left_out(self, surface: Surface) -> None:
        taken = [f"{name}: the name is taken" for name in self._taken.get(surface.part, ())]
        self._note(surface.part, [*surface.left_out, *taken])

    def _note(self, part: str, left_out: list[str]) -> None:
        new = [line for line in left_out if line not in self.left_out.get(part, [])]
        self.left_out[part] = left_out
        if new:
            shown = "; ".join(new[:10]) + (f"; and {len(new) - 10} more" if len(new) > 10 else "")
            self._warn(f"left out: {shown}")

    def _tell_changed(self, part: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        """A definition that a person has agreed to is another now: whoever runs us should know."""
        other = [name for name in before.keys() & after.keys() if before[name] != after[name]]
        if other:
            names = ", ".join(sorted(other)[:10])
            self._warn(f"other {part} under the same name: {names}")


def _check(target: Any) -> None:
    """Refuse what leads nowhere while its author looks on: later it would fail lists that everybody waits for."""
    from longshore.client.targets import Way, find

    try:
        find(target, Way())
    except ConnectError as problem:
        fix = "give a Server, a Client, a command, a URL or an entry of mcpServers"
        raise RegistrationError(caller(), f"this can't be mounted: {problem.what}", fix) from None
