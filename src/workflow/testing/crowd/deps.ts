import type { Random } from '../../../base/testing/random.js'
import type { DropSelector } from '../../../queue/index.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import type { Store } from '../../../store/index.js'
import type { EndpointDeps } from '../model/endpoint.js'
import type { Knowledge } from '../model/knowledge.js'

/** Collaborators of all actions of a crowd. */
export interface CrowdDeps {
  readonly store: Store
  readonly random: Random
  readonly accountId: string
  readonly known: Knowledge
  /** The endpoint since the last restart. */
  readonly endpoint: () => EndpointDeps
  readonly now: () => number
  readonly offer: (rows: readonly PendingRow[]) => void
  readonly drop: (which: DropSelector) => void
  /** Drops the cached list of an ended run. */
  readonly forget: (runSeq: number) => void
}
