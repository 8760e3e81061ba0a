"""The store of many hosts: a Redis server (or Valkey)."""

from __future__ import annotations

import math
from typing import Any, final
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from longshore.errors import ConfigError
from longshore.stores import scripts
from longshore.stores.channels import Channels
from longshore.stores.faults import Faults
from longshore.stores.names import family_of, family_of_prefix, to_bytes, to_text
from longshore.stores.pipe import Pipe
from longshore.stores.store import Hear, Stop

SECONDS = 2.0
"""How long any operation waits for the server."""

MOST_MILLISECONDS = 10 * 366 * 86_400_000
"""Ten years: Redis refuses an expiry that overflows."""

LAST_POSITION = 1 << 53
"""The largest integer that Lua counts exactly. Clients name positions, and may name a larger one."""

VALUE, LOG, INDEX = b"longshore:value:", b"longshore:log:", b"longshore:index:"
CHECK = b"longshore:check"
BUS = "longshore:bus:{}:"
"""With the number of the database: channels know no databases."""


@final
class RedisStore:
    """The face; `scripts` says what is done in one step, `Pipe` sends it. Connected by the first operation."""

    shared: bool = True

    def __init__(self, url: str) -> None:
        self._pool = _pool(url)
        faults = Faults(_where(url, self._pool), SECONDS)
        self._client: Any = Redis(connection_pool=self._pool)
        self._pipe = Pipe(self._send, faults, SECONDS)
        bus = BUS.format(self._pool.connection_kwargs.get("db", 0)).encode()
        self._channels = Channels(self._client.pubsub, bus, faults, SECONDS)

    async def get(self, key: str) -> bytes | None:
        value: bytes | None = await self._pipe.ask("GET", VALUE + to_bytes(key))
        return value

    async def set(self, key: str, value: bytes, seconds: float) -> None:
        await self._file(scripts.SET, key, value, _milliseconds(seconds))

    async def add(self, key: str, value: bytes, seconds: float) -> bool:
        return await self._file(scripts.ADD, key, value, _milliseconds(seconds))

    async def swap(self, key: str, old: bytes, new: bytes, seconds: float) -> bool:
        return await self._file(scripts.SWAP, key, new, _milliseconds(seconds), old)

    async def touch(self, key: str, seconds: float) -> bool:
        return await self._file(scripts.TOUCH, key, _milliseconds(seconds))

    async def delete(self, *keys: str) -> None:
        names = [to_bytes(key) for key in keys]
        places = [
            place for key, name in zip(keys, names, strict=True) for place in (VALUE + name, LOG + name, _index(key))
        ]
        if names:
            await self._pipe.ask("EVAL", scripts.DELETE, len(places), *places, *names)

    async def find(self, prefix: str) -> dict[str, bytes]:
        index = _index(family_of_prefix(prefix))
        found = await self._pipe.ask("EVAL", scripts.FIND, 1, index, to_bytes(prefix), VALUE)
        return {to_text(name): value for name, value in zip(found[::2], found[1::2], strict=True)}

    async def count(self, family: str) -> int:
        count: int = await self._pipe.ask("EVAL", scripts.COUNT, 1, _index(family_of_prefix(family)))
        return count

    async def append(self, key: str, value: bytes, seconds: float, most: int) -> int:
        args = (value, _milliseconds(seconds), max(most, 1))
        position: int = await self._pipe.ask("EVAL", scripts.APPEND, 1, LOG + to_bytes(key), *args)
        return position

    async def read(self, key: str, after: int, most: int = 100) -> list[tuple[int, bytes]]:
        if most < 1:
            return []
        first = b"%d-0" % (min(max(after, 0), LAST_POSITION) + 1)
        found = await self._pipe.ask("XRANGE", LOG + to_bytes(key), first, "+", "COUNT", most)
        return [(int(position.partition(b"-")[0]), fields[b"v"]) for position, fields in found]

    async def post(self, topic: str, message: bytes) -> None:
        await self._pipe.ask("PUBLISH", self._channels.channel(topic), message)

    async def listen(self, topic: str, hear: Hear) -> Stop:
        return await self._channels.listen(topic, hear)

    async def check(self) -> None:
        await self._pipe.ask("SET", CHECK, b"", "PX", _milliseconds(60))

    async def close(self) -> None:
        await self._channels.close()
        await self._pipe.close()
        await self._client.aclose()
        await self._pool.aclose()

    async def _file(self, script: str, key: str, *args: Any) -> bool:
        """Do something to a value and to its place in the index. False: it could not be done."""
        name = to_bytes(key)
        return bool(await self._pipe.ask("EVAL", script, 2, VALUE + name, _index(key), *args, name))

    async def _send(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            replies: list[Any] = await pipeline.execute(raise_on_error=False)
            return replies


def _index(key: str) -> bytes:
    return INDEX + to_bytes(family_of(key))


def _milliseconds(seconds: float) -> int:
    return max(1, math.ceil(min(seconds * 1000, MOST_MILLISECONDS)))


def _pool(url: str) -> Any:
    """Connections as we need them, whatever the URL's options say: bytes, bounded waits, nothing sent twice."""
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
        pool.connection_class(**pool.connection_kwargs)  # refuses what it does not know
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
