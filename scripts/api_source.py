"""Reads the public names of a package from its source: what each is, where it is defined, its signature and docstring.

Nothing is imported, so a name reads as its author wrote it.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
WIDTH = 100
"""Characters of a signature on one line; a longer one has a line for each parameter."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Field:
    """An attribute of a class, or an option of a decorator."""

    name: str
    type: str
    default: str = ""
    doc: str = ""


@dataclass(frozen=True)
class Member:
    """A function, a method or a property."""

    name: str
    signatures: tuple[str, ...]
    doc: str
    raises: tuple[str, ...] = ()
    options: tuple[Field, ...] = ()


@dataclass(frozen=True)
class Name:
    """A public name."""

    name: str
    module: str
    """The module that users import it from."""
    home: str
    """The module that defines it."""
    doc: str
    signatures: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    members: tuple[Member, ...] = ()
    raises: tuple[str, ...] = ()
    options: tuple[Field, ...] = ()
    bases: tuple[str, ...] = ()


@cache
def tree(module: str) -> ast.Module:
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _unparse(node: ast.AST) -> str:
    """The code of an expression, with the quotes that our sources have."""
    return re.sub(r"'([^'\"\\]*)'", r'"\1"', ast.unparse(node))


def exported(module: str) -> dict[str, str]:
    """The names that a package exports for type checkers (`import X as X`), each with the module that defines it."""
    return {
        alias.asname: node.module
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if alias.asname == alias.name
    }


