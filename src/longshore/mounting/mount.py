"""Mounted servers: each is a toolset whose entries are added when the server has listed them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, final

from msgspec import ValidationError

from longshore.errors import ClientError, ConnectError, ProtocolError, RegistrationError, ToolError
from longshore.registry.catalog import Catalog, find_alias
from longshore.registry.function import check_timeout
from longshore.registry.source_location import caller
from longshore.registry.tool import Entry, report_problem
from longshore.registry.toolset import Toolset, ToolsetHandle
from longshore.telemetry.recorder import Recorder
from longshore.wire.codec import INVALID_PARAMS

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from longshore.client.client import Client
    from longshore.config.sections import CatalogForm
    from longshore.mounting.calls import Calls
    from longshore.mounting.entries import RemoteList
    from longshore.mounting.supervisor import MountSupervisor
    from longshore.registry.migrations import Migration
    from longshore.server.call import Call
    from longshore.server.engine import Engine

LOGGED = 20
LOGGED_SECONDS = 60.0
"""Problems of one server that are logged: at most so many within so long."""
LAST_SECONDS = 0.2
"""Time for tasks to notice that their child processes have been ended."""
MAX_PREFIX_CHARACTERS = 24
"""Leaves 39 for the name behind it, which is more than nine of ten names have."""

Timeout = float | Literal[False] | None
Limit = Callable[[str, str | None, Timeout], float]


@final
class Mount(Toolset):
    """One mounted server. It connects at its first use, on the loop that calls run on.

    `on_updated` gets resources that have changed; `on_resources` is called when the list of resources has.
    """

    def __init__(
        self,
        target: Any,
        prefix: str,
        timeout: Timeout,
        catalog: Catalog,
        recorder: Recorder,
        on_updated: Callable[[str], None],
        on_resources: Callable[[], None],
    ) -> None:
        self.prefix = prefix
        self.holder = ToolsetHandle(self, prefix, watch=self.watch)
        self._target, self.timeout = target, timeout
        self._catalog, self._recorder = catalog, recorder
        self._client: Client | None = None
        self._calls: Calls | None = None
        self._supervisor: MountSupervisor | None = None
        self._on_updated, self._on_resources = on_updated, on_resources
        self._watched: frozenset[str] = frozenset()
        self._lists: dict[str, RemoteList] = {}
        self._noted: set[str] = set()
        """Problems of the client that were logged."""
        self._logged, self._logged_since = 0, monotonic()
        self.left_out: dict[str, list[str]] = {}
        """For each list, the entries that could not be used, and why."""
        self._check_target()

    def _check_target(self) -> None:
        """Refuse an unusable target at registration, and take over an author's client so that others can't open it."""
        module = sys.modules.get("longshore.client.client")  # an author who passes a client has imported it
        if module is not None and isinstance(self._target, module.Client):
            try:
                self._connected_client()
            except ClientError:
                fix = "mount a client of its own: app.mount(Client(…), prefix=…)"
                raise RegistrationError(caller(), "this client is open already, or mounted", fix) from None
            return
        from longshore.client.channel import TransportOptions
        from longshore.client.targets import find

        try:
            find(self._target, TransportOptions())
        except ConnectError as problem:
            fix = "give a Server, a Client, a command, a URL or an entry of mcpServers"
            raise RegistrationError(caller(), f"this can't be mounted: {problem.what}", fix) from None

    # -- the connection

    def supervisor(self) -> MountSupervisor:
        """The supervisor of the connection, started on the running loop if there is none."""
        if self.holder.removed:
            raise ToolError(f"the mounted server {self.prefix!r} was unmounted")
        if self.running is not None:
            return self.running
        from longshore.mounting.supervisor import MountSupervisor

        recorder: Recorder | None = getattr(self._target, "recorder", None)
        if recorder is not None and recorder.fallback is None:
            recorder.fallback = lambda: self._recorder.report  # problems of a `Server` in this process are our own
        client = self._connected_client()
        supervisor = MountSupervisor(self.prefix, client, self._take_lists, self._log, self._on_updated)
        self._supervisor = supervisor
        supervisor.resources.watch(self._watched)
        return supervisor

    @property
    def running(self) -> MountSupervisor | None:
        supervisor = self._supervisor
        return supervisor if supervisor is not None and supervisor.alive else None

    @property
    def pending(self) -> bool:
        """Whether a list should still wait for the server's first answer."""
        return self.running is None or self.running.pending

    @property
    def absence(self) -> str | None:
        """The reason why the server can't be used, if it is known."""
        if self.running is None or self.running.state == "ready" or self.running.pending:
            return None
        return self.running.absence()

    def watch(self, uris: frozenset[str]) -> None:
        """Watch these resources of the server."""
        self._watched = uris
        if self.running is not None:
            self.running.resources.watch(uris)

    async def stop(self) -> None:
        supervisor, self._supervisor = self.running, None
        if supervisor is not None:
            await supervisor.stop()

    def status(self) -> dict[str, Any]:
        supervisor = self._supervisor
        if supervisor is None:
            return {"state": "not started"}
        known: dict[str, Any] = {"state": supervisor.state, "seconds": round(monotonic() - supervisor.since, 1)}
        if supervisor.problem is not None:
            known["problem"] = supervisor.problem.what
        if supervisor.state == "ready":
            server = supervisor.client.server
            known |= {"server": server.name, "version": server.version, "revision": server.revision}
        left_out = [line for lines in self.left_out.values() for line in lines]
        return known | ({"left_out": left_out[:20]} if left_out else {})

    async def ready_client(self, call: Call) -> Client:
        """Wait for the connected server, outside the executor's limits. Raises ToolError with the reason."""
        from longshore.mounting.supervisor import CALL_SECONDS

        supervisor = self.supervisor()
        seconds = min(CALL_SECONDS, 0.8 * (call.deadline - monotonic()))  # to fail with the reason before its timeout
        if supervisor.is_ready or not call.running:
            return await supervisor.ready(seconds)
        call.executor.pause(call)
        try:
            return await supervisor.ready(seconds)
        finally:
            call.executor.resume(call)

    def calls(self) -> Calls:
        """The calls of its entries. Starts the supervisor if there is none."""
        self.supervisor()
        assert self._calls is not None
        return self._calls

    def _connected_client(self) -> Client:
        """The client, with this mount as its relay. The same one on every loop."""
        from longshore.client.client import Client, Relay, take_over
        from longshore.mounting.calls import Calls
        from longshore.mounting.relayed_questions import RELAYED

        if self._client is None:
            calls = Calls(self.prefix, self.ready_client, lambda: self._supervisor is None, self._warn)
            relay = Relay(RELAYED, calls.put_question, calls.log)
            target = self._target
            self._client = take_over(target, relay) if isinstance(target, Client) else Client(target, relay=relay)
            self._calls = calls
        return self._client

    def _warn(self, text: str) -> None:
        self._log("warning", text)

    def _log(self, level: Any, text: str) -> None:
        """Log a problem, within a limit: a faulty server could fill any log."""
        now = monotonic()
        if now - self._logged_since > LOGGED_SECONDS:
            self._logged_since, self._logged = now, 0
        self._logged += 1
        if self._logged <= LOGGED:
            self._recorder.problem(level, f"mounted {self.prefix}: {text}")
        elif self._logged == LOGGED + 1:
            self._recorder.problem("warning", f"mounted {self.prefix}: more problems are not logged within a minute")

    # -- its entries

    async def _take_lists(self, client: Client, kinds: set[str]) -> None:
        """Put the server's lists into the catalog."""
        from longshore.mounting.entries import REFUSED, read_list, unlisted

        for kind in sorted(kinds):
            try:
                found = await read_list(client, kind, self)
            except REFUSED as problem:
                self._note(kind, [unlisted(kind, problem)])  # the previous entries may still exist
                continue
            if not self.holder.removed:
                self._take_list(found)
        self._note("entries", client.left_out)
        problems = {*client.problems}.difference(client.left_out, client.absent.values())
        for text in sorted(problems - self._noted):
            self._log("notice", text)
        self._noted = problems

    def aliases_of(self, name: str) -> dict[str, Migration | None]:
        """The former names of a tool. They are unlisted, so they are known only of a server in this process."""
        engine: Any = getattr(self._target, "engine", None)
        entry: Entry | None = None if engine is None else engine.tools.get(name)
        return {} if entry is None else {alias: entry.alias_migrations.get(alias) for alias in entry.aliases}

    def _take_list(self, found: RemoteList) -> None:
        before = self._lists.get(found.part)
        old = {} if before is None else before.definitions
        found.taken = [] if before is None else before.taken
        self._lists[found.part] = found
        if found.definitions == old:
            self._note_left_out(found)
            return
        self._swap(found)
        # A person may have approved the old definition.
        other = sorted(name for name in old.keys() & found.definitions.keys() if old[name] != found.definitions[name])
        if other:
            self._warn(f"other {found.part} under the same name: {', '.join(other[:10])}")

    def refit(self) -> None:
        """Add the entries whose names have become available."""
        for found in tuple(self._lists.values()):
            names: dict[str, Entry] = getattr(self._catalog, found.part)
            if any(name not in names for name in found.taken):
                self._swap(found)

    def _swap(self, found: RemoteList) -> None:
        found.taken = self._catalog.swap(self.holder, found.part, found.entries)
        self._note_left_out(found)
        if found.part == "resources":
            self._on_resources()

    def _note_left_out(self, found: RemoteList) -> None:
        self._note(found.part, [*found.left_out, *(f"{name}: the name is taken" for name in found.taken)])

    def _note(self, part: str, left_out: list[str]) -> None:
        new = [line for line in left_out if line not in self.left_out.get(part, [])]
        self.left_out[part] = left_out
        if new:
            shown = "; ".join(new[:10]) + (f"; and {len(new) - 10} more" if len(new) > 10 else "")
            self._warn(f"left out: {shown}")


