"""The JSON-RPC transport of BrowserOS: a server of one's own tools, and the messages. Loaded when they are used.

`python -m browseros.mcp.server` serves the tools `browser`, `filesystem` and `terminal`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from browseros.mcp.jsonrpc_server import MCPJsonRpcServer as MCPJsonRpcServer
    from browseros.mcp.jsonrpc_server import create_stdio_server as create_stdio_server
    from browseros.mcp.messages import JsonRpcError as JsonRpcError
    from browseros.mcp.messages import JsonRpcErrorCode as JsonRpcErrorCode
    from browseros.mcp.messages import JsonRpcRequest as JsonRpcRequest
    from browseros.mcp.messages import JsonRpcResponse as JsonRpcResponse

_MODULES = {
    "MCPJsonRpcServer": "jsonrpc_server",
    "create_stdio_server": "jsonrpc_server",
    "JsonRpcError": "messages",
    "JsonRpcErrorCode": "messages",
    "JsonRpcRequest": "messages",
    "JsonRpcResponse": "messages",
}
__all__ = [*_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"browseros.mcp.{_MODULES[name]}"), name)
