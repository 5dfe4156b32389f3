/**
 * Evidence that a snapshot has the data it was taken of: the number of keys at that moment, and digests of a sample of
 * them. One script draws the sample from the running engine, and digests the same keys in the engine that has loaded
 * the snapshot.
 *
 * A digest of all data would block commands for as long as reading all data takes, so keys and bytes of the sample are
 * limited. The checksum of the file, which the engine verifies while loading, covers everything else.
 */
import type { Redis } from 'iovalkey'

/** One key of the sample. */
export interface SampledKey {
  readonly key: Uint8Array
  /** Digest of type, value and expiry; without the value if that is too large. */
  readonly digest: string
  /** Unix milliseconds; -1 for a key that does not expire. */
  readonly expiresAt: number
}

/** Evidence of a snapshot; see the top of this file. */
export interface Evidence {
  /** Keys at the moment of the snapshot, including expired ones that were not deleted yet. */
  readonly keys: number
  readonly sample: readonly SampledKey[]
}

/** Maximum keys of a sample. */
const SAMPLED_KEYS = 64

/** Larger values are not read, so that other clients do not notice the sample. */
const SAMPLED_VALUE_BYTES = 65_536

/**
 * KEYS: the keys to digest; without any, at most ARGV[1] random keys (all keys if there are no more).
 * ARGV[2]: maximum size of values to read and of names, bytes; longer names would add up in our memory.
 * Replies with the number of all keys, then name, digest and expiry of each; missing keys are left out.
 *
 * Sets, hashes and sorted sets have no stable order, so their elements are sorted by digest. Hashes with expiring
 * fields are not read, because their fields may be gone a moment later.
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

/** Arguments of the script, after its name or digest. */
export function sampleArguments(keys: readonly Uint8Array[] = []): (string | Buffer)[] {
  const names = keys.map((key) => Buffer.from(key))
  return [`${keys.length}`, ...names, `${SAMPLED_KEYS}`, `${SAMPLED_VALUE_BYTES}`]
}

/** Parses the reply of the script. */
export function readEvidence(answer: unknown): Evidence {
  if (!Array.isArray(answer)) throw new Error('the sample of a database is not a list')
  const [keys, ...rest] = answer as unknown[]
  const sample: SampledKey[] = []
  for (let i = 0; i + 2 < rest.length; i += 3) {
    sample.push({ key: bytesOf(rest[i]), digest: textOf(rest[i + 1]), expiresAt: Number(textOf(rest[i + 2])) })
  }
  return { keys: Number(keys), sample }
}

/** Digests keys of an engine. */
export async function evidenceOf(engine: Redis, keys: readonly Uint8Array[]): Promise<Evidence> {
  return readEvidence(await engine.callBuffer('EVAL_RO', SAMPLE_SCRIPT, ...sampleArguments(keys)))
}

/**
 * The difference between a sample and the same keys digested again, in words; `undefined` if there is none. Keys
 * expired by `nowMs` are ignored.
 */
export function differenceOf(expected: readonly SampledKey[], found: Evidence, nowMs: number): string | undefined {
  const digests = new Map(found.sample.map(({ key, digest }) => [nameOf(key), digest]))
  const unexpired = expected.filter(({ expiresAt }) => expiresAt < 0 || expiresAt > nowMs)
  const missing = unexpired.filter(({ key }) => !digests.has(nameOf(key))).length
  const changed = unexpired.filter(({ key, digest }) => (digests.get(nameOf(key)) ?? digest) !== digest).length
  if (missing + changed === 0) return undefined
  return `of ${unexpired.length} sampled keys ${missing} are missing and ${changed} differ`
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key).toString('latin1')
}

function bytesOf(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value
  throw new Error('a key of a sample is not a string')
}

function textOf(value: unknown): string {
  return Buffer.from(bytesOf(value)).toString()
}
