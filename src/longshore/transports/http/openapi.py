"""The REST routes, described as OpenAPI 3.1: one operation per tool, with the tool's own schemas."""

from __future__ import annotations

from typing import Any, Final

from longshore.config import Config
from longshore.protocol.peer import Principal
from longshore.registry.tool import Entry
from longshore.schema.rewrite import move_references
from longshore.server.engine import Engine

Json = dict[str, Any]

VERSION: Final = "3.1.0"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"""The dialect of every schema in OpenAPI 3.1 that names none."""

_FAILURES: Final = {
    "400": ("BadArguments", "The body is not a JSON object, or not what the tool takes."),
    "401": ("Unauthorized", "There is no credential, or not a good one."),
    "403": ("Forbidden", "The credential lacks a scope that the tool needs; WWW-Authenticate names them."),
    "422": ("Question", "The tool asks its caller something, which only MCP can pass on."),
    "429": ("TooOften", "The tool was called too often; Retry-After says when to try again."),
    "500": ("Failed", "The tool failed."),
    "503": ("Busy", "Too many calls are running, or the server is shutting down."),
    "504": ("TimedOut", "The tool did not finish in its time."),
}
_ALWAYS: Final = ("400", "429", "500", "503", "504")

_TIMES: Final[Json] = {
    "executionTime": {"type": "number", "description": "Milliseconds."},
    "timestamp": {"type": "string", "format": "date-time"},
}
_SCHEMAS: Final[Json] = {
    "Failure": {
        "type": "object",
        "properties": {
            "success": {"const": False},
            "error": {
                "type": "object",
                "properties": {
                    "kind": {"type": "string", "description": "Why, in a word that does not change."},
                    "message": {"type": "string", "description": "Why, and what to do."},
                },
                "required": ["message"],
            },
            "data": {"description": "What the tool returned beside its text, if it did."},
            **_TIMES,
        },
        "required": ["error"],
    },
    "Success": {
        "type": "object",
        "properties": {
            "success": {"const": True},
            "data": {"description": "The structured content, else the text, else null."},
            "content": {
                "type": "array",
                "description": "The content blocks, as MCP has them.",
                "items": {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
            },
            **_TIMES,
        },
        "required": ["success", "data", "content", "executionTime", "timestamp"],
    },
    "Tool": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "title": {"type": "string"},
            "description": {"type": "string"},
            "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"},
            "annotations": {"type": "object"},
        },
        "required": ["name", "inputSchema"],
    },
    "Tools": {
        "type": "object",
        "properties": {"tools": {"type": "array", "items": {"$ref": "#/components/schemas/Tool"}}},
        "required": ["tools"],
    },
}


def describe(engine: Engine, config: Config, has_credentials: bool, root: str, principal: Principal) -> Json:
    """The document for one caller. `root` is the path that the app is mounted at."""
    server, public, auth = engine.server_info, config.http.public_url, config.auth
    schemes: Json = {}  # the ways to send a credential
    if has_credentials:
        schemes["bearer"] = {"type": "http", "scheme": "bearer"}
        if auth.key_header:
            schemes["apiKey"] = {"type": "apiKey", "in": "header", "name": auth.key_header}
        if auth.cookie:
            schemes["cookie"] = {"type": "apiKey", "in": "cookie", "name": auth.cookie}
    listed: Json = {"200": _json_response("The tools.", {"$ref": "#/components/schemas/Tools"})}
    if schemes:
        listed["401"] = _failure_ref("401")
    schemas: Json = dict(_SCHEMAS)
    # Without an operationId: any could be a tool's name.
    paths: Json = {"/tools": {"get": {"summary": "List the tools", "responses": listed}}}
    for tool in engine.lists.tools(principal):
        operation = _operation(engine.tools[tool["name"]], tool, schemas, list(schemes))
        paths[f"/tools/{tool['name']}"] = {"post": operation}
    failed = {"$ref": "#/components/schemas/Failure"}
    document: Json = {
        "openapi": VERSION,
        "info": {"title": server.get("title") or server["name"], "version": server["version"]},
        "servers": [{"url": (public.rstrip("/").removesuffix(config.http.path) + root if public else root) or "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {name: _json_response(text, failed) for name, text in _FAILURES.values()},
        },
    }
    if "description" in server:
        document["info"]["description"] = server["description"]
    if schemes:
        document["components"]["securitySchemes"] = schemes
        document["security"] = [{name: []} for name in schemes]
    return document


def _operation(entry: Entry, tool: Json, schemas: Json, schemes: list[str]) -> Json:
    taken = _place(schemas, f"{entry.name}.input", tool["inputSchema"])
    envelope: Json = {"$ref": "#/components/schemas/Success"}
    if "outputSchema" in tool:
        data = _place(schemas, f"{entry.name}.output", tool["outputSchema"])
        envelope = {"allOf": [envelope, {"type": "object", "properties": {"data": data}}]}
    statuses = {*_ALWAYS}
    if schemes:
        statuses |= {"401", "403"} if entry.needed else {"401"}
    if entry.asked or entry.replay:
        statuses.add("422")
    operation: Json = {
        "operationId": entry.name,
        "summary": tool.get("title") or entry.name,
        "requestBody": {
            "required": bool(tool["inputSchema"].get("required")),
            "content": {"application/json": {"schema": taken}},
        },
        "responses": {
            "200": _json_response("The result.", envelope),
            **{status: _failure_ref(status) for status in sorted(statuses)},
            "default": _failure_ref("500"),
        },
    }
    if "description" in tool:
        operation["description"] = tool["description"]
    if entry.category:
        operation["tags"] = [entry.category]
    if entry.needed and schemes:
        operation["security"] = [{name: sorted(entry.needed)} for name in schemes]
    return operation


def _place(schemas: Json, name: str, schema: Json) -> Json:
    """Add a tool's schema to the components. Returns the reference to it."""
    where = f"#/components/schemas/{name}"
    schemas[name] = moved = {**move_references(schema, where)}
    if str(moved.get("$schema")).rstrip("#") == _DIALECT:
        del moved["$schema"]
    return {"$ref": where}


def _failure_ref(status: str) -> Json:
    return {"$ref": f"#/components/responses/{_FAILURES[status][0]}"}


def _json_response(text: str, schema: Json) -> Json:
    return {"description": text, "content": {"application/json": {"schema": schema}}}
