import type { Store } from '../../store/index.js'
import type { KeyName } from '../peer-messages.js'
import * as flowKeys from '../transactions/flow-keys.js'
import type { PendingRow } from '../transactions/messages.js'
import type { FlowControl } from './flow-control.js'

/** Reads the stored limits of flow-control keys into memory. */
export class StoredLimits {
  readonly #store: Store
  readonly #flow: FlowControl

  constructor(store: Store, flow: FlowControl) {
    this.#store = store
    this.#flow = flow
  }

  /** Of all keys. */
  readAll(): Promise<void> {
    return this.#flow.reload(() => this.#store.run(flowKeys.everything, {}))
  }

  /** Of these keys. A key that is no longer stored is forgotten. */
  async read(names: readonly KeyName[]): Promise<void> {
    if (names.length === 0) return
    const keysOf = new Map<string, string[]>()
    for (const [accountId, key] of names) {
      const keys = keysOf.get(accountId)
      if (keys) keys.push(key)
      else keysOf.set(accountId, [key])
    }
    await this.#flow.reload(() => this.#store.run(flowKeys.named, { keysOf: [...keysOf] }), names)
  }

  /** Of the keys of these messages: another node may have published them with limits of their own. */
  readOf(rows: readonly PendingRow[]): Promise<void> {
    const names = new Map<string, KeyName>()
    for (const { account_id: accountId, flow_key: key } of rows)
      if (key !== null) names.set(`${accountId}/${key}`, [accountId, key])
    return this.read([...names.values()])
  }
}
