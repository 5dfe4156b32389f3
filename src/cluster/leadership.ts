import type { Store } from '../store/index.js'
import * as partitionRows from './transactions/cluster-partitions.js'
import type { Incarnation } from './types.js'

/** What `Leadership` is built from. */
export interface LeadershipDeps {
  readonly store: Store
  readonly me: () => Incarnation
  readonly mayAct: () => boolean
  /** Called when the leadership of this node has begun or ended. */
  readonly onChange: (isLeader: boolean) => void
}

/** Which node leads, as far as this one knows. It notifies listeners when this node begins or ends to lead. */
export class Leadership {
  readonly #deps: LeadershipDeps
  readonly #listeners: ((isLeader: boolean) => void)[] = []
  /** The leader by the rows of the last look. */
  leader: Incarnation | null = null
  /** Whether this node may lead: everything in it has started, and it does not give up its duties. */
  mayLead = false
  #wasMine = false

  constructor(deps: LeadershipDeps) {
    this.#deps = deps
  }

  get isMine(): boolean {
    return this.leader === this.#deps.me() && this.mayLead && this.#deps.mayAct()
  }

  /** Calls `listener` whenever `notify` finds that the leadership of this node has begun or ended. */
  onChange(listener: (isLeader: boolean) => void): void {
    this.#listeners.push(listener)
  }

  /** Becomes the leader, if this node may lead and the leader by the rows does not take part. */
  async claim({ nodes, leader }: Pick<partitionRows.Seen, 'nodes' | 'leader'>): Promise<void> {
    const me = this.#deps.me()
    const isVacant = !nodes.some(({ incarnation }) => incarnation === leader)
    if (isVacant && this.mayLead && (await this.#deps.store.run(partitionRows.lead, { incarnation: me })))
      this.leader = me
  }

  /** Notifies the listeners if the leadership of this node has begun or ended since the last call. */
  notify(): void {
    const { isMine } = this
    if (isMine === this.#wasMine) return
    this.#wasMine = isMine
    this.#deps.onChange(isMine)
    for (const listener of this.#listeners) listener(isMine)
  }
}
