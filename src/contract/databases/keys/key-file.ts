/**
 * The file of exported keys: lines of JSON in UTF-8, usually `*.jsonl`.
 *
 *     {"format":"homeport-keys","version":1,"exportedAt":"2026-11-28T10:00:00.000Z"}
 *     {"key":"user:1","type":"hash","dump":"DQ4OAAAA..."}
 *     {"key64":"/wCA","type":"string","expiresAtMs":1764324000000,"dump":"AAEx..."}
 *     {"end":true,"keys":2}
 *
 * `dump` is the payload of DUMP in base64: the engine's own serialization, so it holds every type, byte for byte, and has
 * a checksum. `key64` is a name that is not UTF-8. `expiresAtMs` is Unix milliseconds, absent for a key that does not
 * expire: a key does not live longer because its file is loaded later. The last line counts the keys, so that a cut file is
 * recognised. Unknown members are ignored, because a later version may add some; unknown lines are reported as problems.
 */
import { bytesOfKeyName, isBinaryName, type KeyName, keyNameOf } from './key-name.js'

/** The version that this code writes and reads. */
export const KEY_FILE_VERSION = 1
const FORMAT = 'homeport-keys'

/**
 * The longest line that is read, bytes: enough for a payload of the largest request that any plan allows, and a bound on the
 * memory that a file can take.
 */
export const MAX_LINE_BYTES = 256 * 2 ** 20

/** One key as it is stored. */
export interface StoredKey {
  readonly name: KeyName
  /** The engine's name of the type, such as `hash`. Only for people who read the file: RESTORE does not need it. */
  readonly type: string
  /** Unix milliseconds; absent: it does not expire. */
  readonly expiresAtMs?: number
  /** The payload of DUMP, in base64 as the data plane sends it. */
  readonly dump: string
}

/** Base64 of the platform: Node.js and browsers have different fast implementations. */
export interface Base64 {
  encode(bytes: Uint8Array): string
  /** `text` is valid base64. */
  decode(text: string): Uint8Array<ArrayBuffer>
}

/** A line that was read. */
export type KeyLine =
  | { readonly kind: 'header'; readonly version: number }
  | { readonly kind: 'key'; readonly key: StoredKey }
  | { readonly kind: 'end'; readonly keys: number }
  | { readonly kind: 'blank' }
  /** `problem` says what is wrong with it. */
  | { readonly kind: 'broken'; readonly problem: string }

/** The first line of a file. */
export const headerLine = (nowMs: number): string =>
  line({ format: FORMAT, version: KEY_FILE_VERSION, exportedAt: new Date(nowMs).toISOString() })

/** The line of a key. */
export function keyLine({ name, type, expiresAtMs, dump }: StoredKey, base64: Base64): string {
  const named = isBinaryName(name) ? { key64: base64.encode(bytesOfKeyName(name)) } : { key: name }
  return line({ ...named, type, ...(expiresAtMs !== undefined && { expiresAtMs }), dump })
}

/** The last line of a complete file. */
export const endLine = (keys: number): string => line({ end: true, keys })

const line = (value: object): string => `${JSON.stringify(value)}\n`

/** Reads one line. Never throws. */
export function readKeyLine(text: string, base64: Base64): KeyLine {
  if (text.trim() === '') return { kind: 'blank' }
  const value = parsed(text)
  if (value === undefined) return broken('it is not a JSON object')
  if (value.format === FORMAT && typeof value.version === 'number') return { kind: 'header', version: value.version }
  if (value.end === true && typeof value.keys === 'number') return { kind: 'end', keys: value.keys }
  return readKey(value, base64)
}

function readKey(value: Readonly<Record<string, unknown>>, base64: Base64): KeyLine {
  const { key, key64, type, expiresAtMs, dump } = value
  const name = isBase64(key64) ? keyNameOf(base64.decode(key64)) : key
  // A lone surrogate is not valid text: it would become another character, or be read as the mark of a binary name.
  if (typeof name !== 'string' || (name === key && /\p{Surrogate}/u.test(name)))
    return broken('it has neither a text as "key" nor base64 as "key64"')
  if (!isBase64(dump) || dump === '') return broken('"dump" is not base64')
  const isExpiry = expiresAtMs === undefined || (Number.isSafeInteger(expiresAtMs) && Number(expiresAtMs) >= 0)
  if (!isExpiry) return broken('"expiresAtMs" is not a time in Unix milliseconds')
  const expiry = expiresAtMs === undefined ? {} : { expiresAtMs: Number(expiresAtMs) }
  const stored = { name, type: typeof type === 'string' ? type : 'unknown', dump, ...expiry }
  return { kind: 'key', key: stored }
}

const broken = (problem: string): KeyLine => ({ kind: 'broken', problem })

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isBase64 = (value: unknown): value is string =>
  typeof value === 'string' && value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value)

/** A line of a file with its number, 1 for the first; without text when it is longer than `MAX_LINE_BYTES`. */
export interface NumberedLine {
  readonly number: number
  readonly text: string | undefined
}

const LF = 10

/** Splits a stream of bytes into lines, and holds at most one line. `maxBytes` is for tests. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes = MAX_LINE_BYTES,
): AsyncGenerator<NumberedLine> {
  const held = new HeldLine(maxBytes)
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, from)) {
      held.add(chunk.subarray(from, end))
      yield held.end()
      from = end + 1
    }
    held.add(chunk.subarray(from))
  }
  if (held.bytes > 0) yield held.end()
}

class HeldLine {
  readonly #maxBytes: number
  #number = 0
  #parts: Uint8Array[] = []
  bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  add(part: Uint8Array): void {
    this.bytes += part.length
    if (this.bytes > this.#maxBytes) this.#parts = []
    // Copies the part, because the stream may reuse the memory of a chunk for the next one.
    else if (part.length > 0) this.#parts.push(part.slice())
  }

  end(): NumberedLine {
    const isTooLong = this.bytes > this.#maxBytes
    const decoder = new TextDecoder()
    const text = this.#parts.map((part) => decoder.decode(part, { stream: true })).join('') + decoder.decode()
    this.#number++
    this.#parts = []
    this.bytes = 0
    return { number: this.#number, text: isTooLong ? undefined : text }
  }
}
