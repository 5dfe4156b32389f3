/**
 * Copies all keys of one server to another in the engine's own serialised form. The only place of this module that
 * speaks to a server which is not ours: it may claim and send anything, so everything that it does has a bound, see
 * `COPY_LIMITS`. Values go through in pieces, so a copy holds a page of key names and never a value.
 */
import { isIP } from 'node:net'
import { type Clock, codeOf, type Reply, type TargetGate } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { argument, COPY_LIMITS, type CopyLimits, Peer, type PeerAddress, type PeerOptions } from './peer.js'

const DEFAULT_PORT = 6379
const DATABASE = /^\/?(\d{0,4})$/

/** A server that data is imported from: what its owner's URL says, and nothing else that a URL could say. */
export interface ImportSource extends Omit<PeerAddress, 'where'> {
  /** Name or address of the host, an IPv6 address without its brackets. */
  readonly host: string
  readonly port: number
  /** The URL as people may read it, without user and password. */
  readonly shown: string
}

/**
 * Takes the URL of an import apart. Client libraries read options out of a query, such as the path of a local socket,
 * so a URL with one is refused.
 * @throws HomeportError `invalid_request`.
 */
export function parseSource(text: string): ImportSource {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const database = DATABASE.exec(url?.pathname ?? '')?.[1]
  if (!url || !/^rediss?:$/.test(url.protocol) || url.hostname === '') throw wrong()
  if (database === undefined || url.search !== '' || url.hash !== '') throw wrong()
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return {
    host,
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
    db: Number(database),
    ...(url.username === '' ? {} : { username: decoded(url.username) }),
    ...(url.password === '' ? {} : { password: decoded(url.password) }),
    ...(url.protocol === 'rediss:' ? { tls: isIP(host) === 0 ? { servername: host } : {} } : {}),
    shown: `${url.protocol}//${url.host}${url.pathname}`,
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw wrong()
  }
}

function wrong(): HomeportError {
  const problem = '`url` must be of the form redis://user:password@host:port/0, or rediss:// for TLS, and nothing more.'
  return new HomeportError('invalid_request', { problem })
}

const KEYS_AT_A_TIME = 200

/** What an engine says of a serialised value whose version it does not know, or whose checksum is wrong. */
const NEWER_SOURCE = /DUMP payload version/
const NEWER_OR_DAMAGED = 'the source is a newer engine than is installed here, or has sent a damaged value'

/** What a copy needs. */
export interface Copy {
  readonly source: Peer
  readonly target: Peer
  readonly clock: Clock
  /** Aborted when nobody wants the copy any more. */
  readonly signal: AbortSignal
  /** Size of the database that the copy is for. */
  readonly maxMemoryBytes: number
  /** Called after each step with the numbers of keys and bytes copied since the last one. */
  readonly onCopied: (keys: number, bytes: number) => void
}

/** Connects to an engine of ours; rejects with `import_failed`. To be closed by the caller. */
export function connectToEngine(path: string, password: string, options: PeerOptions): Promise<Peer> {
  return Peer.connect({ where: { path }, password }, options).catch(asUnreachable)
}

/**
 * Connects to a server that is not ours, at the first of its addresses that answers; rejects with `import_failed`, also
 * when one of them may not be contacted. To be closed by the caller.
 */
export async function connectToSource(
  { host, port, ...login }: ImportSource,
  targets: TargetGate,
  options: PeerOptions,
): Promise<Peer> {
  let failure: unknown
  const addresses = await targets.addressesOf(host).catch(asUnreachable)
  for (const { address } of addresses.slice(0, COPY_LIMITS.addresses)) {
    try {
      return await Peer.connect({ ...login, where: { host: address, port } }, options)
    } catch (error) {
      failure ??= error
    }
  }
  return asUnreachable(failure)
}

function asUnreachable(cause: unknown): never {
  throw new HomeportError(
    'import_failed',
    { reason: `the source cannot be reached (${shortReason(cause)})` },
    { cause },
  )
}

/** How many keys a server says that it has; rejects with `import_failed`. */
export async function countKeys(source: Peer): Promise<number> {
  const count = await source.ask('DBSIZE').catch(asFailed)
  return typeof count === 'number' && count >= 0 ? count : asFailed(strange('DBSIZE'))
}

/** Copies every key that the source has from the beginning to the end; rejects with `import_failed`. */
export async function copyAll(copy: Copy, limits: CopyLimits = COPY_LIMITS): Promise<void> {
  const hours = limits.totalMs / 3_600_000
  const timer = copy.clock.after(limits.totalMs, () => {
    copy.source.close(new Error(`it took more than ${hours} hours; import an RDB file instead`))
  })
  try {
    await copyPages(copy, limits)
  } catch (cause) {
    if (copy.signal.aborted) throw new HomeportError('starting', {}, { cause })
    asFailed(cause)
  } finally {
    timer.cancel()
  }
}

