"""Tools as they are declared (`Tool`, `ToolOptions`) and as the server runs them (`Entry`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from msgspec import Struct

from longshore.protocol.content import Icon
from longshore.registry.source_location import refuse
from longshore.schema.kinds import NAME_CHARACTERS

if TYPE_CHECKING:
    from longshore.protocol.http_headers import HeaderParam
    from longshore.registry.migrations import Migration
    from longshore.schema.repair import RepairResult

Effects = Literal["read", "write", "destroy"]
Run = Literal["thread", "inline", "async"]
Json = Any

ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]")
_LEGAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


class Options(Struct, kw_only=True):
    """The options that tools, resources and prompts have in common, and all options of a prompt."""

    name: str | None = None
    """None: the function's."""
    title: str | None = None
    """What people see in place of the name."""
    description: str | None = None
    """None: from the docstring."""
    icons: Sequence[Icon] = ()
    """Pictures for the lists of clients."""
    meta: Mapping[str, Json] | None = None
    """Its `_meta`, for programs that know your keys."""
    timeout: float | Literal[False] | None = None
    """Seconds that a call may take; False for no limit. None: `server.timeout`."""
    run: Run | Literal["inline_first"] | None = None
    """Where it runs. None: an `async def` on the event loop, a `def` in a thread of its own."""


class ToolOptions(Options, kw_only=True):
    """The options of a tool, at the typed and at the raw level. At the typed level the rest follows from the function.

    - `effects` and `idempotent` become the standard annotations; `annotations` adds to or replaces them.
    - `output_schema`, where given, is enforced on `structured` of the result.
    """

    category: str | None = None
    """Where `list_tools` shows it. None: under its toolset."""
    tags: Sequence[str] = ()
    """Words that `list_tools` finds it by."""
    effects: Effects | None = None
    """What a call changes: `readOnlyHint` and `destructiveHint` follow. None: clients assume the worst."""
    idempotent: bool | None = None
    """Whether a second call of the same arguments changes nothing more: `idempotentHint`."""
    open_world: bool | None = None
    """Whether it reaches beyond this machine: `openWorldHint`."""
    replay: bool = False
    """Whether its body may run again from the start, for each question that it asks the user."""
    artifacts: bool = False
    """Whether it saves artifacts: clients are told that they can read them."""
    examples: Sequence[Any] = ()
    """Arguments that `tool_help` shows."""
    errors: Mapping[str, str] | None = None
    """What can go wrong → the fix, for `tool_help`."""
    output_schema: dict[str, Json] | None = None
    """The schema of `structured`. None: from the function's return type."""
    annotations: Mapping[str, Json] | None = None
    """Standard annotations, beside those that follow from other options or in place of them."""
    scopes: Sequence[str] = ()
    """The scopes that an authenticated caller's token must have."""
    help: str | None = None
    """Text that `tool_help` shows beside the description, which every list carries."""
    listed: bool = True
    """False: it can be called, and is in no list."""
    catalog_forms: Sequence[Literal["search", "code"]] = ()
    """The forms of the catalogue in which it is listed, for a tool that finds or calls others; empty: any tool."""
    group: str | None = None
    """A group of its toolset's tools that is off until `[toolsets.NAME] groups` names it."""
    aliases: Sequence[str] | Mapping[str, Callable[..., Any] | None] = ()
    """Earlier names: they can be called, and are in no list.

    A mapping gives each its migration, whose parameters are those of the alias; None: it takes today's arguments.
    """
    migrations: Sequence[Callable[..., Any]] = ()
    """Migrations: functions that turn arguments of earlier versions into today's, the newest first."""
    waive: Mapping[str, str] | None = None
    """Lint rule → why it does not apply to this tool."""


