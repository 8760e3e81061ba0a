"""The store of many hosts: a Redis server (or Valkey)."""

from __future__ import annotations

import asyncio
import math
import os
import re
import ssl
from typing import Any, final
from urllib.parse import urlsplit

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from longshore.backoff import Backoff
from longshore.errors import ConfigError, StoreError
from longshore.stores.backend import Groups, Listeners, family_of, family_of_prefix, to_bytes, to_text
from longshore.stores.store import OnMessage, Stop

SECONDS = 2.0
"""How long any operation waits for the server."""

QUIET_SECONDS = 15.0
"""After this long without a message the server must answer a ping."""

BACKOFF = Backoff(0.05, 1.0)
"""Pauses before a lost subscription is made again."""

MOST_MILLISECONDS = 10 * 366 * 86_400_000
"""Ten years: Redis refuses an expiry that overflows."""

LAST_POSITION = 1 << 53
"""The largest integer that Lua counts exactly. Clients name positions, and may name a larger one."""

VALUE, LOG, INDEX = b"longshore:value:", b"longshore:log:", b"longshore:index:"
CHECK = b"longshore:check"
BUS = "longshore:bus:{}"
"""The channel of all messages, with the number of the database: channels know no databases."""

# Operations that Redis does in one step, in Lua. Time is the server's: hosts may disagree about it. Each family has
# an index, a sorted set of its keys by expiry in microseconds, for `find` and `count` to read instead of all keys.
# It loses its expired members whenever it is written, and expires with its last one.

_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function at(microseconds) return string.format('%.0f', microseconds) end
"""

_WRITE = (
    _NOW
    + """
if not ({}) then return 0 end
local index, name, ms = KEYS[2], ARGV[1], ARGV[2]
redis.call('ZADD', index, at(now + 1000 * ms), name)
redis.call('ZREMRANGEBYSCORE', index, '-inf', at(now))
if redis.call('PTTL', index) < tonumber(ms) then redis.call('PEXPIRE', index, ms) end
return 1
"""
)
"""KEYS value, index; ARGV name, milliseconds, new value, old value. 0: the condition does not hold."""
_SET = _WRITE.format("redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])")
_ADD = _WRITE.format("redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2], 'NX')")
_SWAP = _WRITE.format("redis.call('GET', KEYS[1]) == ARGV[4] and redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])")
_TOUCH = _WRITE.format("redis.call('PEXPIRE', KEYS[1], ARGV[2]) == 1")

_DELETE = """
for i, name in ipairs(ARGV) do
  redis.call('DEL', KEYS[3 * i - 2], KEYS[3 * i - 1])
  redis.call('ZREM', KEYS[3 * i], name)
