import type { Store } from '../store/index.js'
import * as partitionRows from './transactions/cluster-partitions.js'
import type { Incarnation } from './types.js'

/** What the leadership of a node depends on. */
export interface LeadershipDeps {
  readonly store: Store
  readonly me: () => Incarnation
  readonly mayAct: () => boolean
  /** It has begun or ended. */
  readonly onChange: (isLeader: boolean) => void
}

/** Who leads, as far as this node knows, and what waits to hear whether it is this one. */
export class Leadership {
  readonly #deps: LeadershipDeps
  readonly #listeners: ((isLeader: boolean) => void)[] = []
  /** As the rows say. */
  leader: Incarnation | null = null
  /** Whether this node may lead: everything in it has started, and it need not leave that to others. */
  mayLead = false
  #wasMine = false

  constructor(deps: LeadershipDeps) {
    this.#deps = deps
  }

  get isMine(): boolean {
    return this.leader === this.#deps.me() && this.mayLead && this.#deps.mayAct()
  }

  /** Calls `listener` whenever `tell` finds that it has begun or ended. */
  onChange(listener: (isLeader: boolean) => void): void {
    this.#listeners.push(listener)
  }

  /** Leads from now on, if it may, and no node does that takes part. */
  async claim({ nodes, leader }: Pick<partitionRows.Seen, 'nodes' | 'leader'>): Promise<void> {
    const me = this.#deps.me()
    const isVacant = !nodes.some(({ incarnation }) => incarnation === leader)
    if (isVacant && this.mayLead && (await this.#deps.store.run(partitionRows.lead, { incarnation: me })))
      this.leader = me
  }

  tell(): void {
    const { isMine } = this
    if (isMine === this.#wasMine) return
    this.#wasMine = isMine
    this.#deps.onChange(isMine)
    for (const listener of this.#listeners) listener(isMine)
  }
}
