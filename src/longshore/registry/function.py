"""Entries made from Python functions. Everything that a call needs is prepared here, once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import asdict

from longshore.errors import RegistrationError
from longshore.protocol.questions import Ask, Elicit, Sample
from longshore.registry.results import PASSTHROUGH, render_data, renderer, schema_renderer
from longshore.registry.source_location import SourceLocation, caller, locate, refuse
from longshore.registry.tool import Entry, Json, Run, ToolOptions, check_name, describe_tool
from longshore.schema.kinds import NAME_CHARACTERS
from longshore.schema.output import Output, read_output
from longshore.schema.signature import Parameter, Patterns, Signature, SignatureProblem, find_callee, read

if TYPE_CHECKING:
    from longshore.protocol.http_headers import HeaderParam
    from longshore.registry.migrations import Migration
    from longshore.schema.repair import RepairResult

EFFECTS = ("read", "write", "destroy")
UNBOUNDED_RULE: Final = "E13"
"""The rule about schemas whose checks might run for ever. Only a tool that waives it may have one."""
Options = TypeVar("Options", bound=Struct)


def read_options(kind: type[Options], options: Mapping[str, Any], what: str, fn: Any = None) -> Options:
    """The options of a declaration. An unknown option is refused with the most similar known one.

    `fn` is what the decorator was given: not a function in `@app.tool("name")`.
    """
    if fn is not None and not callable(fn) and not hasattr(fn, "__func__"):
        raise RegistrationError(caller(), f"{what}({fn!r}) is given no function", f"{what}(name={str(fn)!r})")
    for option in options:
        if option not in kind.__struct_fields__:
            raise unknown_option(option, kind.__struct_fields__, what)
    return kind(**options)


def unknown_option(option: str, known: Collection[str], what: str) -> RegistrationError:
    """The error for a keyword that `what` does not take, with the most similar one that it does."""
    from longshore.nearest import nearest

    near = nearest(option, known)
    fix = f"did you mean {near}=?" if near else f"there are {', '.join(known)}"
    return RegistrationError(caller(), f"{what}(…) takes no {option}=", fix)


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
    fields = tool_fields(fn, name, options, run_mode(fn, options.run, signature.is_async, tool=True))
    schema = options.output_schema
    try:
        output = read_output(UNSET if schema is not None else signature.returns, passthrough=PASSTHROUGH)
    except SignatureProblem as problem:
        refuse(fn, problem.what, problem.fix)
    render = renderer(output)
    if schema is not None:
        from longshore.registry.raw import compile_schema

        render = schema_renderer(compile_schema(schema, fn, options.waive).errors, schema, render_data)
    parameters = (*signature.parameters, *signature.asked)
    described: dict[str, Json] = {}

    def describe() -> dict[str, Json]:
        """Made when it is first wanted: it costs more than a start may."""
        if not described:
            from longshore.schema.docstring import parse
            from longshore.schema.infer import input_schema

            doc = parse(getattr(fn, "__doc__", None), [p.name for p in signature.parameters])
            given = input_schema(signature, doc.parameters)
            gives = output.schema() if schema is None else schema
            described.update(describe_tool(name, options, options.description or doc.summary, given, gives))
        return {**described}

    def explain(raw: Any, _: Exception) -> RepairResult:
        from longshore.schema.repair import repair_typed

        return repair_typed(name, signature, bytes(raw))

    return Entry(
        kind="tool",
        name=name,
        where=SourceLocation(fn),
        decode=signature.decode,
        invoke=invoker(fn, signature),
        render=render,
        explain=with_migrations(fn, explain, signature.decode, parameters, options.migrations),
        describe=describe,
        asked=signature.asked,
        headers=_headers(fn, signature, describe) if any(each.in_header for each in parameters) else (),
        typed_result=schema is None and (output.structured or output.exact is str),
        keeps_frame=signature.context is not None or bool(signature.asked),
        authored=_authored(name, options, signature, output),
        documented=bool(options.description or getattr(fn, "__doc__", None)),
        **fields,
    )


def _authored(
    name: str, options: ToolOptions, signature: Signature, output: Output
) -> list[Any] | Literal[True] | None:
    """The parts of the description that don't follow from plain types and names. Costs a microsecond."""
    if output.authored or any(p.authored for p in signature.parameters):
        return True
    own = (options.output_schema, options.annotations, options.waive, options.meta, options.icons or None)
    names = [name.replace("-", "_"), *(p.name for p in signature.parameters)]
    plain = all(each.isascii() and len(each) <= NAME_CHARACTERS and each.isidentifier() for each in names)
    return None if plain and all(each is None for each in own) else [names, *own]


