"""Asking the client, in both eras, from one handler.

Handshake era: a question is a request of ours; the handler waits for the response, without a place and with its
clock stopped.

Stateless era: the call is answered `input_required` with the questions and a signed state, and the client sends the
request again with its answers. `Annotated[…, Ask(…)]` parameters are asked before the body, so the body runs once. A
body that asks is cancelled where it stands (all questions that it had asked by then leave together) and runs again
from its start on the retry; it must be declared `replay=True`, and what it does before its last question it does
again, unless within `ctx.once`. Answers are matched by key and by a digest of the question as it was put, never by
position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import time
from typing import TYPE_CHECKING, Any, final, get_args

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from longshore.errors import CapabilityMissing, Declined, ProtocolError, ToolError
from longshore.limits import Limits
from longshore.protocol.peer import Peer
from longshore.protocol.questions import (
    Answers,
    Ask,
    Elicit,
    ElicitAnswer,
    Question,
    Sample,
    SampleAnswer,
    lower_form,
    read_answer,
    refuse_secrets,
    render,
    require,
)
from longshore.server.call import Call
from longshore.wire.codec import INVALID_PARAMS, encode
from longshore.wire.messages import Id, Message, Notification, Reply, Request

if TYPE_CHECKING:
    from asyncio import Future, Lock

    from longshore.server.replies import Replies
    from longshore.server.state import Nonces, Seal

_GONE = "the client went away without an answer"
_sorted = msgspec.json.Encoder(order="sorted").encode


class Put(Struct, frozen=True):
    """A question as it was put to this client."""

    question: Question
    request: dict[str, Any]
    digest: str
    wrapped: bool


class Interview(Struct, eq=False):
    """The questions of one call."""

    open: dict[str, Put] = {}
    """What this round asks; in the stateless era the call ends here and is sent again."""
    answers: dict[str, Any] = {}
    unsealed: dict[str, Any] = {}
    """Answers that came without a state."""
    memo: dict[str, Any] = {}
    values: dict[str, Any] = {}
    """What the parameters asked before the body received."""
    waiting: dict[Id, tuple[str, Future[Any]]] = {}
    effects: dict[str, Lock] = {}
    """A lock for each `once`, held while its effect is on its way."""
    round: int = 0
    nonce: tuple[str, float] | None = None
    """What this retry uses up before it runs, and until when it must be remembered."""
    leaving: bool = False
    fault: ToolError | None = None
    """Why the questions of this round can't be put, whatever the body makes of it."""


