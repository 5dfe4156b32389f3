/** Writes keys of a database to a file, and reads a file into a database, a bounded number of bytes at a time. */
import {
  type Base64,
  endLine,
  headerLine,
  KEY_FILE_VERSION,
  keyLine,
  type NumberedLine,
  readKeyLine,
  type StoredKey,
} from './key-file.js'
import type { KeyName } from './key-name.js'
import type { KeyPattern, KeyReading, KeyStore } from './key-store.js'

/** Number of keys whose sizes are read in one request. */
const NAMES_AT_A_TIME = 250
/** Total size of the payloads that are read in one request; a larger payload gets its own request. */
const BYTES_AT_A_TIME = 2 * 2 ** 20

/** Total size of the payloads that wait for an answer, characters of base64; a larger payload is sent alone. */
const PENDING_AT_A_TIME = 32 * 2 ** 20

/** Progress of an export, keys. */
export interface ExportTotals {
  readonly exported: number
  /** Keys that were deleted or expired after they had been found. */
  readonly gone: number
  /** Keys that the database refused to return. */
  readonly refused: number
}

/** Settings of an export. */
export interface ExportOptions {
  readonly base64: Base64
  /** Unix milliseconds, for the first line. */
  readonly nowMs: number
  /** Called for each key that cannot be exported. */
  readonly onRefused?: (name: KeyName, problem: string) => void
  /** Called after each piece of the file. */
  readonly onStep?: (totals: ExportTotals) => void
}

/**
 * Yields the file of these keys in pieces of at most a few megabytes, unless one payload is larger. Each key is as it was
 * when it was read: the file is not a snapshot. @throws KeysRefused, or the error of the request to the database
 */
export async function* exportKeys(
  store: Pick<KeyStore, 'sizes' | 'read'>,
  names: AsyncIterable<readonly KeyName[]> | Iterable<readonly KeyName[]>,
  { base64, nowMs, onRefused, onStep }: ExportOptions,
): AsyncGenerator<string> {
  const totals = { exported: 0, gone: 0, refused: 0 }
  yield headerLine(nowMs)
  for await (const found of names) {
    for await (const batch of batchesOf(store, found)) {
      const readings = await store.read(batch)
      const lines = readings.map((reading) => lineOf(reading, base64))
      for (const reading of readings) {
        totals[COUNTED[reading.kind]]++
        if (reading.kind === 'refused') onRefused?.(reading.name, reading.problem)
      }
      yield lines.join('')
      onStep?.({ ...totals })
    }
  }
  yield endLine(totals.exported)
}

const COUNTED = { key: 'exported', gone: 'gone', refused: 'refused' } as const

const lineOf = (reading: KeyReading, base64: Base64): string =>
  reading.kind === 'key' ? keyLine(reading.key, base64) : ''

async function* batchesOf(store: Pick<KeyStore, 'sizes'>, names: readonly KeyName[]): AsyncGenerator<KeyName[]> {
  for (let at = 0; at < names.length; at += NAMES_AT_A_TIME) {
    const some = names.slice(at, at + NAMES_AT_A_TIME)
    yield* batchesBySize(some, await store.sizes(some))
  }
}

/** Cuts names into batches of up to `BYTES_AT_A_TIME`. A size is unknown if the key is gone. */
export function batchesBySize(names: readonly KeyName[], sizes: readonly (number | undefined)[]): KeyName[][] {
  const batches: KeyName[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const [index, name] of names.entries()) {
    bytes += sizes[index] ?? 0
    if (bytes > BYTES_AT_A_TIME) {
      batches.push([])
      bytes = sizes[index] ?? 0
    }
    batches.at(-1)?.push(name)
  }
  return batches
}

/** Yields the names that SCAN finds, step by step. `onSearched` gets the approximate number of keys searched so far. */
export async function* foundNames(
  store: Pick<KeyStore, 'scan'>,
  pattern: KeyPattern,
  onSearched?: (count: number) => void,
): AsyncGenerator<readonly KeyName[]> {
  let cursor: string | undefined = '0'
  for (let searched = pattern.count; cursor !== undefined; searched += pattern.count) {
    const step: Awaited<ReturnType<KeyStore['scan']>> = await store.scan(cursor, pattern)
    cursor = step.cursor
    onSearched?.(searched)
    if (step.names.length > 0) yield [...new Set(step.names)]
  }
}

/** What an import did with a key. */
export type ImportOutcome = 'imported' | 'replaced' | 'skipped' | 'expired' | 'failed'

/** All outcomes, in the order in which they are shown. */
export const IMPORT_OUTCOMES: readonly ImportOutcome[] = ['imported', 'replaced', 'skipped', 'expired', 'failed']

/** What an import did with one line of the file. */
export interface ImportedKey {
  /** The number of the line. */
  readonly line: number
  /** Absent: the line cannot be read. */
  readonly name?: KeyName
  readonly outcome: ImportOutcome
  /** Why it failed. */
  readonly problem?: string
}

