"""From a Python function to an entry that can be called. Everything that a call needs is settled here, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec import UNSET, Struct

from longshore.errors import RegistrationError
from longshore.protocol.content import Icon
from longshore.protocol.questions import Ask
from longshore.registry.names import MAX_NAME_CHARACTERS, check_name
from longshore.registry.results import PASSTHROUGH, render_data, renderer, schema_renderer
from longshore.registry.tool import Effects, Entry, Json, Run, Tool, effect_hints
from longshore.registry.where import Place, caller, refuse
from longshore.schema.output import Output, read_output
from longshore.schema.reading import Reading
from longshore.schema.signature import Parameter, Patterns, Signature, SignatureProblem, read

if TYPE_CHECKING:
    from longshore.protocol.headers import HeaderParam

EFFECTS = ("read", "write", "destroy")
HEAVY: Final = "E13"
"""The rule about schemas that can't be checked by. A waiver of it lets one be whose checks might take for ever."""
Options = TypeVar("Options", bound=Struct)


class ToolOptions(Struct, kw_only=True):
    """What `@app.tool(…)` and `@tool(…)` take. What is left out follows from the function."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    category: str | None = None
    tags: Sequence[str] = ()
    effects: Effects | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    timeout: float | Literal[False] | None = None
    run: Literal["thread", "inline"] | None = None
    replay: bool = False
    examples: Sequence[Any] = ()
    errors: Mapping[str, str] | None = None
    output_schema: dict[str, Json] | None = None
    annotations: Mapping[str, Json] | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, Json] | None = None
    scopes: Sequence[str] = ()
    help: str | None = None
    aliases: Sequence[str] = ()
    earlier: Sequence[Callable[..., Any]] = ()
    waive: Mapping[str, str] | None = None


def read_options(kind: type[Options], options: Mapping[str, Any], what: str) -> Options:
    """The options of a declaration. One that does not exist is refused with the one that was probably meant."""
    names = kind.__struct_fields__
    for option in options:
        if option not in names:
            from longshore.nearest import nearest

            near = nearest(option, names)
            fix = f"did you mean {near}=?" if near else f"there are {', '.join(names)}"
            raise RegistrationError(caller(), f"{what} takes no {option}=", fix)
    return kind(**options)


def check_function(fn: Any, what: str) -> None:
    """Refuse `@app.tool("name")`, where the name stands in the function's place."""
    if fn is not None and not callable(fn) and not hasattr(fn, "__func__"):
        raise RegistrationError(caller(), f"{what}({fn!r}) is given no function", f"{what}(name={str(fn)!r})")


def check_uri(uri: Any, what: str) -> None:
    """Refuse `@app.resource` without its URI, where the function stands in the URI's place."""
    if not isinstance(uri, str):
        raise RegistrationError(caller(), f"{what} needs the URI that it is read at", f'{what}("scheme://…")')


def tool_entry(fn: Callable[..., Any], options: ToolOptions, context_type: type) -> Entry:
    """A tool of a function. Raises RegistrationError for what clients could not use."""
    name = name_of(fn) if options.name is None else options.name
    check_name(name, "tool", fn)
    patterns: Patterns = "any" if isinstance(options.waive, Mapping) and HEAVY in options.waive else "waivable"
    signature = read_signature(fn, context_type, tool=True, patterns=patterns)
    check_options(fn, options, signature.is_async)
    output = _output(fn, signature, options)
    describe = _Describe(fn, name, options, signature, output)
    return Entry(
        kind="tool",
        name=name,
        where=Place(fn),
        run=run_mode(fn, options.run, signature.is_async),
        decode=signature.decode,
        invoke=invoker(fn, signature),
        render=renderer(output)
        if options.output_schema is None
        else schema_renderer(_checker(fn, options.output_schema, options.waive), options.output_schema, render_data),
        explain=second_look(
            fn, explainer(name, signature), signature.decode, (*signature.parameters, *signature.asked), options.earlier
        ),
        describe=describe,
        timeout=options.timeout,
        replay=options.replay,
        scopes=read_scopes(fn, options.scopes),
        effects=options.effects,
        idempotent=options.idempotent,
        asked=signature.asked,
        arguments=signature.arguments,
        headers=_headers(fn, signature, describe),
        typed_result=options.output_schema is None and (output.structured or output.exact is str),
        keeps_frame=signature.context is not None or bool(signature.asked),
        category=options.category,
        tags=tuple(options.tags),
        examples=tuple(options.examples),
        errors=dict(options.errors or {}),
        help=options.help,
        aliases=read_aliases(fn, name, options.aliases),
        waived=dict(options.waive or {}),
        odd=_oddities(name, options, signature, output),
        documented=bool(options.description or getattr(fn, "__doc__", None)),
    )


