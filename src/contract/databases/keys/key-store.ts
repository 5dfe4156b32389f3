/**
 * Reads and writes the keys of one database over its REST API, for the console and the command line. Text names are sent
 * together, as JSON in one request; each binary name needs its own request, with the name in the path.
 */
import type { Base64, StoredKey } from './key-file.js'
import { isBinaryName, type KeyName, keyNameOf, pathSegment } from './key-name.js'

/**
 * Sends a request to the REST API of the database and returns the JSON of its answer, also if the answer is a refusal.
 * Replies are in base64 (`Upstash-Encoding`). Rejects when there is no JSON answer.
 */
export type PostToDatabase = (path: string, body?: string | Uint8Array<ArrayBuffer>) => Promise<unknown>

/** The database refused a request; the message is its text. */
export class KeysRefused extends Error {
  constructor(text: string) {
    super(text)
    this.name = 'KeysRefused'
  }
}

/** What SCAN looks for. */
export interface KeyPattern {
  /** A pattern of SCAN; absent: every key. */
  readonly pattern?: string | undefined
  readonly type?: string | undefined
  /** About how many keys one step searches. */
  readonly count: number
}

/** One step of SCAN. It may return a name that another step has returned. */
export interface ScanStep {
  /** The cursor of the next step; `undefined`: this was the last one. */
  readonly cursor: string | undefined
  readonly names: readonly KeyName[]
}

/** A key that was read. */
export type KeyReading =
  | { readonly kind: 'key'; readonly key: StoredKey }
  | { readonly kind: 'gone'; readonly name: KeyName }
  /** `problem` is the text of the database. */
  | { readonly kind: 'refused'; readonly name: KeyName; readonly problem: string }

/** The facts about a key that a list shows. */
export interface KeyFacts {
  /** The engine's name of the type, such as `hash`; `none` if the key is gone. */
  readonly type: string
  /** Milliseconds until it expires; `undefined`: never. */
  readonly ttlMs: number | undefined
  /** Approximate size in memory, bytes: the engine samples the elements of large values. */
  readonly bytes: number | undefined
}

/** The outcome of RESTORE. */
export type RestoreOutcome =
  | { readonly kind: 'restored' }
  | { readonly kind: 'exists' }
  | { readonly kind: 'refused'; readonly problem: string }

type Line = readonly (string | number)[]

/** The longest name that fits into the path of a request, bytes of the encoded path. */
const MAX_PATH_LENGTH = 60_000
const WRONG_PAYLOAD = /DUMP payload version or checksum/i

/** The keys of one database. */
export class KeyStore {
  readonly #post: PostToDatabase
  readonly #base64: Base64

  constructor(post: PostToDatabase, base64: Base64) {
    this.#post = post
    this.#base64 = base64
  }