@final
class Mounts:
    """All servers mounted in one server.

    `engine` gives the engine that serves them, `limit` the time limit of a tool, `on_updated` gets resources that have
    changed.
    """

    def __init__(
        self,
        catalog: Catalog,
        recorder: Recorder,
        engine: Callable[[], Engine],
        limit: Limit,
        on_updated: Callable[[str], None],
    ) -> None:
        self._catalog, self._recorder, self._engine = catalog, recorder, engine
        self._limit, self._on_updated = limit, on_updated
        self._made = 0

    def add(self, target: Any, prefix: Any, timeout: Timeout, form: CatalogForm | None, owner: Any) -> None:
        """Mount a server, without connecting to it."""
        if target is owner:
            raise RegistrationError(caller(), "a server can't be mounted in itself", "mount another one")
        if not isinstance(prefix, str) or not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_PREFIX_CHARACTERS}}}", prefix):
            what = f"{prefix!r} can't be a prefix: 1 to {MAX_PREFIX_CHARACTERS} of A-Z a-z 0-9 _ -"
            raise RegistrationError(caller(), what, 'app.mount(…, prefix="files")')
        for other in self.all:
            first, second = sorted((prefix, other.prefix), key=len)
            if second.startswith(first + "_"):
                what = f"the prefixes {first!r} and {second!r} could give two tools one name"
                raise RegistrationError(caller(), what, "take a prefix that is not the beginning of another")
        check_timeout(timeout)
        self._catalog.check_toolset_name(prefix)
        mount = Mount(target, prefix, timeout, self._catalog, self._recorder, self._on_updated, self.refit)
        self._made += 1
        mount.holder.rank = self._made
        mount.holder.catalog_form = form
        self._catalog.add_handle(mount.holder)

    @property
    def all(self) -> list[Mount]:
        toolsets = (holder.toolset for holder in tuple(self._catalog.toolsets.values()))
        return [each for each in toolsets if isinstance(each, Mount)]

    def expected(self, names: Iterable[str]) -> list[str]:
        """Names that may become tools: the configuration may contain them before they are listed."""
        prefixes = tuple(mount.prefix + "_" for mount in self.all)
        return [name for name in names if name.startswith(prefixes)]

    def start(self) -> None:
        """Begin to connect, on the running loop."""
        for mount in self.all:
            mount.supervisor()

    def let_end(self, loop: AbstractEventLoop) -> None:
        """Let the tasks notice that the process is about to end and has ended its children."""
        from asyncio import all_tasks, wait

        tasks = all_tasks(loop)
        if tasks:
            _, left = loop.run_until_complete(wait(tasks, timeout=LAST_SECONDS))
            for task in left:
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # it had its time

    @property
    def pending(self) -> bool:
        """Whether a list made now might lack entries that are about to be added."""
        return any(mount.pending for mount in self.all)

    async def wait(self) -> None:
        """Wait until every server has listed its entries or timed out."""
        from asyncio import gather

        await gather(*(mount.supervisor().wait_listed() for mount in self.all if not mount.holder.removed))

    def unavailable(self) -> dict[str, str]:
        return {mount.prefix: why for mount in self.all if (why := mount.absence) is not None}

    def refit(self) -> None:
        """React to changed entries: names may be available."""
        for mount in self.all:
            mount.refit()

    def placeholder(self, name: str) -> Entry | None:
        """A placeholder for an unknown tool that may belong to a server that has not listed its tools."""
        for mount in self.all:
            if name.startswith(mount.prefix + "_") and (mount.running is None or not mount.running.is_ready):
                return self._placeholder(mount, name)
        return None

    def _placeholder(self, mount: Mount, name: str) -> Entry:
        async def call_later(arguments: Any, call: Call) -> Any:
            await mount.ready_client(call)
            engine = self._engine()
            entry = engine.tools.get(name) or find_alias(engine.tools, name)
            if entry is None:
                raise ProtocolError(INVALID_PARAMS, f"no tool {name[:100]!r}")
            if entry.name != name:
                call.remarks = (f"{name} is now {entry.name}",)
            if entry.guarded:
                engine.guard(entry, call.link, call.frame)
            call.entry = entry
            try:
                call.arguments = entry.decode(_translated(entry, name, arguments))
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


def _translated(entry: Entry, name: str, arguments: Any) -> Any:
    """The tool's arguments, converted from those of an alias with parameters of its own."""
    if name not in entry.alias_migrations:
        return arguments
    reading = entry.alias_migrations[name].translate(name, arguments)
    if reading.faults:
        raise ToolError(f"{name}: invalid arguments\n" + "\n".join(reading.faults))
    return reading.arguments
