import type { Clock, TargetPolicy } from '../../base/index.js'
import type { Caller } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import type { FlowControl } from '../dispatcher/flow-control.js'
import type { Publishing } from '../publish/publishing.js'
import type { SettingLimits } from '../publish/settings.js'
import type { PendingRow } from '../transactions/messages.js'
import type { DeadLetterSource, DropSelector, LargeCancel } from '../types.js'

/** An account's signing keys. */
export interface SigningKeyring {
  signingKeys(accountId: string): { readonly current: string; readonly next: string }
  /** The next key becomes the current one and a fresh one the next; `caller` stands in the audit log. */
  rotateSigningKeys(accountId: string, caller: Caller): Promise<{ readonly current: string; readonly next: string }>
}

/** What the operations of the queue work with. */
export interface ApiDeps {
  readonly store: Store
  readonly clock: Clock
  readonly keys: SigningKeyring
  readonly limits: SettingLimits
  /** Which destinations may be contacted. */
  readonly targets: TargetPolicy
  readonly publishing: Publishing
  readonly offer: (rows: readonly PendingRow[]) => void
  readonly drop: (which: DropSelector) => void
  readonly flow: FlowControl
  /** To be called after the limits of a flow-control key were changed. */
  readonly limitsChanged: () => void
  /** Requests in flight, of at most `most`. */
  readonly parallelism: () => { readonly sending: number; readonly most: number }
  /** To be called when a schedule was made or changed. */
  readonly schedulesChanged: () => void
  /** Cancels very many messages; `undefined` when no room has registered for it. */
  readonly largeCancel: () => LargeCancel | undefined
  /** Dead letters of other rooms, by the value of `source`. */
  readonly deadLetterSources: ReadonlyMap<string, DeadLetterSource>
}

/** The kind of messages that these operations see; those of other rooms are theirs to show and to end. */
export const PLAIN = 'http'
