"""What servers ask of their client: a person's answer, a model's, the folders that it works in. In both eras.

The same handlers answer a request of the handshake era and the questions inside a modern result. A kind that has no
handler is not declared, so no server may ask it; one that asks all the same is told so.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast, final

import msgspec
from msgspec import UNSET, Struct

from longshore.client.session import Session
from longshore.client.tasks import end
from longshore.client.threads import name_of
from longshore.errors import Unanswerable
from longshore.protocol.content import Text
from longshore.protocol.questions import ElicitAnswer, Root, SampleAnswer
from longshore.schema.kinds import is_object
from longshore.wire.codec import BROKEN, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from longshore.wire.messages import Id, Message

REJECTED = -1
"""The code for it that the specification's examples have."""
AT_ONCE = 64
"""Questions of a server that are worked on at the same time; more are refused."""

Roots = Sequence[str | Root] | Callable[[], Any]
CALLBACKS = {
    "on_elicit": ("question",),
    "on_sample": ("params",),
    "roots": (),
    "on_log": ("message",),
    "on_change": ("change",),
    "on_progress": ("done", "total", "message"),
}
"""What a client's callbacks are called with."""


def check_callbacks(given: Mapping[str, Any]) -> None:
    """Refuse callbacks that can't be called as they will be. Raises RegistrationError."""
    for name, arguments in CALLBACKS.items():
        callback = given.get(name)
        if callback is not None and (name != "roots" or callable(callback)):
            from longshore.registry.arity import check_callback

            check_callback(callback, name, *arguments)


class ElicitQuestion(Struct, frozen=True):
    """What a server wants to know of the person. In `mode` "url" it wants them to visit a page instead."""

    message: str
    schema: dict[str, Any] | None = None
    mode: str = "form"
    url: str | None = None
    id: str | None = None
    """Of a visit, by which servers of 2025-11-25 tell that it is over."""


@final
class Answering:
    """The handlers of one client."""

    def __init__(
        self,
        on_elicit: Callable[..., Any] | None,
        on_sample: Callable[..., Any] | None,
        roots: Roots | None,
        *,
        sample_tools: bool = False,
    ) -> None:
        self._on_elicit, self._on_sample, self.roots = on_elicit, on_sample, roots
        self._sample_tools = sample_tools
        check_roots(roots)
        self._running: dict[tuple[int, Id], asyncio.Task[None]] = {}
        self.relay: Callable[[str, Mapping[str, Any]], Awaitable[Any]] | None = None
        """Answers what no handler here does, for who stands between the server and its real client."""

    def handles(self, method: str) -> bool:
        """Whether there is a handler for this kind of question."""
        handlers = {
            "elicitation/create": self._on_elicit,
            "sampling/createMessage": self._on_sample,
            "roots/list": self.roots,
        }
        return handlers.get(method) is not None

    def capabilities(self) -> dict[str, Any]:
        """What to declare."""
        declared: dict[str, Any] = {}
        if self._on_elicit is not None:
            declared["elicitation"] = {"form": {}, "url": {}}
        if self._on_sample is not None:
            declared["sampling"] = {"tools": {}} if self._sample_tools else {}
        if self.roots is not None:
            declared["roots"] = {"listChanged": True}
        return declared

    async def answer(self, method: str, params: Mapping[str, Any]) -> Any:
        """The answer to one question. Raises Unanswerable, or whatever the handler raises."""
        if method == "elicitation/create" and self._on_elicit is not None:
            return await self._elicit(params)
        if method == "sampling/createMessage" and self._on_sample is not None:
            if not self._sample_tools and not {"tools", "toolChoice"}.isdisjoint(params):
                raise Unanswerable(INVALID_PARAMS, "the model has no tools here; they were not declared")
            return read_sample(await _call(self._on_sample, dict(params)))
        if method == "roots/list" and self.roots is not None:
            found = await _call(self.roots) if callable(self.roots) else self.roots
            return {"roots": [_root(each) for each in cast("Sequence[str | Root]", found)]}
        if self.relay is not None:
            return await self.relay(method, params)
        how = {"elicitation/create": "on_elicit", "sampling/createMessage": "on_sample", "roots/list": "roots"}
        if method in how:
            raise Unanswerable(
                METHOD_NOT_FOUND, f"the server asks {method}", fix="give the client {}", options=(how[method],)
            )
        raise Unanswerable(METHOD_NOT_FOUND, f"no method {method[:100]!r}")

    @property
    def elicits(self) -> bool:
        return self._on_elicit is not None

    async def answer_all(self, questions: Mapping[str, Any]) -> dict[str, Any]:
        """The answers to all questions of a result, asked one after the other: a person reads one at a time."""
        answers: dict[str, Any] = {}
        for key, question in questions.items():
            if not isinstance(question, dict):
                raise Unanswerable(INVALID_PARAMS, f"the question {key[:100]!r} is no object")
            asked = cast("dict[str, Any]", question)
            params = asked.get("params")
            given: dict[str, Any] = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
            answers[key] = await self.answer(str(asked.get("method")), given)
        return answers

    async def _elicit(self, params: Mapping[str, Any]) -> dict[str, Any]:
        assert self._on_elicit is not None
        mode, url = params.get("mode", "form"), params.get("url")
        if mode not in ("form", "url"):
            raise Unanswerable(INVALID_PARAMS, f"no way to ask {str(mode)[:50]!r}; form or url")
        if mode == "url" and not (isinstance(url, str) and url.lower().startswith(("https://", "http://"))):
            raise Unanswerable(INVALID_PARAMS, f"a page to visit begins with https://, not {str(url)[:50]!r}")
        schema, visit = params.get("requestedSchema"), params.get("elicitationId")
        question = ElicitQuestion(
            message=str(params.get("message", "")),
            schema=schema if is_object(schema) else None,
            mode=mode,
            url=url if mode == "url" else None,
            id=visit if mode == "url" and isinstance(visit, str) else None,
        )
        return read_elicit(question, await _call(self._on_elicit, question))

    # -- requests of the handshake era

    def take(self, session: Session, message: Message) -> None:
        """A request of the server's: answer it, in its own time."""
        assert message.id is not UNSET
        id = message.id
        if message.method == "ping" and not session.stalled:
            session.answer(id, {})
            return
        if len(self._running) >= AT_ONCE:
            if session.stalled:  # it does not read its answers, so it gets no more of them
                session.note(f"it asks on and on and does not read the answers: {message.method[:100]} was passed over")
            else:
                session.refuse(id, INTERNAL_ERROR, f"{AT_ONCE} questions are being answered; ask again later")
            return
        key = (builtins_id(session), id)
        if key in self._running:
            session.note(f"it asks again under the id {id!r:.100}, which it has not got an answer for yet")
            return
        task = asyncio.get_running_loop().create_task(self._work(session, message, id))
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    def cancelled(self, session: Session, request: Id) -> None:
        """The server does not want to know any more."""
        task = self._running.get((builtins_id(session), request))
        if task is not None:
            task.cancel()

    async def _work(self, session: Session, message: Message, id: Id) -> None:
        try:
            params: Any = msgspec.json.decode(message.params)
            answer: Any = {} if message.method == "ping" else await self._answer_meanwhile(session, message, params)
            await _clear(session)
            session.answer(id, answer)
        except Unanswerable as problem:
            await _refuse(session, id, problem.code, problem.what)
        except BROKEN as problem:
            await _refuse(session, id, INVALID_PARAMS, str(problem)[:200])
        except Exception as problem:
            session.note(f"the handler of {message.method} raised {problem!r}")
            await _refuse(session, id, INTERNAL_ERROR, f"the client failed to answer: {name_of(problem)}")

    async def _answer_meanwhile(self, session: Session, message: Message, params: Any) -> Any:
        """A person may take long, and the server waits for them: what it owes us is not late."""
        session.clock.stop()
        try:
            return await self.answer(message.method, params)
        finally:
            session.go_on()

    def lost(self, session: Session) -> None:
        """Nobody waits for the answers any more."""
        for (whose, _), task in self._running.items():
            if whose == builtins_id(session):
                task.cancel()

    async def close(self) -> None:
        """Let no question outlive the connection."""
        await end(self._running.values())


