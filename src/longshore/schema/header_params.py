"""Arguments of a tool that HTTP clients repeat in headers: the marker, the schema keyword, and reading both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from longshore.schema.kinds import is_object

if TYPE_CHECKING:
    from longshore.protocol.http_headers import HeaderParam
    from longshore.schema.walk import Subschema

ANNOTATION: Final = "x-mcp-header"
"""The keyword of an input schema that marks such an argument; its value is the header's name without `Mcp-Param-`."""


class Header:
    """Marks a parameter that HTTP clients repeat as `Mcp-Param-NAME`: `region: Annotated[str, Header("Region")]`.

    Proxies can then route and limit calls by it without reading bodies. The parameter is a string, an integer, a bool
    or a choice of those; if it may be None it needs a default. Never mark a secret: headers end up in logs.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Header({self.name!r})"

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """Add the keyword to the schema of a marked field of a pydantic model."""
        return {**handler(core_schema), ANNOTATION: self.name}


class HeaderProblem(ValueError):
    """An invalid annotation, for which clients drop the whole tool. `what` and `fix` are one sentence each."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}")
        self.what, self.fix = what, fix


_TOKEN_CHARACTERS: Final = frozenset("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
"""Characters of an HTTP header's name (RFC 9110, token)."""


def header_params(schema: dict[str, Any]) -> tuple[HeaderParam, ...]:
    """The arguments that an input schema marks with `x-mcp-header`. Raises HeaderProblem."""
    try:
        if ANNOTATION.encode() not in msgspec.json.encode(schema):
            return ()
    except (TypeError, ValueError, RecursionError):
        return ()  # not JSON: no client will get it, and sending it reports the error
    from longshore.protocol.http_headers import show_value
    from longshore.schema.walk import walk

    found: dict[bytes, HeaderParam] = {}
    for node in walk(schema):
        if is_object(node.schema) and ANNOTATION in node.schema:
            param = _param(node)
            other = found.setdefault(param.header, param)
            if other is not param:
                both = f"{'.'.join(other.path)!r} and {'.'.join(param.path)!r}"
                what = f"{both} have the same {ANNOTATION}, {show_value(node.schema[ANNOTATION])}"
                raise HeaderProblem(what, "give each its own; upper and lower case are the same there")
    return tuple(found.values())


def _param(node: Subschema) -> HeaderParam:
    from longshore.protocol.http_headers import PARAM, HeaderParam, show_value

    name, kind = node.schema[ANNOTATION], node.schema.get("type")
    path = tuple(str(step) for step in node.path[1::2])
    where = ".".join(path)
    if not path or any(keyword != "properties" for keyword in node.path[::2]):
        place = ".".join(str(step) for step in node.path if step != "properties") or "the root"
        what = f"an {ANNOTATION} stands at {place!r}, which is not a single argument"
        raise HeaderProblem(what, 'put it on a property that is reached through "properties" alone')
    if not isinstance(name, str) or not name or not _TOKEN_CHARACTERS.issuperset(name):
        what = f"the {ANNOTATION} of {where!r} is {show_value(name)}, which can't be part of a header's name"
        raise HeaderProblem(what, 'use letters, digits and dashes, such as "Region" for Mcp-Param-Region')
    if kind not in ("string", "integer", "boolean"):
        held = f"is of type {show_value(kind)}" if isinstance(kind, str) else "has no single type"
        fix = "make it a string, an integer or a boolean, nothing else; where it may be null, give it a default"
        raise HeaderProblem(f"{where!r} has an {ANNOTATION}, but {held}", fix)
    return HeaderParam(path, PARAM + name.lower().encode(), kind)
