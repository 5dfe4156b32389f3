/**
 * Copies all keys of one server to another in the engine's own serialised form. The only place of this room that
 * speaks to a server which is not ours.
 */
import { Redis, type RedisOptions } from 'iovalkey'
import { type Clock, codeOf, type TargetGate } from '../../base/index.js'
import { HomeportError } from '../../contract/errors.js'
import type { ImportSource } from './source.js'

const KEYS_AT_A_TIME = 200
const CONNECT_TIMEOUT_MS = 10_000
const COMMAND_TIMEOUT_MS = 60_000

/** What an engine says of a serialised value whose version it does not know; on its way nothing else can change it. */
const NEWER_SOURCE = /DUMP payload version/

/** What a copy needs. */
export interface Copy {
  readonly source: Redis
  readonly target: Redis
  readonly clock: Clock
  /** Aborted when nobody wants the copy any more. */
  readonly signal: AbortSignal
  /** Called after each step with the numbers of keys and bytes copied since the last one. */
  readonly onCopied: (keys: number, bytes: number) => void
}

/** Connects to an engine of ours; rejects with `import_failed`. To be disconnected by the caller. */
export function connectToEngine(path: string, password: string): Promise<Redis> {
  return connect({ path, password }).catch(asUnreachable)
}

/**
 * Connects to a server that is not ours, at the first of its addresses that answers; rejects with `import_failed`, also
 * when one of them may not be contacted. To be disconnected by the caller.
 */
export async function connectToSource({ host, login }: ImportSource, targets: TargetGate): Promise<Redis> {
  let failure: unknown
  for (const { address } of await targets.addressesOf(host).catch(asUnreachable)) {
    try {
      return await connect({ ...login, host: address })
    } catch (error) {
      failure ??= error
    }
  }
  return asUnreachable(failure)
}

async function connect(options: RedisOptions): Promise<Redis> {
  const server = new Redis({
    ...options,
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
  })
  // The first error tells why; the command that waits only learns that there is no connection.
  let first: Error | undefined
  server.on('error', (error) => {
    first ??= error
  })
  try {
    await server.connect()
    await server.ping()
    return server
  } catch (cause) {
    server.disconnect()
    throw first ?? cause
  }
}

function asUnreachable(cause: unknown): never {
  throw new HomeportError(
    'import_failed',
    { reason: `the source cannot be reached (${shortReason(cause)})` },
    { cause },
  )
}

/** Copies every key that the source has from the beginning to the end; rejects with `import_failed`. */
export async function copyAll(copy: Copy): Promise<void> {
  try {
    let cursor = '0'
    do {
      copy.signal.throwIfAborted()
      const [next, keys] = await scan(copy.source, cursor)
      cursor = next
      if (keys.length > 0) await copyKeys(copy, keys)
    } while (cursor !== '0')
  } catch (cause) {
    if (copy.signal.aborted) throw new HomeportError('starting', {}, { cause })
    throw new HomeportError('import_failed', { reason: shortReason(cause) }, { cause })
  }
}

async function scan(source: Redis, cursor: string): Promise<[string, Buffer[]]> {
  const answer = await source.callBuffer('SCAN', cursor, 'COUNT', `${KEYS_AT_A_TIME}`)
  const [next, keys] = Array.isArray(answer) ? answer : []
  if (!Buffer.isBuffer(next) || !Array.isArray(keys)) throw new Error('the source does not answer SCAN as it should')
  return [next.toString(), keys.filter((key) => Buffer.isBuffer(key))]
}

/** A key that is gone between the look and the copy is left out; its expiry is kept as a point in time. */
async function copyKeys({ source, target, clock, onCopied }: Copy, keys: readonly Buffer[]): Promise<void> {
  const now = clock.now()
  const reading = source.pipeline()
  for (const key of keys) {
    reading.callBuffer('DUMP', key)
    reading.call('PTTL', key)
  }
  const found = results(await reading.exec())
  const writing = target.pipeline()
  let [count, bytes] = [0, 0]
  keys.forEach((key, index) => {
    const [dump, ttlMs] = [found[2 * index], Number(found[2 * index + 1])]
    if (!Buffer.isBuffer(dump) || ttlMs === -2) return
    writing.call('RESTORE', key, `${ttlMs < 0 ? 0 : now + ttlMs}`, dump, 'REPLACE', 'ABSTTL')
    count++
    bytes += key.length + dump.length
  })
  results(await writing.exec())
  onCopied(count, bytes)
}

function results(answers: readonly [Error | null, unknown][] | null): unknown[] {
  return (answers ?? []).map(([error, value]) => {
    if (error) throw error
    return value
  })
}

/** The other server's error in one bounded line; a failed connection is named by its code, never by its URL. */
function shortReason(cause: unknown): string {
  if (!(cause instanceof Error)) return 'unknown'
  if (NEWER_SOURCE.test(cause.message)) return 'the source is a newer engine than is installed here'
  return (codeOf(cause) || cause.message).replace(/\s+/g, ' ').slice(0, 200)
}
