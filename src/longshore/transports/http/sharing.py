"""What processes that serve together must share so that a question asked by one can be answered to another."""

from __future__ import annotations

from hashlib import sha256
from secrets import token_bytes
from time import time

from longshore.errors import StoreError, Unavailable
from longshore.server.dispatch import Engine
from longshore.server.state import KEY_BYTES, Seal
from longshore.stores import Store
from longshore.telemetry.recorder import Recorder

_KEY = "key:state"
_FOR_EVER = 10 * 365 * 86_400.0


class StoredNonces:
    """Nonces that every process sees."""

    def __init__(self, store: Store, recorder: Recorder) -> None:
        self._store, self._recorder = store, recorder

    async def burn(self, nonce: str, expires: float) -> bool:
        try:
            return await self._store.add(f"nonce:{nonce}", b"", max(expires - time(), 1.0))
        except StoreError as problem:
            self._recorder.problem("error", "an answer could not be taken because the store failed", problem)
            raise Unavailable("answers can't be taken") from None


async def share_state(engine: Engine, store: Store, configured: str | None) -> None:
    """Sign with the configured key, or with one that lies in the store beside the sessions that it is for."""
    if configured is None and not store.shared:
        return
    key = sha256(configured.encode()).digest() if configured else await _stored_key(store)
    engine.questions.share(Seal(engine.limits, key), StoredNonces(store, engine.recorder))


async def _stored_key(store: Store) -> bytes:
    await store.add(_KEY, token_bytes(KEY_BYTES), _FOR_EVER)
    key = await store.get(_KEY)
    assert key is not None
    return key