if TYPE_CHECKING:
    # The same options as keyword arguments of the decorators, for type checkers and editors.

    class OptionKeywords(TypedDict, total=False):
        name: str | None
        title: str | None
        description: str | None
        icons: Sequence[Icon]
        meta: Mapping[str, Json] | None
        timeout: float | Literal[False] | None
        run: Literal["thread", "inline", "inline_first"] | None

    class ToolKeywords(OptionKeywords, total=False):
        category: str | None
        tags: Sequence[str]
        effects: Effects | None
        idempotent: bool | None
        open_world: bool | None
        replay: bool
        artifacts: bool
        examples: Sequence[Any]
        errors: Mapping[str, str] | None
        output_schema: dict[str, Json] | None
        annotations: Mapping[str, Json] | None
        scopes: Sequence[str]
        help: str | None
        listed: bool
        catalog_forms: Sequence[Literal["search", "code"]]
        group: str | None
        aliases: Sequence[str] | Mapping[str, Callable[..., Any] | None]
        migrations: Sequence[Callable[..., Any]]
        waive: Mapping[str, str] | None


class Tool(ToolOptions, kw_only=True):
    """The raw level: the author's own description and schemas, sent as they are.

    `input_schema` is any JSON Schema with an object at its root; it checks arguments unless `validate` is off.
    """

    name: str  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride]
    """The name that clients call it by."""
    input_schema: dict[str, Json]
    """The schema of its arguments."""
    validate: bool = True
    """Whether arguments are checked before the handler gets them."""


class Entry(Struct, kw_only=True):
    """Something that can be called: a tool, a resource's reader, a prompt or a completion.

    `decode` turns raw arguments into what `invoke` takes; `invoke(arguments, call)` returns the value or a coroutine of
    it; `render(value, call)` makes the result. All three are chosen at registration, so a call only runs them.
    """

    kind: Literal["tool", "resource", "prompt", "completion"]
    name: str
    where: Any
    """The source location of its declaration, as a lazy text."""
    run: Run
    tries_inline: bool = False
    """Whether a thread is needed only if it raises WouldBlock on the serving thread: `run="inline_first"`."""
    decode: Callable[[Any], Any]
    invoke: Callable[[Any, Any], Any]
    render: Callable[[Any, Any], Any]
    explain: Callable[[Any, Exception], RepairResult]
    """Repairs arguments that `decode` refused, or says what is wrong with each of them."""
    describe: Callable[[], dict[str, Json]]
    toolset: Any = None
    uri: str = ""
    """The URI of a resource, or its template."""
    template: Any = None
    """The template that a resource's URIs match, if it has variables."""
    max_age: float = 0.0
    """Seconds for which a client may cache a resource's contents."""
    completions: dict[str, Entry] = {}
    """The functions that complete its arguments."""
    timeout: float | Literal[False] | None = None
    limit: float = inf
    """The time limit in seconds, from the configuration, the declaration and the default; infinite for none."""
    plain: bool = False
    """Whether its result is encoded without a check: a typed tool without a limit of its own."""
    typed_result: bool = False
    """Whether its type makes the result text or structured content, never blocks that an older revision lacks."""
    direct: bool = False
    """Whether it can run without a record of the call: inline, typed, and without a context."""
    meter: str = ""
    """The name under which its calls are counted, if that is not its own."""
    result_bytes: int = 0
    """The longest result text, from the configuration; 0 for no limit."""
    headers: tuple[HeaderParam, ...] = ()
    """The arguments that an HTTP request repeats in its headers."""
    keeps_frame: bool = True
    """Whether the handler may read the request again: it takes a context, or asks the client for something."""
    raw: bool = False
    """Whether the author's own schema and result are sent as they are."""
    checks: bool = True
    """Whether arguments are checked before the handler gets them."""
    replay: bool = False
    artifacts: bool = False
    """Whether it may save artifacts."""
    scopes: frozenset[str] = frozenset()
    """The scopes that it declares."""
    needed: frozenset[str] = frozenset()
    """The scopes that a caller's token must have: those, and what the configuration adds."""
    guarded: bool = False
    """Whether a call is checked before it runs: it needs scopes, or headers that repeat arguments."""
    effects: Effects | None = None
    idempotent: bool | None = None
    asked: tuple[Any, ...] = ()
    waits: bool = False
    """Whether a call waits for something before it runs: for answers to questions, or for the server's lifespan."""
    parameters: dict[str, Any] = {}
    """Types by name, for completing the arguments of prompts and the variables of templates."""
    category: str | None = None
    tags: tuple[str, ...] = ()
    examples: tuple[Any, ...] = ()
    errors: dict[str, str] = {}
    help: str | None = None
    listed: bool = True
    """Whether lists may show it."""
    shown: bool = True
    """Whether `tools/list` shows it: it is listed, and the form of the catalogue does not leave it out."""
    catalog_forms: tuple[Literal["search", "code"], ...] = ()
    """The forms of the catalogue in which alone it is shown; empty: it is a tool that these forms leave out."""
    offered: bool = True
    """Whether it is on offer: it is enabled, and its toolset can run here."""
    group: str | None = None
    """The group that has to be configured before it is offered."""
    aliases: tuple[str, ...] = ()
    alias_migrations: dict[str, Migration] = {}
    """The migrations of the aliases that have parameters of their own."""
    waived: dict[str, str] = {}
    authored: list[Any] | Literal[True] | None = None
    """The parts of its description that the author wrote, so that lint has to check them.

    True where only the schema can tell.
    """
    documented: bool = False
    """Whether it has a description."""
    wrapped: Entry | None = None
    """The entry that runs middleware around this one, and is called in its place."""
    calls: int = 0
    failures: int = 0

    @property
    def key(self) -> str:
        """The name that the catalog has it by, unique among its kind."""
        return self.uri or self.name


