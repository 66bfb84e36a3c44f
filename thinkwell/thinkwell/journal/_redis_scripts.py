"""The scripts of a journal, in Lua. Redis runs each of them atomically.

Theory of operation. Every key begins with the journal's prefix. A run is a hash ``run:ID`` (its record,
and what changes: status, ended, last, size, owner) and a stream ``log:ID``, whose entry ``N-0`` is entry
number N: so Redis orders the entries, and refuses a number that exists. Sorted sets list
runs: ``runs``, ``running``, ``caller:C`` and ``thread:T`` by the number that each run gets when it is
created, ``ended`` by when it has ended. The hash ``keys`` knows the callers' keys, ``size`` counts bytes.

A process is a name in the sorted set ``owners``, with the time at which its lease ends by the clock of Redis;
it renews that in time. ``owned:P`` are its runs. If its lease has ended, any process may claim them all. Only
the ``owner`` of a run may add to it, so a process that was suspended for too long does no harm when it
continues. When *all* leases have ended, Redis or the network was down. Then ``grace`` protects all runs for
the time of a lease, so that the first process to return does not take those of the others.

If an answer of Redis is lost, the command is repeated. `CREATE`, `ADD`, `DELETE` and `PUT` learn that from
their first argument, and recognise what they have done.

To wait for a run is to listen to the channel ``changed:ID``. ``to:P`` is the channel to a process.
"""

from __future__ import annotations

from typing import Final

PRELUDE: Final = """
local P = KEYS[1]

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function whole(number)
  return string.format('%d', number)
end

-- What is known of a run, or false.
local function facts(id)
  local found = redis.call('HMGET', P .. 'run:' .. id, 'record', 'status', 'ended', 'last', 'size')
  return found[1] and found
end
"""

RENEWING: Final = """
-- Returns whether the process was known: its runs were not taken from it since it was here last.
local function renew(owner, lease)
  local at = now()
  local latest = redis.call('ZREVRANGE', P .. 'owners', 0, 0, 'WITHSCORES')
  if latest[2] and tonumber(latest[2]) > 0 and tonumber(latest[2]) <= at then
    redis.call('SET', P .. 'grace', owner, 'PX', lease)
  end
  local known = redis.call('ZSCORE', P .. 'owners', owner)
  redis.call('ZADD', P .. 'owners', whole(at + lease), owner)
  return known and 1 or 0
end
"""

CREATE: Final = """
local again, id, owner, record, caller, thread, key = unpack(ARGV)
local run = P .. 'run:' .. id
if key ~= '' then
  local known = redis.call('HGET', P .. 'keys', key)
  local there = known and not (again == '1' and known == id) and facts(known)
  if there then
    return there
  end
end
if redis.call('EXISTS', run) == 1 then
  return again == '1' and redis.call('HGET', run, 'owner') == owner and 1 or 0
end
local number = redis.call('INCR', P .. 'count')
redis.call('HSET', run, 'record', record, 'status', 'running', 'last', 0, 'size', 0,
  'owner', owner, 'caller', caller, 'thread', thread, 'key', key)
redis.call('ZADD', P .. 'runs', number, id)
redis.call('ZADD', P .. 'running', number, id)
redis.call('ZADD', P .. 'caller:' .. caller, number, id)
if thread ~= '' then
  redis.call('ZADD', P .. 'thread:' .. thread, number, id)
end
if key ~= '' then
  redis.call('HSET', P .. 'keys', key, id)
end
redis.call('SADD', P .. 'owned:' .. owner, id)
return 1
"""
"""Returns 1: created. 0: another run has the id. Facts of a run: that of the same key."""

