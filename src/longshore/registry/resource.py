"""Resources: a URI or a template of URIs, and the function that reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast, final

import msgspec
from msgspec import UNSET, Struct

from longshore.protocol.content import Annotations, Contents
from longshore.registry.function import invoker, read_signature
from longshore.registry.prompt import read_texts, text_fields
from longshore.registry.source_location import refuse
from longshore.registry.tool import Entry, Json, Options, describe
from longshore.schema.output import OutputMismatch, encode
from longshore.schema.signature import Signature

if TYPE_CHECKING:
    from longshore.registry.tool import OptionKeywords


class ResourceOptions(Options, kw_only=True):
    """The options of `@app.resource(uri, …)`."""

    mime_type: str | None = None
    """None: by what the function returns."""
    size: int | None = None
    """Bytes, if they are known before it is read."""
    annotations: Annotations | None = None
    """Its audience, priority and time of change."""
    max_age: float = 0.0
    """Seconds for which a client may cache the contents."""


if TYPE_CHECKING:

    class ResourceKeywords(OptionKeywords, total=False):
        mime_type: str | None
        size: int | None
        annotations: Annotations | None
        max_age: float


class ReadRequest(Struct):
    """The URI to read, and the values of its variables."""

    uri: str
    values: Any


def resource_entry(uri: str, fn: Callable[..., Any], options: ResourceOptions, context_type: type) -> Entry:
    """The entry of a resource. Raises RegistrationError if URI and parameters don't match."""
    try:
        template = Template(uri)
    except TemplateProblem as problem:
        refuse(fn, problem.what, problem.fix)
    signature = read_signature(fn, context_type)
    _check_names(fn, template, signature)
    found = str(getattr(fn, "__name__", uri))
    name = options.name or (uri if found == "<lambda>" else found)
    read = invoker(fn, signature)

    def about() -> dict[str, Json]:
        from longshore.schema.docstring import parse

        fields = {
            "uriTemplate" if template.names else "uri": uri,
            "mimeType": options.mime_type,
            "size": None if template.names else options.size,
            "annotations": options.annotations,
        }
        return describe(name, options, options.description or parse(fn.__doc__, template.names).summary, fields)

    return Entry(
        kind="resource",
        name=name,
        uri=uri,
        template=template if template.names else None,
        max_age=options.max_age,
        decode=lambda request: ReadRequest(request.uri, read_texts(request.values, signature)),
        invoke=lambda request, call: read(request.values, call),
        render=lambda value, call: _render(value, call.arguments.uri, options.mime_type),
        describe=about,
        **text_fields(fn, options, signature),
    )


def _check_names(fn: Callable[..., Any], template: Template, signature: Signature) -> None:
    parameters = {p.name: p.required for p in signature.parameters}
    unknown = [name for name in template.names if name not in parameters]
    if unknown:
        takes = ", ".join(parameters) or "nothing"
        refuse(fn, f"{{{unknown[0]}}} in {template.text!r} is no parameter: it takes {takes}", "name both alike")
    for name, required in parameters.items():
        if required and name not in template.path_names:
            refuse(
                fn,
                f"parameter {name!r} is not in {template.text!r}, so nothing could fill it",
                f"add {{{name}}} or a default",
            )
    for name in template.query_names:
        if parameters[name]:
            refuse(fn, f"parameter {name!r} comes from the query, which may be absent", f"give {name} a default")


def _render(value: Any, uri: str, mime_type: str | None) -> dict[str, Any]:
    """The contents of a return value: text, bytes, plain data as JSON, or ready-made contents."""
    items: list[Any] = list(cast(list[Any], value)) if isinstance(value, (list, tuple)) else []
    if not items or not all(isinstance(item, Contents) for item in items):
        items = [value]
    return {"contents": [_contents(item, uri, mime_type) for item in items]}


def _contents(value: Any, uri: str, mime_type: str | None) -> Contents:
    if value is None:
        raise OutputMismatch("a resource is text, bytes or data, not None; raise ResourceNotFound if there is none")
    if isinstance(value, Contents):
        return value if value.uri else msgspec.structs.replace(value, uri=uri)
    if isinstance(value, str):
        return Contents(uri, text=value, mime_type=mime_type or "text/plain")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Contents(uri, blob=bytes(value), mime_type=mime_type or "application/octet-stream")  # pyright: ignore[reportUnknownArgumentType]
    return Contents(uri, text=encode(value).decode(), mime_type=mime_type or "application/json", meta=UNSET)


# -- URI templates

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SEGMENT_ENDS, _PATH_ENDS = "/?#", "?#"
MAX_URI_CHARACTERS = 8192
"""A longer URI matches nothing; the limit also bounds the cost of matching."""