def report_problem(_: Any, problem: Exception) -> RepairResult:
    """The `explain` of an entry that repairs nothing."""
    from longshore.schema.repair import RepairResult

    return RepairResult(faults=(str(problem),))


def category_of(entry: Entry) -> str | None:
    """The declared category, else the name of its toolset."""
    return entry.category or (entry.toolset.name if entry.toolset is not None else None)


def describe(name: str, options: Options, description: str | None, fields: dict[str, Json]) -> dict[str, Json]:
    """A tool, a resource or a prompt as a list shows it. `fields` are those of its kind; None is left out."""
    described = {
        "name": name,
        "title": options.title,
        "description": description or None,
        "icons": list(options.icons) or None,
        "_meta": options.meta,
        **fields,
    }
    return {key: value for key, value in described.items() if value is not None}


def describe_tool(
    name: str, options: ToolOptions, description: str | None, input_schema: Json, output_schema: Json
) -> dict[str, Json]:
    """A tool as `tools/list` shows it, with the standard annotations for its effects and the author's own."""
    meta: dict[str, Json] = {} if options.category is None else {"longshore/category": options.category}
    if options.tags:
        meta["longshore/tags"] = list(options.tags)
    hints: dict[str, Json] = {}
    if options.effects is not None:
        hints["readOnlyHint"] = options.effects == "read"
        if options.effects != "read":
            hints["destructiveHint"] = options.effects == "destroy"
    if options.idempotent is not None and options.effects != "read":
        hints["idempotentHint"] = options.idempotent
    if options.open_world is not None:
        hints["openWorldHint"] = options.open_world
    fields = {
        "inputSchema": input_schema,
        "outputSchema": output_schema,
        "annotations": (hints | dict(options.annotations or {})) or None,
        "_meta": (meta | dict(options.meta or {})) or None,
    }
    return describe(name, options, description, fields)


# -- names


def check_name(name: Any, kind: str, fn: Callable[..., Any]) -> None:
    """Refuse a name that some client would drop, rename or fail on."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARACTERS or not _LEGAL.issuperset(name):
        legal = re.sub(f"{ILLEGAL.pattern}+", "_", str(name)).strip("_")[:NAME_CHARACTERS] or "tool"
        what = f"{name!r} can't be a {kind}'s name: 1 to {NAME_CHARACTERS} of A-Z a-z 0-9 _ - ."
        refuse(fn, what, f"name={legal!r}")


def hint(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'x'?` for an unknown name, or nothing."""
    from longshore.nearest import nearest

    near = nearest(name, names)
    return f"; did you mean {near!r}?" if near else ""
