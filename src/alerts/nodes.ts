import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { type Clock, isObject } from '../base/index.js'
import type { Cluster } from '../cluster/index.js'
import type { AlertKind } from '../contract/alerts/kinds.js'
import type { Store } from '../store/index.js'
import type { Problems } from '../telemetry/index.js'
import { type Condition, conditionsOf, type DiskFigures, type Observed, type WatchedDatabase } from './conditions.js'
import type { ConditionRow, KnownDatabase } from './transactions/alerts-conditions.js'
import * as rules from './transactions/alerts-rules.js'

/** What a node observes besides the store. */
export interface AlertSources {
  /** All databases that this node serves. */
  databases(): readonly WatchedDatabase[]
  disk(): Promise<DiskFigures>
  /** Unix milliseconds; `undefined`: no certificate. */
  certificateExpiresAt(): number | undefined
}

/** What `AlertNodes` is built from. */
export interface AlertNodesDeps {
  readonly store: Store
  readonly clock: Clock
  readonly problems: Pick<Problems, 'all'>
  readonly sources: AlertSources
  /** Default: this server is alone. */
  readonly cluster?: Pick<Cluster, 'isLeader' | 'isSingleNode' | 'peers' | 'ask' | 'handle'>
  /** The name of this node; absent on a server that is alone. */
  readonly node?: string | undefined
}

/** Topic of `Cluster.ask`: the conditions that a node observes. */
const SEEN = 'alerts.seen'
/** Kinds of conditions that each node judges by its own observations. */
const BY_NODES: readonly AlertKind[] = [
  ...(['budget', 'engine_restarting', 'disk_full', 'certificate_expiring', 'store_corrupt', 'problem'] as const),
]
/** The kinds among these that concern a database, which its home observes. */
const BY_HOMES: readonly string[] = ['budget', 'engine_restarting']

const text = Type.String()
const ConditionSchema = Type.Object({
  accountId: text,
  kind: Type.Enum([...BY_NODES]),
  subject: text,
  level: Type.Number(),
  title: text,
  advice: text,
  severity: Type.Enum(['warning', 'error']),
})
const SeenSchema = Type.Object({ conditions: Type.Array(ConditionSchema), seesDisk: Type.Boolean() })

type Seen = Static<typeof SeenSchema>

/** The observations of the other nodes. */
export interface SeenElsewhere {
  readonly conditions: readonly Condition[]
  /** The nodes that have answered. */
  readonly nodes: ReadonlySet<string>
  readonly isComplete: boolean
  readonly seesDisks: boolean
}

/** Collects observations for the leader, which judges: each node observes its disk, certificate, problems and databases. */
export class AlertNodes {
  readonly #deps: AlertNodesDeps

  constructor(deps: AlertNodesDeps) {
    this.#deps = deps
  }

  /** Registers the handler for the leader's question. Before the cluster starts. */
  join(): void {
    this.#deps.cluster?.handle(SEEN, (payload) => this.#answer(payload))
  }

  /** The observations of this node. */
  async here(firstAccountId: string | undefined, changed: readonly rules.RuleRow[]) {
    const { clock, problems, sources, node } = this.#deps
    return {
      now: clock.now(),
      node,
      firstAccountId,
      rules: changed,
      databases: sources.databases(),
      problems: problems.all(),
      disk: await sources.disk().catch(() => undefined),
      certificateExpiresAt: sources.certificateExpiresAt(),
    } satisfies Partial<Observed>
  }

  /** Asks the other nodes for their observations. */
  async elsewhere(firstAccountId: string | undefined): Promise<SeenElsewhere> {
    const { cluster } = this.#deps
    if (!cluster || cluster.isSingleNode) return { conditions: [], nodes: new Set(), isComplete: true, seesDisks: true }
    const asked = cluster.peers.length
    const answers = (await cluster.ask(SEEN, { firstAccountId })).flatMap(({ peer, answer }) =>
      Value.Check(SeenSchema, answer) ? [{ node: peer.name, seen: answer }] : [],
    )
    return {
      conditions: answers.flatMap(({ seen }) => seen.conditions),
      nodes: new Set(answers.map(({ node }) => node)),
      isComplete: answers.length >= asked,
      seesDisks: answers.every(({ seen }) => seen.seesDisk),
    }
  }

  /**
   * Returns a function that says whether a state cannot be judged, because its node
   * has not answered or could not observe it.
   */
  unjudged(
    others: SeenElsewhere,
    seesDisk: boolean,
    databases: readonly KnownDatabase[],
  ): (row: Pick<ConditionRow, 'kind' | 'subject'>) => boolean {
    const { node } = this.#deps
    const homes = new Map(databases.map(({ database_id, home }) => [database_id, home]))
    const isSeen = (home: string): boolean => node === undefined || home === node || others.nodes.has(home)
    return ({ kind, subject }) => {
      if (kind === 'disk_full' && !(seesDisk && others.seesDisks)) return true
      if (!others.isComplete && BY_NODES.some((other) => other === kind)) return true
      const home = BY_HOMES.includes(kind) ? homes.get(subject) : undefined
      return typeof home === 'string' && !isSeen(home)
    }
  }

  async #answer(payload: unknown): Promise<Seen> {
    const { firstAccountId } = isObject(payload) ? payload : {}
    const changed = await this.#deps.store.run(rules.listAll, {})
    const here = await this.here(typeof firstAccountId === 'string' ? firstAccountId : undefined, changed)
    return {
      conditions: conditionsOf({ ...here, schedules: [], backups: [], failing: [] }),
      seesDisk: here.disk !== undefined,
    }
  }
}