def _oddities(
    name: str, options: ToolOptions, signature: Signature, output: Output
) -> list[Any] | Literal[True] | None:
    """What of that which clients are told does not follow from plain types and names. Costs a microsecond."""
    if output.odd or any(p.odd for p in signature.parameters):
        return True
    own = (options.output_schema, options.annotations, options.waive, options.meta, options.icons or None)
    names = [name.replace("-", "_"), *(p.name for p in signature.parameters)]
    if not any(each is not None for each in own) and all(_is_plain(each) for each in names):
        return None
    return [names, *own]


def _is_plain(name: str) -> bool:
    return name.isascii() and len(name) <= MAX_NAME_CHARACTERS and name.isidentifier()


def _headers(fn: Callable[..., Any], signature: Signature, describe: _Describe) -> tuple[HeaderParam, ...]:
    if not any(parameter.headed for parameter in (*signature.parameters, *signature.asked)):
        return ()
    from longshore.registry.headers import signature_headers

    return signature_headers(fn, signature, describe)


def read_aliases(fn: Callable[..., Any], name: str, aliases: Sequence[str]) -> tuple[str, ...]:
    """The earlier names of a tool, checked as names are."""
    if not aliases:
        return ()
    from longshore.registry.aliases import read_aliases as read_all

    return read_all(fn, name, aliases)


def read_scopes(fn: Any, scopes: Sequence[str]) -> frozenset[str]:
    """The scopes that a tool needs, each a word as OAuth has them."""
    if isinstance(scopes, str):
        refuse(fn, f"scopes={scopes!r} is one text", f"scopes={scopes.split()!r}")
    for scope in scopes:
        if not scope or not all("!" <= letter <= "~" and letter not in '"\\' for letter in scope):
            refuse(fn, f"{scope!r} is no scope", 'a scope is a word such as "items:write"')
    return frozenset(scopes)


def read_signature(
    fn: Callable[..., Any], context_type: type, *, tool: bool = False, patterns: Patterns = "linear"
) -> Signature:
    """The function's signature, with a registration error in place of a signature problem."""
    try:
        signature = read(fn, context_type=context_type, marker_type=Ask, patterns=patterns)
        if signature.asked:
            from longshore.registry.asked import check_asked

            check_asked(signature)
    except SignatureProblem as problem:
        refuse(fn, problem.what, problem.fix)
    if not tool and any(parameter.was for parameter in signature.parameters):
        refuse(fn, "Was(…) is for the parameters of tools", "take it out")
    return signature


def invoker(fn: Callable[..., Any], signature: Signature) -> Callable[[Any, Any], Any]:
    """How the function is called with decoded arguments: by position where that is all there is to it."""
    positional = signature.positional
    if signature.simple:
        return lambda arguments, _: fn(*positional(arguments))
    keywords, context, asked = signature.keywords, signature.context, signature.asked

    def invoke(arguments: Any, call: Any) -> Any:
        values = keywords(arguments)
        if context is not None:
            values[context] = call.context
        if asked:
            values.update(call.interview.values)
        return fn(**values)

    return invoke


def run_mode(fn: Callable[..., Any], wanted: str | None, is_async: bool) -> Run:
    """`async def` runs as a task; `def` on a thread, unless the author promises that it returns at once."""
    if wanted not in (None, "thread", "inline"):
        refuse(fn, f"run={wanted!r} is no way to run a tool", 'run="thread", run="inline", or nothing for async def')
    if is_async:
        if wanted is not None:
            refuse(fn, f"run={wanted!r} is for def, and this is async def", "leave `run` out, or make it a def")
        return "async"
    return "inline" if wanted == "inline" else "thread"


def explainer(name: str, signature: Signature) -> Callable[[Any, Exception], Reading]:
    """What says which arguments were wrong, after the typed pass refused them."""

    def explain(raw: Any, _: Exception) -> Reading:
        from longshore.schema.explain import explain as find

        return find(name, signature, bytes(raw))

    return explain


def second_look(
    fn: Callable[..., Any],
    explain: Callable[[Any, Exception], Reading],
    decode: Callable[[Any], Any],
    parameters: Sequence[Parameter],
    earlier: Sequence[Callable[..., Any]],
) -> Callable[[Any, Exception], Reading]:
    """What looks at refused arguments, also for those that callers knew before."""
    if not earlier and not any(parameter.was for parameter in parameters):
        return explain
    from longshore.registry.earlier import Earlier, read_migrations, read_renames

    return Earlier(explain, decode, read_renames(fn, parameters), read_migrations(fn, earlier))


