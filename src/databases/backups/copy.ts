/**
 * Copies all keys of one server to another by DUMP and RESTORE. Only this code connects to foreign servers. A foreign
 * server may claim and send anything, so everything that it does is bounded by `COPY_LIMITS`. Values are streamed in
 * chunks: a copy holds one page of key names and never a whole value.
 */

import { isIP } from 'node:net'
import { type Clock, codeOf, type TargetGate } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { argument, COPY_LIMITS, type CopyLimits, Peer, type PeerAddress, type PeerOptions } from './peer.js'
import { type Reply, ReplyError } from './reply-stream.js'

const DEFAULT_PORT = 6379
const DATABASE = /^\/?(\d{0,4})$/

/** A server to import from, parsed from the URL that the caller sent. */
export interface ImportSource extends Omit<PeerAddress, 'where'> {
  /** Host name or address; an IPv6 address without brackets. */
  readonly host: string
  readonly port: number
  /** The URL without user and password, for display. */
  readonly shown: string
}

/**
 * Parses the URL of an import. A URL with a query is refused: some client libraries read options from it, such as the
 * path of a local socket.
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

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw wrong()
  }
}

function wrong(): HomeportError {
  const problem =
    '`url` must be of the form redis://user:password@host:port/0, or rediss:// for TLS, without a query or fragment.'
  return new HomeportError('invalid_request', { problem })
}

const KEYS_PER_PAGE = 200

/** The engine's error for a serialised value of an unknown version or with a wrong checksum. */
const NEWER_SOURCE = /DUMP payload version/
const NEWER_OR_DAMAGED = 'the source runs a newer engine than this server, or has sent a damaged value'

/** What a copy works with. */
export interface Copy {
  readonly source: Peer
  readonly target: Peer
  readonly clock: Clock
  /** Aborted when the copy is no longer needed. */
  readonly signal: AbortSignal
  /** Size limit of the database that the copy is for, bytes. */
  readonly maxMemoryBytes: number
  /** Called after each step with the numbers of keys and bytes copied since the last one. */
  readonly onCopied: (keys: number, bytes: number) => void
}

/** Connects to one of our engines; rejects with `import_failed`. The caller closes the connection. */
export function connectToEngine(path: string, password: string, options: PeerOptions): Promise<Peer> {
  return Peer.connect({ where: { path }, password }, options).catch(asUnreachable)
}

/**
 * Connects to a foreign server at the first address that answers; rejects with `import_failed`, also when one of its
 * addresses is not allowed. The caller closes the connection.
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

/**
 * Refuses a server that is one of several of a Redis cluster: it lists only its own keys, and their import would look
 * complete. Rejects with `import_failed`.
 */
export async function refusePart(source: Peer): Promise<void> {
  const answer = await source.ask('CLUSTER', 'INFO').catch((error: unknown) => {
    // A server that is alone refuses the question.
    return error instanceof ReplyError ? error : asFailed(error)
  })
  const parts = Number(/^cluster_size:(\d+)/m.exec(Buffer.isBuffer(answer) ? answer.toString('latin1') : '')?.[1] ?? 1)
  if (parts > 1)
    asFailed(new Error(`the source is one of ${parts} servers of a Redis cluster and has only a part of the keys`))
}

/** The number of keys that a server reports; rejects with `import_failed`. */
export async function countKeys(source: Peer): Promise<number> {
  const count = await source.ask('DBSIZE').catch(asFailed)
  return typeof count === 'number' && count >= 0 ? count : asFailed(unexpectedReply('DBSIZE'))
}

/** Copies every key that the source has during the whole copy; rejects with `import_failed`. */
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
      throw endless(`${source.readBytes} bytes were received; the plan holds ${copy.maxMemoryBytes}`)
    if (keysRead > most.keys) {
      const present = await countKeys(source)
      most.keys = limits.keyFactor * present + limits.spareKeys
      if (keysRead > most.keys) throw endless(`it has listed ${keysRead} keys, and DBSIZE says ${present}`)
    }
    if (keys.length > 0) await copyKeys(copy, keys)
  } while (cursor !== '0')
}

