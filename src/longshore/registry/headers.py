"""Which arguments of a tool its clients repeat in headers, worked out once, when the tool is declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from longshore.protocol.annotation import ANNOTATION
from longshore.protocol.headers import HeaderParam, HeaderProblem, header_params
from longshore.registry.where import refuse
from longshore.schema.signature import Signature


def schema_headers(fn: Callable[..., Any], schema: dict[str, Any]) -> tuple[HeaderParam, ...]:
    """Those that an input schema names. Clients drop a tool that names them wrongly, so it is refused here."""
    try:
        return header_params(schema)
    except HeaderProblem as problem:
        refuse(fn, problem.what, problem.fix)


def signature_headers(
    fn: Callable[..., Any], signature: Signature, describe: Callable[[], dict[str, Any]]
) -> tuple[HeaderParam, ...]:
    """Those that a signature names, in its parameters or in the records that they hold."""
    for parameter in signature.asked:
        if ANNOTATION in (parameter.extra or {}):
            refuse(fn, f"{parameter.name!r} is asked of the client, so no request has it", "leave Header or Ask out")
    try:
        schema = describe()["inputSchema"]
    except Exception:
        return ()  # a foreign type without a schema: the list will say so, and no client can know of a header before
    return schema_headers(fn, schema)
