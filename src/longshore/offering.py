"""Which tools a server takes and offers, and for how long each may run: what authors say, and the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Literal, final

from longshore import config as configuration
from longshore.config import Config
from longshore.errors import RegistrationError
from longshore.registry.catalog import Catalog
from longshore.registry.tool import Entry
from longshore.telemetry.recorder import Recorder

if TYPE_CHECKING:
    from longshore.registry.lint import Policy, RegistrationLint


@final
class Admission:
    """What a server asks of tools before it offers them. The standards come in with the first that is not plain."""

    def __init__(
        self,
        server: str,
        catalog: Catalog,
        recorder: Recorder,
        policy: Policy,
        categories: Sequence[str] | None,
        waive: Mapping[str, str] | None,
    ) -> None:
        self.policy: Policy = policy
        """What becomes of a tool that some client can't take: it is told, or refused."""
        self.categories: tuple[str, ...] | None = None
        self.waived: dict[str, str] = {}
        self.standards: RegistrationLint | None = None
        self._server, self._catalog, self._recorder = server, catalog, recorder
        catalog.check = self.check
        if policy != "warn" or categories is not None or waive:
            from longshore.registry.lint import read_categories, read_waivers

            self.categories, self.waived = read_categories(categories), read_waivers(waive)
            self.standards = self._hold()

    def check(self, entries: Sequence[Entry]) -> None:
        """Refuse new tools, or tell what is wrong with them. Plain ones keep the standards, and cost one look."""
        if self.standards is None:
            if not any(entry.raw or entry.odd for entry in entries):
                return
            self.standards = self._hold()
        self.standards.check(entries)
        if self._recorder.on or self._recorder.fallback is not None:
            self.standards.report(self._warn)

    def settle(self, told: bool = False) -> None:
        """Tell what was found before anybody could hear it, unless it is told, and remember what was looked at."""
        if self.standards is not None:
            self.standards.report(self._warn if not told else lambda _: None)
            self.standards.save()

    def _hold(self) -> RegistrationLint:
        from longshore.registry.lint import RegistrationLint

        return RegistrationLint(self._server, self.policy, self.categories, self.waived, self._catalog)

    def _warn(self, line: str) -> None:
        self._recorder.problem("warning", line)


def attempt(step: Callable[[], object]) -> None:
    """Declare something. What can't be is raised, unless somebody wants to see all that can't."""
    try:
        step()
    except RegistrationError as problem:
        from longshore.registry.lint import collect

        if not collect(problem):
            raise


def offer(catalog: Catalog, config: Config, default: float) -> dict[str, Entry]:
    """The tools to offer. Every entry learns what holds for it; `default` is the time of one that names none."""
    offered: dict[str, Entry] = {}
    for entry in catalog.entries():
        toolset = entry.toolset.name if entry.toolset is not None else None
        entry.limit = limit(config, entry.name, toolset, default if entry.timeout is None else entry.timeout)
        entry.result_bytes = configuration.tool_config(config, entry.name).result_bytes or 0
        entry.guarded = bool(entry.scopes or entry.headers)
        entry.plain = entry.typed_result and not entry.result_bytes
        entry.direct = entry.plain and entry.run == "inline" and not entry.keeps_frame and _always_open(entry)
        if entry.kind == "tool" and configuration.tool_enabled(config, entry.name, toolset):
            offered[entry.name] = entry
    return offered


def limit(config: Config, name: str, toolset: str | None, declared: float | Literal[False]) -> float:
    """The seconds that a tool may run."""
    return configuration.tool_timeout(config, name, toolset, declared) or inf


def _always_open(entry: Entry) -> bool:
    return entry.toolset is None or entry.toolset.stateless