function endless(found: string): Error {
  return new Error(`SCAN of the source does not end: ${found}. Check the source, or import an RDB file`)
}

async function scan(source: Peer, cursor: string): Promise<readonly [string, readonly Buffer[]]> {
  const answer = await source.ask('SCAN', cursor, 'COUNT', `${KEYS_PER_PAGE}`)
  const [next, keys] = isList(answer) ? answer : []
  if (!Buffer.isBuffer(next) || !/^\d{1,20}$/.test(next.toString('latin1')) || !keys || !isList(keys))
    throw unexpectedReply('SCAN')
  return [next.toString('latin1'), keys.map((key) => (Buffer.isBuffer(key) ? key : raise(unexpectedReply('SCAN'))))]
}

/** Skips a key that was deleted after SCAN listed it. Expiry times are kept as absolute times. */
async function copyKeys(copy: Copy, keys: readonly Buffer[]): Promise<void> {
  const { source, target } = copy
  // Replies are read while commands are still being written, so that full buffers on both sides cannot deadlock.
  const sent = source.send(...keys.flatMap((key) => [['PTTL', key] as const, ['DUMP', key] as const]))
  sent.catch(() => undefined)
  let [count, bytes] = [0, 0]
  for (const key of keys) {
    const copied = await copyKey(copy, key)
    if (copied === undefined) continue
    count++
    bytes += key.length + copied
  }
  await sent
  for (let i = 0; i < count; i++) await target.reply()
  copy.onCopied(count, bytes)
}

/** Streams one value to the target, whose reply is read later. @returns its length; `undefined` for a deleted key. */
async function copyKey({ source, target, clock }: Copy, key: Buffer): Promise<number | undefined> {
  const ttlMs = wholeNumber(await source.reply(), 'PTTL')
  const isGone = ttlMs === -2
  const expiresAt = ttlMs < 0 ? 0 : clock.now() + ttlMs
  let length = 0
  let headWritten: Promise<void> | undefined
  const found = await source.value(
    (bytes) => {
      length = bytes
      if (isGone) return
      headWritten = target.write(restoreHead(key, expiresAt, bytes))
      // The write may fail before the value arrives and awaits it, and perhaps no value arrives.
      headWritten.catch(() => undefined)
    },
    async (chunk) => {
      await headWritten
      if (!isGone) await target.write(chunk)
    },
  )
  if (!found || isGone) return undefined
  await headWritten
  await target.write(RESTORE_TAIL)
  return length
}

/** The bytes of `RESTORE key expiry <value> REPLACE ABSTTL` before the value. */
function restoreHead(key: Buffer, expiresAt: number, bytes: number): Buffer {
  const words = ['RESTORE', key, `${expiresAt}`].flatMap((word) => argument(Buffer.from(word)))
  return Buffer.concat([Buffer.from('*6\r\n'), ...words, Buffer.from(`$${bytes}\r\n`)])
}

const RESTORE_TAIL = Buffer.concat([
  Buffer.from('\r\n'),
  ...argument(Buffer.from('REPLACE')),
  ...argument(Buffer.from('ABSTTL')),
])

const isList = (reply: Reply): reply is readonly Reply[] => Array.isArray(reply)

function wholeNumber(reply: Reply, command: string): number {
  return typeof reply === 'number' ? reply : raise(unexpectedReply(command))
}

function unexpectedReply(command: string): Error {
  return new Error(`the source does not answer ${command} as a Redis server does`)
}

function raise(error: Error): never {
  throw error
}

function asFailed(cause: unknown): never {
  throw new HomeportError('import_failed', { reason: shortReason(cause) }, { cause })
}

/** A foreign error as one line of at most 300 characters. A failed connection is named by its code, never by its URL. */
function shortReason(cause: unknown): string {
  if (cause instanceof HomeportError) return cause.message
  if (!(cause instanceof Error)) return 'unknown'
  if (NEWER_SOURCE.test(cause.message)) return NEWER_OR_DAMAGED
  const text = codeOf(cause) || cause.message
  return text.replace(/[^\x20-\x7e]+/g, ' ').slice(0, 300)
}
