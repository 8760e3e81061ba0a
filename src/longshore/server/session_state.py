"""What a session keeps between its calls: JSON values by key, in the store that has the session."""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, final

import msgspec
from msgspec import Raw

from longshore.errors import ToolError, WouldBlock
from longshore.schema.output import OutputMismatch, encode

if TYPE_CHECKING:
    from longshore.server.call import Call

T = TypeVar("T")
STORE_SECONDS: Final = 10.0
"""How long a thread waits for the store. The store itself gives up earlier."""
_read = msgspec.json.Decoder(dict[str, Raw]).decode
_write = msgspec.json.Encoder().encode


class StateStore(Protocol):
    """Where the state of one session is, as one value."""

    async def load(self) -> bytes | None:
        """The value; None: there is none."""
        ...

    async def replace(self, old: bytes | None, new: bytes) -> bool:
        """Set the value if it is exactly `old`. False: another call has changed it, and nothing was changed."""
        ...


@final
class LocalState:
    """The state of a session that lives in one process: of stdio, of a connection in memory."""

    def __init__(self) -> None:
        self._value: bytes | None = None
        self._lock = allocate_lock()

    async def load(self) -> bytes | None:
        return self._value

    async def replace(self, old: bytes | None, new: bytes) -> bool:
        with self._lock:  # threads use it, too
            if self._value is not old:
                return False
            self._value = new
            return True


def state_of(call: Call) -> StateStore | None:
    """Where the session of a call keeps its state, made on first use; None: the call belongs to no session."""
    if not call.link.keeps_state():
        return None
    if call.session.state is None:
        call.session.state = LocalState()
    return call.session.state  # type: ignore[no-any-return]


@final
class SessionState:
    """The values of one session, by key. Calls of a session share them, whichever process runs each.

    In `async def` every method is awaited: `await ctx.session.state.get("cart")`. On a thread, in a plain `def`, it is
    called without `await`.
    """

    def __init__(self, call: Call, store: StateStore) -> None:
        self._call, self._store = call, store

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, as a copy, or the default."""
        return self._do(lambda: self._get(key, default))

    def set(self, key: str, value: Any) -> Awaitable[None]:
        """Set a key to a value that has a JSON form. Raises ToolError if the session would keep too much."""
        given: Any = key
        if not isinstance(given, str):  # JSON would make a text of it, which `get` does not find
            raise TypeError(f"session state: the key {given!r} is no text; use str(…)")
        try:
            raw = Raw(encode(value))
        except OutputMismatch as problem:
            raise TypeError(f"session state: {key} can't be kept: {problem}") from None

        def change(values: dict[str, Raw]) -> None:
            values[key] = raw

        return self._do(lambda: self._change(change))  # type: ignore[no-any-return]

    def delete(self, key: str) -> Awaitable[None]:
        """Delete a key, if it is there."""

        def change(values: dict[str, Raw]) -> None:
            values.pop(key, None)

        return self._do(lambda: self._change(change))  # type: ignore[no-any-return]

    async def _get(self, key: str, default: Any) -> Any:
        raw = (await self._values())[1].get(key)
        return default if raw is None else msgspec.json.decode(raw)

    async def _values(self) -> tuple[bytes | None, dict[str, Raw]]:
        whole = await self._store.load()
        return whole, {} if whole is None else _read(whole)

    async def _change(self, change: Callable[[dict[str, Raw]], None]) -> None:
        most = self._call.executor.limits.session_state_bytes
        while True:  # each turn that fails is another call's success
            whole, values = await self._values()
            change(values)
            new = _write(values)
            if len(new) > most:
                text = f"the session would keep {len(new):,} bytes and may keep {most:,} (limits.session_state_bytes)"
                raise ToolError(f"{text}; keep less, or a key of what is stored elsewhere")
            if await self._store.replace(whole, new):
                return

    def _do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Any:
        """The coroutine of some work for `async def`; its result on a thread."""
        call = self._call
        if call.executor.main_thread != get_ident():
            return _wait(call, work(), isinstance(self._store, LocalState))
        if call.entry.tries_inline:
            raise WouldBlock
        if call.entry.run == "inline":
            raise ToolError(f"{call.entry.name} can't wait for the session's state; leave out run=\"inline\"")
        return work()


def _wait(call: Call, work: Coroutine[Any, Any, T], is_local: bool) -> T | None:
    """The result of some work, for a call on a thread."""
    if is_local:
        return _run_local(work)
    from asyncio import run_coroutine_threadsafe

    assert call.executor.loop is not None
    return run_coroutine_threadsafe(work, call.executor.loop).result(STORE_SECONDS)


def _run_local(work: Coroutine[Any, Any, T]) -> T | None:
    """The result of work that awaits nothing. On stdio there may be no loop yet."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise AssertionError("a local state waits for nothing")


@final
class CallSession:
    """The session that a call belongs to."""

    def __init__(self, call: Call) -> None:
        store = state_of(call)
        if store is None:
            what = f"{call.entry.name} keeps values in a session, and this request ({call.peer.revision.name}) has none"
            raise ToolError(f"{what}; return a handle from one call and take it as an argument of the next")
        self.state = SessionState(call, store)
        """Values that the calls of the session share."""
