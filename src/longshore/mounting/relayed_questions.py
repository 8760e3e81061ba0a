"""Questions of a mounted server as questions of ours. They name the server for the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from longshore.errors import CapabilityMissing, ToolError
from longshore.mounting.entries import visible, visible_in
from longshore.protocol.peer import Peer
from longshore.protocol.questions import (
    Elicit,
    ElicitAnswer,
    ListRoots,
    Question,
    Root,
    Sample,
    SampleAnswer,
    require,
)
from longshore.schema.kinds import is_object

MESSAGE_CHARACTERS = 4000
"""Characters of a question to a person. The rest is cut."""
RELAYED: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
"""The capabilities declared to a server of the handshake era: once, for all callers to come."""
_KINDS: tuple[tuple[Question, str, str], ...] = (
    (Elicit(""), "elicitation", "form"),
    (Elicit("", url="https:"), "elicitation", "url"),
    (Sample(""), "sampling", ""),
    (ListRoots(), "roots", ""),
)
"""The kinds of questions, each with the capability for it."""
_SAMPLE = {
    "messages": "prompt",
    "maxTokens": "max_tokens",
    "systemPrompt": "system",
    "temperature": "temperature",
    "stopSequences": "stop",
    "modelPreferences": "preferences",
    "tools": "tools",
    "toolChoice": "tool_choice",
    "metadata": "metadata",
}


class _Choice(Struct):
    const: str


class _Field(Struct, rename="camel"):
    """The part of a form's field that is read here. The client checks the rest."""

    type: str = "string"
    title: str = ""
    description: str = ""
    one_of: list[_Choice] = []


class _Form(Struct):
    properties: dict[str, _Field] = {}


class _Message(Struct):
    role: Literal["user", "assistant"]
    content: dict[str, Any] | list[dict[str, Any]]


def capabilities_of(peer: Peer) -> dict[str, Any]:
    """The capabilities of a caller, as the stateless era declares them."""
    able: dict[str, Any] = {}
    for question, name, mode in _KINDS:
        try:
            require(question, peer)
        except CapabilityMissing:
            continue
        able.setdefault(name, {}).update({mode: {}} if mode else {})
    if "sampling" in able and peer.can("sampling", "tools"):
        able["sampling"] = {"tools": {}}
    return able


def read_question(prefix: str, method: str, params: Mapping[str, Any]) -> Question:
    """A question of a mounted server; without a prefix, of a tool of ours. Raises ToolError if it can't be asked."""
    try:
        match method:
            case "elicitation/create":
                return _read_elicit(prefix, params)
            case "sampling/createMessage":
                msgspec.convert(params.get("messages"), list[_Message])
                fields = {ours: params[theirs] for theirs, ours in _SAMPLE.items() if theirs in params}
                sample = msgspec.convert(fields, Sample)
                if not prefix:
                    return sample
                return msgspec.structs.replace(sample, metadata={**(sample.metadata or {}), "longshore/mount": prefix})
            case "roots/list":
                return ListRoots()
            case _:
                raise ToolError(f"{prefix} asks {method[:100]!r}, which nobody here can answer")
    except msgspec.ValidationError as problem:
        raise ToolError(f"{prefix} asks by a {method} that can't be read: {problem}") from None


def _read_elicit(prefix: str, params: Mapping[str, Any]) -> Elicit:
    text = visible(str(params.get("message", "")))[:MESSAGE_CHARACTERS]
    message = f"[{prefix}] {text}" if prefix else text
    if params.get("mode") == "url":
        url = params.get("url")
        if not isinstance(url, str) or not url.startswith(("https://", "http://")):
            raise ToolError(f"{prefix} wants to send the person to {str(url)[:100]!r}, which is no web page")
        return Elicit(message, url=url)
    form: Any = params.get("requestedSchema")
    msgspec.convert(form, _Form)
    return Elicit(message, schema=visible_in(form))


def write_answer(answer: Any) -> dict[str, Any]:
    """The caller's answer, in the form for the mounted server."""
    if isinstance(answer, ElicitAnswer):
        filled: Any = answer.value
        content = {"content": filled} if answer.action == "accept" and is_object(filled) else {}
        return {"action": answer.action, **content}
    if isinstance(answer, SampleAnswer):
        whole: dict[str, Any] = msgspec.to_builtins(answer)
        return {key: value for key, value in whole.items() if value is not None}
    roots = cast("list[Root]", answer)
    return {"roots": [{"uri": each.uri} | ({"name": each.name} if each.name else {}) for each in roots]}