ADD: Final = """
local again, id, owner, first, status, at = unpack(ARGV, 1, 6)
local run, log = P .. 'run:' .. id, P .. 'log:' .. id
local known = redis.call('HMGET', run, 'status', 'owner', 'last')
local last, count = tonumber(known[3] or 0), #ARGV - 6
first = tonumber(first)
if again == '1' and known[1] == status and known[2] == owner and count > 0 and last == first + count - 1 then
  local stored = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)
  if stored[1] and stored[1][2][2] == ARGV[#ARGV] then
    return {'done', last}
  end
end
if known[1] ~= 'running' then
  return {'ended', 0}
elseif known[2] ~= owner then
  return {'taken', 0}
elseif count > 0 and first ~= last + 1 then
  return {'next', last + 1}
elseif status == 'running' and last > 0 and redis.call('EXISTS', log) == 0 then
  return {'lost', 0}
end
local size = 0
for place = 1, count do
  local data = ARGV[6 + place]
  redis.call('XADD', log, whole(last + place) .. '-0', 'data', data)
  size = size + #data
end
last = last + count
redis.call('HSET', run, 'last', whole(last), 'status', status)
redis.call('HINCRBY', run, 'size', whole(size))
redis.call('INCRBY', P .. 'size', whole(size))
if status ~= 'running' then
  redis.call('HSET', run, 'ended', at)
  redis.call('SREM', P .. 'owned:' .. owner, id)
  redis.call('ZREM', P .. 'running', id)
  redis.call('ZADD', P .. 'ended', at, id)
  redis.call('PUBLISH', P .. 'changed:' .. id, 'over')
else
  redis.call('PUBLISH', P .. 'changed:' .. id, whole(last))
end
return {'done', last}
"""

GET: Final = """
local found = {}
for place, id in ipairs(ARGV) do
  found[place] = facts(id)
end
return found
"""

PEEK: Final = "return redis.call('HMGET', P .. 'run:' .. ARGV[1], 'status', 'last')"

LIST: Final = """
local index, before, from, caller, thread, status, limit = unpack(ARGV)
limit = tonumber(limit)
if from == '' then
  from = before == '' and '+inf' or redis.call('ZSCORE', P .. 'runs', before)
  if not from then
    return {''}
  elseif before ~= '' then
    from = '(' .. from
  end
end
local page = {''}
for looked = 1, 10 do
  local found = redis.call('ZREVRANGEBYSCORE', P .. index, from, '-inf', 'WITHSCORES', 'LIMIT', 0, 100)
  for place = 1, #found, 2 do
    local id = found[place]
    local known = redis.call('HMGET', P .. 'run:' .. id, 'status', 'caller', 'thread')
    if known[1] and (status == '' or known[1] == status) and (caller == '' or '=' .. known[2] == caller)
      and (thread == '' or known[3] == thread) then
      page[#page + 1] = facts(id)
      if #page > limit then
        return page
      end
    end
    from = '(' .. found[place + 1]
  end
  if #found < 200 then
    return page
  end
end
page[1] = from
return page
"""
"""Returns the position to continue from, or nothing at the end, and the facts of runs.

It reads 1,000 runs at most.
"""

READ: Final = """
local id, after, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local page, size, count = {}, 0, 16
-- Whether a run should have entries there that Redis has forgotten.
local function lost()
  return #page == 0 and tonumber(redis.call('HGET', P .. 'run:' .. id, 'last') or 0) > after
end
while true do
  -- Nothing comes between N-0 and N-1.
  local found = redis.call('XRANGE', P .. 'log:' .. id, whole(after) .. '-1', '+', 'COUNT', count)
  for _, entry in ipairs(found) do
    local data = entry[2][2]
    if #page > 0 and size + #data > most then
      return page
    end
    page[#page + 1] = entry[1]
    page[#page + 1] = data
    size = size + #data
    after = tonumber(string.match(entry[1], '^%d+'))
  end
  if #found < count then
    return not lost() and page
  end
  -- About as many as fit, judging from those that came: what does not fit was read in vain.
  local mean = math.max(1, size * 2 / #page)
  count = math.max(1, math.min(500, math.ceil((most - size) / mean)))
end
"""
"""Returns ids and data of entries, alternating; nothing if some are missing."""