@final
class Questions:
    """The interviews of one server."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._made_seal: Seal | None = None
        self._nonces: Nonces | None = None
        self.replies: Replies
        self.deprecated: Callable[[str], None] = lambda _: None

    def share(self, seal: Seal, nonces: Nonces) -> None:
        """Sign with a key, and remember nonces in a place, that other processes use too."""
        self._made_seal, self._nonces = seal, nonces

    @property
    def _seal(self) -> Seal:
        if self._made_seal is None:
            from longshore.server.state import Seal

            self._made_seal = Seal(self._limits)
        return self._made_seal

    # -- a retry comes in

    def resume(self, call: Call, responses: Raw | UnsetType, sealed: str | UnsetType) -> None:
        """Take up where the state says that this call left off. Raises if it is not this call's state."""
        interview = call.interview = Interview()
        given = _read_responses(responses)
        if sealed is UNSET:
            # Answers without the state that says to what. Where doing it twice would harm nobody, the questions that
            # come before the body take them, for those follow from the request alone; all others are asked again.
            interview.unsealed = {} if _burns(call) else given
            return
        seal = self._seal
        principal = call.link.principal.name
        state = seal.open(sealed, tool=call.entry.name, request=_request_digest(call), principal=principal)
        if _burns(call):
            interview.nonce = (state.nonce, state.expires)
        interview.answers = dict(state.answers)
        interview.memo = dict(state.memo)
        interview.round = state.round
        for key, digest in state.asked.items():
            if key in given:
                interview.answers[f"{digest} {key}"] = given[key]

    async def burn(self, call: Call) -> None:
        """Use up the nonce of a retry, if it must not be sent twice. Raises if it was."""
        from longshore.server.state import LocalNonces, used_already

        interview = _interview(call)
        if interview.nonce is None:
            return
        if self._nonces is None:
            self._nonces = LocalNonces()
        nonce, interview.nonce = interview.nonce, None
        if not await self._nonces.burn(*nonce):
            raise used_already()

    # -- asking

    async def before(self, call: Call) -> bytes | None:
        """Ask for the parameters that are asked before the body. A frame: the call ends here with questions."""
        interview = _interview(call)
        puts: dict[str, Put] = {}
        for parameter in call.entry.asked:
            try:
                puts[parameter.name] = self._put(call, parameter.name, _fill(parameter, _named(call)))
            except CapabilityMissing:
                if parameter.required:
                    raise
                interview.values[parameter.name] = parameter.default
        for key in puts.keys() & interview.unsealed.keys():
            interview.answers[f"{puts[key].digest} {key}"] = interview.unsealed[key]
        answers = await self._answer(call, puts)
        if interview.open:
            return self.suspend(call)
        for parameter in call.entry.asked:
            if parameter.name in answers:
                interview.values[parameter.name] = _value(parameter, answers[parameter.name])
        return None

    async def ask(self, call: Call, questions: dict[str, Question]) -> Answers:
        """Ask from within a body."""
        if not call.entry.replay:
            raise ToolError(
                f"{call.entry.name} asks a question in its body. In the stateless era the body would run twice: ask "
                "with an Annotated[…, Ask(…)] parameter, or declare replay=True and keep the effects in ctx.once"
            )
        puts = {key: self._put(call, key, question) for key, question in questions.items()}
        answers = await self._answer(call, puts)
        if _interview(call).open:
            await self._leave(call)
        for answer in answers.values():
            if isinstance(answer, Declined):
                raise answer
        return Answers(answers)

    async def once(self, call: Call, key: str, action: Callable[[], Any]) -> Any:
        from asyncio import Lock

        interview = _interview(call)
        async with interview.effects.setdefault(key, Lock()):
            if key not in interview.memo:
                value = action()
                if hasattr(value, "__await__"):
                    value = await value
                interview.memo[key] = msgspec.json.decode(encode(value))
        if interview.leaving:
            self._cut_soon(call)
        return interview.memo[key]

    def recall(self, call: Call, key: str) -> Any:
        """What `once` or `remember` put under a key in this round or an earlier one; None if nothing."""
        return _interview(call).memo.get(key)

    def remember(self, call: Call, key: str, value: Any) -> None:
        """Put a value in the place of what is remembered under a key. It stands for all that was answered so far.

        For a body that goes on from there: what it asked before is not needed any more, and does not travel on.
        """
        interview = _interview(call)
        interview.memo[key] = msgspec.json.decode(encode(value))
        interview.answers.clear()

    async def _answer(self, call: Call, puts: dict[str, Put]) -> dict[str, Any]:
        """What was answered, a Declined where the client refused. Nothing at all: the answers come with a retry."""
        interview = _interview(call)
        known = interview.answers
        names = {key: f"{put.digest} {key}" for key, put in puts.items()}
        missing = {key: put for key, put in puts.items() if names[key] not in known}
        if missing and call.peer.revision.modern:
            self._open(call, missing)
            return {}
        if missing:
            for key, raw in (await self._ask_now(call, missing)).items():
                known[names[key]] = raw
        return {key: _read(key, put, known[names[key]]) for key, put in puts.items()}

    def _put(self, call: Call, key: str, question: Question) -> Put:
        from longshore.server.state import digest

        require(question, call.peer)
        if not isinstance(question, Elicit) and call.peer.revision.modern:
            self.deprecated("sampling" if isinstance(question, Sample) else "roots")
        form, wrapped = _form(question, key, call.peer)
        if form is not None:
            refuse_secrets(form)
        request = render(question, call.peer, form, f"{key}-{call.session.next_ask + 1}-{call.id}")
        return Put(question, request, digest(request), wrapped)

    # -- the stateless era

    def _open(self, call: Call, missing: dict[str, Put]) -> None:
        interview = _interview(call)
        _refuse_twice(call, interview.open, missing)
        interview.open = interview.open | missing

    async def _leave(self, call: Call) -> None:
        """Wait for the cancellation that ends this run: a turn later, so that questions side by side go together."""
        from asyncio import get_running_loop

        interview, loop = _interview(call), get_running_loop()
        if not interview.leaving:
            interview.leaving = True
            loop.call_soon(self._cut_soon, call)
        await loop.create_future()

    def _cut_soon(self, call: Call) -> None:
        from asyncio import get_running_loop

        get_running_loop().call_soon(self._cut, call)

    def _cut(self, call: Call) -> None:
        """End this run of the body, unless an effect is on its way: `once` comes back here when it has its result."""
        busy = any(lock.locked() for lock in _interview(call).effects.values())
        if call.task is not None and not busy:
            call.task.cancel()

    def suspend(self, call: Call) -> bytes:
        """The answer of a call that asks: its questions, and the state to go on from."""
        from os import urandom

        from longshore.server.state import State

        interview = _interview(call)
        if interview.fault is not None:
            raise interview.fault
        self._count_round(call)
        state = State(
            tool=call.entry.name,
            request=_request_digest(call),
            principal=call.link.principal.name,
            expires=time() + self._limits.state_seconds,
            round=interview.round,
            nonce=urandom(12).hex(),
            asked={key: put.digest for key, put in interview.open.items()},
            answers=interview.answers,
            memo=interview.memo,
        )
        result = {
            "resultType": "input_required",
            "inputRequests": {key: put.request for key, put in interview.open.items()},
            "requestState": self._seal.close(state),
            "_meta": self.replies.server_meta,
        }
        return encode(Reply(call.id, result))

    def _count_round(self, call: Call) -> None:
        interview = _interview(call)
        if interview.round >= self._limits.questions:
            raise ToolError(f"{call.entry.name} asked in {self._limits.questions} rounds and still has questions")
        interview.round += 1

    # -- the handshake era

    async def _ask_now(self, call: Call, missing: dict[str, Put]) -> dict[str, Any]:
        from asyncio import get_running_loop

        if call.session.deaf:
            return dict.fromkeys(missing, Declined(_GONE))
        interview, loop = _interview(call), get_running_loop()
        _refuse_twice(call, [key for key, _ in interview.waiting.values()], missing)
        if not interview.waiting:
            self._count_round(call)
        mine: dict[Id, tuple[str, Future[Any]]] = {}
        for key, put in missing.items():
            id = call.session.ask(call)
            mine[id] = interview.waiting[id] = (key, loop.create_future())
            call.link.send(encode(Request(id, put.request["method"], put.request["params"])))
        call.executor.pause(call)
        try:
            return {key: await future for key, future in mine.values()}
        finally:
            self._take_back(call, mine)
            if not interview.waiting:
                call.executor.resume(call)

    def answered(self, call: Call, message: Message) -> None:
        """The client's response to a request of ours."""
        assert message.id is not UNSET
        key, future = _interview(call).waiting.pop(message.id, ("", None))
        if future is None or future.done():
            return
        if bytes(message.error):
            future.set_result(Declined(f"the client refused to answer {key!r}: {_reason(message.error)}"))
        else:
            future.set_result(_decode_answer(message.result))

    def forget(self, call: Call) -> None:
        """The call has ended: take back what it still asks."""
        if call.interview is not None:
            self._take_back(call, list(call.interview.waiting))

    def _take_back(self, call: Call, ids: Iterable[Id]) -> None:
        interview = _interview(call)
        for id in ids:
            _, future = interview.waiting.pop(id, ("", None))
            if call.session.answered(id) is not None:
                params = {"requestId": id, "reason": "the call that asked has ended or needs no answer"}
                call.link.send(encode(Notification("notifications/cancelled", params)))
            if future is not None:
                future.cancel()

    def client_gone(self, calls: Iterable[Call]) -> None:
        """Nobody is left to answer: whoever waits is told so."""
        for call in calls:
            for id, (_, future) in call.interview.waiting.items() if call.interview else ():
                call.session.answered(id)
                if not future.done():
                    future.set_result(Declined(_GONE))


