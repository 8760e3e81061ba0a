"""Answers what servers ask their client: a question to the user, a model's message, the folders that it works in.

The same handlers answer a request of the handshake era and the questions inside a modern result. A kind without a
handler is not declared, so no server may ask it; a server that asks all the same is refused.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast, final

import msgspec
from msgspec import UNSET, Struct

from longshore.client.session import ClientSession
from longshore.client.tasks import end, name_of
from longshore.errors import Unanswerable
from longshore.protocol.content import Text
from longshore.protocol.questions import ElicitAnswer, Root, SampleAnswer
from longshore.schema.kinds import as_object, is_object
from longshore.wire.codec import BROKEN, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from longshore.wire.messages import Id, Message

REJECTED = -1
"""The code in the specification's examples for a user who says no."""
AT_ONCE = 64
"""Questions of a server that are answered at the same time; more are refused."""

Roots = Sequence[str | Root] | Callable[[], Any]
RelayQuestion = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
CALLBACKS = {
    "on_elicit": ("question",),
    "on_sample": ("params",),
    "roots": (),
    "on_log": ("message",),
    "on_change": ("change",),
    "on_progress": ("done", "total", "message"),
}
"""The arguments of a client's callbacks."""
_OPTIONS = {"elicitation/create": "on_elicit", "sampling/createMessage": "on_sample", "roots/list": "roots"}


def check_callbacks(given: Mapping[str, Any]) -> None:
    """Refuse callbacks with the wrong parameters. Raises RegistrationError."""
    for name, arguments in CALLBACKS.items():
        callback = given.get(name)
        if callback is not None and (name != "roots" or callable(callback)):
            from longshore.registry.function import check_callback

            check_callback(callback, name, *arguments)


class ElicitQuestion(Struct, frozen=True):
    """A question to the user. In `mode` "url" the server wants them to visit a page instead."""

    message: str
    schema: dict[str, Any] | None = None
    mode: str = "form"
    url: str | None = None
    id: str | None = None
    """The id by which a server of 2025-11-25 reports that the visit is complete."""


@final
class RequestHandlers:
    """The handlers of one client. `relay` answers what has no handler here, for a gateway."""

    def __init__(
        self,
        on_elicit: Callable[..., Any] | None,
        on_sample: Callable[..., Any] | None,
        roots: Roots | None,
        *,
        sample_tools: bool = False,
        relay: RelayQuestion | None = None,
    ) -> None:
        check_roots(roots)
        self._on_elicit, self._on_sample, self.roots = on_elicit, on_sample, roots
        given = {"elicitation/create": on_elicit, "sampling/createMessage": on_sample, "roots/list": roots}
        self.handled = frozenset(method for method, handler in given.items() if handler is not None)
        """The kinds of questions that there is a handler for."""
        self._sample_tools, self._relay = sample_tools, relay
        self._running: dict[tuple[ClientSession, Id], asyncio.Task[None]] = {}

    def capabilities(self) -> dict[str, Any]:
        """The capabilities to declare."""
        declared: dict[str, Any] = {}
        if self._on_elicit is not None:
            declared["elicitation"] = {"form": {}, "url": {}}
        if self._on_sample is not None:
            declared["sampling"] = {"tools": {}} if self._sample_tools else {}
        if self.roots is not None:
            declared["roots"] = {"listChanged": True}
        return declared

    async def answer(self, method: str, params: Mapping[str, Any]) -> Any:
        """The answer to one question. Raises Unanswerable, or what the handler raises."""
        if method == "elicitation/create" and self._on_elicit is not None:
            question = _read_question(params)
            return read_elicit(question, await _call(self._on_elicit, question))
        if method == "sampling/createMessage" and self._on_sample is not None:
            if not self._sample_tools and not {"tools", "toolChoice"}.isdisjoint(params):
                raise Unanswerable(INVALID_PARAMS, "the model has no tools here; they were not declared")
            return read_sample(await _call(self._on_sample, dict(params)))
        if method == "roots/list" and self.roots is not None:
            found = await _call(self.roots) if callable(self.roots) else self.roots
            return {"roots": [_root(each) for each in cast("Sequence[str | Root]", found)]}
        if self._relay is not None:
            return await self._relay(method, params)
        if method in _OPTIONS:
            what, options = f"the server asks {method}", (_OPTIONS[method],)
            raise Unanswerable(METHOD_NOT_FOUND, what, fix="give the client {}", options=options)
        raise Unanswerable(METHOD_NOT_FOUND, f"no method {method[:100]!r}")

    async def answer_all(self, questions: Mapping[str, Any]) -> dict[str, Any]:
        """The answers to all questions of a result, one after the other: a person reads one at a time."""
        answers: dict[str, Any] = {}
        for key, question in questions.items():
            if not is_object(question):
                raise Unanswerable(INVALID_PARAMS, f"the question {key[:100]!r} is no object")
            answers[key] = await self.answer(str(question.get("method")), as_object(question.get("params")))
        return answers

    # -- requests of the handshake era

    def take(self, session: ClientSession, message: Message) -> None:
        """Answer a request of the server's, in a task."""
        assert message.id is not UNSET
        key = (session, message.id)
        if message.method == "ping" and not session.channel.congested:
            session.answer(message.id, {})
        elif len(self._running) >= AT_ONCE:
            if session.channel.congested:  # it does not read its answers, so it gets none for further requests
                session.note(f"it asks on and on and does not read the answers: {message.method[:100]} was passed over")
            else:
                session.refuse(message.id, INTERNAL_ERROR, f"{AT_ONCE} questions are being answered; ask again later")
        elif key in self._running:
            session.note(f"it asks again under the id {message.id!r:.100}, which it has not got an answer for yet")
        else:
            task = asyncio.get_running_loop().create_task(self._work(session, message, message.id))
            self._running[key] = task
            task.add_done_callback(lambda _: self._running.pop(key, None))

    def on_cancelled(self, session: ClientSession, request: Id) -> None:
        """The server has cancelled a request of its own."""
        task = self._running.get((session, request))
        if task is not None:
            task.cancel()

    async def _work(self, session: ClientSession, message: Message, id: Id) -> None:
        answer: Any = {}
        try:
            params: Any = msgspec.json.decode(message.params)
            if message.method != "ping":
                session.clock.stop()  # deadlines stop: a person may take long, and the server waits for them
                try:
                    answer = await self.answer(message.method, params)
                finally:
                    session.clock.resume()
            if session.channel.congested:
                await session.channel.ready()
            session.answer(id, answer)  # raises for what is no JSON
            return
        except Unanswerable as problem:
            refusal = problem.code, problem.what
        except BROKEN as problem:
            refusal = INVALID_PARAMS, str(problem)[:200]
        except Exception as problem:
            session.note(f"the handler of {message.method} raised {problem!r}")
            refusal = INTERNAL_ERROR, f"the client failed to answer: {name_of(problem)}"
        if session.channel.congested:
            await session.channel.ready()
        session.refuse(id, *refusal)

    def on_lost(self, session: ClientSession) -> None:
        """Cancel the answers on a lost connection."""
        for (asker, _), task in self._running.items():
            if asker is session:
                task.cancel()

    async def close(self) -> None:
        await end(self._running.values())


