"""The signature of a function: its parameters, the decoder of its arguments and the way to call it.

This module is on the cold-start path. It imports msgspec and what msgspec itself loads, and an ordinary tool is read
without any other module: `types` is imported with the first annotation that is more than a plain class.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from types import CodeType, FunctionType, MethodType
from typing import Any, ForwardRef, Literal

import msgspec
from msgspec import NODEFAULT, UNSET, Struct

_VARARGS, _VARKEYWORDS, _GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x04, 0x08, 0x20, 0x80, 0x200

_NoneType = type(None)

# Annotations that msgspec takes as they are. `list` and `dict` have no item type that would have to be read.
_PLAIN = frozenset((str, int, float, bool, list, dict, _NoneType))

# Names that a quoted annotation may use without an import; others are looked up in the function's globals.
_BUILTINS = {cls.__name__: cls for cls in (str, int, float, bool, list, dict)}

# Defaults of these classes can be shared by all calls.
_IMMUTABLE = frozenset((str, int, float, bool, _NoneType, bytes))


Patterns = Literal["linear", "waivable", "any"]
"""The patterns that a type may have: of linear time only, the same in a tool whose author may waive it, or any."""


class SignatureProblem(Exception):
    """A function can't be offered to clients. `what` and `fix` are one sentence each; the caller knows the place."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}")
        self.what, self.fix = what, fix


class Parameter(Struct, frozen=True):
    """One parameter. `type` is ready for msgspec: with constraints, without description and marker."""

    name: str
    type: Any
    required: bool
    default: Any
    """NODEFAULT if there is none."""
    description: str | None = None
    keyword_only: bool = False
    marker: Any = None
    extra: dict[str, Any] | None = None
    """Schema keywords that the author gave, through `Header(…)` or `Meta(extra_json_schema=…)`."""
    in_header: bool = False
    """Whether it, or something in it, may be repeated in a header. Only the schema says so for certain."""
    authored: bool = False
    """Whether a part of its schema may be the author's own: keywords, or keys that are no plain names."""
    old_names: tuple[str, ...] = ()
    """The names that it had before."""
    hidden: bool = False
    """Whether no list shows it."""


class Signature(Struct, frozen=True):
    """The parameters that a client sends, those that it is asked for, the context, and how to decode and call.

    * `decode(raw)` is strict: unknown keys, missing keys and wrong types raise `msgspec.ValidationError`.
    * `fn(*signature.positional(args))` is the fast call; it is right only where `simple` is true.
    * `fn(**signature.keywords(args), …)` is the general call; the caller adds the context and the asked values.
    """

    parameters: tuple[Parameter, ...]
    asked: tuple[Parameter, ...]
    context: str | None
    returns: Any
    is_async: bool
    arguments: type[Struct]
    decode: Callable[[Any], Any]
    positional: Callable[[Any], tuple[Any, ...]]
    simple: bool

    def keywords(self, args: Any) -> dict[str, Any]:
        """The decoded arguments by name, in a dict that the caller may add to."""
        return msgspec.structs.asdict(args)


class Callee(Struct):
    """The function that has the parameters of a callable, and the parameters that are already bound."""

    function: Any
    skip: int = 0
    bound: frozenset[str] = frozenset()
    by_name: bool = False
    """Whether parameters can only be passed by name, because a partial has bound some by name."""
    is_async: bool = False


def read(fn: Callable[..., Any], *, context_type: type, marker_type: type, patterns: Patterns = "linear") -> Signature:
    """Read a callable's signature, or raise `SignatureProblem`."""
    callee = _find(fn)
    code = callee.function.__code__
    _refuse_shapes(code)
    annotations = _annotations(callee.function, context_type)
    sent: list[Parameter] = []
    asked: list[Parameter] = []
    context: str | None = None
    for name, default, keyword_only in _slots(callee, code):
        annotation = annotations.get(name, Any)
        if annotation is context_type:
            context = _only(context, name)
        elif _is_plain(annotation) and (default is NODEFAULT or default.__class__ is annotation):
            sent.append(Parameter(name, annotation, default is NODEFAULT, default, None, keyword_only))
        else:
            from longshore.schema import types

            if types.is_context(annotation, context_type):
                context = _only(context, name)
                continue
            found = types.read_parameter(name, annotation, default, keyword_only, marker_type, patterns)
            (sent if found.marker is None else asked).append(found)
    fields = [_field(p) for p in sent]
    arguments = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    return Signature(
        parameters=tuple(sent),
        asked=tuple(asked),
        context=context,
        returns=annotations.get("return", UNSET),
        is_async=callee.is_async,
        arguments=arguments,
        decode=_decoder(arguments, sent),
        positional=_positional([p.name for p in sent]),
        simple=context is None and not asked and not any(p.keyword_only for p in sent),
    )


def _find(fn: Callable[..., Any]) -> Callee:
    skip = 0
    function: Any = fn
    if function.__class__ is MethodType:
        skip, function = 1, function.__func__
    if function.__class__ is FunctionType and "__wrapped__" not in function.__dict__:
        return Callee(function, skip, is_async=bool(function.__code__.co_flags & _COROUTINE))
    return find_callee(fn)