builtins_id = id


async def _refuse(session: Session, id: Id, code: int, text: str) -> None:
    await _clear(session)
    session.refuse(id, code, text)


async def _clear(session: Session) -> None:
    """Wait until the server takes our answers. Not for a call to end: it may be the one that waits for this answer."""
    if session.stalled:
        await session.channel.ready()


async def _call(handler: Callable[..., Any], *arguments: Any) -> Any:
    found = handler(*arguments)
    return await found if inspect.isawaitable(found) else found


def check_roots(roots: Roots | None) -> None:
    """Raise ValueError for what can't be worked in. What a function gives is known when it is asked."""
    if roots is not None and not callable(roots):
        for each in roots:
            _root(each)


def _root(each: str | Root) -> dict[str, Any]:
    root = Root(each) if isinstance(each, str) else each
    uri = root.uri if "://" in root.uri else _file_uri(root.uri)
    if not uri.startswith("file://"):
        raise ValueError(f"a root is a folder: a path or file://…, not {uri[:100]!r}")
    return {"uri": uri} if root.name is None else {"uri": uri, "name": root.name}


def _file_uri(path: str) -> str:
    from pathlib import Path

    return Path(path).absolute().as_uri()


def read_elicit(question: ElicitQuestion, given: Any) -> dict[str, Any]:
    """What a handler gave, as the protocol says it.

    True: yes, with the form's defaults, and if it is nothing but a box, that is ticked; a dict: yes, with these and the
    defaults of the rest; False: no; None: neither.
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
    content: Any = _ticked(question.schema) if given is True else msgspec.to_builtins(given)
    if not is_object(content):
        fields = list((question.schema or {}).get("properties", {}))
        if len(fields) != 1:
            raise TypeError(f"on_elicit gives a dict of {', '.join(fields)}, True, False or None, not {given!r}")
        content = {fields[0]: content}
    return {"action": "accept", "content": {**defaults(question.schema), **content}}


def _ticked(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Yes to a form that is nothing but one box is that box."""
    properties: Any = (schema or {}).get("properties")
    if is_object(properties) and len(properties) == 1:
        [(name, field)] = properties.items()
        if is_object(field) and field.get("type") == "boolean" and "default" not in field:
            return {name: True}
    return {}


def defaults(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a form takes where nothing is filled in."""
    properties: Any = (schema or {}).get("properties")
    if not is_object(properties):
        return {}
    return {
        name: field["default"] for name, field in properties.items() if isinstance(field, dict) and "default" in field
    }


def read_sample(given: Any) -> Any:
    """What a handler says that the model said: a text, or the whole result; None: the person would not have it."""
    if given is None:
        raise Unanswerable(REJECTED, "the user rejected it")
    if isinstance(given, str):
        return {"role": "assistant", "content": Text(given), "model": "unknown", "stopReason": "endTurn"}
    if isinstance(given, SampleAnswer):
        plain: dict[str, Any] = msgspec.to_builtins(given)
        return {key: value for key, value in plain.items() if value is not None}
    if isinstance(given, dict) and {"role", "content", "model"} <= set(cast("dict[str, Any]", given)):
        return cast("dict[str, Any]", given)
    raise TypeError("on_sample gives a text, a SampleAnswer, or a dict with role, content and model")