async def _call(handler: Callable[..., Any], *arguments: Any) -> Any:
    found = handler(*arguments)
    return await found if inspect.isawaitable(found) else found


# -- roots


def check_roots(roots: Roots | None) -> None:
    """Raise ValueError for roots that are no folders. The result of a function is checked when it is called."""
    if roots is not None and not callable(roots):
        for each in roots:
            _root(each)


def _root(each: str | Root) -> dict[str, Any]:
    from pathlib import Path

    root = Root(each) if isinstance(each, str) else each
    uri = root.uri if "://" in root.uri else Path(root.uri).absolute().as_uri()
    if not uri.startswith("file://"):
        raise ValueError(f"a root is a folder: a path or file://…, not {uri[:100]!r}")
    return {"uri": uri} if root.name is None else {"uri": uri, "name": root.name}


# -- elicitation and sampling


def _read_question(params: Mapping[str, Any]) -> ElicitQuestion:
    mode, url = params.get("mode", "form"), params.get("url")
    if mode not in ("form", "url"):
        raise Unanswerable(INVALID_PARAMS, f"no way to ask {str(mode)[:50]!r}; form or url")
    if mode == "url" and not (isinstance(url, str) and url.lower().startswith(("https://", "http://"))):
        raise Unanswerable(INVALID_PARAMS, f"a page to visit begins with https://, not {str(url)[:50]!r}")
    schema, id = params.get("requestedSchema"), params.get("elicitationId")
    return ElicitQuestion(
        message=str(params.get("message", "")),
        schema=schema if is_object(schema) else None,
        mode=mode,
        url=url if mode == "url" else None,
        id=id if mode == "url" and isinstance(id, str) else None,
    )


def read_elicit(question: ElicitQuestion, given: Any) -> dict[str, Any]:
    """A handler's answer, as the protocol writes it.

    True accepts with the form's defaults, and ticks a form's only box; a dict accepts with these values and the
    defaults of the rest; False declines; None cancels.
    """
    if isinstance(given, ElicitAnswer):
        if given.action != "accept":
            return {"action": given.action}
        given = True if given.value is None else given.value
    if given is None:
        return {"action": "cancel"}
    if given is False:
        return {"action": "decline"}
    if question.mode == "url":
        return {"action": "accept"}
    fields = as_object((question.schema or {}).get("properties"))
    content: Any = _ticked(fields) if given is True else msgspec.to_builtins(given)
    if not is_object(content):
        if len(fields) != 1:
            raise TypeError(f"on_elicit gives a dict of {', '.join(fields)}, True, False or None, not {given!r}")
        content = dict.fromkeys(fields, content)
    return {"action": "accept", "content": {**_defaults(fields), **content}}


def _ticked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The content that accepts a form: if the form has only one box, it is ticked."""
    boxes = {name: True for name, each in fields.items() if is_object(each) and each.get("type") == "boolean"}
    return boxes if len(fields) == 1 and not _defaults(fields) else {}


def _defaults(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each["default"] for name, each in fields.items() if is_object(each) and "default" in each}


def read_sample(given: Any) -> Any:
    """A handler's message of the model: a text, or the whole result; None: the user refused."""
    if given is None:
        raise Unanswerable(REJECTED, "the user rejected it")
    if isinstance(given, str):
        return {"role": "assistant", "content": Text(given), "model": "unknown", "stopReason": "endTurn"}
    if isinstance(given, SampleAnswer):
        plain: dict[str, Any] = msgspec.to_builtins(given)
        return {key: value for key, value in plain.items() if value is not None}
    if is_object(given) and {"role", "content", "model"} <= given.keys():
        return given
    raise TypeError("on_sample gives a text, a SampleAnswer, or a dict with role, content and model")
