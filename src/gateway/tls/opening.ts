import type { Duplex } from 'node:stream'
import { type Clock, runInTurn } from '../../base/index.js'
import { guarded } from '../client/guarded.js'
import type { GatewayLogger } from '../deps.js'

/**
 * The first bytes of a connection.
 *
 * - `tls`: a TLS ClientHello, with the server name if the client sent one.
 * - `clear`: anything else.
 */
export type Opening = { readonly kind: 'tls'; readonly serverName: string | undefined } | { readonly kind: 'clear' }

const HANDSHAKE_RECORD = 0x16
const CLIENT_HELLO = 1
const RECORD_HEADER_BYTES = 5
/** Type and length of the message, version, random. */
const BEFORE_SESSION_ID_BYTES = 38
const SERVER_NAME_EXTENSION = 0
/** List length, type and length of the only name. */
const NAME_HEADER_BYTES = 5

/** Whether a connection that begins with this byte uses TLS. No Redis command begins with it. */
export function beginsTls(firstByte: number | undefined): boolean {
  return firstByte === HANDSHAKE_RECORD
}

/** Reads the opening of a connection; undefined while more bytes are needed. */
function readOpening(bytes: Buffer): Opening | undefined {
  if (bytes.length === 0) return undefined
  if (!beginsTls(bytes[0])) return { kind: 'clear' }
  if (bytes.length < RECORD_HEADER_BYTES) return undefined
  const end = RECORD_HEADER_BYTES + bytes.readUInt16BE(3)
  if (bytes.length < end) return undefined
  return { kind: 'tls', serverName: serverNameOf(bytes.subarray(RECORD_HEADER_BYTES, end))?.toLowerCase() }
}

/** The server name of a ClientHello; undefined if there is none, or the bytes are malformed, which the handshake reports. */
function serverNameOf(hello: Buffer): string | undefined {
  if (hello[0] !== CLIENT_HELLO) return undefined
  try {
    return serverNameIn(extensionsOf(hello))
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** Skips session id, cipher suites and compression methods. @throws RangeError */
function extensionsOf(hello: Buffer): Buffer {
  let at = BEFORE_SESSION_ID_BYTES
  at += 1 + hello.readUInt8(at)
  at += 2 + hello.readUInt16BE(at)
  at += 1 + hello.readUInt8(at)
  return hello.subarray(at + 2, at + 2 + hello.readUInt16BE(at))
}

/** @throws RangeError */
function serverNameIn(extensions: Buffer): string | undefined {
  for (let at = 0; at < extensions.length; ) {
    const type = extensions.readUInt16BE(at)
    const body = extensions.subarray(at + 4, at + 4 + extensions.readUInt16BE(at + 2))
    if (type === SERVER_NAME_EXTENSION) {
      return body.toString('latin1', NAME_HEADER_BYTES, NAME_HEADER_BYTES + body.readUInt16BE(NAME_HEADER_BYTES - 2))
    }
    at += 4 + body.length
  }
  return undefined
}

/** Time that a connection has for its opening before it is closed. */
const OPENING_TIMEOUT_MS = 10_000
/** The longest TLS record with its header, bytes. */
const MAX_OPENING_BYTES = 18_432
const EMPTY = Buffer.alloc(0)

/** The collaborators of `awaitOpening`. */
export interface OpeningOptions {
  readonly clock: Clock
  /** Logs an error that `decide` throws; it ends the connection and nothing else. */
  readonly logger: Pick<GatewayLogger, 'error'>
}

/**
 * Reads the opening of a connection, puts the bytes back, and calls `decide`, which may begin a handshake. If this turn of the
 * event loop is spent, it calls `decide` in a later one, unless the connection has closed by then.
 */
export function awaitOpening(
  connection: Duplex,
  { clock, logger }: OpeningOptions,
  decide: (opening: Opening) => void,
): void {
  let bytes: Buffer = EMPTY
  const end = (): void => void connection.destroy()
  const fault = (error: unknown): void => {
    logger.error('tls_opening_fault', { error })
    end()
  }
  const timer = clock.after(OPENING_TIMEOUT_MS, end)
  const go = guarded({ fault }, (opening: Opening): void => {
    timer.cancel()
    if (!connection.destroyed) decide(opening)
  })
  const onData = guarded({ fault }, (chunk: Buffer): void => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
    const opening = openingOf(bytes)
    if (!opening) return
    connection.off('data', onData).off('end', end)
    connection.pause()
    connection.unshift(bytes)
    runInTurn(() => go(opening))
  })
  connection.on('data', onData).on('end', end)
  connection.on('error', () => {})
  connection.on('close', () => timer.cancel())
}

function openingOf(bytes: Buffer): Opening | undefined {
  const isTooLong = bytes.length > MAX_OPENING_BYTES
  return readOpening(bytes) ?? (isTooLong ? { kind: 'tls', serverName: undefined } : undefined)
}

/** The databases by server name. Clients of the shared port choose a database by its server name. */
export class ServerNames {
  readonly #databases = new Map<string, string>()
  readonly #names = new Map<string, string>()

  /** Sets or removes the name of a database. */
  put(databaseId: string, name: string | undefined): void {
    const before = this.#names.get(databaseId)
    if (before === name) return
    // The old name may belong to another database by now.
    if (before !== undefined && this.#databases.get(before) === databaseId) this.#databases.delete(before)
    if (name === undefined) this.#names.delete(databaseId)
    else this.#names.set(databaseId, name)
    if (name !== undefined) this.#databases.set(name, databaseId)
  }

  /** The id of the database with this name. */
  databaseOf(name: string): string | undefined {
    return this.#databases.get(name)
  }
}
