/** The problems of all nodes, for Home of the console: a load balancer shows another node with every request. */
import { isObject } from '../base/index.js'
import type { Cluster } from '../cluster/index.js'
import type { Overview } from '../contract/console/console.js'
import type { Problem, Problems } from '../telemetry/index.js'

type ShownProblem = Overview['problems'][number]

const PROBLEMS = 'console.problems'

/** Answers other nodes, and asks them. Nodes that do not answer at once are left out. */
export class ProblemsOfNodes {
  readonly #cluster: Pick<Cluster, 'ask'>
  readonly #own: Pick<Problems, 'visibleTo'>

  constructor(cluster: Pick<Cluster, 'ask' | 'handle'>, own: Pick<Problems, 'visibleTo'>) {
    this.#cluster = cluster
    this.#own = own
    cluster.handle(PROBLEMS, (payload) => this.#ofThis(isObject(payload) ? String(payload.accountId) : ''))
  }

  /** Those of an account and of the servers, this node's first. What several nodes report alike is shown once. */
  async visibleTo(accountId: string): Promise<ShownProblem[]> {
    const shown = this.#ofThis(accountId)
    for (const { peer, answer } of await this.#cluster.ask(PROBLEMS, { accountId })) {
      const theirs = (Array.isArray(answer) ? answer : []).flatMap((one) => problemOf(one, peer.name))
      shown.push(...theirs.filter((one) => !shown.some((known) => isSame(one, known))))
    }
    return shown
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
