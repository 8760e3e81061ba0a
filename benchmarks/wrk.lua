-- What wrk sends: the same request again and again, each with an id of its own.
-- Arguments: the body, with @ where the id goes, then headers as "Name: value". A header given several times, as one
-- for each session is, takes turns.

local WIDTH = 1000000 -- ids have seven digits, so that every request has the same length

local templates = {}
local count = 0

function init(args)
  local headers, turns = {}, {}
  for i = 2, #args do
    local name, value = args[i]:match("^([^:]+): (.*)$")
    if headers[name] then
      turns.name = name
    end
    headers[name] = headers[name] or {}
    table.insert(headers[name], value)
  end
  local body = args[1]:gsub("@", tostring(WIDTH))
  local single = {}
  for name, values in pairs(headers) do
    single[name] = values[1]
  end
  for _, value in ipairs(turns.name and headers[turns.name] or { false }) do
    if value then
      single[turns.name] = value
    end
    local whole = wrk.format("POST", nil, single, body)
    local from, to = whole:find(tostring(WIDTH), 1, true)
    table.insert(templates, { whole:sub(1, from - 1), whole:sub(to + 1) })
  end
end

function request()
  count = count + 1
  local template = templates[count % #templates + 1]
  return template[1] .. (WIDTH + count) .. template[2]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"seconds":%.6f,"status":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d,"p50_ms":%.4f,"p99_ms":%.4f}\n',
    summary.requests, summary.duration / 1e6, errors.status, errors.connect, errors.read, errors.write, errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3
  ))
end
