"""Questions to the client, in both eras, from one handler.

Handshake era: a question is a request of ours; the handler waits for the response, without a place and with its
deadline suspended.

Stateless era: the call is answered `input_required` with the questions and a signed state, and the client sends the
request again with its answers. `Annotated[…, Ask(…)]` parameters are asked before the body, so the body runs once. A
body that asks is cancelled at its question (all questions that it has asked by then are sent together) and runs again
from its start on the retry; it must be declared `replay=True`, and everything before its last question is repeated,
unless within `ctx.once`. Answers are matched by key and by a digest of the question, never by position.

The client can read the state but not change it, use it for another request or principal, or use it late. A tool that
is neither read-only nor idempotent also consumes a nonce, so that one answer can't refund an order twice.
"""

from __future__ import annotations

import hmac
from asyncio import Future, Lock, get_running_loop
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from hashlib import sha256
from os import urandom
from time import time
from typing import Any, Protocol, final, get_args
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from longshore.errors import CapabilityMissing, Declined, ProtocolError, ToolError
from longshore.limits import Limits
from longshore.protocol.peer import Peer
from longshore.protocol.questions import (
    AnswersByName,
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

KEY_BYTES = 32
_SIGNATURE_BYTES = 32
_MAX_NONCES = 100_000
_NO_ANSWER = "the client disconnected without an answer"
_sorted = msgspec.json.Encoder(order="sorted").encode
_encode = msgspec.json.Encoder().encode


class RequestState(Struct):
    """The state of a call that asks, signed by the server and carried by the client."""

    tool: str
    request: str
    """A digest of the request."""
    principal: str
    expires: float
    round: int
    nonce: str
    asked: dict[str, str]
    """Digest of each question of the last round, by key."""
    answers: dict[str, Any]
    """Raw answers by digest and key of their question: one key may ask several things, one after the other."""
    memo: dict[str, Any]
    """Results of `once`."""


class Nonces(Protocol):
    """Consumed nonces, shared by every process that may receive one."""

    async def consume(self, nonce: str, expires: float) -> bool:
        """Consume a nonce. False: it was consumed before."""
        ...


@final
class MemoryNonces:
    """The nonces of a single process."""

    def __init__(self) -> None:
        self._consumed: dict[str, float] = {}

    async def consume(self, nonce: str, expires: float) -> bool:
        if len(self._consumed) >= _MAX_NONCES:
            now = time()
            self._consumed = {old: when for old, when in self._consumed.items() if when > now}
        if nonce in self._consumed:
            return False
        self._consumed[nonce] = expires
        return True


class AskedQuestion(Struct, frozen=True):
    """A question as it is sent to this client."""

    question: Question
    request: dict[str, Any]
    digest: str
    wrapped: bool


class Elicitation(Struct, eq=False):
    """The questions and answers of one call."""

    open: dict[str, AskedQuestion] = {}
    """Questions of this round, in the stateless era: the call is answered with them and sent again."""
    answers: dict[str, Any] = {}
    stateless: dict[str, Any] = {}
    """Answers that came without a state."""
    memo: dict[str, Any] = {}
    values: dict[str, Any] = {}
    """Values of the parameters that are asked before the body."""
    waiting: dict[Id, tuple[str, Future[Any]]] = {}
    effects: dict[str, Lock] = {}
    """A lock for each `once`, held while its action runs."""
    round: int = 0
    nonce: tuple[str, float] | None = None
    """The nonce that this retry consumes before it runs, and its expiry."""
    leaving: bool = False
    fault: ToolError | None = None
    """Why the questions of this round can't be asked, even if the body catches the error."""


@final
class Questions:
    """The questions of one server's calls."""

    def __init__(self, limits: Limits, server_meta: dict[str, Any], warn_deprecated: Callable[[str], None]) -> None:
        self._limits = limits
        self._server_meta = server_meta
        self._warn_deprecated = warn_deprecated
        self._key = urandom(KEY_BYTES)
        self._nonces: Nonces = MemoryNonces()

    def share(self, key: bytes, nonces: Nonces) -> None:
        """Use a key and a table of nonces that other processes use too."""
        self._key, self._nonces = key, nonces

    # -- the signed state

    def _sign(self, state: RequestState) -> str:
        body = _encode(state)
        signed = urlsafe_b64encode(hmac.digest(self._key, body, "sha256") + body).decode()
        if len(signed) > self._limits.state_bytes:
            text = f"the answers and `once` results of this call take {len(signed):,} bytes"
            raise ProtocolError(INVALID_PARAMS, f"{text}; a requestState holds {self._limits.state_bytes:,}")
        return signed

    def _verify(self, signed: str, call: Call) -> RequestState:
        """Decode a state. Raises unless it was signed for exactly this request."""
        if len(signed) > self._limits.state_bytes:
            raise _invalid_state("is too long")
        try:
            data = urlsafe_b64decode(signed.encode("ascii"))
        except ValueError:
            data = b""
        signature, body = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
        is_canonical = urlsafe_b64encode(data).decode() == signed  # base64 has several spellings of the same bytes
        if not is_canonical or not hmac.compare_digest(signature, hmac.digest(self._key, body, "sha256")):
            raise _invalid_state("is not one of ours")
        state = msgspec.json.decode(body, type=RequestState)
        expected = call.entry.name, _request_digest(call), call.link.principal.name
        if (state.tool, state.request, state.principal) != expected:
            raise _invalid_state("belongs to another request")
        if state.expires < time():
            raise _invalid_state("has expired; send the request again without it")
        return state

    # -- retries

    def resume(self, call: Call, responses: Raw | UnsetType, signed: str | UnsetType) -> None:
        """Continue from a signed state. Raises if the state is not of this call."""
        elicitation = call.elicitation = Elicitation()
        given = _read_responses(responses)
        if signed is UNSET:
            # Answers without a state. If the tool may run twice, the questions before the body take them, because
            # those questions depend on the request alone; all others are asked again.
            elicitation.stateless = {} if _runs_once(call) else given
            return
        state = self._verify(signed, call)
        if _runs_once(call):
            elicitation.nonce = (state.nonce, state.expires)
        elicitation.answers = dict(state.answers)
        elicitation.memo = dict(state.memo)
        elicitation.round = state.round
        for key, digest in state.asked.items():
            if key in given:
                elicitation.answers[f"{digest} {key}"] = given[key]

    async def consume_nonce(self, call: Call) -> None:
        """Consume the nonce of a retry that may not be sent twice. Raises if it was."""
        elicitation = _elicitation(call)
        nonce, elicitation.nonce = elicitation.nonce, None
        if nonce is not None and not await self._nonces.consume(*nonce):
            raise _invalid_state("was used already")

    # -- asking

    async def before(self, call: Call) -> bytes | None:
        """Ask for the parameters that precede the body. Returns the answer of a call that ends with questions."""
        elicitation = _elicitation(call)
        asked: dict[str, AskedQuestion] = {}
        named = call.arguments.values if call.entry.kind == "resource" else call.arguments
        for parameter in call.entry.asked:
            try:
                asked[parameter.name] = self._prepare(call, parameter.name, _fill(parameter, named))
            except CapabilityMissing:
                if parameter.required:
                    raise
                elicitation.values[parameter.name] = parameter.default
        for key in asked.keys() & elicitation.stateless.keys():
            elicitation.answers[f"{asked[key].digest} {key}"] = elicitation.stateless[key]
        answers = await self._answer(call, asked)
        if elicitation.open:
            return self.suspend(call)
        for parameter in call.entry.asked:
            if parameter.name in answers:
                elicitation.values[parameter.name] = _value(parameter, answers[parameter.name])
        return None

    async def ask(self, call: Call, questions: dict[str, Question]) -> AnswersByName:
        """Ask from within a body."""
        if not call.entry.replay:
            raise ToolError(
                f"{call.entry.name} asks a question in its body. In the stateless era the body would run twice: ask "
                "with an Annotated[…, Ask(…)] parameter, or declare replay=True and keep the effects in ctx.once"
            )
        asked = {key: self._prepare(call, key, question) for key, question in questions.items()}
        answers = await self._answer(call, asked)
        if _elicitation(call).open:
            await self._leave(call)
        for answer in answers.values():
            if isinstance(answer, Declined):
                raise answer
        return AnswersByName(answers)

    async def once(self, call: Call, key: str, action: Callable[[], Any]) -> Any:
        elicitation = _elicitation(call)
        async with elicitation.effects.setdefault(key, Lock()):
            if key not in elicitation.memo:
                value = action()
                if hasattr(value, "__await__"):
                    value = await value
                elicitation.memo[key] = msgspec.json.decode(encode(value))
        if elicitation.leaving:
            get_running_loop().call_soon(self._cut, call)
        return elicitation.memo[key]

    def recall(self, call: Call, key: str) -> Any:
        """The value that `once` or `remember` stored under a key, in this round or an earlier one; else None."""
        return _elicitation(call).memo.get(key)

    def remember(self, call: Call, key: str, value: Any) -> None:
        """Store a value under a key, and drop all answers so far.

        For a body that continues from the stored value, so that earlier answers need not travel on.
        """
        elicitation = _elicitation(call)
        elicitation.memo[key] = msgspec.json.decode(encode(value))
        elicitation.answers.clear()

    async def _answer(self, call: Call, asked: dict[str, AskedQuestion]) -> dict[str, Any]:
        """The answers by key, a Declined where the client refused. Empty if the answers come with a retry."""
        elicitation = _elicitation(call)
        known = elicitation.answers
        names = {key: f"{each.digest} {key}" for key, each in asked.items()}
        missing = {key: each for key, each in asked.items() if names[key] not in known}
        if missing and call.peer.revision.modern:
            _refuse_twice(call, elicitation.open, missing)
            elicitation.open = elicitation.open | missing
            return {}
        if missing:
            for key, raw in (await self._ask_now(call, missing)).items():
                known[names[key]] = raw
        return {key: _read(key, each, known[names[key]]) for key, each in asked.items()}

    def _prepare(self, call: Call, key: str, question: Question) -> AskedQuestion:
        require(question, call.peer)
        if not isinstance(question, Elicit) and call.peer.revision.modern:
            self._warn_deprecated("sampling" if isinstance(question, Sample) else "roots")
        form, wrapped = _form(question, key, call.peer)
        if form is not None:
            refuse_secrets(form)
        request = render(question, call.peer, form, f"{key}-{call.session.next_ask + 1}-{call.id}")
        return AskedQuestion(question, request, _digest(request), wrapped)

    # -- the stateless era

    async def _leave(self, call: Call) -> None:
        """Wait to be cancelled, one iteration of the loop later, so that concurrent questions are sent together."""
        elicitation, loop = _elicitation(call), get_running_loop()
        if not elicitation.leaving:
            elicitation.leaving = True
            loop.call_soon(loop.call_soon, self._cut, call)
        await loop.create_future()

    def _cut(self, call: Call) -> None:
        """Cancel this run of the body, unless a `once` action is running; `once` calls this again when it has ended."""
        busy = any(lock.locked() for lock in _elicitation(call).effects.values())
        if call.task is not None and not busy:
            call.task.cancel()

    def suspend(self, call: Call) -> bytes:
        """The answer of a call that asks: its questions, and the state to continue from."""
        elicitation = _elicitation(call)
        if elicitation.fault is not None:
            raise elicitation.fault
        self._count_round(call)
        state = RequestState(
            tool=call.entry.name,
            request=_request_digest(call),
            principal=call.link.principal.name,
            expires=time() + self._limits.state_seconds,
            round=elicitation.round,
            nonce=urandom(12).hex(),
            asked={key: each.digest for key, each in elicitation.open.items()},
            answers=elicitation.answers,
            memo=elicitation.memo,
        )
        result = {
            "resultType": "input_required",
            "inputRequests": {key: each.request for key, each in elicitation.open.items()},
            "requestState": self._sign(state),
            "_meta": self._server_meta,
        }
        return encode(Reply(call.id, result))

    def _count_round(self, call: Call) -> None:
        elicitation = _elicitation(call)
        if elicitation.round >= self._limits.questions:
            raise ToolError(f"{call.entry.name} asked in {self._limits.questions} rounds and still has questions")
        elicitation.round += 1

    # -- the handshake era

    async def _ask_now(self, call: Call, missing: dict[str, AskedQuestion]) -> dict[str, Any]:
        if call.session.input_ended:
            return dict.fromkeys(missing, Declined(_NO_ANSWER))
        elicitation, loop = _elicitation(call), get_running_loop()
        _refuse_twice(call, [key for key, _ in elicitation.waiting.values()], missing)
        if not elicitation.waiting:
            self._count_round(call)
        mine: dict[Id, tuple[str, Future[Any]]] = {}
        for key, each in missing.items():
            id = call.session.ask(call)
            mine[id] = elicitation.waiting[id] = (key, loop.create_future())
            call.link.send(encode(Request(id, each.request["method"], each.request["params"])))
        call.executor.pause(call)
        try:
            return {key: await future for key, future in mine.values()}
        finally:
            self.withdraw(call, mine)
            if not elicitation.waiting:
                call.executor.resume(call)

    def answered(self, call: Call, message: Message) -> None:
        """Take the client's response to a question."""
        assert message.id is not UNSET
        key, future = _elicitation(call).waiting.pop(message.id, ("", None))
        if future is None or future.done():
            return
        if bytes(message.error):
            future.set_result(Declined(f"the client refused to answer {key!r}: {_reason(message.error)}"))
            return
        try:
            future.set_result(msgspec.json.decode(message.result))
        except msgspec.DecodeError:
            future.set_result(None)  # JSON without a value, e.g. 1e999: a malformed answer

    def withdraw(self, call: Call, ids: Iterable[Id] | None = None) -> None:
        """Cancel questions of a call, all if it has ended."""
        elicitation = _elicitation(call)
        for id in list(elicitation.waiting if ids is None else ids):
            _, future = elicitation.waiting.pop(id, ("", None))
            if call.session.answered(id) is not None:
                params = {"requestId": id, "reason": "the call that asked has ended or needs no answer"}
                call.link.send(encode(Notification("notifications/cancelled", params)))
            if future is not None:
                future.cancel()

    def end_input(self, calls: Iterable[Call]) -> None:
        """Decline the open questions of calls whose client sends nothing more."""
        for call in calls:
            for id, (_, future) in call.elicitation.waiting.items() if call.elicitation else ():
                call.session.answered(id)
                if not future.done():
                    future.set_result(Declined(_NO_ANSWER))


class _AnyRequest(Struct):
    params: dict[str, Any]


class _Refusal(Struct):
    message: str = "no reason given"


def _elicitation(call: Call) -> Elicitation:
    if call.elicitation is None:
        call.elicitation = Elicitation()
    return call.elicitation


def _runs_once(call: Call) -> bool:
    """Whether an answer may be used only once, because the tool is neither read-only nor idempotent."""
    return call.entry.effects != "read" and not call.entry.idempotent


def _read_responses(responses: Raw | UnsetType) -> dict[str, Any]:
    if responses is UNSET:
        return {}
    try:
        return msgspec.json.decode(responses, type=dict[str, Any])
    except msgspec.DecodeError:
        raise ProtocolError(INVALID_PARAMS, "inputResponses must be an object of answers by key") from None


def _reason(error: Any) -> str:
    try:
        return msgspec.json.decode(error, type=_Refusal).message
    except msgspec.DecodeError:
        return "no reason given"


def _refuse_twice(call: Call, asked: Iterable[str], missing: dict[str, AskedQuestion]) -> None:
    twice = missing.keys() & set(asked)
    if twice:
        text = f"{call.entry.name} asks two questions named {min(twice)!r} at once; give each its own key"
        _elicitation(call).fault = fault = ToolError(text)
        raise fault


def _read(key: str, asked: AskedQuestion, raw: Any) -> Any:
    if isinstance(raw, Declined):
        return raw
    try:
        return read_answer(asked.question, key, raw, asked.wrapped, _convert)
    except msgspec.ValidationError as problem:
        from longshore.schema.phrase import plain

        raise ProtocolError(INVALID_PARAMS, f"the answer to {key!r} is malformed: {plain(problem)}") from None


def _invalid_state(why: str) -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, f"requestState {why}")


