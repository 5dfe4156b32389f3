import type { Socket } from 'node:net'
import type { Clock } from '../../base/index.js'
import { guarded } from '../client/guarded.js'
import type { GatewayLogger } from '../deps.js'
import { type Opening, readOpening } from './opening.js'

/** A connection that does not say in this time what it wants is closed. */
const OPENING_TIMEOUT_MS = 10_000
/** The longest record of TLS, with room for its header. */
const LONGEST_OPENING_BYTES = 18_432
const EMPTY = Buffer.alloc(0)

/** What waits for the opening of a connection. */
export interface OpeningOptions {
  readonly clock: Clock
  /** Told when `decide` throws, which ends the connection and nothing else. */
  readonly logger: Pick<GatewayLogger, 'error'>
}

/** Reads how a connection begins, puts back what was read, and calls `decide` with it. */
export function awaitOpening(
  connection: Socket,
  { clock, logger }: OpeningOptions,
  decide: (opening: Opening) => void,
): void {
  let bytes: Buffer = EMPTY
  const end = (): void => void connection.destroy()
  const fault = (error: unknown): void => {
    logger.error({ error }, 'a connection was closed: its opening has met a fault')
    end()
  }
  const timer = clock.after(OPENING_TIMEOUT_MS, end)
  const onData = guarded({ fault }, (chunk: Buffer): void => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
    const opening = openingOf(bytes)
    if (!opening) return
    timer.cancel()
    connection.off('data', onData).off('end', end)
    connection.pause()
    connection.unshift(bytes)
    decide(opening)
  })
  connection.on('data', onData).on('end', end)
  connection.on('error', () => {})
  connection.on('close', () => timer.cancel())
}

function openingOf(bytes: Buffer): Opening | undefined {
  const isTooLong = bytes.length > LONGEST_OPENING_BYTES
  return readOpening(bytes) ?? (isTooLong ? { kind: 'tls', serverName: undefined } : undefined)
}