DELETE: Final = """
local id, token = ARGV[2], ARGV[3]
local run = P .. 'run:' .. id
local known = redis.call('HMGET', run, 'status', 'size', 'caller', 'thread', 'key')
if not known[1] then
  return redis.call('GET', P .. 'gone:' .. id) == token and 1 or 0
elseif known[1] == 'running' then
  return -1
end
redis.call('UNLINK', run, P .. 'log:' .. id)
redis.call('ZREM', P .. 'runs', id)
redis.call('ZREM', P .. 'ended', id)
redis.call('ZREM', P .. 'caller:' .. known[3], id)
redis.call('ZREM', P .. 'thread:' .. known[4], id)
if known[5] ~= '' then
  redis.call('HDEL', P .. 'keys', known[5])
end
redis.call('DECRBY', P .. 'size', known[2])
redis.call('SET', P .. 'gone:' .. id, token, 'EX', 60)
redis.call('PUBLISH', P .. 'changed:' .. id, 'over')
return 1
"""

OLDEST: Final = """
local page = {}
for _, id in ipairs(redis.call('ZRANGE', P .. 'ended', 0, ARGV[1] - 1)) do
  page[#page + 1] = facts(id) or nil
end
return page
"""

SIZE: Final = "return tonumber(redis.call('GET', P .. 'size') or 0)"

POLICY: Final = "return string.match(redis.call('INFO', 'memory'), 'maxmemory_policy:([%w-]+)')"
"""Returns the policy of Redis for a full memory."""

RENEW: Final = RENEWING + "return renew(ARGV[1], ARGV[2])"

CLAIM: Final = (
    RENEWING
    + """
local owner = ARGV[1]
renew(owner, ARGV[2])
-- Who has closed has 0 there.
local until_ = redis.call('EXISTS', P .. 'grace') == 1 and 0 or whole(now())
for _, other in ipairs(redis.call('ZRANGEBYSCORE', P .. 'owners', '-inf', until_)) do
  for _, id in ipairs(redis.call('SMEMBERS', P .. 'owned:' .. other)) do
    local run = P .. 'run:' .. id
    if redis.call('HGET', run, 'status') == 'running' then
      redis.call('HSET', run, 'owner', owner)
      redis.call('SADD', P .. 'owned:' .. owner, id)
    end
  end
  redis.call('UNLINK', P .. 'owned:' .. other)
  redis.call('ZREM', P .. 'owners', other)
end
local mine, numbers = redis.call('SMEMBERS', P .. 'owned:' .. owner), {}
for _, id in ipairs(mine) do
  numbers[id] = tonumber(redis.call('ZSCORE', P .. 'running', id) or 0)
end
table.sort(mine, function(one, other) return numbers[one] < numbers[other] end)
return mine
"""
)
"""Returns all runs of this process, the oldest first: one whose answer was lost may have claimed some."""

RELEASE: Final = """
local owner = ARGV[1]
if redis.call('EXISTS', P .. 'owned:' .. owner) == 1 then
  redis.call('ZADD', P .. 'owners', 0, owner)
else
  redis.call('ZREM', P .. 'owners', owner)
end
return 1
"""

FIND: Final = """
local known = redis.call('HMGET', P .. 'run:' .. ARGV[1], 'status', 'owner')
if known[1] ~= 'running' then
  return {'', 0}
end
local lease = redis.call('ZSCORE', P .. 'owners', known[2])
return {known[2], lease and tonumber(lease) > now() and 1 or 0}
"""
"""Returns the owner of a running run, and whether that process is alive."""

PUT: Final = """
local kind, name, data = unpack(ARGV, 2)
if data then
  redis.call('HSET', P .. 'kind:' .. kind, name, data)
  redis.call('ZADD', P .. 'order:' .. kind, 'NX', redis.call('INCR', P .. 'count'), name)
else
  redis.call('HDEL', P .. 'kind:' .. kind, name)
  redis.call('ZREM', P .. 'order:' .. kind, name)
end
return 1
"""

PICK: Final = "return redis.call('HGET', P .. 'kind:' .. ARGV[1], ARGV[2])"

PICK_ALL: Final = """
local kept = {}
for _, name in ipairs(redis.call('ZRANGE', P .. 'order:' .. ARGV[1], 0, -1)) do
  kept[#kept + 1] = name
  kept[#kept + 1] = redis.call('HGET', P .. 'kind:' .. ARGV[1], name)
end
return kept
"""