def _digest(*parts: Any) -> str:
    """A short digest of the content."""
    return sha256(_encode(parts)).hexdigest()[:32]


def _request_digest(call: Call) -> str:
    request = msgspec.json.decode(call.frame, type=_AnyRequest).params
    rest = {key: value for key, value in request.items() if key not in ("_meta", "inputResponses", "requestState")}
    return _digest(call.method, _sorted(rest).decode())


def _fill(parameter: Any, arguments: Any) -> Question:
    """The question with the call's arguments filled in."""
    ask: Ask = parameter.marker
    names = {name: getattr(arguments, name) for name in getattr(arguments, "__struct_fields__", ())}
    question = Elicit(ask.question, parameter.type) if isinstance(ask.question, str) else ask.question
    match question:
        case Elicit(message=message, url=url):
            url = ask.url or url
            filled = None if url is None else url.format_map({k: quote(str(v), safe="") for k, v in names.items()})
            kind = parameter.type if isinstance(ask.question, str) else question.type
            return Elicit(message.format_map(names), kind, filled, question.schema)
        case Sample(prompt=str() as prompt):
            return msgspec.structs.replace(question, prompt=prompt.format_map(names))
        case _:
            return question


def _value(parameter: Any, answer: Any) -> Any:
    """The value for a parameter: the person's value, the model's text or the whole answer, by the parameter's type."""
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
    """Whether a parameter's type is `wanted`, or a union that includes it, such as `str | None`."""
    return any(getattr(each, "origin", each) is wanted for each in (kind, *get_args(kind)))  # a stand-in has an origin


def _form(question: Question, key: str, peer: Peer) -> tuple[dict[str, Any] | None, bool]:
    """The form of an elicitation, and whether its one value is wrapped under `key`."""
    if not isinstance(question, Elicit) or question.url is not None:
        return None, False
    if question.schema is not None:
        return lower_form(question.schema, peer), False
    from longshore.schema.infer import form_schema
    from longshore.schema.signature import SignatureProblem

    try:
        form, wrapped = form_schema(question.type, key)
    except SignatureProblem as problem:
        raise ToolError(f"question {key!r}: {problem}") from None
    return lower_form(form, peer), wrapped


def _convert(value: Any, kind: Any) -> Any:
    from longshore.schema.custom_type import convert, decode_leniently
    from longshore.schema.types import read_type_cached

    return convert(value, read_type_cached(kind), decode_leniently)
