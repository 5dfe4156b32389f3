import type { Clock, TargetPolicy } from '../../base/index.js'
import type { Caller } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import type { FlowControl } from '../dispatcher/flow-control.js'
import type { Publishing } from '../publish/publishing.js'
import type { SettingLimits } from '../publish/settings.js'
import type { QueueNodes } from '../queue-nodes.js'
import type { PendingRow } from '../transactions/messages.js'
import type { DeadLetterSource, DropSelector, LargeCancel } from '../types.js'

/** An account's signing keys. */
export interface SigningKeyring {
  signingKeys(accountId: string): { readonly current: string; readonly next: string }
  /** Makes the next key the current one, and creates a new next key. `caller` goes into the audit log. */
  rotateSigningKeys(accountId: string, caller: Caller): Promise<{ readonly current: string; readonly next: string }>
}

/** What the operations of the queue are built from. */
export interface ApiDeps {
  readonly store: Store
  readonly clock: Clock
  readonly keys: SigningKeyring
  readonly limits: SettingLimits
  /** Most schedules of an account; `undefined`: no limit. */
  readonly accountSchedules: number | undefined
  /** Which destinations may be contacted. */
  readonly targets: TargetPolicy
  readonly publishing: Publishing
  readonly offer: (rows: readonly PendingRow[]) => void
  /** See `Queue.dropEverywhere`. */
  readonly dropEverywhere: (which: DropSelector) => Promise<void>
  readonly flow: FlowControl
  /** The queues of other nodes. */
  readonly nodes: QueueNodes
  /** Call it after a schedule was created or changed. */
  readonly schedulesChanged: () => void
  /** Cancels many messages as a bulk action; `undefined` when no module has registered for it. */
  readonly largeCancel: () => LargeCancel | undefined
  /** Dead letters of other modules, by the value of `source`. */
  readonly deadLetterSources: ReadonlyMap<string, DeadLetterSource>
}

/** Kind of the messages that these operations show and cancel. Other kinds belong to other modules. */
export const PLAIN = 'http'