def defined(module: str) -> Iterator[tuple[str, ast.stmt, str]]:
    """The classes, functions and constants of a module, each with the string below a constant."""
    for node, below in _with_next(_statements(tree(module).body)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node, ast.get_docstring(node) or ""
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node, _text(below)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield from _statements(node.body) if isinstance(node, ast.If) else [node]


def _with_next(body: Iterable[ast.stmt]) -> Iterable[tuple[ast.stmt, ast.stmt | None]]:
    return pairwise([*body, None])  # type: ignore[list-item]


def _text(node: ast.stmt | None) -> str:
    """The docstring that a statement is, if it is one."""
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            lines = text.strip().splitlines()
            return "\n".join([lines[0], *(line.strip() for line in lines[1:])]) if lines else ""
    return ""


def find(module: str, name: str) -> tuple[str, ast.stmt, str]:
    """Where a name that a module uses is defined: the module, the statement and its docstring."""
    for each, node, doc in defined(module):
        if each == name:
            return module, node, doc
    for each_node in ast.walk(tree(module)):
        match each_node:
            case ast.ImportFrom(module=str(home), names=names) if name in {each.asname or each.name for each in names}:
                return find(home, name) if home.startswith("longshore") else (home, each_node, "")
    raise LookupError(f"{module} has no {name}")


def read(module: str, home: str, name: str) -> Name:
    """A public name, for the reference."""
    home, node, doc = find(home, name)
    match node:
        case ast.ClassDef():
            return _class(module, home, node, doc)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            [made] = _members(home, [each for each, _, _ in _functions(home, name)], "")
            return Name(name, module, home, made.doc, made.signatures, raises=made.raises, options=made.options)
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return Name(name, module, home, doc, (f"{name} = {_unparse(value)}",))
    raise LookupError(f"{module}.{name} is no class, function or constant")


def _functions(module: str, name: str) -> Iterator[tuple[Function, str, str]]:
    for each, node, doc in defined(module):
        if each == name and isinstance(node, Function):
            yield node, each, doc


def _class(module: str, home: str, node: ast.ClassDef, doc: str) -> Name:
    """A class with the fields of its private bases, but without the methods that are for these."""
    own = list(_line(home, node, public=True))
    everything = list(_line(home, node))
    fields = {each.name: each for where, cls in reversed(own) for each in _fields(cls, where)}
    inherited = {name for _, cls in own[1:] for name in _methods(cls)}
    methods = {
        name: functions
        for name, functions in _methods(node).items()
        if name not in inherited or any(ast.get_docstring(each) for each in functions)
    }
    init = next(((where, each) for where, cls in everything for each in cls.body if _is_init(each)), None)
    raises: tuple[str, ...] = ()
    if init is not None and isinstance(init[1], ast.FunctionDef):
        signature = _signature(node.name, init[1].args, None, method=True)
        raises = _raises(init[1])
        if init[1] in node.body:
            doc = "\n\n".join(filter(None, [doc, ast.get_docstring(init[1])]))
    else:
        signature = _record_signature(node, everything, list(fields.values()))
    return Name(
        node.name,
        module,
        home,
        doc,
        (signature,),
        tuple(fields.values()),
        tuple(made for functions in methods.values() for made in _members(home, functions, node.name)),
        raises,
        bases=tuple(_public_bases(node)),
    )


def _methods(node: ast.ClassDef) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for each in _statements(node.body):
        if isinstance(each, Function) and not each.name.startswith("_"):
            found.setdefault(each.name, []).append(each)
    return found


def _is_init(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "__init__"


def _public_bases(node: ast.ClassDef) -> Iterator[str]:
    public = exported("longshore") | exported("longshore.client.auth")
    yield from (base.id for base in node.bases if isinstance(base, ast.Name) and base.id in public)


def _line(module: str, node: ast.ClassDef, *, public: bool = False) -> Iterator[tuple[str, ast.ClassDef]]:
    """The class, and those in our source that it inherits from; `public`: as far as the next public one."""
    yield module, node
    stops = set(_public_bases(node)) if public else set()
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id not in stops and not hasattr(builtins, base.id):
            where, found, _ = find(module, base.id)
            if isinstance(found, ast.ClassDef):
                yield from _line(where, found, public=public)


def _fields(node: ast.ClassDef, module: str) -> Iterator[Field]:
    """The public attributes that are declared in the body, and those that the constructor sets."""
    for statement, below in _with_next(_statements(node.body)):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value) if not name.startswith("_"):
                inner = re.fullmatch(r"ClassVar\[(.*)\]", _unparse(kind))
                yield Field(name, inner[1] if inner else _unparse(kind), _default(value), _text(below))
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            yield from _set_in(each, exception=module == "longshore.errors")


def _set_in(init: ast.FunctionDef, *, exception: bool) -> Iterator[Field]:
    """The attributes with a docstring; of an exception, those that have the name of a parameter too."""
    arguments = [*init.args.posonlyargs, *init.args.args, *init.args.kwonlyargs]
    types = {arg.arg: _unparse(arg.annotation) for arg in arguments if arg.annotation}
    for statement, below in _with_next(init.body):
        match statement:
            case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=kind) if _text(below):
                yield Field(name, _unparse(kind), "", _text(below))
            case ast.Assign(targets=[ast.Tuple(elts=targets)]) | ast.Assign(targets=[*targets]):
                for target in targets:
                    if exception and isinstance(target, ast.Attribute) and target.attr in types:
                        yield Field(target.attr, types[target.attr])


def _default(value: ast.expr | None) -> str:
    match value:
        case None:
            return ""
        case ast.Call(func=ast.Name(id="field"), keywords=keywords):
            given = {each.arg: each.value for each in keywords}
            made = given.get("default") or given.get("default_factory")
            return _default(made)
    return _unparse(value)


def _members(module: str, functions: list[Function], owner: str) -> list[Member]:
    """The functions of one name: one, or its overloads and what they share."""
    overloads = [each for each in functions if "overload" in _decorators(each)]
    shown = overloads or [each for each in functions if "setter" not in _decorators(each)][:1]
    last = shown[0] if not overloads else functions[-1]
    name = f"{owner}.{last.name}" if owner else last.name
    options = tuple(dict.fromkeys(option for each in shown for option in _options(module, each)))
    doc = next(filter(None, (ast.get_docstring(each) for each in functions)), "")
    if {"property", "cached_property"} & _decorators(last):
        return [Member(name, (f"{name}: {_unparse(last.returns) if last.returns else 'Any'}",), doc)]
    method = bool(owner) and "staticmethod" not in _decorators(last)
    signatures = tuple(_prefix(each) + _signature(name, each.args, each.returns, method=method) for each in shown)
    return [Member(name, signatures, doc, _raises(last), options)]


