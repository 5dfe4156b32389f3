import type { DropSelector } from '../../../queue/index.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import type { Store } from '../../../store/index.js'
import type { EndpointDeps } from '../model/endpoint.js'
import type { Knowledge } from '../model/knowledge.js'
import type { Random } from '../model/random.js'

/** What those of a crowd work with. */
export interface CrowdDeps {
  readonly store: Store
  readonly random: Random
  readonly accountId: string
  readonly known: Knowledge
  /** That of the present life of the server. */
  readonly endpoint: () => EndpointDeps
  readonly now: () => number
  readonly offer: (rows: readonly PendingRow[]) => void
  readonly drop: (which: DropSelector) => void
  /** A run has ended: what is remembered of its list is over. */
  readonly forget: (runSeq: number) => void
}