class _AnyRequest(Struct):
    params: dict[str, Any]


class _Refusal(Struct):
    message: str = "no reason given"


def _interview(call: Call) -> Interview:
    if call.interview is None:
        call.interview = Interview()
    return call.interview


def _burns(call: Call) -> bool:
    """Whether one answer may be used only once: doing it again would not be the same as doing it."""
    return call.entry.effects != "read" and not call.entry.idempotent


def _read_responses(responses: Raw | UnsetType) -> dict[str, Any]:
    if responses is UNSET:
        return {}
    try:
        return msgspec.json.decode(responses, type=dict[str, Any])
    except msgspec.DecodeError:
        raise ProtocolError(INVALID_PARAMS, "inputResponses must be an object of answers by key") from None


def _decode_answer(result: Raw) -> Any:
    try:
        return msgspec.json.decode(result)
    except msgspec.DecodeError:
        return None  # JSON that no value stands for, e.g. 1e999: as malformed as an answer can be


def _reason(error: Any) -> str:
    try:
        return msgspec.json.decode(error, type=_Refusal).message
    except msgspec.DecodeError:
        return "no reason given"


def _refuse_twice(call: Call, asked: Iterable[str], missing: dict[str, Put]) -> None:
    twice = missing.keys() & set(asked)
    if twice:
        text = f"{call.entry.name} asks two questions named {min(twice)!r} at once; give each its own key"
        _interview(call).fault = fault = ToolError(text)
        raise fault


