"""Questions to the client: elicitation, sampling and roots, as records that both eras can send and read back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from longshore.errors import CapabilityMissing, ToolError
from longshore.protocol.content import Text
from longshore.protocol.peer import Peer
from longshore.protocol.revisions import ELICITATION, R2511, R2607, TITLED_CHOICES, URL_ELICITATION


class Elicit(Struct, frozen=True):
    """Ask the person. `type` is a bool, str, number, Literal, enum or a flat record of those; with `url`, a visit.

    `schema` overrides what follows from `type`. Never ask for a secret by a form: send a `url`.
    """

    message: str
    """The question, for the person."""
    type: Any = bool
    """What is asked for."""
    url: str | None = None
    """A page that the person is asked to visit instead."""
    schema: dict[str, Any] | None = None
    """The form, in place of the one that follows from `type`."""


class Sample(Struct, frozen=True):
    """Ask the client's model."""

    prompt: str | list[Any]
    """A text, or messages as MCP writes them."""
    max_tokens: int = 1000
    """The most that the answer may have."""
    system: str | None = None
    """The system prompt."""
    temperature: float | None = None
    """How varied the answer is; None: the client decides."""
    stop: list[str] | None = None
    """Texts at which the answer ends."""
    preferences: dict[str, Any] | None = None
    """`modelPreferences`: hints which model to take."""
    tools: list[dict[str, Any]] | None = None
    """Tools that the model may call."""
    tool_choice: dict[str, Any] | None = None
    """Whether it must call one of them."""
    metadata: dict[str, Any] | None = None
    """For the client's provider."""


class ListRoots(Struct, frozen=True):
    """Ask for the folders that the client works in."""


Question = Elicit | Sample | ListRoots


class Ask:
    """Marks a parameter that is asked for before the body runs: `ok: Annotated[bool, Ask("Refund {order}?")]`.

    `{name}` in the text is filled with the call's own arguments. A parameter with a default takes it when the person
    declines or the client can't ask; without one the call ends with an error.
    """

    __slots__ = ("question", "url")

    def __init__(self, question: str | Question, *, url: str | None = None) -> None:
        self.question = question
        self.url = url


class ElicitAnswer(Struct, frozen=True):
    """The person's action, and the value if they gave one."""

    action: Literal["accept", "decline", "cancel"]
    value: Any = None

    @property
    def accepted(self) -> bool:
        """Whether the person said yes."""
        return self.action == "accept"


class SampleAnswer(Struct, rename="camel"):
    """The answer of the client's model."""

    role: Literal["user", "assistant"]
    content: Any
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        blocks: list[Any] = self.content if isinstance(self.content, list) else [self.content]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        return "".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]


class Root(Struct):
    """A folder that the client works in."""

    uri: str
    name: str | None = None


class AnswersByName(dict[str, Any]):
    """Answers by name, as items and as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class _ElicitResult(Struct):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class _RootsResult(Struct):
    roots: list[Root]


def require(question: Question, peer: Peer) -> None:
    """Refuse a question of a kind or mode that the client did not declare."""
    match question:
        case Elicit(url=None):
            declared = peer.capabilities.get("elicitation")
            form = isinstance(declared, dict) and ("form" in declared or "url" not in declared)
            _need(form and peer.revision.index >= ELICITATION, "ask the person", {"elicitation": {"form": {}}})
        case Elicit():
            able = peer.can("elicitation", "url") and peer.revision.index >= URL_ELICITATION
            _need(able, "send the person to a page", {"elicitation": {"url": {}}})
        case Sample(tools=tools, tool_choice=choice):
            _need(peer.can("sampling"), "ask its model", {"sampling": {}})
            if tools or choice:
                _need(peer.can("sampling", "tools"), "let its model use tools", {"sampling": {"tools": {}}})
        case ListRoots():
            _need(peer.can("roots"), "list its roots", {"roots": {}})


def _need(able: bool, what: str, required: dict[str, Any]) -> None:
    if not able:
        raise CapabilityMissing(f"this client did not declare that it can {what}", required)


def render(question: Question, peer: Peer, form: dict[str, Any] | None, elicitation_id: str) -> dict[str, Any]:
    """The request as the peer's revision writes it: `{"method": …, "params": …}`. `form` is the schema of an Elicit."""
    match question:
        case Elicit(url=None):
            params: dict[str, Any] = {"message": question.message, "requestedSchema": form}
            if peer.revision.index >= R2511:
                params = {"mode": "form", **params}
            return {"method": "elicitation/create", "params": params}
        case Elicit():
            params = {"mode": "url", "message": question.message, "url": question.url}
            if peer.revision.index < R2607:
                params["elicitationId"] = elicitation_id
            return {"method": "elicitation/create", "params": params}
        case Sample():
            return {"method": "sampling/createMessage", "params": _sample_params(question)}
        case ListRoots():
            return {"method": "roots/list", "params": {}}


