"""Entries made from Python functions. Everything that a call needs is prepared here, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec import UNSET, Struct

from longshore.errors import RegistrationError
from longshore.protocol.questions import Ask
from longshore.registry.results import PASSTHROUGH, render_data, renderer, schema_renderer
from longshore.registry.source_location import SourceLocation, caller, refuse
from longshore.registry.tool import (
    Entry,
    Json,
    Run,
    ToolOptions,
    check_name,
    describe_tool,
    tool_fields,
)
from longshore.schema.kinds import NAME_CHARACTERS
from longshore.schema.output import Output, read_output
from longshore.schema.signature import Parameter, Patterns, Signature, SignatureProblem, read

if TYPE_CHECKING:
    from longshore.protocol.http_headers import HeaderParam
    from longshore.schema.repair import RepairResult

EFFECTS = ("read", "write", "destroy")
UNBOUNDED_RULE: Final = "E13"
"""The rule about schemas whose checks might run for ever. Only a tool that waives it may have one."""
Options = TypeVar("Options", bound=Struct)


def read_options(kind: type[Options], options: Mapping[str, Any], what: str) -> Options:
    """The options of a declaration. An unknown option is refused with the most similar known one."""
    names = kind.__struct_fields__
    for option in options:
        if option not in names:
            from longshore.nearest import nearest

            near = nearest(option, names)
            fix = f"did you mean {near}=?" if near else f"there are {', '.join(names)}"
            raise RegistrationError(caller(), f"{what} takes no {option}=", fix)
    return kind(**options)


def check_function(fn: Any, what: str) -> None:
    """Refuse `@app.tool("name")`, which has a name in the function's place."""
    if fn is not None and not callable(fn) and not hasattr(fn, "__func__"):
        raise RegistrationError(caller(), f"{what}({fn!r}) is given no function", f"{what}(name={str(fn)!r})")


def check_uri(uri: Any, what: str) -> None:
    """Refuse `@app.resource` without its URI, which has the function in the URI's place."""
    if not isinstance(uri, str):
        raise RegistrationError(caller(), f"{what} needs the URI that it is read at", f'{what}("scheme://…")')


def tool_entry(fn: Callable[..., Any], options: ToolOptions, context_type: type) -> Entry:
    """The entry of a typed tool. Raises RegistrationError for a function that clients could not use."""
    name = name_of(fn) if options.name is None else options.name
    check_name(name, "tool", fn)
    patterns: Patterns = "any" if isinstance(options.waive, Mapping) and UNBOUNDED_RULE in options.waive else "waivable"
    signature = read_signature(fn, context_type, tool=True, patterns=patterns)
    check_options(fn, options, signature.is_async)
    output = _output(fn, signature, options)
    describe = _Describe(fn, name, options, signature, output)
    parameters = (*signature.parameters, *signature.asked)
    return Entry(
        kind="tool",
        name=name,
        where=SourceLocation(fn),
        run=run_mode(fn, options.run, signature.is_async),
        decode=signature.decode,
        invoke=invoker(fn, signature),
        render=_renderer(fn, options, output),
        explain=with_migrations(fn, explainer(name, signature), signature.decode, parameters, options.earlier),
        describe=describe,
        scopes=read_scopes(fn, options.scopes),
        asked=signature.asked,
        arguments=signature.arguments,
        headers=_headers(fn, signature, describe) if any(each.in_header for each in parameters) else (),
        typed_result=options.output_schema is None and (output.structured or output.exact is str),
        keeps_frame=signature.context is not None or bool(signature.asked),
        aliases=read_aliases(fn, name, options.aliases),
        authored=_authored(name, options, signature, output),
        documented=bool(options.description or getattr(fn, "__doc__", None)),
        **tool_fields(options),
    )


def _renderer(fn: Callable[..., Any], options: ToolOptions, output: Output) -> Callable[[Any, Any], Any]:
    if options.output_schema is None:
        return renderer(output)
    from longshore.registry.raw import compile_schema

    validator = compile_schema(options.output_schema, fn, options.waive)
    return schema_renderer(validator.errors, options.output_schema, render_data)


def _authored(
    name: str, options: ToolOptions, signature: Signature, output: Output
) -> list[Any] | Literal[True] | None:
    """The parts of the description that don't follow from plain types and names. Costs a microsecond."""
    if output.authored or any(p.authored for p in signature.parameters):
        return True
    own = (options.output_schema, options.annotations, options.waive, options.meta, options.icons or None)
    names = [name.replace("-", "_"), *(p.name for p in signature.parameters)]
    if not any(each is not None for each in own) and all(_is_plain(each) for each in names):
        return None
    return [names, *own]


def _is_plain(name: str) -> bool:
    return name.isascii() and len(name) <= NAME_CHARACTERS and name.isidentifier()


def _headers(fn: Callable[..., Any], signature: Signature, describe: _Describe) -> tuple[HeaderParam, ...]:
    """The arguments that clients repeat in headers, in the parameters or in the records that they hold."""
    from longshore.schema.header_params import ANNOTATION

    for parameter in signature.asked:
        if ANNOTATION in (parameter.extra or {}):
            refuse(fn, f"{parameter.name!r} is asked of the client, so no request has it", "leave Header or Ask out")
    try:
        schema = describe()["inputSchema"]
    except Exception:
        return ()  # a foreign type without a schema: the list will say so, and no client can know of a header before
    return schema_headers(fn, schema)


def schema_headers(fn: Callable[..., Any], schema: dict[str, Any]) -> tuple[HeaderParam, ...]:
    """The arguments that an input schema marks for headers. Clients drop a tool with a wrong mark, so it is refused."""
    from longshore.schema.header_params import HeaderProblem, header_params

    try:
        return header_params(schema)
    except HeaderProblem as problem:
        refuse(fn, problem.what, problem.fix)


