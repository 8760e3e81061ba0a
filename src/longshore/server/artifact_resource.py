"""The resource template by which clients read artifacts. It is made at the start, so it imports what it needs later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from longshore.registry.tool import Entry, report_problem

if TYPE_CHECKING:
    from longshore.registry.resource import ReadRequest
    from longshore.server.call import Call

ARTIFACTS: Final = "artifact://{id}/{name}{?offset,length}"
_ABOUT: Final = (
    "Files that tools of this server have made for you, each named by a resource_link in a tool's result. "
    "A long one is read in parts: offset and length are in bytes."
)


@final
class _Template:
    """The template, parsed when a URI is first compared with it."""

    def match(self, uri: str) -> dict[str, str] | None:
        if not uri.startswith("artifact:"):
            return None
        from longshore.registry.resource import Template

        return Template(ARTIFACTS).match(uri)


def artifact_entry() -> Entry:
    """The entry of the artifacts of a server."""
    return Entry(
        kind="resource",
        name="artifact",
        where=__name__,
        run="thread",
        uri=ARTIFACTS,
        template=_Template(),
        decode=_decode,
        invoke=_read,
        render=lambda contents, _: {"contents": contents},
        explain=report_problem,
        describe=lambda: {"name": "artifact", "uriTemplate": ARTIFACTS, "description": _ABOUT},
        keeps_frame=False,
    )


def _decode(request: ReadRequest) -> ReadRequest:
    """The request, with `offset` and `length` as numbers."""
    from longshore.sandbox.artifacts import READ_BYTES

    values = request.values
    request.values = {
        **values,
        "offset": _number(values, "offset", 0),
        "length": _number(values, "length", READ_BYTES),
    }
    return request


def _number(values: dict[str, str], name: str, default: int) -> int:
    text = values.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 15) or (name == "length" and int(text) == 0):
        from longshore.errors import ProtocolError
        from longshore.wire.codec import INVALID_PARAMS

        least = 1 if name == "length" else 0
        raise ProtocolError(
            INVALID_PARAMS, f"{name}={text[:100]!r} of an artifact is no number of bytes from {least} on"
        )
    return int(text)


def _read(request: ReadRequest, call: Call) -> Any:
    return call.executor.files.read(call, **request.values)
