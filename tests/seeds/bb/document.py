"""The examples of the document of bb-mcp-server, as records. Each has the line of the document where it begins."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

INITIALIZE: Final[Json] = {  # line 103
    "jsonrpc": "2.0",
    "method": "initialize",
    "params": {"protocolVersion": "1.0", "clientInfo": {"name": "claude-code", "version": "1.0.0"}},
    "id": 1,
}
INITIALIZED: Final[Json] = {  # line 125
    "jsonrpc": "2.0",
    "result": {
        "protocolVersion": "1.0",
        "serverInfo": {"name": "bb-mcp-server", "version": "0.1.0"},
        "capabilities": {"tools": True, "dynamicToolRegistration": False},
    },
    "id": 1,
}
LIST: Final[Json] = {"jsonrpc": "2.0", "method": "tools/list", "params": {}, "id": 2}  # line 162
LISTED: Final[Json] = {  # line 173
    "jsonrpc": "2.0",
    "result": {
        "tools": [
            {
                "name": "hello",
                "description": "Returns a greeting message",
                "inputSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "description": "Name to greet"}},
                    "required": ["name"],
                },
            }
        ]
    },
    "id": 2,
}
CALL: Final[Json] = {  # line 215
    "jsonrpc": "2.0",
    "method": "tools/call",
    "params": {"name": "hello", "arguments": {"name": "World"}},
    "id": 3,
}
CALLED: Final[Json] = {  # line 234
    "jsonrpc": "2.0",
    "result": {"content": [{"type": "text", "text": "Hello, World!"}]},
    "id": 3,
}
FAILED: Final[Json] = {  # line 263; the exception and its trace are those of the tool
    "jsonrpc": "2.0",
    "error": {
        "code": -32001,
        "message": "Tool execution failed",
        "data": {"tool": "hello", "error": "NullPointerException: name cannot be null", "stacktrace": "..."},
    },
    "id": 3,
}
MESSAGES: Final = {  # lines 77 and 87
    -32700: "Parse error",
    -32600: "Invalid Request",
    -32601: "Method not found",
    -32602: "Invalid params",
    -32603: "Internal error",
    -32000: "Tool not found",
    -32001: "Tool execution failed",
    -32002: "Invalid tool params",
    -32003: "Server not initialized",
}