def read_aliases(fn: Callable[..., Any], name: str, aliases: Sequence[str]) -> tuple[str, ...]:
    """The earlier names of a tool, each a legal name, and none twice."""
    for alias in aliases:
        check_name(alias, "tool", fn)
    if aliases and len({name, *aliases}) <= len(aliases):
        refuse(fn, f"aliases={list(aliases)!r} names {name!r} itself, or one name twice", "name each earlier name once")
    return tuple(aliases)


def read_scopes(fn: Any, scopes: Sequence[str]) -> frozenset[str]:
    """The scopes that a tool needs, each a word as OAuth defines it."""
    if isinstance(scopes, str):
        refuse(fn, f"scopes={scopes!r} is one text", f"scopes={scopes.split()!r}")
    for scope in scopes:
        if not scope or not all("!" <= letter <= "~" and letter not in '"\\' for letter in scope):
            refuse(fn, f"{scope!r} is no scope", 'a scope is a word such as "items:write"')
    return frozenset(scopes)


def read_signature(
    fn: Callable[..., Any], context_type: type, *, tool: bool = False, patterns: Patterns = "linear"
) -> Signature:
    """The function's signature. Raises RegistrationError."""
    try:
        signature = read(fn, context_type=context_type, marker_type=Ask, patterns=patterns)
        if signature.asked:
            from longshore.registry.ask_parameters import check_asked

            check_asked(signature)
    except SignatureProblem as problem:
        refuse(fn, problem.what, problem.fix)
    if not tool and any(parameter.old_names for parameter in signature.parameters):
        refuse(fn, "Was(…) is for the parameters of tools", "take it out")
    return signature


def invoker(fn: Callable[..., Any], signature: Signature) -> Callable[[Any, Any], Any]:
    """How the function is called with decoded arguments: by position where possible."""
    positional = signature.positional
    if signature.simple:
        return lambda arguments, _: fn(*positional(arguments))
    keywords, context, asked = signature.keywords, signature.context, signature.asked

    def invoke(arguments: Any, call: Any) -> Any:
        values = keywords(arguments)
        if context is not None:
            values[context] = call.context
        if asked:
            values.update(call.elicitation.values)
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


def explainer(name: str, signature: Signature) -> Callable[[Any, Exception], RepairResult]:
    """Repairs arguments that the decoder refused, or says what is wrong with each of them."""

    def explain(raw: Any, _: Exception) -> RepairResult:
        from longshore.schema.repair import repair_typed

        return repair_typed(name, signature, bytes(raw))

    return explain


def with_migrations(
    fn: Callable[..., Any],
    explain: Callable[[Any, Exception], RepairResult],
    decode: Callable[[Any], Any],
    parameters: Sequence[Parameter],
    earlier: Sequence[Callable[..., Any]],
) -> Callable[[Any, Exception], RepairResult]:
    """`explain` that also accepts arguments of earlier versions of the tool."""
    if not earlier and not any(parameter.old_names for parameter in parameters):
        return explain
    from longshore.registry.migrations import Migrations, read_migrations, read_renames

    return Migrations(explain, decode, read_renames(fn, parameters), read_migrations(fn, earlier))


def name_of(fn: Callable[..., Any]) -> str:
    """The name of a function, which is the tool's unless the author says otherwise."""
    name = getattr(fn, "__name__", None) or getattr(getattr(fn, "func", None), "__name__", None) or type(fn).__name__
    if name == "<lambda>":
        refuse(fn, "a lambda has no name that a client could call", 'name="…"')
    return str(name)


def check_options(fn: Callable[..., Any], options: ToolOptions, is_async: bool) -> None:
    """Refuse options that an author can't have meant."""
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
    """Refuse a time limit that is neither a number of seconds nor False."""
    wrong = no_timeout(timeout)
    if wrong is not None:
        refuse(fn, *wrong)


def no_timeout(timeout: Any) -> tuple[str, str] | None:
    """The problem of a time limit and its fix; None if it is valid."""
    is_number = isinstance(timeout, (int, float)) and timeout is not True and timeout > 0
    if timeout is None or timeout is False or is_number:
        return None
    return f"timeout={timeout!r} is no number of seconds", "timeout=30, or timeout=False for no limit"


def _output(fn: Callable[..., Any], signature: Signature, options: ToolOptions) -> Output:
    try:
        return read_output(UNSET if options.output_schema is not None else signature.returns, passthrough=PASSTHROUGH)
    except SignatureProblem as problem:
        refuse(fn, problem.what, problem.fix)


class _Describe:
    """The description of a tool for clients, made when it is first wanted: it costs more than a start may."""

    __slots__ = ("_described", "_fn", "_name", "_options", "_output", "_signature")

    def __init__(
        self, fn: Callable[..., Any], name: str, options: ToolOptions, signature: Signature, output: Output
    ) -> None:
        self._fn, self._name, self._options = fn, name, options
        self._signature, self._output = signature, output
        self._described: dict[str, Json] | None = None

    def __call__(self) -> dict[str, Json]:
        if self._described is None:
            from longshore.schema.docstring import parse
            from longshore.schema.infer import input_schema

            options = self._options
            doc = parse(getattr(self._fn, "__doc__", None), [p.name for p in self._signature.parameters])
            self._described = describe_tool(
                self._name,
                options,
                options.description or doc.summary,
                input_schema(self._signature, doc.parameters),
                self._output.schema() if options.output_schema is None else options.output_schema,
            )
        return {**self._described}
