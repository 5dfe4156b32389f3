/** Reports dead nodes as problems, because only a person can restart their processes. */
import type { Clock, Service, Timer } from '../base/index.js'
import type { Cluster } from '../cluster/index.js'
import * as nodesAdmin from '../cluster/transactions/nodes-admin.js'
import { counted } from '../contract/words/figures.js'
import type { Store } from '../store/index.js'
import type { ProblemReport, Problems } from '../telemetry/index.js'

/** Interval between checks. A standby takes over well within it, so the next check no longer counts its database. */
const LOOK_EVERY_MS = 10_000

/** Collaborators of `LostNodes`. */
export interface LostNodesDeps {
  readonly cluster: Pick<Cluster, 'isSingleNode' | 'isLeader'>
  readonly store: Store
  readonly clock: Clock
  readonly problems: Pick<Problems, 'report' | 'resolve'>
}

/** Reports each node that was declared dead, until it runs again or is removed. Only the leader reports. */
export class LostNodes implements Service {
  readonly name = 'lost nodes'
  readonly #deps: LostNodesDeps
  /** Reported nodes by name, with the number of databases that wait for each. */
  readonly #reported = new Map<string, number>()
  #timer: Timer | undefined
  #isStopped = false

  constructor(deps: LostNodesDeps) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    if (!this.#deps.cluster.isSingleNode) this.#lookLater()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  #lookLater(): void {
    if (this.#isStopped) return
    this.#timer = this.#deps.clock.after(LOOK_EVERY_MS, () => void this.#look().finally(() => this.#lookLater()))
  }

  /** Never rejects. While the store does not answer, the reported problems stay as they are. */
  async #look(): Promise<void> {
    const { cluster, store } = this.#deps
    const nodes = cluster.isLeader ? await store.run(nodesAdmin.list, {}).catch(() => undefined) : []
    if (nodes && !this.#isStopped) this.#follow(nodes.filter(({ state }) => state === 'dead'))
  }

  #follow(dead: readonly nodesAdmin.ListedNode[]): void {
    const { problems } = this.#deps
    for (const name of this.#reported.keys()) {
      if (dead.some((node) => node.name === name)) continue
      this.#reported.delete(name)
      problems.resolve('node_lost', name)
    }
    for (const node of dead) {
      if (this.#reported.get(node.name) === node.databases) continue
      this.#reported.set(node.name, node.databases)
      problems.report(lostNode(node))
    }
  }
}

function lostNode({ name, databases }: nodesAdmin.ListedNode): ProblemReport {
  const effect =
    databases > 0 ? `${counted(databases, 'database')} cannot be used without it` : 'the others do its work'
  return {
    kind: 'node_lost',
    subject: name,
    severity: databases > 0 ? 'error' : 'warning',
    title: `The node ${name} is dead, and ${effect}.`,
    advice: `Start it again with its data directory. If it is gone for good, follow "A node that is gone for good" in docs/nodes.md.`,
  }
}
