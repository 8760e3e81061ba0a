"""Operations that Redis does in one step, in Lua. Time is the server's: hosts may disagree about it.

Each family has an index, a sorted set of its keys by expiry in milliseconds, which `find` and `count` read instead of
the whole keyspace. It loses its expired members whenever it is written, and expires with its last one.
"""

from __future__ import annotations

_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function at(ms) return string.format('%.0f', ms) end
"""

_FILE = """
local function file(index, name, ms)
  redis.call('ZADD', index, at(now + ms), name)
  redis.call('ZREMRANGEBYSCORE', index, '-inf', at(now))
  if redis.call('PTTL', index) < tonumber(ms) then redis.call('PEXPIRE', index, ms) end
end
"""

SET = f"""{_NOW}{_FILE}
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
file(KEYS[2], ARGV[3], ARGV[2])
return 1
"""
"""KEYS value, index; ARGV value, milliseconds, name."""

ADD = f"""{_NOW}{_FILE}
if not redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 0 end
file(KEYS[2], ARGV[3], ARGV[2])
return 1
"""
"""As SET; 0: there is one."""

SWAP = f"""{_NOW}{_FILE}
if redis.call('GET', KEYS[1]) ~= ARGV[3] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
file(KEYS[2], ARGV[4], ARGV[2])
return 1
"""
"""KEYS value, index; ARGV value, milliseconds, what must be there now, name. 0: it is not."""

TOUCH = f"""{_NOW}{_FILE}
if redis.call('PEXPIRE', KEYS[1], ARGV[1]) == 0 then return 0 end
file(KEYS[2], ARGV[2], ARGV[1])
return 1
"""
"""KEYS value, index; ARGV milliseconds, name. 0: there is none."""

DELETE = """
for i, name in ipairs(ARGV) do
  redis.call('DEL', KEYS[3 * i - 2], KEYS[3 * i - 1])
  redis.call('ZREM', KEYS[3 * i], name)
end
return 1
"""
"""KEYS value, log, index of each; ARGV the names."""

FIND = f"""{_NOW}
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

COUNT = f"""{_NOW}
return redis.call('ZCOUNT', KEYS[1], '(' .. at(now), '+inf')
"""
"""KEYS index."""

APPEND = """
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local position = 1
if last[1] then position = tonumber(string.match(last[1][1], '^%d+')) + 1 end
local id = string.format('%.0f-0', position)
redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[3], id, 'v', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return position
"""
"""KEYS log; ARGV value, milliseconds, most. A log is a stream whose ids are 1-0, 2-0 …; its last entry is never cut."""
