import type { Store } from '../../store/index.js'
import type { KeyName } from '../peer-messages.js'
import * as flowKeys from '../transactions/flow-keys.js'
import type { PendingRow } from '../transactions/messages.js'
import type { FlowControl } from './flow-control.js'

const PAGE = 2_000

/** Reads the stored limits of flow-control keys into memory. */
export class StoredLimits {
  readonly #store: Store
  readonly #flow: FlowControl

  constructor(store: Store, flow: FlowControl) {
    this.#store = store
    this.#flow = flow
  }

  /** Reads the limits of all keys in pages, because there may be a million. Other operations run between the pages. */
  async readAll(): Promise<void> {
    for (let after: flowKeys.KeyPlace | undefined = flowKeys.FIRST_KEY; after; ) {
      const from: flowKeys.KeyPlace = after
      await this.#flow.reload(async () => {
        const page = await this.#store.run(flowKeys.page, { after: from, limit: PAGE })
        after = page.length === PAGE ? page.at(-1) : undefined
        return page
      })
    }
  }

  /** Reads the limits of these keys. Forgets a key that is no longer stored. */
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

  /** Reads the limits of the keys of these messages, because another node may have published them with other limits. */
  readOf(rows: readonly PendingRow[]): Promise<void> {
    const names = new Map<string, KeyName>()
    for (const { account_id: accountId, flow_key: key } of rows)
      if (key !== null) names.set(`${accountId}/${key}`, [accountId, key])
    return this.read([...names.values()])
  }
}