async function copyPages(copy: Copy, limits: CopyLimits): Promise<void> {
  const { source } = copy
  const most = { bytes: limits.byteFactor * copy.maxMemoryBytes + limits.spareBytes, keys: 0 }
  let [cursor, keysRead, emptyPages] = ['0', 0, 0]
  do {
    copy.signal.throwIfAborted()
    const [next, keys] = await scan(source, cursor)
    cursor = next
    emptyPages = keys.length > 0 ? 0 : emptyPages + 1
    keysRead += keys.length
    if (emptyPages > limits.emptyPages) throw endless(`${emptyPages} pages in a row had no key`)
    if (source.readBytes > most.bytes)
      throw endless(`${source.readBytes} bytes have come; the plan holds ${copy.maxMemoryBytes}`)
    if (keysRead > most.keys) {
      const present = await countKeys(source)
      most.keys = limits.keyFactor * present + limits.spareKeys
      if (keysRead > most.keys) throw endless(`it has named ${keysRead} keys and says that it has ${present}`)
    }
    if (keys.length > 0) await copyKeys(copy, keys)
  } while (cursor !== '0')
}

function endless(found: string): Error {
  return new Error(`SCAN of the source does not come to an end: ${found}. Check the source, or import an RDB file`)
}

async function scan(source: Peer, cursor: string): Promise<readonly [string, readonly Buffer[]]> {
  const answer = await source.ask('SCAN', cursor, 'COUNT', `${KEYS_AT_A_TIME}`)
  const [next, keys] = isList(answer) ? answer : []
  if (!Buffer.isBuffer(next) || !/^\d{1,20}$/.test(next.toString('latin1')) || !keys || !isList(keys))
    throw strange('SCAN')
  return [next.toString('latin1'), keys.map((key) => (Buffer.isBuffer(key) ? key : raise(strange('SCAN'))))]
}

/** A key that is gone between the look and the copy is left out; its expiry is kept as a point in time. */
async function copyKeys(copy: Copy, keys: readonly Buffer[]): Promise<void> {
  const { source, target } = copy
  // Reading begins while the rest of the commands is still being written, so neither side waits for the other.
  const asked = source.send(...keys.flatMap((key) => [['PTTL', key] as const, ['DUMP', key] as const]))
  asked.catch(() => undefined)
  let [count, bytes] = [0, 0]
  for (const key of keys) {
    const copied = await copyKey(copy, key)
    if (copied === undefined) continue
    count++
    bytes += key.length + copied
  }
  await asked
  for (let i = 0; i < count; i++) await target.reply()
  copy.onCopied(count, bytes)
}

/** Passes one value on to the target, whose reply is read later. @returns its length; `undefined` if it is gone. */
async function copyKey({ source, target, clock }: Copy, key: Buffer): Promise<number | undefined> {
  const ttlMs = wholeNumber(await source.reply(), 'PTTL')
  const isGone = ttlMs === -2
  const expiresAt = ttlMs < 0 ? 0 : clock.now() + ttlMs
  let length = 0
  let begun: Promise<void> | undefined
  const found = await source.value(
    (bytes) => {
      length = bytes
      if (!isGone) begun = target.write(restoreUpToValue(key, expiresAt, bytes))
    },
    async (piece) => {
      await begun
      if (!isGone) await target.write(piece)
    },
  )
  if (!found || isGone) return undefined
  await begun
  await target.write(RESTORE_AFTER_VALUE)
  return length
}

/** `RESTORE key expiry <value> REPLACE ABSTTL` without the value and what follows it. */
function restoreUpToValue(key: Buffer, expiresAt: number, bytes: number): Buffer {
  const words = ['RESTORE', key, `${expiresAt}`].flatMap((word) => argument(Buffer.from(word)))
  return Buffer.concat([Buffer.from('*6\r\n'), ...words, Buffer.from(`$${bytes}\r\n`)])
}

const RESTORE_AFTER_VALUE = Buffer.concat([
  Buffer.from('\r\n'),
  ...argument(Buffer.from('REPLACE')),
  ...argument(Buffer.from('ABSTTL')),
])

const isList = (reply: Reply): reply is readonly Reply[] => Array.isArray(reply)

function wholeNumber(reply: Reply, command: string): number {
  return typeof reply === 'number' ? reply : raise(strange(command))
}

function strange(command: string): Error {
  return new Error(`the source does not answer ${command} as a Redis server does`)
}

function raise(error: Error): never {
  throw error
}

function asFailed(cause: unknown): never {
  throw new HomeportError('import_failed', { reason: shortReason(cause) }, { cause })
}

/** The other server's error in one bounded line; a failed connection is named by its code, never by its URL. */
function shortReason(cause: unknown): string {
  if (cause instanceof HomeportError) return cause.message
  if (!(cause instanceof Error)) return 'unknown'
  if (NEWER_SOURCE.test(cause.message)) return NEWER_OR_DAMAGED
  const text = codeOf(cause) || cause.message
  return text.replace(/[^\x20-\x7e]+/g, ' ').slice(0, 300)
}