  /** One step of SCAN from a cursor, `0` for the first. @throws KeysRefused */
  async scan(cursor: string, { pattern, type, count }: KeyPattern): Promise<ScanStep> {
    const match = pattern === undefined ? [] : ['MATCH', pattern]
    const ofType = type === undefined ? [] : ['TYPE', type]
    const line = ['SCAN', cursor, ...match, 'COUNT', count, ...ofType]
    const answer = answerOf(await this.#post('', JSON.stringify(line)))
    if (answer.error !== undefined) throw new KeysRefused(answer.error)
    const [next, names] = Array.isArray(answer.result) ? answer.result : []
    const following = this.#text(next)
    return {
      cursor: following === '0' ? undefined : following,
      names: Array.isArray(names) ? names.map((name) => keyNameOf(this.#bytes(name))) : [],
    }
  }

  /** How many keys there are. @throws KeysRefused */
  async count(): Promise<number> {
    const { result, error } = answerOf(await this.#post('', JSON.stringify(['DBSIZE'])))
    if (error !== undefined) throw new KeysRefused(error)
    return Number(result)
  }

  /** Approximate size of each key in memory, bytes; `undefined` for a key that is gone. */
  async sizes(names: readonly KeyName[]): Promise<readonly (number | undefined)[]> {
    const answers = await this.#each(names, (name) => [['MEMORY', 'USAGE', name]])
    return answers.map(([usage]) => numberOf(usage))
  }

  /** Type, expiry and size of each key. */
  async facts(names: readonly KeyName[]): Promise<readonly KeyFacts[]> {
    const answers = await this.#each(names, (name) => [
      ['TYPE', name],
      ['PTTL', name],
      ['MEMORY', 'USAGE', name],
    ])
    return answers.map(([type, ttl, usage]) => {
      const ttlMs = numberOf(ttl) ?? -1
      return { type: this.#text(type?.result), ttlMs: ttlMs < 0 ? undefined : ttlMs, bytes: numberOf(usage) }
    })
  }

  /** Deletes keys. @returns how many existed @throws KeysRefused with the first refusal; other keys may have been deleted */
  unlink(names: readonly KeyName[]): Promise<number> {
    return this.#count(names, (name) => ['UNLINK', name])
  }

  /**
   * Sets the expiry of keys, or removes it.
   * @returns how many were changed; without `seconds`, only keys that had an expiry count
   * @throws KeysRefused with the first refusal; other keys may have been changed
   */
  expire(names: readonly KeyName[], seconds: number | undefined): Promise<number> {
    return this.#count(names, (name) => (seconds === undefined ? ['PERSIST', name] : ['EXPIRE', name, seconds]))
  }

  async #count(names: readonly KeyName[], lineOf: (name: KeyName) => Line): Promise<number> {
    const answers = (await this.#each(names, (name) => [lineOf(name)])).flat()
    const refused = answers.find(({ error }) => error !== undefined)
    if (refused) throw new KeysRefused(refused.error ?? '')
    return answers.reduce((sum, answer) => sum + (numberOf(answer) ?? 0), 0)
  }

  /** Reads keys. Payload and expiry of a key are read atomically, unless its name is binary. */
  async read(names: readonly KeyName[]): Promise<readonly KeyReading[]> {
    const texts = names.filter((name) => !isBinaryName(name))
    const readings = await this.#readTexts(texts)
    for (const name of names) if (isBinaryName(name)) readings.push(await this.#readBinary(name))
    return readings
  }

  /** Creates a key from its payload. `replace` overwrites an existing one. */
  async restore(key: StoredKey, mode: 'new' | 'replace'): Promise<RestoreOutcome> {
    const path = `/restore/${pathSegment(key.name)}/${key.expiresAtMs ?? 0}?ABSTTL${mode === 'replace' ? '&REPLACE' : ''}`
    const unfit = unfitName(key.name, path)
    if (unfit !== undefined) return { kind: 'refused', problem: unfit }
    const { error } = answerOf(await this.#post(path, this.#base64.decode(key.dump)))
    if (error === undefined) return { kind: 'restored' }
    if (error.startsWith('BUSYKEY')) return { kind: 'exists' }
    return { kind: 'refused', problem: WRONG_PAYLOAD.test(error) ? `${error}: damaged, or from a newer engine` : error }
  }

  async #readTexts(names: readonly KeyName[]): Promise<KeyReading[]> {
    if (names.length === 0) return []
    const lines = names.flatMap((name): Line[] => readingOf(name))
    const answers = await this.#post('/multi-exec', JSON.stringify(lines))
    if (Array.isArray(answers)) {
      const each = answers.map(answerOf)
      return names.map((name, index) => this.#reading(name, each.slice(index * 3, index * 3 + 3)))
    }
    const [name, ...others] = names
    const { error } = answerOf(answers)
    if (name === undefined || others.length === 0)
      return [{ kind: 'refused', name: name ?? '', problem: error ?? 'no answer' }]
    // Together the keys are too large. Read one by one, each gets its own answer.
    const readings: KeyReading[] = []
    for (const one of names) readings.push(...(await this.#readTexts([one])))
    return readings
  }

  async #readBinary(name: KeyName): Promise<KeyReading> {
    const [answers = []] = await this.#each([name], readingOf)
    return this.#reading(name, answers)
  }

  #reading(name: KeyName, [expiry, type, dump]: Answers): KeyReading {
    const problem = expiry?.error ?? type?.error ?? dump?.error
    if (problem !== undefined) return { kind: 'refused', name, problem }
    if (typeof dump?.result !== 'string') return { kind: 'gone', name }
    const expiresAtMs = Number(expiry?.result ?? -1)
    const key = { name, type: this.#text(type?.result), dump: dump.result }
    return { kind: 'key', key: expiresAtMs < 0 ? key : { ...key, expiresAtMs } }
  }

  /** Sends the same commands for each name; text names share one request. @throws KeysRefused if that request is refused */
  async #each(names: readonly KeyName[], linesOf: (name: KeyName) => readonly Line[]): Promise<readonly Answers[]> {
    const texts = names.filter((name) => !isBinaryName(name))
    const lines = texts.map(linesOf)
    const answers = await this.#pipeline(lines.flat())
    const byName = new Map<KeyName, Answers>()
    let at = 0
    for (const [index, name] of texts.entries()) {
      const count = lines[index]?.length ?? 0
      byName.set(name, answers.slice(at, at + count))
      at += count
    }
    for (const name of names) if (isBinaryName(name)) byName.set(name, await this.#inPaths(name, linesOf(name)))
    return names.map((name) => byName.get(name) ?? [])
  }

  async #inPaths(name: KeyName, lines: readonly Line[]): Promise<Answers> {
    const answers: Answer[] = []
    for (const line of lines) {
      const path = line.map((word) => (word === name ? pathSegment(name) : encodeURIComponent(word))).join('/')
      const unfit = unfitName(name, path)
      answers.push(unfit === undefined ? answerOf(await this.#post(`/${path}`)) : { error: unfit })
    }
    return answers
  }

  async #pipeline(lines: readonly Line[]): Promise<Answers> {
    if (lines.length === 0) return []
    const answers = await this.#post('/pipeline', JSON.stringify(lines))
    if (Array.isArray(answers)) return answers.map(answerOf)
    throw new KeysRefused(answerOf(answers).error ?? 'the database sent no replies')
  }

  #bytes(value: unknown): Uint8Array<ArrayBuffer> {
    return this.#base64.decode(typeof value === 'string' ? value : '')
  }

  #text(value: unknown): string {
    return new TextDecoder().decode(this.#bytes(value))
  }
}

const readingOf = (name: KeyName): Line[] => [
  ['PEXPIRETIME', name],
  ['TYPE', name],
  ['DUMP', name],
]

/** Why a name cannot be in a path; `undefined` if it can. */
function unfitName(name: KeyName, path: string): string | undefined {
  // URLs drop these segments, also in their encoded spelling.
  if (name === '.' || name === '..') return 'a key of this name cannot be sent over REST. Use the Redis protocol'
  if (path.length > MAX_PATH_LENGTH) return 'the name is too long for a request over REST. Use the Redis protocol'
  return undefined
}

interface Answer {
  readonly result?: unknown
  readonly error?: string
}

type Answers = readonly Answer[]

const numberOf = (answer: Answer | undefined): number | undefined =>
  typeof answer?.result === 'number' ? answer.result : undefined

/** One answer of the REST API: a result, or the text of an error. */
function answerOf(value: unknown): Answer {
  if (typeof value !== 'object' || value === null) return { error: 'the answer of the database has an unknown shape' }
  if ('error' in value && typeof value.error === 'string') return { error: value.error }
  return 'result' in value ? { result: value.result } : { error: 'the answer of the database has an unknown shape' }
}
