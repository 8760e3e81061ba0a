"""The messages of JSON-RPC 2.0, for clients."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Self

from msgspec import UNSET, Struct, UnsetType, convert, to_builtins

from longshore.dialects import browseros
from longshore.wire import codec


class JsonRpcErrorCode(IntEnum):
    """The codes of errors."""

    PARSE_ERROR = codec.PARSE_ERROR
    INVALID_REQUEST = codec.INVALID_REQUEST
    METHOD_NOT_FOUND = codec.METHOD_NOT_FOUND
    INVALID_PARAMS = codec.INVALID_PARAMS
    INTERNAL_ERROR = codec.INTERNAL_ERROR
    TOOL_NOT_FOUND = browseros.TOOL_NOT_FOUND
    TOOL_EXECUTION_ERROR = browseros.EXECUTION_ERROR
    TOOL_TIMEOUT = browseros.TIMEOUT
    PERMISSION_DENIED = browseros.PERMISSION_DENIED


class _Message(Struct, kw_only=True):
    def to_dict(self) -> dict[str, Any]:
        """The message as JSON has it, without fields that are not set."""
        made: dict[str, Any] = to_builtins(self)
        return made

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """A message from JSON. Raises msgspec.ValidationError if it is none."""
        return convert(fields, cls)


class JsonRpcRequest(_Message):
    """A request; without an id, a notification."""

    method: str
    params: dict[str, Any] | UnsetType = UNSET
    id: str | int | UnsetType = UNSET
    jsonrpc: str = "2.0"

    def __post_init__(self) -> None:
        if not isinstance(self.params, (dict, UnsetType)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("params: a dict is needed; MCP has no parameters by position")


class JsonRpcError(_Message):
    """The error of a response."""

    code: int
    message: str
    data: Any = UNSET


class JsonRpcResponse(_Message):
    """A response: a result or an error."""

    result: Any = UNSET
    error: JsonRpcError | UnsetType = UNSET
    id: str | int | None = None
    jsonrpc: str = "2.0"