def _headers(
    fn: Callable[..., Any], signature: Signature, describe: Callable[[], dict[str, Json]]
) -> tuple[HeaderParam, ...]:
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


def read_signature(
    fn: Callable[..., Any], context_type: type, *, tool: bool = False, patterns: Patterns = "linear"
) -> Signature:
    """The function's signature. Raises RegistrationError."""
    try:
        signature = read(fn, context_type=context_type, marker_type=Ask, patterns=patterns)
        if signature.asked:
            check_asked(signature)
    except SignatureProblem as problem:
        refuse(fn, problem.what, problem.fix)
    if not tool and any(parameter.old_names or parameter.hidden for parameter in signature.parameters):
        refuse(fn, "Alias(…) and Hidden() are for the parameters of tools", "take it out")
    return signature


def invoker(fn: Callable[..., Any], signature: Signature) -> Callable[[Any, Any], Any]:
    """How the function is called with decoded arguments: by position where possible."""
    positional = signature.positional
    if signature.simple:
        return lambda arguments, _: fn(*positional(arguments))
    context, asked = signature.context, signature.asked

    def invoke(arguments: Any, call: Any) -> Any:
        values = asdict(arguments)
        if context is not None:
            values[context] = call.context
        if asked:
            values.update(call.elicitation.values)
        return fn(**values)

    return invoke


def run_mode(fn: Callable[..., Any], wanted: str | None, is_async: bool, *, tool: bool = False) -> Run:
    """`async def` runs as a task; `def` on a thread, unless the author promises that it returns at once."""
    if wanted not in (None, "thread", "inline") and not (tool and wanted == "inline_first"):
        ways = 'run="thread", run="inline"' + (', run="inline_first"' if tool else "")
        refuse(fn, f"run={wanted!r} is no way to run it", f"{ways}, or nothing for async def")
    if is_async:
        if wanted is not None:
            refuse(fn, f"run={wanted!r} is for def, and this is async def", "leave `run` out, or make it a def")
        return "async"
    return "inline" if wanted == "inline" else "thread"


def with_migrations(
    fn: Callable[..., Any],
    explain: Callable[[Any, Exception], RepairResult],
    decode: Callable[[Any], Any],
    parameters: Sequence[Parameter],
    migrations: Sequence[Callable[..., Any]],
) -> Callable[[Any, Exception], RepairResult]:
    """`explain` that also accepts arguments of earlier versions of the tool."""
    if not migrations and not any(parameter.old_names for parameter in parameters):
        return explain
    from longshore.registry.migrations import Migrations, read_migrations, read_renames

    return Migrations(explain, decode, read_renames(fn, parameters), read_migrations(fn, migrations))


def _alias_migrations(fn: Callable[..., Any], aliases: Mapping[str, Callable[..., Any] | None]) -> dict[str, Migration]:
    from longshore.registry.migrations import read_migration

    given = {alias: migration for alias, migration in aliases.items() if migration is not None}
    return {alias: read_migration(fn, each, f"aliases={{{alias!r}: {each!r}}}") for alias, each in given.items()}


