"""All servers that are mounted in one of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, final

from msgspec import ValidationError

from longshore.errors import ProtocolError, RegistrationError, ToolError
from longshore.mounting.mount import Mount
from longshore.mounting.names import check_prefix
from longshore.registry.catalog import Catalog, find_alias
from longshore.registry.function import no_timeout
from longshore.registry.source_location import caller
from longshore.registry.tool import Entry, report_problem
from longshore.telemetry.recorder import Recorder
from longshore.wire.codec import INVALID_PARAMS

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from longshore.registry.toolset import ToolsetHandle
    from longshore.server.call import Call

LAST_SECONDS = 0.2
"""How long what waits for children may take, once those have been ended."""

Offered = Callable[[], dict[str, Entry]]
Limit = Callable[[str, str | None, float | Literal[False] | None], float]


@final
class Mounts:
    """`offered` gives the tools that the configuration lets through, `limit` the seconds that it gives to one,
    `changed` hears of resources that should be read again, `guard` refuses a call that may not be made."""

    def __init__(
        self,
        catalog: Catalog,
        recorder: Recorder,
        offered: Offered,
        limit: Limit,
        changed: Callable[[str], None],
        guard: Callable[[Entry, Call], None],
    ) -> None:
        self._catalog, self._recorder, self._offered, self._limit = catalog, recorder, offered, limit
        self._changed, self._guard = changed, guard
        self._watched: dict[str, ToolsetHandle | None] = {}
        """What clients of ours watch, and whose it is. To look that up for all at each watch would take too long."""
        self._made = 0

    def add(self, target: Any, prefix: str, timeout: float | Literal[False] | None, owner: Any) -> Mount:
        """Mount a server. It is not touched yet."""
        if target is owner:
            raise RegistrationError(caller(), "a server can't be mounted in itself", "mount another one")
        check_prefix(prefix, [each.prefix for each in self.all])
        wrong = no_timeout(timeout)
        if wrong is not None:
            raise RegistrationError(caller(), *wrong)
        self._catalog.check_toolset_name(prefix)
        mount = Mount(target, prefix, timeout, self._catalog, self._recorder, self._changed, self.refit)
        self._made += 1
        mount.holder.rank = self._made
        self._catalog.add_handle(mount.holder)
        return mount

    @property
    def all(self) -> list[Mount]:
        toolsets = (holder.toolset for holder in tuple(self._catalog.toolsets.values()))
        return [each for each in toolsets if isinstance(each, Mount)]

    def expected(self, names: Iterable[str]) -> list[str]:
        """Those that may yet come to be tools: the configuration may name them before they are there."""
        prefixes = tuple(mount.prefix + "_" for mount in self.all)
        return [name for name in names if name.startswith(prefixes)]

    def start(self) -> None:
        """Begin to connect, on the loop that runs."""
        for mount in self.all:
            mount.keeper()

    def let_end(self, loop: AbstractEventLoop) -> None:
        """The process is about to end, and has ended its children: have whoever waited for that notice it."""
        from asyncio import all_tasks, wait

        tasks = all_tasks(loop)
        if tasks:
            _, left = loop.run_until_complete(wait(tasks, timeout=LAST_SECONDS))
            for task in left:
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # it had its time

    @property
    def pending(self) -> bool:
        """Whether a list made now might lack something that is about to come."""
        return any(mount.pending for mount in self.all)

    async def wait(self) -> None:
        """Wait until every server has said what it offers, or has had its time to."""
        from asyncio import gather

        await gather(*(mount.settled() for mount in self.all))

    def unavailable(self) -> dict[str, str]:
        return {mount.prefix: why for mount in self.all if (why := mount.absence) is not None}

    def watch(self, uris: set[str]) -> None:
        """Clients of ours watch these resources: have the servers that they belong to tell of them, now and later."""
        known = self._watched
        if uris != set(known):
            self._watched = {uri: known[uri] if uri in known else self._holder_of(uri) for uri in uris}
            self._follow()

    def refit(self) -> None:
        """There are other things than before: names may be free, and what is watched may be another's."""
        for mount in self.all:
            mount.refit()
        self._watched = {uri: self._holder_of(uri) for uri in self._watched}
        self._follow()

    def _holder_of(self, uri: str) -> ToolsetHandle | None:
        found = self._catalog.find_resource(uri)
        return None if found is None else found[0].entry.toolset

    def _follow(self) -> None:
        for mount in self.all:
            mount.watch(frozenset(uri for uri, holder in self._watched.items() if holder is mount.holder))

    def placeholder(self, name: str) -> Entry | None:
        """What answers a call of a tool that is not known, but may be one of a server that has yet to come."""
        for mount in self.all:
            if name.startswith(mount.prefix + "_") and not mount.ready:
                return self._waiting(mount, name)
        return None

    def _waiting(self, mount: Mount, name: str) -> Entry:
        async def call_later(arguments: Any, call: Call) -> Any:
            await mount.ready_client(call)
            offered = self._offered()
            entry = offered.get(name) or find_alias(offered, name)
            if entry is None:
                raise ProtocolError(INVALID_PARAMS, f"no tool {name[:100]!r}")
            if entry.name != name:
                call.remarks = (f"{name} is now {entry.name}",)
            if entry.guarded:
                self._guard(entry, call)
            call.entry = entry
            try:
                call.arguments = entry.decode(arguments)
            except ValidationError as problem:
                raise ToolError(f"{name}: invalid arguments\n{problem}") from None
            return await entry.invoke(call.arguments, call)

        return Entry(
            kind="tool",
            name=name,
            where=f"mounted {mount.prefix}",
            run="async",
            decode=lambda raw: raw,
            invoke=call_later,
            render=lambda value, call: call.entry.render(value, call),
            explain=report_problem,
            describe=dict,
            raw=True,
            replay=True,
            meter=mount.prefix,
            limit=self._limit(name, mount.prefix, mount.timeout),
        )
