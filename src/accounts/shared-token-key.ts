import { type Clock, pause } from '../base/index.js'
import type { Cluster } from '../cluster/index.js'

/** The topic under which a node asks for the key of queue tokens. */
export const TOKEN_KEY = 'accounts.tokenKey'

const TRIES = 25
const TRY_EVERY_MS = 200

/**
 * The key with which the other nodes encrypt queue tokens. It is not in the store: a reader of the store must not get any
 * token. So a node with a new data directory asks those that are there. When several start at once, the oldest makes the key.
 * @returns `undefined` when no node has one.
 */
export async function sharedTokenKey(cluster: Cluster, clock: Clock): Promise<string | undefined> {
  for (let tries = 0; tries < TRIES; tries++) {
    const answers = await cluster.ask(TOKEN_KEY, null)
    const found = answers.map(({ answer }) => answer).find((answer) => typeof answer === 'string')
    if (typeof found === 'string') return found
    const isOldest = cluster.peers.every(({ incarnation }) => incarnation > cluster.incarnation)
    if (isOldest) return undefined
    await pause(clock, TRY_EVERY_MS)
  }
  return undefined
}