def _refuse_shapes(code: CodeType) -> None:
    flags = code.co_flags
    if flags & (_VARARGS | _VARKEYWORDS):
        star = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]
        if flags & _VARARGS:
            fix = f"name each parameter, or take one `{star[0]}: list[…]`"
            raise SignatureProblem(f"it takes *{star[0]}, which has no JSON name", fix)
        fix = f"name each parameter, or take one `{star[0]}: dict[str, …]`"
        raise SignatureProblem(f"it takes **{star[0]}, so any key would be allowed", fix)
    if code.co_posonlyargcount:
        first = code.co_varnames[code.co_posonlyargcount - 1]
        raise SignatureProblem(f"parameter {first!r} is positional-only, but arguments come by name", "remove the `/`")
    if flags & (_GENERATOR | _ASYNC_GENERATOR):
        raise SignatureProblem("it is a generator, but one call has one result", "collect the values and return a list")


def _annotations(function: Any, context_type: type) -> dict[str, Any]:
    try:
        found: dict[str, Any] = function.__annotations__
    except NameError as error:  # Python 3.14 evaluates annotations here
        raise SignatureProblem(f"the annotation {error.name!r} is not defined", "define or import it") from None
    if not any(_is_quoted(a) for a in found.values()):
        return found
    looked_up = {name: _look_up(a, function.__globals__) for name, a in found.items()}
    if UNSET not in looked_up.values():
        return looked_up
    from longshore.schema.types import resolve

    return resolve(function, context_type)


def _is_quoted(annotation: Any) -> bool:
    """Written as text, or holding text: `"Color"`, `list["Color"]`."""
    if annotation.__class__ is str or annotation.__class__ is ForwardRef:
        return True
    inner: Any = getattr(annotation, "__args__", None)
    if inner.__class__ is not tuple or getattr(annotation, "__origin__", None) is Literal:
        return False
    return any(_is_quoted(a) for a in inner)


def _look_up(annotation: Any, names: dict[str, Any]) -> Any:
    """The value of a quoted annotation that is one bare name; UNSET for any other."""
    if annotation.__class__ is not str:
        return UNSET if _is_quoted(annotation) else annotation
    if annotation == "None":
        return None
    found = names[annotation] if annotation in names else _BUILTINS.get(annotation, UNSET)
    return UNSET if _is_quoted(found) else found


def _slots(callee: Callee, code: CodeType) -> list[tuple[str, Any, bool]]:
    """Each free parameter: name, default, whether it can only be passed by name."""
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    given: tuple[Any, ...] = callee.function.__defaults__ or ()
    defaults: dict[str, Any] = dict(zip(names[count - len(given) : count], given, strict=True)) | (
        callee.function.__kwdefaults__ or {}
    )
    return [
        (name, defaults.get(name, NODEFAULT), callee.by_name or index >= count)
        for index, name in enumerate(names)
        if index >= callee.skip and name not in callee.bound
    ]


def _is_plain(annotation: Any) -> bool:
    # An annotation may be unhashable (`Annotated[int, [1]]`), so its class is asked first.
    return annotation is Any or (annotation.__class__ is type and annotation in _PLAIN)


def _only(context: str | None, name: str) -> str:
    if context is not None:
        raise SignatureProblem(f"both {context!r} and {name!r} ask for the context", f"remove {name!r}")
    return name


def _field(parameter: Parameter) -> Any:
    if parameter.required:
        return parameter.name, parameter.type
    default = parameter.default
    if default.__class__ in _IMMUTABLE:
        return parameter.name, parameter.type, default
    from longshore.schema.types import fresh

    return parameter.name, parameter.type, msgspec.field(default_factory=fresh(default))


def _decoder(arguments: type[Struct], parameters: list[Parameter]) -> Callable[[Any], Any]:
    if all(_is_plain(p.type) for p in parameters):
        return msgspec.json.Decoder(arguments).decode
    from longshore.schema.custom_type import decode_special

    try:
        return msgspec.json.Decoder(arguments, dec_hook=decode_special).decode
    except TypeError:
        from longshore.schema.types import find_refused

        raise find_refused(parameters) from None


def _positional(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda _: ()
    get: Callable[[Any], Any] = attrgetter(*names)
    return get if len(names) > 1 else lambda args: (get(args),)


# -- callables that are neither a plain function nor a bound method

_MAX_WRAPPERS = 100
"""A chain of wrappers longer than this is a loop."""


def find_callee(fn: Any) -> Callee:
    """Follow bound methods, partials, callable objects and `functools.wraps` to the function with the parameters.

    A wrapper counts as async if anything in the chain is: a plain `def` around an `async def` nearly always returns
    the coroutine.
    """
    if isinstance(fn, type):
        raise SignatureProblem(f"{fn.__name__} is a class, not a function", "register a function or a bound method")
    callee = Callee(None)
    for _ in range(_MAX_WRAPPERS):
        if isinstance(fn, FunctionType):
            callee.is_async |= bool(fn.__code__.co_flags & _COROUTINE)
            if "__wrapped__" not in fn.__dict__:
                callee.function = fn
                return callee
        fn = _unwrap(fn, callee)
    raise SignatureProblem("its __wrapped__ chain has no end", "remove the decorator that wraps itself")


def _unwrap(fn: Any, callee: Callee) -> Any:
    if isinstance(fn, MethodType):
        callee.skip += 1
        return fn.__func__
    if issubclass(fn.__class__, partial):
        callee.skip += len(fn.args)
        callee.bound |= fn.keywords.keys()
        # A parameter after one that is bound by name can't be passed by position.
        callee.by_name |= bool(fn.keywords)
        return fn.func
    if (wrapped := getattr(fn, "__wrapped__", None)) is not None:
        return wrapped
    cls: Any = fn.__class__
    call = getattr(cls, "__call__", None)  # noqa: B004
    if isinstance(call, FunctionType):
        callee.skip += 1
        return call
    name = getattr(fn, "__name__", cls.__name__)
    raise SignatureProblem(f"the signature of {name} can't be read", "wrap it in a function with annotations")
