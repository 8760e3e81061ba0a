"""Python by its syntax tree, never executed: classes, functions and methods, what they import and what they call."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, cast, final

from longshore.toolsets.context.file_parts import (
    CLASS,
    FILE,
    FUNCTION,
    METHOD,
    NAME_CHARACTERS,
    PART_CHARACTERS,
    CodeCall,
    Import,
    ParsedFile,
    Part,
    cut,
)
from longshore.toolsets.context.plain_file import parse_plain

PARSER: Final = "python/1"
ENDINGS: Final = (".py", ".pyi")
_MOST_CALLS: Final = 200
"""Different names that are called in one part."""
_MOST_DEPTH: Final = 20
"""Classes in classes, and statements in which definitions stand."""

_WORD: Final = rb"[\w\x80-\xff]"
_WORDS: Final = re.compile(_WORD + rb"+")
_CALLED_OR_IMPORTED: Final = re.compile(
    rb"(?:" + _WORD + rb"|\.)+(?=\s*\()|\b(?:from|import)\b(?:\\\n|[^\n(#]){0,2000}(?:\([^)]{0,20000})?"
)

_Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_BLOCKS: Final = (ast.If, ast.Try, ast.With, ast.TryStar)
"""Statements in which a module or a class has definitions of its own."""


def parse_python(text: str, path: str) -> ParsedFile:
    """The parts of a Python file. A file with a syntax error is plain text, with the reason."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes: they don't matter here
            return _Parser(text, path).parse(ast.parse(text))
    except (SyntaxError, ValueError) as problem:
        line = f" in line {problem.lineno}" if isinstance(problem, SyntaxError) and problem.lineno else ""
        return parse_plain(text, path, f"no valid Python{line}: read as plain text")
    except (RecursionError, MemoryError):
        return parse_plain(text, path, "nested too deeply for a parser: read as plain text")


def referring_words(data: bytes) -> Iterator[bytes]:
    """The words of a Python file that are called or imported, and some others."""
    for found in _CALLED_OR_IMPORTED.findall(data):
        yield from _WORDS.findall(found)


@final
class _Parser:
    """Collects the parts and references of one file."""

    def __init__(self, text: str, path: str) -> None:
        self._path = path
        self._lines = text.split("\n")
        self._parts = list[Part]()
        self._known = dict[tuple[str, str], int]()
        self._references = list[CodeCall | Import]()
        self._called = set[tuple[int, tuple[str, ...]]]()
        self._calls = dict[int, int]()

    def parse(self, tree: ast.Module) -> ParsedFile:
        self._parts.append(Part(FILE, self._path, "", 1, len(self._lines)))
        rest = self._read_body(tree.body, 0, "", 0)
        text = cut("\n".join(self._source(first, last) for first, last in rest))
        self._parts[0] = Part(FILE, self._path, text, 1, len(self._lines))
        return ParsedFile(PARSER, tuple(self._parts), tuple(self._references))

    def _read_body(self, body: Sequence[ast.stmt], parent: int, scope: str, depth: int) -> list[tuple[int, int]]:
        """Add the definitions in a module's or class's body; return the lines of all other statements."""
        rest = list[tuple[int, int]]()
        for statement in body:
            if isinstance(statement, _Definition):
                self._define(statement, parent, scope, depth)
                continue
            if isinstance(statement, _BLOCKS) and depth < _MOST_DEPTH and _has_definitions(statement):
                for inner in _bodies(statement):
                    rest += self._read_body(inner, parent, scope, depth + 1)
                continue
            rest.append((statement.lineno, statement.end_lineno or statement.lineno))
            self._read_references(statement, parent)
        return rest

    def _define(self, node: _Definition, parent: int, scope: str, depth: int) -> None:
        name = f"{scope}.{node.name}" if scope else node.name
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        last = node.end_lineno or node.lineno
        if not isinstance(node, ast.ClassDef):
            part = self._add(METHOD if scope else FUNCTION, name, self._source(first, last), first, last, parent)
            self._read_references(node, part)
            return
        part = self._add(CLASS, name, "", first, last, parent)
        for outer in (*node.decorator_list, *node.bases, *node.keywords):
            self._read_references(outer, part)
        rest = self._read_body(node.body, part, name, depth + 1) if depth < _MOST_DEPTH else [(node.lineno, last)]
        header = self._source(first, max(first, node.body[0].lineno - 1))
        self._extend(part, "\n".join([header, *(self._source(*lines) for lines in rest)]))

    def _add(self, kind: str, name: str, text: str, first: int, last: int, parent: int) -> int:
        """Add a part. A second definition of a name (a setter, an overload) is appended to the first."""
        name = name[:NAME_CHARACTERS]
        known = self._known.get((kind, name))
        if known is not None:
            self._extend(known, text)
            return known
        self._known[kind, name] = part = len(self._parts)
        self._parts.append(Part(kind, name, cut(text), first, last, parent))
        return part

    def _extend(self, part: int, text: str) -> None:
        old = self._parts[part]
        if text and len(old.text) < PART_CHARACTERS:
            joined = cut(f"{old.text}\n\n{text}" if old.text else text)
            self._parts[part] = Part(old.kind, old.name, joined, old.first_line, old.last_line, old.parent)

    def _source(self, first: int, last: int) -> str:
        """Lines without the indentation that the first one has."""
        lines = self._lines[first - 1 : last]
        indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
        if indent:
            lines = [line[indent:] if not line[:indent].strip() else line for line in lines]
        return "\n".join(lines)

    def _read_references(self, top: ast.AST, part: int) -> None:
        """The calls and imports in a node and below it."""
        stack = [top]
        while stack:
            node = stack.pop()
            kind = node.__class__
            if kind is ast.Call:
                self._read_call(node, part)  # type: ignore[arg-type]
            elif kind is ast.Import or kind is ast.ImportFrom:
                self._references += _imports(node)
                continue
            elif kind is ast.Name or kind is ast.Constant:
                continue
            for field in node._fields:
                value: object = getattr(node, field, None)
                if isinstance(value, list):
                    stack += [each for each in cast("list[object]", value) if isinstance(each, ast.AST)]
                elif isinstance(value, ast.AST):
                    stack.append(value)

    def _read_call(self, node: ast.Call, part: int) -> None:
        name = _dotted(node.func)
        if name and (part, name) not in self._called and self._calls.get(part, 0) < _MOST_CALLS:
            self._called.add((part, name))
            self._calls[part] = self._calls.get(part, 0) + 1
            self._references.append(CodeCall(part, name))


def _dotted(node: ast.expr) -> tuple[str, ...]:
    """The dotted name of an expression: `a.b.c`. The object of a method may be any expression: `?.c`."""
    names = list[str]()
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        names.append(node.id)
    elif names:
        names = [names[0], "?"]
    return tuple(reversed(names))


def _imports(node: ast.AST) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                yield Import(alias.asname, alias.name)
                continue
            first = alias.name.partition(".")[0]  # `import a.b` binds `a`, and calls say `a.b.f`
            yield Import(first, first)
            if first != alias.name:
                yield Import("", alias.name)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield Import(alias.asname or alias.name, node.module or "", node.level, alias.name)


def _has_definitions(statement: ast.stmt) -> bool:
    return any(
        isinstance(inner, _Definition) or (isinstance(inner, _BLOCKS) and _has_definitions(inner))
        for body in _bodies(statement)
        for inner in body
    )


def _bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement."""
    for field in ("body", "handlers", "orelse", "finalbody"):
        block = getattr(statement, field, [])
        if field == "handlers":
            yield from (handler.body for handler in block)
        elif block:
            yield block