def _prefix(node: Function) -> str:
    return "async " if isinstance(node, ast.AsyncFunctionDef) else ""


def _decorators(node: Function) -> set[str]:
    names = {_unparse(each).partition("(")[0] for each in node.decorator_list}
    return {name.rpartition(".")[2] for name in names}


def _signature(name: str, arguments: ast.arguments, returns: ast.expr | None, *, method: bool) -> str:
    parts = list(_parameters(arguments))
    if method:
        parts = parts[1:] if parts[:2] != ["self", "/"] else parts[2:]
    end = f" -> {_unparse(returns)}" if returns is not None else ""
    return _on_lines(name, parts, end)


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for place, (arg, default) in enumerate(zip(positional, defaults, strict=True), 1):
        yield _parameter(arg, default)
        if place == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg:
        yield f"*{_parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(arg, default)
    if arguments.kwarg and "Never" not in _parameter(arguments.kwarg, None):
        yield f"**{_parameter(arguments.kwarg, None)}"


def _parameter(arg: ast.arg, default: ast.expr | None) -> str:
    kind = f": {_unparse(arg.annotation)}" if arg.annotation else ""
    equals = " = " if kind else "="
    return f"{arg.arg}{kind}{equals}{_unparse(default)}" if default is not None else f"{arg.arg}{kind}"


def _record_signature(node: ast.ClassDef, line: list[tuple[str, ast.ClassDef]], fields: list[Field]) -> str:
    """The constructor of a record, from its fields; of another class without a constructor, its statement."""
    bases = {_unparse(base).rpartition(".")[2] for _, each in line for base in each.bases}
    decorators = {_unparse(each).partition("(")[0] for each in node.decorator_list}
    if not bases & {"Struct", "NamedTuple"} and "dataclass" not in decorators:
        own = ", ".join(_unparse(base) for base in node.bases)
        return f"class {node.name}({own})" if own else f"class {node.name}"
    parts = [f"{each.name}: {each.type}" + (f" = {each.default}" if each.default else "") for each in fields]
    if parts and any(each.arg == "kw_only" for each in node.keywords):
        parts.insert(0, "*")
    return _on_lines(node.name, parts, "")


def _on_lines(name: str, parts: list[str], end: str) -> str:
    line = f"{name}({', '.join(parts)}){end}"
    return line if len(line) <= WIDTH else "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){end}"])


def _raises(node: Function) -> tuple[str, ...]:
    """The public exceptions that a function raises itself."""
    own = {
        each.exc.func.id
        for each in ast.walk(node)
        if isinstance(each, ast.Raise) and isinstance(each.exc, ast.Call) and isinstance(each.exc.func, ast.Name)
    }
    public = {name for name, home in exported("longshore").items() if home == "longshore.errors"}
    return tuple(sorted(own & (public | {"ValueError", "TypeError", "RuntimeError", "LookupError", "AssertionError"})))


def _options(module: str, node: Function) -> Iterator[Field]:
    """The options that `**options: Unpack[ToolKeywords]` stands for, from the record `ToolOptions`."""
    match node.args.kwarg:
        case ast.arg(annotation=ast.Subscript(value=ast.Name(id="Unpack"), slice=ast.Name(id=keywords))):
            where, _, _ = find(module, keywords)
            record = "Options" if keywords == "OptionKeywords" else keywords.replace("Keywords", "Options")
            where, found, _ = find(where, record)
            assert isinstance(found, ast.ClassDef)
            for origin, cls in reversed(list(_line(where, found))):
                yield from _fields(cls, origin)
