/**
 * What proves that a snapshot holds the data it was taken of: the number of keys at its very moment, and digests of a
 * sample of them. The same script draws the sample from the engine that runs and digests the same keys again in the
 * engine that has loaded the snapshot.
 *
 * A digest of all data would hold up every command for as long as it takes to read all data, so the sample is bounded
 * in keys and in bytes. Every other byte is covered by the checksum of the file, which the engine checks as it loads.
 */
import type { Redis } from 'iovalkey'

/** One key of the sample. */
export interface SampledKey {
  readonly key: Uint8Array
  /** Type, value and expiry as one digest; of a value too large for the sample only type and expiry. */
  readonly digest: string
  /** Unix milliseconds; -1 for a key that does not expire. */
  readonly expiresAt: number
}

/** See the top of this file. */
export interface Evidence {
  /** All keys at the moment of the snapshot, including those that had expired and were not deleted yet. */
  readonly keys: number
  readonly sample: readonly SampledKey[]
}

/** Most keys of a sample. */
const SAMPLED_KEYS = 64

/** Larger values are not read: the sample must not be felt by other clients. */
const SAMPLED_VALUE_BYTES = 65_536

/**
 * KEYS: the keys to digest; without any, ARGV[1] keys at most are drawn (all of them where there are no more).
 * ARGV[2]: largest value that is read and longest name, bytes: names of any length would add up in our memory.
 * Answers the number of all keys, then key, digest and expiry of each; a key that does not exist is left out.
 *
 * Sets, hashes and sorted sets come in an order of the engine's own, so their elements are sorted by digest. Hashes
 * whose fields expire are not read, because fields may be gone a moment later.
 */
export const SAMPLE_SCRIPT = `
local function joined(list, width, ordered)
  local rows = {}
  for i = 1, #list, width do
    local row = {}
    for j = i, i + width - 1 do row[#row + 1] = redis.sha1hex(list[j]) end
    rows[#rows + 1] = table.concat(row)
  end
  if not ordered then table.sort(rows) end
  return table.concat(rows)
end
local function fieldsExpire(key)
  local fields = redis.call('HKEYS', key)
  if #fields > 4000 then return true end
  local ttls = redis.pcall('HTTL', key, 'FIELDS', #fields, unpack(fields))
  if ttls.err then return false end
  for _, ttl in ipairs(ttls) do if ttl ~= -1 then return true end end
  return false
end
local function entries(list)
  local flat = {}
  for _, entry in ipairs(list) do
    flat[#flat + 1] = entry[1]
    for _, text in ipairs(entry[2]) do flat[#flat + 1] = text end
  end
  return flat
end
local readers = {
  string = function(key) return redis.sha1hex(redis.call('GET', key)) end,
  list = function(key) return joined(redis.call('LRANGE', key, 0, -1), 1, true) end,
  set = function(key) return joined(redis.call('SMEMBERS', key), 1, false) end,
  zset = function(key) return joined(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), 2, true) end,
  hash = function(key) return fieldsExpire(key) and '' or joined(redis.call('HGETALL', key), 2, false) end,
  stream = function(key) return joined(entries(redis.call('XRANGE', key, '-', '+')), 1, true) end,
}
local function describe(key, answer)
  if #key > tonumber(ARGV[2]) then return end
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then return end
  local read = readers[kind]
  local size = redis.call('MEMORY', 'USAGE', key) or 0
  local value = read and size <= tonumber(ARGV[2]) and read(key) or ''
  local expiry = redis.call('PEXPIRETIME', key)
  answer[#answer + 1] = key
  answer[#answer + 1] = redis.sha1hex(kind .. ' ' .. expiry .. ' ' .. value)
  answer[#answer + 1] = tostring(expiry)
end
local function drawn(total, most)
  if total <= most then return redis.call('KEYS', '*') end
  local keys, seen = {}, {}
  for _ = 1, most do
    local key = redis.call('RANDOMKEY')
    if key and not seen[key] then
      seen[key] = true
      keys[#keys + 1] = key
    end
  end
  return keys
end
local total = redis.call('DBSIZE')
local answer = { total }
for _, key in ipairs(#KEYS > 0 and KEYS or drawn(total, tonumber(ARGV[1]))) do describe(key, answer) end
return answer
`

/** The arguments of the script after its name or digest. */
export function sampleArguments(keys: readonly Uint8Array[] = []): (string | Buffer)[] {
  const names = keys.map((key) => Buffer.from(key))
  return [`${keys.length}`, ...names, `${SAMPLED_KEYS}`, `${SAMPLED_VALUE_BYTES}`]
}

/** Reads the answer of the script. */
export function readEvidence(answer: unknown): Evidence {
  if (!Array.isArray(answer)) throw new Error('the sample of a database is no list')
  const [keys, ...rest] = answer as unknown[]
  const sample: SampledKey[] = []
  for (let i = 0; i + 2 < rest.length; i += 3) {
    sample.push({ key: bytesOf(rest[i]), digest: textOf(rest[i + 1]), expiresAt: Number(textOf(rest[i + 2])) })
  }
  return { keys: Number(keys), sample }
}

/** Digests keys of an engine again. */
export async function evidenceOf(engine: Redis, keys: readonly Uint8Array[]): Promise<Evidence> {
  return readEvidence(await engine.callBuffer('EVAL_RO', SAMPLE_SCRIPT, ...sampleArguments(keys)))
}

/**
 * How a sample differs from the same keys digested again, in words; `undefined` when it does not. Keys that have
 * expired by `nowMs` say nothing.
 */
export function differenceOf(wanted: readonly SampledKey[], found: Evidence, nowMs: number): string | undefined {
  const digests = new Map(found.sample.map(({ key, digest }) => [nameOf(key), digest]))
  const lasting = wanted.filter(({ expiresAt }) => expiresAt < 0 || expiresAt > nowMs)
  const missing = lasting.filter(({ key }) => !digests.has(nameOf(key))).length
  const changed = lasting.filter(({ key, digest }) => (digests.get(nameOf(key)) ?? digest) !== digest).length
  if (missing + changed === 0) return undefined
  return `of ${lasting.length} sampled keys ${missing} are missing and ${changed} differ`
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key).toString('latin1')
}

function bytesOf(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value
  throw new Error('a key of a sample is no text')
}

function textOf(value: unknown): string {
  return Buffer.from(bytesOf(value)).toString()
}