def _sample_params(question: Sample) -> dict[str, Any]:
    prompt = question.prompt
    messages = [{"role": "user", "content": Text(prompt)}] if isinstance(prompt, str) else _check_balance(prompt)
    params: dict[str, Any] = {"messages": messages, "maxTokens": question.max_tokens}
    optional = {
        "systemPrompt": question.system,
        "temperature": question.temperature,
        "stopSequences": question.stop,
        "modelPreferences": question.preferences,
        "tools": question.tools,
        "toolChoice": question.tool_choice,
        "metadata": question.metadata,
    }
    return params | {name: value for name, value in optional.items() if value is not None}


def _check_balance(messages: list[Any]) -> list[Any]:
    """Every tool_use is answered by the very next message, which holds nothing but tool_results."""
    owed: set[str] = set()
    for message in [*messages, None]:
        blocks = [] if message is None else _blocks(message)
        given = {str(block.get("toolUseId")) for block in blocks if block.get("type") == "tool_result"}
        if given != owed or (given and len(given) != len(blocks)):
            raise ToolError(
                "sampling: the message after a tool_use holds its tool_results, all of them and nothing else"
            )
        owed = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
    return messages


def _blocks(message: Any) -> list[dict[str, Any]]:
    content = msgspec.to_builtins(message).get("content")
    return cast(list[dict[str, Any]], content if isinstance(content, list) else [content])


# Names of form fields that ask for what must not pass through a client. Whole words of the name are compared.
_SECRET_WORDS = frozenset(
    ("password", "passwd", "passphrase", "secret", "apikey", "token", "credential", "credentials", "cvv", "cvc", "ssn")
)
_SECRET_NAMES = frozenset(("api_key", "access_key", "private_key", "card_number", "credit_card", "pin_code"))


def refuse_secrets(form: dict[str, Any]) -> None:
    """Refuse a form that asks for a secret: the client and its log would show it."""
    for name in form.get("properties", {}):
        plain = name.lower().replace("-", "_")
        if plain in _SECRET_NAMES or plain.split("_")[-1] in _SECRET_WORDS:
            raise ToolError(
                f"a form can't ask for {name!r}: secrets must not pass through the client; send a url instead"
            )


def read_answer(question: Question, key: str, raw: Any, wrapped: bool, convert: Callable[[Any, Any], Any]) -> Any:
    """Convert a client's answer to the handler's type. Raises msgspec.ValidationError.

    `wrapped`: the value is the one field `key` of the form.
    """
    match question:
        case Elicit():
            return _read_elicit(question, key, msgspec.convert(raw, _ElicitResult), wrapped, convert)
        case Sample():
            return msgspec.convert(raw, SampleAnswer)
        case ListRoots():
            return msgspec.convert(raw, _RootsResult).roots


def _read_elicit(
    question: Elicit, key: str, result: _ElicitResult, wrapped: bool, convert: Callable[[Any, Any], Any]
) -> ElicitAnswer:
    if result.action != "accept":
        return ElicitAnswer(result.action)
    if question.url is not None:
        return ElicitAnswer("accept", True)
    content: Any = result.content or {}
    if question.schema is not None:
        return ElicitAnswer("accept", content)
    if wrapped:
        content = content.get(key)
    return ElicitAnswer("accept", convert(content, question.type))


def lower_form(form: dict[str, Any], peer: Peer) -> dict[str, Any]:
    """The form for a revision: up to 2025-06-18 a choice has no title and only a bool has a default."""
    if peer.revision.index >= TITLED_CHOICES:
        return form
    several = [name for name, field in form.get("properties", {}).items() if field.get("type") == "array"]
    _need(not several, f"ask for several choices at once ({', '.join(several)})", {"elicitation": {"form": {}}})
    properties = {name: _lower_field(field) for name, field in form.get("properties", {}).items()}
    return {**form, "properties": properties}


def _lower_field(field: dict[str, Any]) -> dict[str, Any]:
    lowered = dict(field)
    if field.get("type") != "boolean":
        lowered.pop("default", None)
    choices = lowered.pop("oneOf", None)
    if choices:
        lowered["enum"] = [choice["const"] for choice in choices]
        lowered["enumNames"] = [choice.get("title", choice["const"]) for choice in choices]
    return lowered
