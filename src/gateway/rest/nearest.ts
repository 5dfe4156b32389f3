import { HomeportError, isError } from '../../contract/errors/errors.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { NearbyLane } from '../replicas/nearby-lane.js'
import { isReadable, mayHoldRefusal } from '../replicas/readable.js'
import type { PreparedCommand } from './prepare.js'

/** The ways of a request to the engines of its database, in a node that serves a region. */
export interface Ways {
  /** The shared connection to the primary. */
  readonly link: EngineLink
  /** The way to the replica. */
  readonly nearby: NearbyLane
  /** What the client says that it has seen, as a moment of the database. */
  readonly moment: number
}

/**
 * Sends commands with `send`: to the replica when all of them only read and it has what the client has seen, or else to
 * the primary, also when the replica fails: reading twice harms nobody.
 */
export async function sendToNearest(
  { nearby, moment, link }: Ways,
  commands: readonly PreparedCommand[],
  send: (link: EngineLink) => Promise<Buffer>,
): Promise<Buffer> {
  if (commands.every(({ command }) => isReadable(command)) && (await nearby.until(moment))) {
    const replies = await readNearby(nearby, send)
    if (replies) return replies
  }
  return seeing(nearby, () => send(link))
}

/** Does what asks the primary, and notes that the client has seen it, also what failed: it may have been applied. */
export async function seeing<Result>(nearby: NearbyLane | undefined, ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask()
  } finally {
    nearby?.sawPrimary()
  }
}

/** Undefined when the replica cannot answer. */
async function readNearby(
  { watch, link }: NearbyLane,
  send: (link: EngineLink) => Promise<Buffer>,
): Promise<Buffer | undefined> {
  watch.sent()
  try {
    const replies = await send(link)
    return mayHoldRefusal(replies) ? undefined : replies
  } catch (error) {
    // Asked again, it would be no less.
    if (isError(error, 'replies_too_large')) throw error
    if (error instanceof HomeportError) return undefined
    throw error
  }
}
