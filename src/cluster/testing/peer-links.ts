import { onTestFinished } from 'vitest'
import { ClientMemoryBudget, type Clock, systemClock } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import { createLogger } from '../../telemetry/index.js'
import { createPeerLink } from '../peer/index.js'
import type { OnPeerRequest, OnTunnel, PeerAddress, PeerLink } from '../peer-link.js'

/** What a test changes of a link to the other nodes. */
export interface LinkChange {
  /** Default: answers with what was sent. */
  readonly onRequest?: OnPeerRequest
  readonly onTunnel?: OnTunnel
  readonly memory?: ClientMemoryBudget
  readonly clock?: Clock
}

/** Starts the link of a node, which is stopped after the test. */
export async function startLink(store: Store, incarnation: number, change: LinkChange = {}): Promise<PeerLink> {
  const usual = { memory: new ClientMemoryBudget(), clock: systemClock, onRequest }
  const place = { host: '127.0.0.1', port: 0, logger: createLogger({ level: 'silent' }) }
  const link = createPeerLink({ ...usual, ...place, ...change, store, incarnation: () => incarnation })
  await link.start()
  onTestFinished(() => link.stop())
  return link
}

const onRequest: OnPeerRequest = async ({ payload }) => payload

/** How another link reaches a node. */
export const addressOf = ({ port }: PeerLink, incarnation: number): PeerAddress => ({
  incarnation,
  advertise: `127.0.0.1:${port}`,
})