/** Settings of an import. */
export interface ImportOptions {
  readonly base64: Base64
  /** What happens to keys that exist: they stay, or the file replaces them. */
  readonly existing: 'skip' | 'replace'
  /** Most requests in flight at a time. */
  readonly parallel: number
  /** The current time, Unix milliseconds. */
  readonly now: () => number
  readonly onKey: (imported: ImportedKey) => void
  /** When it aborts, the import finishes the keys in flight, then rejects with the reason. */
  readonly signal?: AbortSignal
}

/** How an import ended. `cut`: the last line is missing, or its count is wrong, so a part of the file may be missing. */
export type ImportEnd = 'whole' | 'cut'

/** The file is not a file of exported keys, or has a newer version. */
export class NoKeyFile extends Error {}

/**
 * Imports a file. Only the payloads in flight are in memory. An interrupted import can be repeated.
 * @throws NoKeyFile before anything was imported, or the error of the request to the database
 */
export async function importKeys(
  store: Pick<KeyStore, 'restore'>,
  lines: AsyncIterable<NumberedLine>,
  options: ImportOptions,
): Promise<ImportEnd> {
  const work = new ImportWork(store, options)
  let hasHeader = false
  let counted: number | undefined
  let keys = 0
  try {
    for await (const { number, text } of lines) {
      options.signal?.throwIfAborted()
      const line = text === undefined ? TOO_LONG : readKeyLine(text, options.base64)
      if (line.kind === 'blank') continue
      if (!hasHeader) checkHeader(line)
      hasHeader = true
      if (line.kind === 'end') counted = line.keys
      else if (line.kind === 'broken') work.fail(number, line.problem)
      if (line.kind !== 'key') continue
      keys++
      await work.add(number, line.key)
    }
  } finally {
    await work.settled()
  }
  if (!hasHeader) throw new NoKeyFile('The file is empty.')
  return counted === keys ? 'whole' : 'cut'
}

const TOO_LONG = { kind: 'broken', problem: 'the line is too long' } as const

function checkHeader(line: ReturnType<typeof readKeyLine>): void {
  if (line.kind !== 'header')
    throw new NoKeyFile('This is no file of exported keys: its first line is not the header that an export writes.')
  if (line.version > KEY_FILE_VERSION)
    throw new NoKeyFile(`The file has version ${line.version}; this version of Homeport reads ${KEY_FILE_VERSION}.`)
}

/** The keys that are being sent. */
class ImportWork {
  readonly #store: Pick<KeyStore, 'restore'>
  readonly #options: ImportOptions
  readonly #pending = new Map<KeyName, Promise<void>>()
  #pendingSize = 0
  #fault: { readonly error: unknown } | undefined

  constructor(store: Pick<KeyStore, 'restore'>, options: ImportOptions) {
    this.#store = store
    this.#options = options
  }

  /** Begins to send a key, once the limits allow it. @throws the error that stopped an earlier one */
  async add(line: number, key: StoredKey): Promise<void> {
    // SCAN may have found a key twice. The later line is newer, so it waits until the earlier one is imported.
    await this.#pending.get(key.name)
    while (!this.#mayBegin(key)) await Promise.race(this.#pending.values())
    if (this.#fault) throw this.#fault.error
    this.#pendingSize += key.dump.length
    const done = this.#import(line, key).finally(() => {
      this.#pending.delete(key.name)
      this.#pendingSize -= key.dump.length
    })
    this.#pending.set(key.name, done)
  }

  #mayBegin({ dump }: StoredKey): boolean {
    if (this.#pending.size === 0) return true
    return this.#pending.size < this.#options.parallel && this.#pendingSize + dump.length <= PENDING_AT_A_TIME
  }

  fail(line: number, problem: string): void {
    this.#options.onKey({ line, outcome: 'failed', problem })
  }

  /** Resolves when nothing is pending. @throws the error that stopped the import */
  async settled(): Promise<void> {
    await Promise.all(this.#pending.values())
    if (this.#fault) throw this.#fault.error
  }

  async #import(line: number, key: StoredKey): Promise<void> {
    const { onKey, now } = this.#options
    const { name, expiresAtMs } = key
    if (expiresAtMs !== undefined && expiresAtMs <= now()) return onKey({ line, name, outcome: 'expired' })
    try {
      onKey({ line, name, ...(await this.#restored(key)) })
    } catch (error) {
      this.#fault ??= { error }
      onKey({ line, name, outcome: 'failed', problem: 'no answer: it may have been imported' })
    }
  }

  /** Restores the key as a new one first, so that the outcome shows whether it existed. */
  async #restored(key: StoredKey): Promise<{ readonly outcome: ImportOutcome; readonly problem?: string }> {
    const first = await this.#store.restore(key, 'new')
    if (first.kind === 'restored') return { outcome: 'imported' }
    if (first.kind === 'refused') return { outcome: 'failed', problem: first.problem }
    if (this.#options.existing === 'skip') return { outcome: 'skipped' }
    const second = await this.#store.restore(key, 'replace')
    if (second.kind === 'restored') return { outcome: 'replaced' }
    return { outcome: 'failed', problem: second.kind === 'refused' ? second.problem : 'the key exists' }
  }
}