class TemplateProblem(Exception):
    """A template that can't be matched. `what` and `fix` are one sentence each."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


@final
class Template:
    """A URI template of RFC 6570, matched in the other direction: from a URI to the values of its variables.

    `{id}` is one path segment, `{+path}` and `{path*}` may hold slashes, `{/a}` brings its own slash, `{?q,limit}` is
    an optional query. A value that would leave its place (`..`, a slash hidden as %2F, a NUL) does not match at all.
    Variables between which a URI could be divided in several ways are refused.
    """

    def __init__(self, text: str) -> None:
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
            raise TemplateProblem(f"{text!r} has no scheme", f"begin it with one, e.g. 'data://{text.lstrip('/')}'")
        self.text = text
        self.path_names: list[str] = []
        self.query_names: list[str] = []
        self._multi: set[str] = set()
        self._rooted: set[str] = set()
        """Variables after a slash of the template: a second slash would make an absolute path of the value."""
        literals = self._read()
        ends = [_PATH_ENDS if name in self._multi else _SEGMENT_ENDS for name in self.path_names]
        self._refuse_ambiguous(literals, ends)
        variables = [*(f"([^{each}]+)" for each in ends), ""]
        self._regex = re.compile("".join(map("".join, zip(map(re.escape, literals), variables, strict=True))))

    @property
    def names(self) -> list[str]:
        return self.path_names + self.query_names

    def match(self, uri: str) -> dict[str, str] | None:
        """The values of the variables in this URI, or None."""
        if len(uri) > MAX_URI_CHARACTERS:
            return None
        bare, query = uri, ""
        if self.query_names:
            bare, _, query = uri.partition("?")
        found = self._regex.fullmatch(bare)
        if found is None:
            return None
        values = {name: unquote(value) for name, value in zip(self.path_names, found.groups(), strict=True)}
        if not all(self._stays(name, value) for name, value in values.items()):
            return None
        asked = self._read_query(query)
        return None if any("\0" in value for value in asked.values()) else values | asked

    def _refuse_ambiguous(self, literals: list[str], ends: list[str]) -> None:
        """Refuse two variables if each character between them could belong to either."""
        for index, (before, literal, after) in enumerate(zip(ends, literals[1:], ends[1:], strict=False)):
            if not set(literal) & set(before + after) or before == after == _PATH_ENDS:
                one, other = self.path_names[index : index + 2]
                what = f"{{{one}}} and {{{other}}} in {self.text!r} could be divided in several ways"
                raise TemplateProblem(what, "put a / between them, and let only one of them hold slashes")
        if ends.count(_PATH_ENDS) > 1:
            several = ", ".join(f"{{{name}}}" for name in self.path_names if name in self._multi)
            raise TemplateProblem(
                f"{several} in {self.text!r} may each hold slashes", "let only one of them hold slashes"
            )

    def _read(self) -> list[str]:
        """Read the variables. Returns the literals before, between and after those of the path."""
        text, literals, end = self.text, [""], 0
        for found in _EXPRESSION.finditer(text):
            literal, expression = text[end : found.start()], found.group(1)
            operator = expression[:1] if expression[:1] in "+/?&#." else ""
            if end and not literal and expression[:1] not in "/?&":
                raise TemplateProblem(f"nothing separates {{{expression}}} from what is before it", "put a / between")
            end = found.end()
            literals[-1] += literal + ("/" if operator == "/" else "")
            names = self._names_in(expression, operator)
            if operator in ("?", "&"):
                self.query_names += [name.rstrip("*") for name in names]
                continue
            literals.append("")
            name = names[0].rstrip("*")
            self.path_names.append(name)
            if operator == "+" or names[0].endswith("*"):
                self._multi.add(name)
            if operator == "/" or (literal.endswith("/") and literal != "file://"):  # whose paths are absolute
                self._rooted.add(name)
        rest = text[end:]
        if "{" in rest or "}" in rest:
            raise TemplateProblem(f"{text!r} has a brace without its partner", "close it, or write it as %7B")
        if self.query_names and rest:
            raise TemplateProblem(f"{rest!r} comes after the query", "put {?…} at the end")
        literals[-1] += rest
        return literals

    def _names_in(self, expression: str, operator: str) -> list[str]:
        """The variables of one expression, a path variable alone. Variables with a star may hold slashes."""
        names = expression[len(operator) :].split(",")
        if operator in ("#", "."):
            raise TemplateProblem(f"{{{expression}}} uses an operator that can't be matched", "use {name} or {+name}")
        for name in (each.rstrip("*") for each in names):
            if not _NAME.fullmatch(name):
                raise TemplateProblem(
                    f"{{{name}}} in {self.text!r} is no parameter's name", "use letters, digits and _"
                )
            if name in self.names:
                raise TemplateProblem(f"{{{name}}} occurs twice in {self.text!r}", "name each variable once")
        if len(names) > 1 and operator not in ("?", "&"):
            raise TemplateProblem(f"{{{expression}}} holds several names", "give each its own braces")
        return names

    def _stays(self, name: str, value: str) -> bool:
        """Whether a decoded value stays in its place in the template."""
        if "\0" in value or (name in self._rooted and value[:1] in ("/", "\\")):
            return False
        parts = re.split(r"[/\\]", value)
        return ".." not in parts and (len(parts) == 1 or name in self._multi)

    def _read_query(self, query: str) -> dict[str, str]:
        pairs = (part.partition("=") for part in query.split("&") if part)
        return {name: unquote(value.replace("+", " ")) for name, _, value in pairs if name in self.query_names}


def unquote(text: str) -> str:
    """Percent-decoded text. Most texts need no decoding, and the decoder is slow to import."""
    if "%" not in text:
        return text
    from urllib.parse import unquote as decode

    return decode(text)