def name_of(fn: Callable[..., Any]) -> str:
    """The name of a function, which is the tool's unless the author says otherwise."""
    name = getattr(fn, "__name__", None) or getattr(getattr(fn, "func", None), "__name__", None) or type(fn).__name__
    if name == "<lambda>":
        refuse(fn, "a lambda has no name that a client could call", 'name="…"')
    return str(name)


_FORMS: Final[tuple[tuple[tuple[str, ...], Callable[[Any], bool], str, str], ...]] = (
    (
        ("title", "description", "category", "help", "group"),
        lambda value: isinstance(value, (str, NoneType)),
        "no text",
        '"…"',
    ),
    (
        ("tags", "examples", "migrations", "catalog_forms"),
        lambda value: not isinstance(value, (str, bytes, Mapping)) and not callable(value),
        "one thing, not a list",
        "[…]",
    ),
    (("aliases",), lambda value: not isinstance(value, (str, bytes)) and not callable(value), "no list", "[…]"),
    (("listed",), lambda value: isinstance(value, bool), "neither True nor False", "False"),
    (
        ("errors", "meta", "annotations", "waive"),
        lambda value: isinstance(value, (Mapping, NoneType)),
        "no mapping",
        "{…: …}",
    ),
)


def tool_fields(fn: Callable[..., Any], name: str, options: ToolOptions, run: Run) -> dict[str, Any]:
    """The fields of an entry that are the same at the typed and at the raw level, checked."""
    if options.effects is not None and options.effects not in EFFECTS:
        refuse(fn, f"effects={options.effects!r} is unknown", 'effects="read", "write" or "destroy"')
    check_timeout(options.timeout, fn)
    if options.replay and run != "async":
        refuse(fn, "replay=True is for a body that asks, and only async def can wait", "make it async def")
    for names, is_valid, what, form in _FORMS:
        for option in names:
            value = getattr(options, option)
            if not is_valid(value):
                refuse(fn, f"{option}={value!r} is {what}", f"{option}={form}")
    aliases, scopes = options.aliases, options.scopes
    if not set(options.catalog_forms) <= {"search", "code"}:
        refuse(fn, f"catalog_forms={options.catalog_forms!r}", 'catalog_forms=["search", "code"], or one of them')
    for alias in aliases:
        check_name(alias, "tool", fn)
    if aliases and len({name, *aliases}) <= len(aliases):
        refuse(fn, f"aliases={list(aliases)!r} names {name!r} itself, or one name twice", "name each earlier name once")
    if isinstance(scopes, str):
        refuse(fn, f"scopes={scopes!r} is one text", f"scopes={scopes.split()!r}")
    for scope in scopes:
        if not scope or not all("!" <= letter <= "~" and letter not in '"\\' for letter in scope):
            refuse(fn, f"{scope!r} is no scope", 'a scope is a word such as "items:write"')
    return {
        "run": run,
        "tries_inline": options.run == "inline_first",
        "timeout": options.timeout,
        "replay": options.replay,
        "artifacts": options.artifacts,
        "effects": options.effects,
        "idempotent": options.idempotent,
        "category": options.category,
        "tags": tuple(options.tags),
        "examples": tuple(options.examples),
        "errors": dict(options.errors or {}),
        "help": options.help,
        "listed": options.listed,
        "catalog_forms": tuple(options.catalog_forms),
        "group": options.group,
        "aliases": tuple(aliases),
        "alias_migrations": _alias_migrations(fn, aliases) if isinstance(aliases, Mapping) else {},
        "scopes": frozenset(scopes),
        "waived": dict(options.waive or {}),
    }


CATALOG_FORMS: Final = ("full", "search", "code")
"""The forms of the catalogue."""


def check_form(form: Any, where: str) -> None:
    """Refuse a form of the catalogue that there is not."""
    if form is not None and form not in CATALOG_FORMS:
        raise RegistrationError(caller(), f"{where}(catalog={form!r}) is unknown", 'catalog="full", "search" or "code"')