end
return 1
"""
"""KEYS value, log, index of each; ARGV the names."""

_FIND = f"""{_NOW}
local found = {{}}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. at(now), '+inf')) do
  if string.sub(name, 1, #ARGV[1]) == ARGV[1] then
    local value = redis.call('GET', ARGV[2] .. name)
    if value then
      found[#found + 1] = name
      found[#found + 1] = value
    end
  end
end
return found
"""
"""KEYS index; ARGV prefix, what stands before a name in its key. Returns name, value, name, value …"""

_COUNT = f"{_NOW} return redis.call('ZCOUNT', KEYS[1], '(' .. at(now), '+inf')"
"""KEYS index."""

_APPEND = """
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local position = 1
if last[1] then position = tonumber(string.match(last[1][1], '^%d+')) + 1 end
local id = string.format('%.0f-0', position)
redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[3], id, 'v', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return position
"""
"""KEYS log; ARGV value, milliseconds, most. A log is a stream whose ids are 1-0, 2-0 …; its last entry is never cut."""


@final
class RedisStore:
    """One connection for all operations, which are sent in groups, and one for the bus. Connects when it is used."""

    shared: bool = True

    def __init__(self, url: str) -> None:
        self._seconds = SECONDS
        self._pool = _pool(url, SECONDS)
        self._client: Any = Redis(connection_pool=self._pool)
        parts: dict[str, Any] = self._pool.connection_kwargs
        host = str(parts.get("host", "localhost"))
        host = f"[{host}]" if ":" in host else host
        self._where = f"{url.partition(':')[0].lower()}://{host}:{parts.get('port', 6379)}/{parts.get('db', 0)}"
        """The address without its secrets."""
        self._channel = BUS.format(parts.get("db", 0))
        self._groups = Groups(self._where, self._send)
        self._listeners = Listeners()
        self._reader: asyncio.Task[None] | None = None
        self._subscribed: asyncio.Future[None] | None = None
        """Done when the present subscription is confirmed, or has failed."""

    async def get(self, key: str) -> bytes | None:
        value: bytes | None = await self._ask("GET", VALUE + to_bytes(key))
        return value

    async def set(self, key: str, value: bytes, seconds: float) -> None:
        await self._write(_SET, key, seconds, value)

    async def add(self, key: str, value: bytes, seconds: float) -> bool:
        return await self._write(_ADD, key, seconds, value)

    async def swap(self, key: str, old: bytes, new: bytes, seconds: float) -> bool:
        return await self._write(_SWAP, key, seconds, new, old)

    async def touch(self, key: str, seconds: float) -> bool:
        return await self._write(_TOUCH, key, seconds)

    async def delete(self, *keys: str) -> None:
        names = [to_bytes(key) for key in keys]
        places = [
            place for key, name in zip(keys, names, strict=True) for place in (VALUE + name, LOG + name, _index(key))
        ]
        if names:
            await self._ask("EVAL", _DELETE, len(places), *places, *names)

    async def find(self, prefix: str) -> dict[str, bytes]:
        found = await self._ask("EVAL", _FIND, 1, _index(family_of_prefix(prefix)), to_bytes(prefix), VALUE)
        return {to_text(name): value for name, value in zip(found[::2], found[1::2], strict=True)}

    async def count(self, family: str) -> int:
        count: int = await self._ask("EVAL", _COUNT, 1, _index(family_of_prefix(family)))
        return count

    async def append(self, key: str, value: bytes, seconds: float, most: int) -> int:
        args = (value, _milliseconds(seconds), max(most, 1))
        position: int = await self._ask("EVAL", _APPEND, 1, LOG + to_bytes(key), *args)
        return position

    async def read(self, key: str, after: int, most: int = 100) -> list[tuple[int, bytes]]:
        if most < 1:
            return []
        first = b"%d-0" % (min(max(after, 0), LAST_POSITION) + 1)
        found = await self._ask("XRANGE", LOG + to_bytes(key), first, "+", "COUNT", most)
        return [(int(position.partition(b"-")[0]), fields[b"v"]) for position, fields in found]

    async def post(self, topic: str, message: bytes) -> None:
        name = to_bytes(topic)
        await self._ask("PUBLISH", self._channel, b"%d:%b%b" % (len(name), name, message))

    async def check(self) -> None:
        await self._ask("SET", CHECK, b"", "PX", _milliseconds(60))

    async def close(self) -> None:
        self._listeners.clear()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])
        await self._groups.close()
        await self._client.aclose()
        await self._pool.aclose()

    # -- operations

    async def _write(self, script: str, key: str, seconds: float, *values: bytes) -> bool:
        """Change a value and its place in the index. False: the script did not change it."""
        name = to_bytes(key)
        places = (VALUE + name, _index(key))
        return bool(await self._ask("EVAL", script, 2, *places, name, _milliseconds(seconds), *values))

    async def _ask(self, *command: Any) -> Any:
        return await self._groups.ask(command, sum(len(part) for part in command if isinstance(part, bytes)))

    async def _send(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        """Send a group of commands, once: after a lost connection an `append` may have happened."""
        try:
            async with asyncio.timeout(self._seconds), self._client.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                replies: list[Any] = await pipeline.execute(raise_on_error=False)
        except Exception as error:
            raise self._explain(error) from None
        return [self._explain(reply) if isinstance(reply, Exception) else reply for reply in replies]

    # -- the bus

    async def listen(self, topic: str, on_message: OnMessage) -> Stop:
        if self._groups.closed:
            raise self._groups.error("the store is closed")
        stop = self._listeners.add(topic, on_message)
        loop = asyncio.get_running_loop()
        if self._reader is None or self._reader.get_loop() is not loop:
            self._subscribed = loop.create_future()
            self._reader = loop.create_task(self._read())
        assert self._subscribed is not None
        is_old = self._subscribed.done()
        try:
            await asyncio.wait_for(asyncio.shield(self._subscribed), self._seconds)
            if is_old:  # it may have been lost since: a server that stops says nothing
                await self._ask("PING")
        except BaseException as error:
            stop()
            if isinstance(error, TimeoutError):
                raise self._explain(error) from None
            raise
        return stop

    async def _read(self) -> None:
        """Deliver messages as long as there are listeners. After a lost connection they get MISSED."""
        loop = asyncio.get_running_loop()
        failures, is_lost = 0, False
        try:
            while self._listeners.topics():
                assert self._subscribed is not None
                try:
                    async with self._client.pubsub() as pubsub:
                        await pubsub.subscribe(self._channel)
                        while self._listeners.topics():
                            message = await self._next(pubsub)
                            if message["type"] == "message":
                                self._deliver(message["data"])
                            elif message["type"] == "subscribe":
                                self._subscribed.set_result(None)
                                if is_lost:
                                    self._listeners.report_missed()
                                failures, is_lost = 0, True
                except Exception as error:
                    self._fail_listeners(self._explain(error))
                self._subscribed = loop.create_future()
                failures += 1
                await asyncio.sleep(BACKOFF.pause(failures))
        finally:
            self._fail_listeners(self._groups.error("the store was closed meanwhile"))
            self._reader = None

    def _fail_listeners(self, error: StoreError) -> None:
        """Have those that wait for the subscription fail."""
        if self._subscribed is not None and not self._subscribed.done():
            self._subscribed.set_exception(error)
            self._subscribed.exception()  # marks it as retrieved: maybe no caller waits

    async def _next(self, pubsub: Any) -> dict[str, Any]:
        """The next message; a server that was silent for QUIET_SECONDS must answer a ping."""
        message: dict[str, Any] | None = await pubsub.get_message(timeout=QUIET_SECONDS)
        if message is None:
            await pubsub.ping()
            message = await pubsub.get_message(timeout=self._seconds)
        if message is None:
            raise TimeoutError
        return message

    def _deliver(self, data: bytes) -> None:
        length, _, rest = data.partition(b":")
        end = int(length)
        self._listeners.deliver([(to_text(rest[:end]), rest[end:])])

    # -- errors

    def _explain(self, error: BaseException) -> StoreError:
        """A StoreError in our own words: a server's text may repeat secrets of the request."""
        if isinstance(error, exceptions.AuthenticationError):
            code = "NOAUTH" if "required" in str(error) else "WRONGPASS"
        elif isinstance(error, exceptions.ResponseError) or type(error) in _CLASSES:
            words = [_CLASSES.get(type(error), ""), *(word.strip("-:") for word in str(error).split())]
            code = next((word for word in words if word in _REFUSALS), "")
        else:
            what = f"Redis can't be reached ({self._reason(error)})"
            return StoreError(self._where, what, "start it, or correct http.store")
        what, fix = _REFUSALS.get(code, _UNKNOWN_REFUSAL)
        return StoreError(self._where, f"Redis {what}", fix)

    def _reason(self, error: BaseException) -> str:
        """The system's reason, found among the causes of the library's exception."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, (TimeoutError, exceptions.TimeoutError)):
                return f"no answer within {self._seconds:g} s"
            if isinstance(cause, ssl.SSLCertVerificationError):
                return f"its certificate is not valid: {cause.verify_message}"
            if isinstance(cause, ssl.SSLError):
                return "it does not speak TLS as we do"
            number = re.search(r"\[Errno (-?\d+)\] ?([^\[(]*)", str(cause)) if isinstance(cause, OSError) else None
            if number:  # asyncio puts addresses into the text, and several errors into one
                return os.strerror(int(number[1])) if int(number[1]) > 0 else number[2]
            cause = cause.__cause__ or cause.__context__
        return "it has too many clients" if "max number of clients" in str(error) else "the connection was lost"


_REFUSALS = {
    "NOAUTH": ("asks for a password", "put it into http.store: redis://:password@host"),
    "WRONGPASS": ("does not accept this user and password", "correct them in http.store"),
    "NOPERM": ("does not let this user do what a store needs", "grant it: ~longshore:* &longshore:* +@all"),
    "OOM": ("is out of memory", "raise its maxmemory"),
    "MISCONF": ("can't write its data to disk", "see its log, and make room there"),
    "READONLY": ("is a replica that takes no writes", "name the primary in http.store"),
    "LOADING": ("is still loading its data", "wait until it has"),
    "BUSY": ("is busy with a script", "end that with SCRIPT KILL"),
    "MOVED": ("is part of a cluster", "name a server on its own in http.store"),
    "CROSSSLOT": ("is part of a cluster", "name a server on its own in http.store"),
}
"""By the word that the server's answer begins with."""
_UNKNOWN_REFUSAL = ("refuses a command", "see whether it is Redis 5 or newer, and what its log says")
_CLASSES: dict[type[BaseException], str] = {
    exceptions.OutOfMemoryError: "OOM",
    exceptions.BusyLoadingError: "LOADING",
    exceptions.ReadOnlyError: "READONLY",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.MovedError: "MOVED",
    exceptions.ClusterCrossSlotError: "CROSSSLOT",
}
"""Answers from which the library removes that word."""


def _index(key: str) -> bytes:
    return INDEX + to_bytes(family_of(key))


def _milliseconds(seconds: float) -> int:
    return max(1, math.ceil(min(seconds * 1000, MOST_MILLISECONDS)))


def _pool(url: str, seconds: float) -> Any:
    """A connection pool whose options override the URL's: bytes, bounded waits, nothing sent twice."""
    ours: dict[str, Any] = {
        "protocol": 2,
        "decode_responses": False,
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
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
