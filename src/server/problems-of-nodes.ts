/** The problems of all nodes, for Home of the console. Behind a load balancer, each request may reach another node. */
import { isObject } from '../base/index.js'
import type { Cluster, Incarnation } from '../cluster/index.js'
import type { Overview } from '../contract/console/console.js'
import type { Problem, Problems } from '../telemetry/index.js'

type ShownProblem = Overview['problems'][number]

const PROBLEMS = 'console.problems'
const COUNT = 'server.problems'

/** Collects the problems of all nodes, and answers other nodes that do. Nodes that do not answer at once are left out. */
export class ProblemsOfNodes {
  readonly #cluster: Pick<Cluster, 'ask' | 'incarnation'>
  readonly #own: Pick<Problems, 'visibleTo' | 'count'>

  constructor(cluster: Pick<Cluster, 'ask' | 'handle' | 'incarnation'>, own: Pick<Problems, 'visibleTo' | 'count'>) {
    this.#cluster = cluster
    this.#own = own
    cluster.handle(COUNT, () => own.count)
    cluster.handle(PROBLEMS, (payload) => this.#ofThis(isObject(payload) ? String(payload.accountId) : ''))
  }

  /** The problems of an account and of all servers, this node's first. The same problem at several nodes is shown once. */
  async visibleTo(accountId: string): Promise<ShownProblem[]> {
    const shown = this.#ofThis(accountId)
    for (const { peer, answer } of await this.#cluster.ask(PROBLEMS, { accountId })) {
      const theirs = (Array.isArray(answer) ? answer : []).flatMap((one) => problemOf(one, peer.name))
      shown.push(...theirs.filter((one) => !shown.some((known) => isSame(one, known))))
    }
    return shown
  }

  /** The number of problems of each node, as its `/health` counts them. */
  async counts(): Promise<ReadonlyMap<Incarnation, number>> {
    const counts = new Map([[this.#cluster.incarnation, this.#own.count]])
    for (const { peer, answer } of await this.#cluster.ask(COUNT, null)) {
      if (typeof answer === 'number') counts.set(peer.incarnation, answer)
    }
    return counts
  }

  #ofThis(accountId: string): ShownProblem[] {
    return this.#own.visibleTo(accountId).map(render)
  }
}

function render({ kind, subject, severity, title, advice, sinceMs, count }: Problem): ShownProblem {
  return { kind, subject, severity, title, advice, since: Math.floor(sinceMs / 1000), count }
}

const isSame = (one: ShownProblem, other: ShownProblem): boolean =>
  one.kind === other.kind && one.subject === other.subject && one.title === other.title && one.advice === other.advice

/** Reads a problem of another node. */
function problemOf(value: unknown, node: string): ShownProblem[] {
  if (!isObject(value)) return []
  const text = (name: string): string => String(value[name] ?? '')
  const number = (name: string): number => Math.floor(Number(value[name])) || 0
  const severity = value.severity === 'error' ? 'error' : 'warning'
  const texts = { kind: text('kind'), subject: text('subject'), title: text('title'), advice: text('advice') }
  return [{ ...texts, severity, since: number('since'), count: number('count'), node }]
}