def check_timeout(timeout: Any, fn: Callable[..., Any] | None = None) -> None:
    """Refuse a time limit that is neither a number of seconds nor False."""
    is_number = isinstance(timeout, (int, float)) and timeout is not True and timeout > 0
    if timeout is not None and timeout is not False and not is_number:
        where = caller() if fn is None else locate(fn)
        what = f"timeout={timeout!r} is no number of seconds"
        raise RegistrationError(where, what, "timeout=30, or timeout=False for no limit")


# -- parameters with `Ask`


def check_asked(signature: Signature) -> None:
    """Refuse a question that names no parameter of the call, or that asks for what no form can hold."""
    names = [parameter.name for parameter in signature.parameters]
    for parameter in signature.asked:
        ask: Ask = parameter.marker
        texts: list[str | None] = []
        form: Any = None  # the type that a form asks for, if there is a form
        match ask.question:
            case str() as question:
                texts = [question, ask.url]
                form = parameter.type if ask.url is None else None
            case Elicit(message=message, url=url, schema=schema, type=kind):
                texts = [message, ask.url or url]
                form = None if ask.url or url or schema else kind
            case Sample(prompt=str() as prompt):
                texts = [prompt]
            case _:
                pass
        for text in texts:
            if text is not None:
                _check_holes(parameter, text, names)
        if form is not None and form not in (bool, str, int, float):
            from longshore.schema.infer import form_schema

            form_schema(form, parameter.name)


def _check_holes(parameter: Parameter, text: str, names: list[str]) -> None:
    from string import Formatter

    from longshore.nearest import nearest

    try:
        holes = [hole for _, hole, _, _ in Formatter().parse(text) if hole is not None]
    except ValueError as problem:
        raise SignatureProblem(f"the question for {parameter.name!r}: {problem}", "write {{ for a brace") from None
    for hole in holes:
        name = hole.split(".")[0].split("[")[0]
        if name not in names:
            near = nearest(name, names)
            fix = f"did you mean {{{near}}}?" if near else f"it can name: {', '.join(names) or 'nothing'}"
            raise SignatureProblem(f"the question for {parameter.name!r} names {{{hole}}}, which is no argument", fix)


# -- the number of arguments that a callable takes: raw handlers, completions and callbacks

_VARARGS = 0x04


def read_arity(fn: Callable[..., Any]) -> tuple[float, float, bool]:
    """The fewest and the most positional arguments that a callable takes, and whether it is async.

    Any number where it can't be read; the fewest is infinite if a keyword-only parameter has no default.
    """
    try:
        callee = find_callee(fn)
    except SignatureProblem:
        return 0, inf, False
    function: Any = callee.function
    code, defaults = function.__code__, function.__defaults__ or ()
    free = [name for name in code.co_varnames[callee.skip : code.co_argcount] if name not in callee.bound]
    optional = set(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount])
    fewest: float = sum(name not in optional for name in free)
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if any(name not in callee.bound and name not in (function.__kwdefaults__ or ()) for name in by_name):
        fewest = inf
    return fewest, inf if code.co_flags & _VARARGS else len(free), callee.is_async


def check_callback(callback: Any, name: str, *given: str) -> None:
    """Raise RegistrationError for a callback that can't be called with these arguments."""
    fix = f"def {name}({', '.join(('self', *given) if hasattr(callback, '__self__') else given)})"
    if not callable(callback):
        raise RegistrationError(caller(), f"{name} is no function: {callback!r:.100}", fix)
    fewest, most, _ = read_arity(callback)
    if not fewest <= len(given) <= most:
        arguments = f"{len(given)} argument{'s' if len(given) > 1 else ''} ({', '.join(given)})"
        what = f"{name} is called with {arguments if given else 'no arguments'}, which this function does not take"
        refuse(callback, what, fix)