def name_of(fn: Callable[..., Any]) -> str:
    """What a client calls it by, unless its author says otherwise."""
    name = getattr(fn, "__name__", None) or getattr(getattr(fn, "func", None), "__name__", None) or type(fn).__name__
    if name == "<lambda>":
        refuse(fn, "a lambda has no name that a client could call", 'name="…"')
    return str(name)


def check_options(fn: Callable[..., Any], options: ToolOptions | Tool, is_async: bool) -> None:
    """Refuse what an author can't have meant, at the typed and at the raw level."""
    if options.effects is not None and options.effects not in EFFECTS:
        refuse(fn, f"effects={options.effects!r} is unknown", 'effects="read", "write" or "destroy"')
    check_timeout(fn, options.timeout)
    if options.replay and not is_async:
        refuse(fn, "replay=True is for a body that asks, and only async def can wait", "make it async def")

    for option in ("title", "description", "category", "help"):
        if not isinstance(getattr(options, option), (str, NoneType)):
            refuse(fn, f"{option}={getattr(options, option)!r} is no text", f'{option}="…"')
    for option in ("tags", "examples", "aliases", "earlier"):
        if isinstance(getattr(options, option), (str, bytes, Mapping)) or callable(getattr(options, option)):
            refuse(fn, f"{option}={getattr(options, option)!r} is one thing, not a list", f"{option}=[…]")
    for option in ("errors", "meta", "annotations", "waive"):
        if not isinstance(getattr(options, option), (Mapping, NoneType)):
            refuse(fn, f"{option}={getattr(options, option)!r} is no mapping", f"{option}={{…: …}}")


def check_timeout(fn: Callable[..., Any], timeout: Any) -> None:
    """Refuse what is neither a number of seconds nor the word for no limit."""
    wrong = no_timeout(timeout)
    if wrong is not None:
        refuse(fn, *wrong)


def no_timeout(timeout: Any) -> tuple[str, str] | None:
    """What is wrong with a time limit, and the fix; None if nothing is."""
    is_number = isinstance(timeout, (int, float)) and timeout is not True and timeout > 0
    if timeout is None or timeout is False or is_number:
        return None
    return f"timeout={timeout!r} is no number of seconds", "timeout=30, or timeout=False for no limit"


def _output(fn: Callable[..., Any], signature: Signature, options: ToolOptions) -> Output:
    if options.output_schema is not None:
        return read_output(UNSET, passthrough=PASSTHROUGH)
    try:
        return read_output(signature.returns, passthrough=PASSTHROUGH)
    except SignatureProblem as problem:
        refuse(fn, problem.what, problem.fix)


def _checker(
    fn: Callable[..., Any], schema: dict[str, Json], waived: Mapping[str, str] | None
) -> Callable[[Any], list[str]]:
    from longshore.registry.raw import compile_schema

    validator = compile_schema(schema, fn, waived)
    return lambda value: ["there is no structured content"] if value is UNSET else validator.errors(value)


class _Describe:
    """What clients are told of a tool, worked out once, and not before it is wanted: it costs more than a start may."""

    __slots__ = ("_described", "_fn", "_name", "_options", "_output", "_signature")

    def __init__(
        self, fn: Callable[..., Any], name: str, options: ToolOptions, signature: Signature, output: Output
    ) -> None:
        self._fn, self._name, self._options = fn, name, options
        self._signature, self._output = signature, output
        self._described: dict[str, Json] | None = None

    def __call__(self) -> dict[str, Json]:
        if self._described is None:
            self._described = self._work_out()
        return {**self._described}

    def _work_out(self) -> dict[str, Json]:
        from longshore.schema.docstring import parse
        from longshore.schema.infer import input_schema

        options = self._options
        doc = parse(getattr(self._fn, "__doc__", None), [p.name for p in self._signature.parameters])
        described = {
            "name": self._name,
            "title": options.title,
            "description": options.description or doc.summary or None,
            "icons": list(options.icons) or None,
            "inputSchema": input_schema(self._signature, doc.parameters),
            "outputSchema": self._output.schema() if options.output_schema is None else options.output_schema,
            "annotations": effect_hints(options.effects, options.idempotent, options.open_world, options.annotations)
            or None,
            "_meta": tool_meta(options.category, options.tags, options.meta),
        }
        return {key: value for key, value in described.items() if value is not None}


def tool_meta(category: str | None, tags: Sequence[str], meta: Mapping[str, Json] | None) -> dict[str, Json] | None:
    """What has no field of its own in MCP goes into `_meta` under our own prefix."""
    own: dict[str, Json] = {}
    if category is not None:
        own["longshore/category"] = category
    if tags:
        own["longshore/tags"] = list(tags)
    return (own | dict(meta or {})) or None
