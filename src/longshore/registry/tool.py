"""A tool as it is kept: what clients are told of it, and how it is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from longshore.protocol.content import Icon
from longshore.schema.reading import Reading

if TYPE_CHECKING:
    from longshore.protocol.headers import HeaderParam

Effects = Literal["read", "write", "destroy"]
Run = Literal["thread", "inline", "async"]
Json = Any


class Tool(Struct, kw_only=True):
    """The raw level: an author's own words and schemas, sent as they are.

    - `input_schema` is any JSON Schema with an object at its root; it checks arguments unless `validate` is off.
    - `output_schema`, where given, is enforced on `structured` of the result.
    - `effects` and `idempotent` become the standard annotations; `annotations` adds to or replaces them.
    """

    name: str
    input_schema: dict[str, Json]
    description: str = ""
    title: str | None = None
    output_schema: dict[str, Json] | None = None
    category: str | None = None
    tags: Sequence[str] = ()
    effects: Effects | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    annotations: Mapping[str, Json] | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, Json] | None = None
    examples: Sequence[Any] = ()
    errors: Mapping[str, str] | None = None
    timeout: float | Literal[False] | None = None
    run: Run | None = None
    replay: bool = False
    validate: bool = True
    scopes: Sequence[str] = ()
    """What an authenticated caller's token must allow."""
    help: str | None = None
    """What `tool_help` tells beside the description, which every list carries."""
    aliases: Sequence[str] = ()
    """Names that it had before: they can be called, and are in no list."""
    earlier: Sequence[Callable[..., Any]] = ()
    """What makes arguments of today of those that callers knew before, the newest first."""
    waive: Mapping[str, str] | None = None
    """Rule of the standards → why it does not hold for this tool."""


class Entry(Struct, kw_only=True):
    """Something that can be called: a tool, a resource's reader, a prompt or a completion.

    `decode` turns raw arguments into what `invoke` takes; `invoke(arguments, call)` gives the value or a coroutine of
    it; `render(value, call)` makes the result. All three are chosen at registration, so a call only follows them.
    """

    kind: Literal["tool", "resource", "prompt", "completion"]
    name: str
    where: Any
    """Where it was declared; its text is worked out when it is wanted."""
    run: Run
    decode: Callable[[Any], Any]
    invoke: Callable[[Any, Any], Any]
    render: Callable[[Any, Any], Any]
    explain: Callable[[Any, Exception], Reading]
    """A second look at arguments that `decode` refused: what they mean after all, or what is wrong with each."""
    describe: Callable[[], dict[str, Json]]
    toolset: Any = None
    timeout: float | Literal[False] | None = None
    limit: float = inf
    """The seconds that hold now, from the configuration, the declaration and the default; infinite for none."""
    plain: bool = False
    """Whether its result needs no look before it is encoded: a typed tool without a limit of its own."""
    typed_result: bool = False
    """Whether its result is text or structure by its type, never blocks that an older revision may not know."""
    direct: bool = False
    """Whether it can be called without a record of the call: inline, typed, and not interested in who calls."""
    meter: str = ""
    """The name under which its calls are counted, where that is not its own."""
    result_bytes: int = 0
    """The longest result text, from the configuration; 0 for no limit."""
    arguments: type[Struct] | None = None
    """The typed arguments, where they have a type."""
    headers: tuple[HeaderParam, ...] = ()
    """The arguments that an HTTP request repeats in its headers."""
    keeps_frame: bool = True
    """Whether the handler may look at the request again: it takes a context, or is asked for something."""
    raw: bool = False
    """Whether the author's own schema and result go out as they are."""
    checks: bool = True
    """Whether arguments are checked before they are handed over."""
    replay: bool = False
    scopes: frozenset[str] = frozenset()
    """What a caller's token must allow."""
    guarded: bool = False
    """Whether a call is looked at before it runs: it needs scopes, or headers that repeat arguments."""
    effects: Effects | None = None
    idempotent: bool | None = None
    asked: tuple[Any, ...] = ()
    parameters: dict[str, Any] = {}
    """Types by name, for what completes the arguments of prompts and the holes of templates."""
    category: str | None = None
    tags: tuple[str, ...] = ()
    examples: tuple[Any, ...] = ()
    errors: dict[str, str] = {}
    help: str | None = None
    aliases: tuple[str, ...] = ()
    waived: dict[str, str] = {}
    odd: list[Any] | Literal[True] | None = None
    """What of that which clients are told is the author's own writing, so that no rule is kept by construction.

    True where only the schema can tell.
    """
    documented: bool = False
    """Whether it says what it does."""
    calls: int = 0
    failures: int = 0


def category_of(entry: Entry) -> str | None:
    """The declared category, else the name of the toolset that it is a part of."""
    return entry.category or (entry.toolset.name if entry.toolset is not None else None)


def effect_hints(
    effects: Effects | None,
    idempotent: bool | None,
    open_world: bool | None,
    extra: Mapping[str, Json] | None,
) -> dict[str, Json]:
    """The standard hints that follow from what an author declared. Nothing declared, nothing hinted."""
    hints: dict[str, Json] = {}
    if effects is not None:
        hints["readOnlyHint"] = effects == "read"
        if effects != "read":
            hints["destructiveHint"] = effects == "destroy"
    if idempotent is not None and effects != "read":
        hints["idempotentHint"] = idempotent
    if open_world is not None:
        hints["openWorldHint"] = open_world
    return hints | dict(extra or {})
