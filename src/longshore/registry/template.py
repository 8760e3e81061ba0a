"""URI templates: the part of RFC 6570 that resources are named with, matched in the other direction.

`{id}` is one path segment, `{+path}` and `{path*}` may hold slashes, `{/a}` brings its own slash, `{?q,limit}` is an
optional query. A value that would climb out of its place (`..`, a slash hidden as %2F, a NUL) does not match at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import final

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SEGMENT_ENDS, _PATH_ENDS = "/?#", "?#"
MAX_URI_CHARACTERS = 8192
"""Longer ones are matched by nothing; it also bounds what matching can cost."""


class TemplateProblem(Exception):
    """A template that can't be matched. `what` and `fix` are one sentence each."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


@final
class Template:
    """A URI with holes. Without any it is a plain URI."""

    def __init__(self, text: str) -> None:
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
            raise TemplateProblem(f"{text!r} has no scheme", f"begin it with one, e.g. 'data://{text.lstrip('/')}'")
        self.text = text
        self.path_names: list[str] = []
        self.query_names: list[str] = []
        self._multi: set[str] = set()
        self._rooted: set[str] = set()
        """Those after a slash of the template: a second one would make an absolute path of the value."""
        self._literals = [""]
        """What stands before, between and after the holes."""
        self._ends: list[str] = []
        """For each hole, the characters that no value of it can hold."""
        self._read(text)
        holes = [f"([^{ends}]+)" for ends in self._ends]
        self._regex = re.compile("".join(map("".join, zip(map(re.escape, self._literals), [*holes, ""], strict=True))))
        self._tangled = self._is_tangled()

    @property
    def names(self) -> list[str]:
        return self.path_names + self.query_names

    def match(self, uri: str) -> dict[str, str] | None:
        """The values that make this URI of the template, or None."""
        if len(uri) > MAX_URI_CHARACTERS:
            return None
        bare, query = uri, ""
        if self.query_names:
            bare, _, query = uri.partition("?")
        found = self._untangle(bare) if self._tangled else self._divide(bare)
        if found is None:
            return None
        values = {name: unquote(value) for name, value in zip(self.path_names, found, strict=True)}
        if not all(self._stays(name, value) for name, value in values.items()):
            return None
        asked = self._read_query(query)
        return None if any("\0" in value for value in asked.values()) else values | asked

    def _divide(self, uri: str) -> Sequence[str] | None:
        found = self._regex.fullmatch(uri)
        return None if found is None else found.groups()

    def _is_tangled(self) -> bool:
        """Whether one hole can end in many places before another: a regex would try all of them, for each of them."""
        pairs = zip(self._ends, self._literals[1:], self._ends[1:], strict=False)
        loose = any(not set(literal) & set(before + after) for before, literal, after in pairs)
        return loose or self._ends.count(_PATH_ENDS) > 1

    def _untangle(self, uri: str) -> Sequence[str] | None:
        """The same values as the regex finds, the first as long as it can be, in time that only grows with the URI."""
        size, last = len(uri), self._literals[-1]
        fits = bytearray(size + 1)  # at each place, whether the rest of the URI is what comes after this hole
        if uri.endswith(last):
            fits[size - len(last)] = True
        tables = [fits]
        for literal, ends in zip(self._literals[-2::-1], self._ends[::-1], strict=True):
            begins = bytearray(size + 2)  # whether this hole can begin there
            for at in range(size - 1, -1, -1):
                begins[at] = uri[at] not in ends and (fits[at + 1] or begins[at + 1])
            fits = bytearray(size + 1)
            at = uri.find(literal)
            while at >= 0:
                fits[at] = begins[at + len(literal)]
                at = uri.find(literal, at + 1)
            tables.append(fits)
        return self._walk(uri, tables[::-1]) if fits[0] else None

    def _walk(self, uri: str, tables: list[bytearray]) -> list[str]:
        found: list[str] = []
        at = len(self._literals[0])
        for literal, ends, fits in zip(self._literals[1:], self._ends, tables[1:], strict=True):
            stop = min((place for end in ends if (place := uri.find(end, at)) >= 0), default=len(uri))
            end = fits.rfind(1, at, stop + 1)
            found.append(uri[at:end])
            at = end + len(literal)
        return found

    def _read(self, text: str) -> None:
        end = 0
        for found in _EXPRESSION.finditer(text):
            literal = text[end : found.start()]
            if end and not literal and found.group(1)[:1] not in "/?&":
                raise TemplateProblem(
                    f"nothing separates {{{found.group(1)}}} from what is before it", "put a / between"
                )
            self._literals[-1] += literal
            self._hole(found.group(1), text)
            after_slash = literal.endswith("/") and literal != "file://"  # whose paths are absolute
            if found.group(1)[:1] == "/" or (after_slash and found.group(1)[:1] not in "?&"):
                self._rooted.add(self.path_names[-1])
            end = found.end()
        rest = text[end:]
        if "{" in rest or "}" in rest:
            raise TemplateProblem(f"{text!r} has a brace without its partner", "close it, or write it as %7B")
        if self.query_names and rest:
            raise TemplateProblem(f"{rest!r} comes after the query", "put {?…} at the end")
        self._literals[-1] += rest

    def _hole(self, expression: str, text: str) -> None:
        operator = expression[:1] if expression[:1] in "+/?&#." else ""
        names = expression[len(operator) :].split(",")
        if operator in ("#", "."):
            raise TemplateProblem(f"{{{expression}}} uses an operator that can't be matched", "use {name} or {+name}")
        for name in names:
            self._name(name.rstrip("*"), text)
        if operator in ("?", "&"):
            self.query_names += [name.rstrip("*") for name in names]
            return
        if len(names) > 1:
            raise TemplateProblem(f"{{{expression}}} holds several names", "give each its own braces")
        name, many = names[0].rstrip("*"), operator == "+" or names[0].endswith("*")
        self.path_names.append(name)
        if many:
            self._multi.add(name)
        self._literals[-1] += "/" if operator == "/" else ""
        self._literals.append("")
        self._ends.append(_PATH_ENDS if many else _SEGMENT_ENDS)

    def _name(self, name: str, text: str) -> None:
        if not _NAME.fullmatch(name):
            raise TemplateProblem(f"{{{name}}} in {text!r} is no parameter's name", "use letters, digits and _")
        if name in self.names:
            raise TemplateProblem(f"{{{name}}} stands twice in {text!r}", "name each hole once")

    def _stays(self, name: str, value: str) -> bool:
        """Whether a value, decoded, keeps to its place in the template."""
        if "\0" in value or (name in self._rooted and value[:1] in ("/", "\\")):
            return False
        parts = re.split(r"[/\\]", value)
        return ".." not in parts and (len(parts) == 1 or name in self._multi)

    def _read_query(self, query: str) -> dict[str, str]:
        pairs = (part.partition("=") for part in query.split("&") if part)
        return {name: unquote(value.replace("+", " ")) for name, _, value in pairs if name in self.query_names}


def unquote(text: str) -> str:
    """Percent-decoded text. Most has nothing to decode, and the decoder is slow to import."""
    if "%" not in text:
        return text
    from urllib.parse import unquote as decode

    return decode(text)
