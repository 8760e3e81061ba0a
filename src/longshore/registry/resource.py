"""Resources: a URI or a template of URIs, and the function that reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, Struct

from longshore.protocol.content import Annotations, Contents, Icon
from longshore.registry.function import check_timeout, invoker, read_signature, run_mode
from longshore.registry.template import Template, TemplateProblem
from longshore.registry.text import read_texts
from longshore.registry.tool import Entry, Json
from longshore.registry.where import Place, refuse
from longshore.schema.output import OutputMismatch, encode
from longshore.schema.reading import say_why
from longshore.schema.signature import Signature


class ResourceOptions(Struct, kw_only=True):
    """What `@app.resource(uri, …)` takes."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, Json] | None = None
    timeout: float | Literal[False] | None = None
    run: Literal["thread", "inline"] | None = None
    max_age: float = 0.0
    """Seconds for which a client may keep what it read."""


class Reading(Struct):
    """What a read was asked for: the URI and the values in it."""

    uri: str
    values: Any


class Resource(Struct, kw_only=True):
    """A registered resource. Without holes in its template it stands in `resources/list`, else among the templates."""

    template: Template
    entry: Entry
    max_age: float

    @property
    def uri(self) -> str:
        return self.template.text

    @property
    def fixed(self) -> bool:
        return not self.template.names


def make_resource(uri: str, fn: Callable[..., Any], options: ResourceOptions, context_type: type) -> Resource:
    """A resource of a function. Raises RegistrationError if the two don't fit."""
    try:
        template = Template(uri)
    except TemplateProblem as problem:
        refuse(fn, problem.what, problem.fix)
    signature = read_signature(fn, context_type)
    _check_names(fn, template, signature)
    found = str(getattr(fn, "__name__", uri))
    name = options.name or (uri if found == "<lambda>" else found)
    check_timeout(fn, options.timeout)
    entry = Entry(
        kind="resource",
        name=name,
        where=Place(fn),
        run=run_mode(fn, options.run, signature.is_async),
        decode=lambda reading: Reading(reading.uri, read_texts(reading.values, signature)),
        invoke=_invoker(fn, signature),
        render=_Render(options.mime_type),
        explain=say_why,
        describe=lambda: _describe(template, name, fn, options),
        timeout=options.timeout,
        asked=signature.asked,
        parameters={p.name: p.type for p in signature.parameters},
        effects="read",
    )
    return Resource(template=template, entry=entry, max_age=options.max_age)


def _invoker(fn: Callable[..., Any], signature: Signature) -> Callable[[Any, Any], Any]:
    inner = invoker(fn, signature)
    return lambda reading, call: inner(reading.values, call)


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


def _describe(template: Template, name: str, fn: Callable[..., Any], options: ResourceOptions) -> dict[str, Json]:
    from longshore.schema.docstring import parse

    described = {
        "uriTemplate" if template.names else "uri": template.text,
        "name": name,
        "title": options.title,
        "description": options.description or parse(fn.__doc__, template.names).summary or None,
        "mimeType": options.mime_type,
        "size": None if template.names else options.size,
        "annotations": options.annotations,
        "icons": list(options.icons) or None,
        "_meta": options.meta,
    }
    return {key: value for key, value in described.items() if value is not None}


class _Render:
    """Makes contents of what a reader returned: text, bytes, plain data as JSON, or ready-made ones."""

    __slots__ = ("_mime_type",)

    def __init__(self, mime_type: str | None) -> None:
        self._mime_type = mime_type

    def __call__(self, value: Any, call: Any) -> dict[str, Any]:
        uri = call.arguments.uri
        if (
            isinstance(value, (list, tuple))
            and value
            and all(isinstance(item, Contents) for item in cast(list[Any], value))
        ):
            return {"contents": [self._contents(uri, item) for item in cast(list[Any], value)]}
        return {"contents": [self._contents(uri, value)]}

    def _contents(self, uri: str, value: Any) -> Contents:
        if value is None:
            raise OutputMismatch("a resource is text, bytes or data, not None; raise ResourceNotFound if there is none")
        if isinstance(value, Contents):
            return value if value.uri else msgspec.structs.replace(value, uri=uri)
        if isinstance(value, str):
            return Contents(uri, text=value, mime_type=self._mime_type or "text/plain")
        if isinstance(value, (bytes, bytearray, memoryview)):
            return Contents(uri, blob=bytes(value), mime_type=self._mime_type or "application/octet-stream")  # pyright: ignore[reportUnknownArgumentType]
        return Contents(uri, text=encode(value).decode(), mime_type=self._mime_type or "application/json", meta=UNSET)
