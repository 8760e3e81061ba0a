"""The offer of a server, from the declarations and the configuration: tools, time limits, instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Final, Literal, final

from longshore import config as configuration
from longshore.config import Config
from longshore.errors import RegistrationError, ToolError
from longshore.limits import Limits
from longshore.registry.catalog import PART_OF, Catalog, Part
from longshore.registry.tool import Entry, hint
from longshore.telemetry.recorder import Recorder

if TYPE_CHECKING:
    from longshore.config.sections import CatalogForm
    from longshore.protocol.peer import Principal
    from longshore.registry.tool_lint import LintPolicy, RegistrationLint
    from longshore.registry.toolset import ToolsetHandle
    from longshore.schema.client_forms import Form
    from longshore.server.lifespan import Lifespan
    from longshore.server.middleware import Middleware, MiddlewareStack

CALL_TOOL: Final = "call_tool"
"""The tool whose calls the engine makes calls of the tool that they name."""


@final
class Policy:
    """The offer of one server. `config` may be replaced while the server runs; `offer` then applies it."""

    def __init__(
        self,
        catalog: Catalog,
        limits: Limits | None,
        instructions: str | None,
        catalog_form: CatalogForm | None = None,
        pinned: Sequence[str] | None = None,
        lifespan: Lifespan | None = None,
    ) -> None:
        """All but the catalog are the author's; the configuration may override them."""
        self.middleware: MiddlewareStack | None = None
        self.lifespan = lifespan
        """What the server opens before the first call; None: nothing."""
        self.config: Config = configuration.DEFAULT
        self._catalog, self._limits, self._instructions = catalog, limits, instructions
        self._catalog_form: CatalogForm | None = catalog_form
        self._pinned = pinned
        self.forms: frozenset[CatalogForm] = frozenset()
        """The forms of the catalogue that tools are listed in; empty where all are in form "full"."""
        self.call_tool: Entry | None = None
        """The tool that calls others, if it is on offer. It is none of the offered tools: it is never run."""
        self._tools: dict[str, bool] = {}
        """The tools that were enabled or disabled at run time."""
        self._toolsets: dict[str, bool] = {}
        """The toolsets, likewise."""
        self.has_unchecked = False
        """Whether toolsets of an index are offered that were not asked yet whether they can run here."""
        self._unreported: list[ToolsetHandle] = []
        """Toolsets that can't run here, of which the log does not know yet."""
        self._artifacts = ""
        """The URI template of artifacts, while it is offered."""

    @property
    def limits(self) -> Limits:
        return configuration.limits_of(self.config, self._limits)

    @property
    def instructions(self) -> str | None:
        if self.config.server.instructions or not self.forms:
            return self.config.server.instructions or self._instructions
        from longshore.server.catalog_forms import instructions_for

        return " ".join(filter(None, [self._instructions, instructions_for(self.forms)])) or None

    @property
    def catalog_form(self) -> CatalogForm:
        """The form of the catalogue, for tools whose toolset has none of its own."""
        return self._catalog_form_in(self.config)

    def _catalog_form_in(self, config: Config) -> CatalogForm:
        if self._catalog_form is None or "server.catalog" in config.origins:
            return config.server.catalog
        return self._catalog_form

    @property
    def pinned(self) -> Sequence[str]:
        """The tools that are listed in every form."""
        if self._pinned is None or "server.pinned" in self.config.origins:
            return self.config.server.pinned
        return self._pinned

    def form_of(self, handle: ToolsetHandle | None) -> CatalogForm:
        """The form in which the tools of a toolset are listed; None: those that belong to none."""
        return self._form_in(self.config, handle)

    def _form_in(self, config: Config, handle: ToolsetHandle | None) -> CatalogForm:
        if handle is not None:
            own: CatalogForm | None = configuration.toolset_config(config, handle.name).catalog or handle.catalog_form
            if own is not None:
                return own
        return self._catalog_form_in(config)

    def uses_forms(self, config: Config) -> bool:
        """Whether any tools are to be listed in another form than "full", by this configuration."""
        handles = (None, *self._catalog.toolsets.values())
        return any(self._form_in(config, handle) != "full" for handle in handles)

    @property
    def form(self) -> Form | None:
        """The kind of client that tool schemas are rewritten for; None: they stay as their authors wrote them."""
        return self.config.server.schemas

    @property
    def expose_errors(self) -> bool:
        """Whether clients see the text of unexpected exceptions."""
        return self.config.server.expose_errors

    @property
    def shows_traces(self) -> bool:
        """Whether a dialect that carries stack traces does: in debug mode, and never beyond this machine."""
        from longshore.addresses import is_loopback

        return self.config.server.debug and is_loopback(self.config.http.host)

    def offer(self, check_indexed: bool = True) -> dict[str, Entry]:
        """The enabled tools by name. Sets on every entry of the catalog what the configuration says of it.

        Without `check_indexed`, toolsets of an index count as able to run here: trying that may take long.
        """
        config, default = self.config, self.limits.timeout_seconds
        is_closed = self.lifespan is not None and not self.lifespan.is_open
        self.has_unchecked = False
        self.call_tool = None
        self.forms = self._find_forms()
        offered: dict[str, Entry] = {}
        for entry in self._catalog.entries():
            toolset = entry.toolset.name if entry.toolset is not None else None
            declared = default if entry.timeout is None else entry.timeout
            entry.limit = configuration.tool_timeout(config, entry.name, toolset, declared) or inf
            entry.result_bytes = configuration.tool_config(config, entry.name).result_bytes or 0
            entry.needed = entry.scopes
            if entry.kind == "tool":
                entry.needed |= configuration.tool_scopes(config, entry.name, toolset)
            entry.guarded = bool(entry.needed or entry.headers)
            entry.plain = entry.typed_result and not entry.result_bytes
            entry.waits = bool(entry.asked) or is_closed
            entry.offered = self._offers(entry, check_indexed)
            stateless = entry.toolset is None or entry.toolset.stateless
            is_whole = entry.plain and stateless and not entry.waits
            entry.direct = is_whole and entry.run == "inline" and not entry.keeps_frame
            entry.shown = entry.listed and not entry.catalog_forms
            if entry.offered and entry.catalog_forms and entry.name == CALL_TOOL:
                self.call_tool = entry
            elif entry.offered and entry.kind == "tool":
                offered[entry.name] = entry
        if self.forms:
            self._show(offered)
        self._offer_artifacts(any(entry.artifacts for entry in offered.values()))
        return offered if self.middleware is None else self._wrapped(self.middleware, offered)

    def add_middleware(self, middleware: Middleware) -> None:
        """Run middleware around requests, inside of those that were added before."""
        if self.middleware is None:
            from longshore.server.middleware import MiddlewareStack

            self.middleware = MiddlewareStack()
        self.middleware.add(middleware)

    def adopt_middleware(self, other: Policy) -> None:
        """Run the middleware of another server in place of this one's, from the next offer on."""
        if self.middleware is not None or other.middleware is not None:
            from longshore.server.middleware import MiddlewareStack

            self.middleware = other.middleware or MiddlewareStack()

    def _wrapped(self, middleware: MiddlewareStack, offered: dict[str, Entry]) -> dict[str, Entry]:
        """The offered tools, with those in their place that middleware runs around."""
        for entry in self._catalog.entries():
            middleware.wrap(entry)
        return {name: entry.wrapped or entry for name, entry in offered.items()}

    def is_idle(self, handle: ToolsetHandle) -> bool:
        """Whether a toolset has tools only for forms of the catalogue that are not in use."""
        tools = [entry for entry in self._catalog.entries_of(handle) if entry.kind == "tool"]
        return bool(tools) and all(entry.catalog_forms and not entry.shown for entry in tools)

    def _find_forms(self) -> frozenset[CatalogForm]:
        if not self.uses_forms(self.config):
            return frozenset()
        from longshore.server.catalog_forms import forms_in_use

        return forms_in_use(self._catalog, self.form_of, self._is_on)

    def _show(self, offered: Mapping[str, Entry]) -> None:
        """Set which tools lists show, where not all tools are in form "full"."""
        from longshore.server.catalog_forms import is_shown, without_code

        self.forms, pinned = without_code(self.forms, offered), frozenset(self.pinned)
        for entry in tuple(self._catalog.tools.values()):
            entry.shown = is_shown(entry, self.forms, self.form_of, pinned)

    def _offers(self, entry: Entry, check_indexed: bool = True) -> bool:
        """Whether an entry is enabled, and its toolset can run here."""
        handle = entry.toolset
        if handle is None or not self._is_on(entry):
            return self._is_on(entry)
        # Whether code can run is asked at once: the instructions and the lists depend on it.
        if handle.lazy is not None and not check_indexed and not handle.is_checked and not entry.catalog_forms:
            self.has_unchecked = True
            return True
        if not handle.unavailable and not handle.check_available():
            self._unreported.append(handle)
        return not handle.unavailable

    def _is_on(self, entry: Entry) -> bool:
        """Whether a tool, or the toolset of a resource or a prompt, is enabled."""
        if entry.kind == "tool":
            return self.is_enabled(entry)
        return entry.toolset is None or self.is_toolset_enabled(entry.toolset)

    def is_toolset_enabled(self, handle: ToolsetHandle) -> bool:
        """Whether a toolset is enabled: as set at run time, as a form in use needs it, as configured or declared."""
        whole = self._toolsets.get(handle.name)
        if whole is not None:
            return whole
        forms = (entry.catalog_forms for entry in tuple(self._catalog.tools.values()) if entry.toolset is handle)
        if self.forms and any(not self.forms.isdisjoint(each) for each in forms):
            return configuration.toolset_config(self.config, handle.name).enabled is not False
        return configuration.toolset_enabled(self.config, handle.name, handle.toolset.enabled)

    def is_enabled(self, entry: Entry) -> bool:
        """Whether a tool is offered: as set at run time, else as configured, else as declared."""
        chosen, handle = self.chosen(entry), entry.toolset
        if chosen is not None:
            return chosen
        if handle is None:
            return configuration.tool_enabled(self.config, entry.name, None, entry.group, tags=entry.tags)
        if self.forms and entry.catalog_forms:  # `server.toolsets` need not name their toolset
            own = configuration.tool_config(self.config, entry.name).enabled
            return self.is_toolset_enabled(handle) if own is None else own
        whole = self._toolsets.get(handle.name)
        declared = handle.toolset.enabled
        return configuration.tool_enabled(
            self.config, entry.name, handle.name, entry.group, declared=declared, whole=whole, tags=entry.tags
        )

    def hides(self, entry: Entry, principal: Principal) -> bool:
        """Whether a caller is not to know of a tool, because it lacks the scopes for it."""
        return self.config.server.hide_forbidden and bool(principal.lacks(entry.needed))

    def check_allowed(self, name: str, principal: Principal) -> None:
        """Raise ToolError for a tool that is not on offer, and Forbidden if a caller lacks the scopes for it."""
        entry = self._catalog.tools.get(name)
        if entry is None or not entry.offered:
            raise ToolError(f"{name} is off here, so this is too")
        principal.require(name, entry.needed)

    def chosen(self, entry: Entry) -> bool | None:
        """The setting made at run time for a tool, or for its toolset if that was disabled; None if there is none."""
        own = self._tools.get(entry.name)
        disabled = entry.toolset is not None and self._toolsets.get(entry.toolset.name) is False
        return False if own is None and disabled else own

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Enable or disable a tool or a toolset until the configuration changes. May be called from any thread.

        Raises KeyError for an unknown name. A toolset's setting replaces those of its tools.
        """
        handle = self._catalog.toolsets.get(name)
        tools = self._catalog.tools
        if handle is None and name not in tools:
            raise KeyError(f"no tool or toolset {name!r}{hint(name, [*tools, *self._catalog.toolsets])}")
        affected = [tools[name]] if handle is None else self._catalog.entries_of(handle)
        before = [self._is_on(entry) for entry in affected]
        if handle is None:
            self._tools[name] = enabled
        else:
            for entry in affected:
                if entry.kind == "tool":
                    self._tools.pop(entry.name, None)
            self._toolsets[name] = enabled
        changed: set[Part] = {
            PART_OF[entry.kind] for entry, was in zip(affected, before, strict=True) if self._is_on(entry) != was
        }
        if changed:
            self._catalog.changed(changed)

    def reconfigure(self, config: Config) -> None:
        """Apply a changed configuration, which overrides what was enabled and disabled at run time."""
        self.config = config
        self._tools, self._toolsets = {}, {}

    def stateful_toolsets(self) -> list[str]:
        """The toolsets on offer whose state lives in one process."""
        handles = {entry.toolset for entry in self._catalog.entries() if self._offers(entry)}
        return sorted(each.name for each in handles if each is not None and each.toolset.stateful)

    def report_unavailable(self, recorder: Recorder, reported: bool = False) -> None:
        """Log the toolsets that were found to be unable to run here, unless another process has."""
        found, self._unreported = self._unreported, []
        for handle in found if not reported else ():
            text = f"the toolset {handle.name!r} is unavailable: {handle.unavailable}"
            recorder.problem("warning", text, handle.availability_error)

    def _offer_artifacts(self, are_made: bool) -> None:
        """Offer the resource by which clients read artifacts, if a tool on offer makes any."""
        resources = self._catalog.resources
        if are_made:
            from longshore.server.artifact_resource import ARTIFACTS, artifact_entry

            if ARTIFACTS not in resources:
                resources[ARTIFACTS] = artifact_entry()
            self._artifacts = ARTIFACTS
        elif self._artifacts:
            resources.pop(self._artifacts, None)
            self._artifacts = ""

    def time_limit(self, name: str, toolset: str | None, declared: float | Literal[False] | None) -> float:
        """The seconds that a tool may run, for one that is not in the catalog yet."""
        seconds = self.limits.timeout_seconds if declared is None else declared
        return configuration.tool_timeout(self.config, name, toolset, seconds) or inf


@final
class Admission:
    """Checks new tools against the schema standards. The standards are loaded for the first tool that needs them."""

    def __init__(
        self,
        server: str,
        catalog: Catalog,
        recorder: Recorder,
        policy: LintPolicy,
        categories: Sequence[str] | None,
        waive: Mapping[str, str] | None,
    ) -> None:
        self.policy: LintPolicy = policy
        """Whether a tool that some client can't take is reported or refused."""
        self.categories: tuple[str, ...] | None = None
        self.waived: dict[str, str] = {}
        self.standards: RegistrationLint | None = None
        self._server, self._recorder = server, recorder
        catalog.check = self.check
        if policy != "warn" or categories is not None or waive:
            from longshore.registry.tool_lint import read_categories, read_waivers

            self.categories, self.waived = read_categories(categories), read_waivers(waive)
            self.standards = self._load()

    def check(self, entries: Sequence[Entry]) -> None:
        """Refuse or report new tools that break a rule. Plain ones can't break any, and are not checked."""
        if self.standards is None:
            if not any(entry.raw or entry.authored for entry in entries):
                return
            self.standards = self._load()
        self.standards.check(entries)
        if self._recorder.on or self._recorder.fallback is not None:
            self.standards.report(self._warn)

    def report(self, reported: bool = False) -> None:
        """Report findings from before the log was set up, unless another process has, and save the lint cache."""
        if self.standards is not None:
            self.standards.report(self._warn if not reported else lambda _: None)
            self.standards.save()

    def _load(self) -> RegistrationLint:
        from longshore.registry.tool_lint import RegistrationLint

        return RegistrationLint(self._server, self.policy, self.categories, self.waived)

    def _warn(self, line: str) -> None:
        self._recorder.problem("warning", line)


def declare(step: Callable[[], object]) -> None:
    """Run one declaration. Its error is raised, or collected where all errors of a file are wanted (`lint`)."""
    try:
        step()
    except RegistrationError as problem:
        from longshore.registry.tool_lint import collect

        if not collect(problem):
            raise