def _read(key: str, put: Put, raw: Any) -> Any:
    if isinstance(raw, Declined):
        return raw
    try:
        return read_answer(put.question, key, raw, put.wrapped, _convert)
    except msgspec.ValidationError as problem:
        from longshore.schema.phrase import plain

        raise ProtocolError(INVALID_PARAMS, f"the answer to {key!r} is malformed: {plain(problem)}") from None


def _named(call: Call) -> Any:
    """The record whose fields a question may name."""
    return call.arguments.values if call.entry.kind == "resource" else call.arguments


def _request_digest(call: Call) -> str:
    from longshore.server.state import digest

    request = msgspec.json.decode(call.frame, type=_AnyRequest).params
    rest = {key: value for key, value in request.items() if key not in ("_meta", "inputResponses", "requestState")}
    return digest(call.method, _sorted(rest).decode())


def _fill(parameter: Any, arguments: Any) -> Question:
    """The question with the call's own arguments put in."""
    ask: Ask = parameter.marker
    names = {name: getattr(arguments, name) for name in getattr(arguments, "__struct_fields__", ())}
    question = Elicit(ask.question, parameter.type) if isinstance(ask.question, str) else ask.question
    match question:
        case Elicit(message=message, url=url):
            url = ask.url or url
            filled = None if url is None else url.format_map({k: _quote(str(v)) for k, v in names.items()})
            kind = parameter.type if isinstance(ask.question, str) else question.type
            return Elicit(message.format_map(names), kind, filled, question.schema)
        case Sample(prompt=str() as prompt):
            return msgspec.structs.replace(question, prompt=prompt.format_map(names))
        case _:
            return question


def _quote(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


def _value(parameter: Any, answer: Any) -> Any:
    """What the parameter receives: the person's value, the model's text or the whole answer, as its type wants."""
    if isinstance(answer, Declined):
        if parameter.required:
            raise answer
        return parameter.default
    if isinstance(answer, ElicitAnswer) and not _takes(parameter.type, ElicitAnswer):
        if answer.accepted:
            return answer.value
        if not parameter.required:
            return parameter.default
        raise Declined(f"not done: the person answered {answer.action!r} when asked for {parameter.name!r}")
    if isinstance(answer, SampleAnswer) and _takes(parameter.type, str):
        return answer.text
    return answer


def _takes(kind: Any, wanted: type) -> bool:
    """Whether a parameter is of this type, or of a union that holds it, as `str | None` does."""
    return any(getattr(each, "origin", each) is wanted for each in (kind, *get_args(kind)))  # a stand-in has an origin


def _form(question: Question, key: str, peer: Peer) -> tuple[dict[str, Any] | None, bool]:
    """The form of an elicitation, and whether its one value stands under `key`."""
    if not isinstance(question, Elicit) or question.url is not None:
        return None, False
    if question.schema is not None:
        return lower_form(question.schema, peer), False
    from longshore.schema.elicitation_form import form_schema
    from longshore.schema.parameter import SignatureProblem

    try:
        form, wrapped = form_schema(question.type, key)
    except SignatureProblem as problem:
        raise ToolError(f"question {key!r}: {problem}") from None
    return lower_form(form, peer), wrapped


def _convert(value: Any, kind: Any) -> Any:
    from longshore.schema.custom_type import convert, decode_leniently
    from longshore.schema.types import read_type_cached

    return convert(value, read_type_cached(kind), decode_leniently)
