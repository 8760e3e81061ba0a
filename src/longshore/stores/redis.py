"""The store of many hosts: a Redis server (or Valkey)."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, final
from urllib.parse import urlsplit

from msgspec import Struct
from redis.asyncio import Redis
from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from longshore.errors import ConfigError, StoreError
from longshore.stores import redis_scripts as scripts
from longshore.stores.redis_bus import Subscriber
from longshore.stores.redis_errors import RedisErrors
from longshore.stores.store import OnMessage, Stop, family_of, family_of_prefix, to_bytes, to_text

SECONDS = 2.0
"""How long any operation waits for the server."""

MOST_MILLISECONDS = 10 * 366 * 86_400_000
"""Ten years: Redis refuses an expiry that overflows."""

LAST_POSITION = 1 << 53
"""The largest integer that Lua counts exactly. Clients name positions, and may name a larger one."""

GROUP = 256
"""Commands sent together."""

GROUP_BYTES = 1 << 20
"""Their size, unless a single one is larger: a group must be answered within the timeout."""

VALUE, LOG, INDEX = b"longshore:value:", b"longshore:log:", b"longshore:index:"
CHECK = b"longshore:check"
BUS = "longshore:bus:{}:"
"""With the number of the database: channels know no databases."""


@final
class RedisStore:
    """The operations, of which `Pipeline` sends many at once. Connects at the first operation."""

    shared: bool = True

    def __init__(self, url: str) -> None:
        self._pool = _pool(url)
        errors = RedisErrors(_where(url, self._pool), SECONDS)
        self._client: Any = Redis(connection_pool=self._pool)
        self._pipeline = Pipeline(self._send, errors, SECONDS)
        bus = BUS.format(self._pool.connection_kwargs.get("db", 0)).encode()
        self._subscriber = Subscriber(self._client.pubsub, bus, errors, SECONDS)

    async def get(self, key: str) -> bytes | None:
        value: bytes | None = await self._pipeline.ask("GET", VALUE + to_bytes(key))
        return value

    async def set(self, key: str, value: bytes, seconds: float) -> None:
        await self._update(scripts.SET, key, value, _milliseconds(seconds))

    async def add(self, key: str, value: bytes, seconds: float) -> bool:
        return await self._update(scripts.ADD, key, value, _milliseconds(seconds))

    async def swap(self, key: str, old: bytes, new: bytes, seconds: float) -> bool:
        return await self._update(scripts.SWAP, key, new, _milliseconds(seconds), old)

    async def touch(self, key: str, seconds: float) -> bool:
        return await self._update(scripts.TOUCH, key, _milliseconds(seconds))

    async def delete(self, *keys: str) -> None:
        names = [to_bytes(key) for key in keys]
        places = [
            place for key, name in zip(keys, names, strict=True) for place in (VALUE + name, LOG + name, _index(key))
        ]
        if names:
            await self._pipeline.ask("EVAL", scripts.DELETE, len(places), *places, *names)

    async def find(self, prefix: str) -> dict[str, bytes]:
        index = _index(family_of_prefix(prefix))
        found = await self._pipeline.ask("EVAL", scripts.FIND, 1, index, to_bytes(prefix), VALUE)
        return {to_text(name): value for name, value in zip(found[::2], found[1::2], strict=True)}

    async def count(self, family: str) -> int:
        count: int = await self._pipeline.ask("EVAL", scripts.COUNT, 1, _index(family_of_prefix(family)))
        return count

    async def append(self, key: str, value: bytes, seconds: float, most: int) -> int:
        args = (value, _milliseconds(seconds), max(most, 1))
        position: int = await self._pipeline.ask("EVAL", scripts.APPEND, 1, LOG + to_bytes(key), *args)
        return position

    async def read(self, key: str, after: int, most: int = 100) -> list[tuple[int, bytes]]:
        if most < 1:
            return []
        first = b"%d-0" % (min(max(after, 0), LAST_POSITION) + 1)
        found = await self._pipeline.ask("XRANGE", LOG + to_bytes(key), first, "+", "COUNT", most)
        return [(int(position.partition(b"-")[0]), fields[b"v"]) for position, fields in found]

    async def post(self, topic: str, message: bytes) -> None:
        await self._pipeline.ask("PUBLISH", self._subscriber.channel(topic), message)

    async def listen(self, topic: str, on_message: OnMessage) -> Stop:
        return await self._subscriber.listen(topic, on_message)

    async def check(self) -> None:
        await self._pipeline.ask("SET", CHECK, b"", "PX", _milliseconds(60))

    async def close(self) -> None:
        await self._subscriber.close()
        await self._pipeline.close()
        await self._client.aclose()
        await self._pool.aclose()

    async def _update(self, script: str, key: str, *args: Any) -> bool:
        """Change a value and its place in the index. False: the script did not change it."""
        name = to_bytes(key)
        return bool(await self._pipeline.ask("EVAL", script, 2, VALUE + name, _index(key), *args, name))

    async def _send(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            replies: list[Any] = await pipeline.execute(raise_on_error=False)
            return replies


class _Command(Struct, eq=False):
    args: tuple[Any, ...]
    size: int
    reply: asyncio.Future[Any]


@final
class Pipeline:
    """Sends commands in their order, on one connection; while a group is in flight, the next one gathers.

    If the server does not answer, all waiting commands fail at once.
    """

    def __init__(
        self, send: Callable[[list[tuple[Any, ...]]], Awaitable[list[Any]]], errors: RedisErrors, seconds: float
    ) -> None:
        self._send, self._errors, self._seconds = send, errors, seconds
        self._waiting: deque[_Command] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def ask(self, *args: Any) -> Any:
        if self._closed:
            raise self._errors.closed()
        loop = asyncio.get_running_loop()
        size = sum(len(part) for part in args if isinstance(part, bytes))
        command = _Command(args, size, loop.create_future())
        self._waiting.append(command)
        if self._task is None:
            self._task = loop.create_task(self._run())
        return await command.reply

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        taken: list[_Command] = []
        try:
            while self._waiting:
                taken = self._take()
                await self._exchange(taken)
        finally:
            self._task = None
            self._fail([*taken, *self._waiting], self._errors.closed)  # only if the loop is being shut down
            self._waiting.clear()

    def _take(self) -> list[_Command]:
        taken = [self._waiting.popleft()]
        room = GROUP_BYTES - taken[0].size
        while self._waiting and len(taken) < GROUP and self._waiting[0].size <= room:
            taken.append(self._waiting.popleft())
            room -= taken[-1].size
        return taken

    async def _exchange(self, commands: list[_Command]) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                replies = await self._send([command.args for command in commands])
        except Exception as error:
            self._fail([*commands, *self._waiting], partial(self._errors.explain, error))
            self._waiting.clear()
            return
        for command, reply in zip(commands, replies, strict=True):
            if isinstance(reply, Exception):
                self._fail([command], partial(self._errors.explain, reply))
            elif not command.reply.done():
                command.reply.set_result(reply)

    def _fail(self, commands: list[_Command], explain: Callable[[], StoreError]) -> None:
        for command in commands:
            if not command.reply.done():
                command.reply.set_exception(explain())


def _index(key: str) -> bytes:
    return INDEX + to_bytes(family_of(key))


def _milliseconds(seconds: float) -> int:
    return max(1, math.ceil(min(seconds * 1000, MOST_MILLISECONDS)))


def _pool(url: str) -> Any:
    """A connection pool whose options override the URL's: bytes, bounded waits, nothing sent twice."""
    ours: dict[str, Any] = {
        "protocol": 2,
        "decode_responses": False,
        "socket_timeout": SECONDS,
        "socket_connect_timeout": SECONDS,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_timeout": False,
        "health_check_interval": 0,
    }
    try:
        path = urlsplit(url).path.strip("/")
        if path and not path.isdigit():
            raise ValueError
        make: Any = ConnectionPool
        pool = make.from_url(url, **ours)
        pool.connection_kwargs.update(ours)
        pool.connection_class(**pool.connection_kwargs)  # refuses unknown options
    except Exception:  # whose text may hold the password
        form = "redis://[user:password@]host[:port][/database]"
        raise ConfigError(
            f"store: this URL of Redis can't be read; write {form}, with % escapes in the password"
        ) from None
    return pool


def _where(url: str, pool: Any) -> str:
    """The address without its secrets."""
    parts: dict[str, Any] = pool.connection_kwargs
    host = str(parts.get("host", "localhost"))
    host = f"[{host}]" if ":" in host else host
    return f"{url.partition(':')[0].lower()}://{host}:{parts.get('port', 6379)}/{parts.get('db', 0)}"
