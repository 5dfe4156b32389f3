import { isObject } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'
import type { FlowHold, Queue } from '../../queue/index.js'
import type { RecentLists } from './recent-lists.js'

/** `Cluster.ask`, without waiting for the answer: these runs have ended. */
const ENDED = 'workflow.ended'
/** `Cluster.ask`, without waiting for the answer: the return of a run was too large. */
const REFUSED = 'workflow.refused'
/** `Cluster.ask`: what deliveries are waiting for. */
const WAITS = 'workflow.waits'

/** Identifies a run for its callers. */
interface NamedRun {
  readonly accountId: string
  readonly runId: string
}

/** What `RunNodes` is built from. */
export interface RunNodesDeps {
  readonly cluster: Cluster
  readonly now: () => number
  readonly queue: Pick<Queue, 'flowHold'>
  readonly lists: Pick<RecentLists, 'forget'>
  readonly inFlight: { since(seq: number): number | undefined }
  readonly refusedReturns: { add(run: NamedRun, at: number): void }
}

/** Deliveries whose state a run log shows. */
export interface WaitsQuery {
  readonly accountId: string
  /** `messages.seq`. */
  readonly seqs: readonly number[]
  readonly flowKeys: readonly string[]
}

/** What nodes know of deliveries, in memory only. */
export interface Waits {
  /** Start of the attempt in flight, Unix milliseconds, by `messages.seq`. */
  readonly since: ReadonlyMap<number, number>
  /** The limit that a flow-control key has reached. */
  readonly holds: ReadonlyMap<string, FlowHold>
}

/**
 * Exchanges the state of runs between the nodes of a cluster. Each notification may get lost. A node that missed one
 * delivers to an ended run, whose steps are refused, or makes one more attempt, or shows a delivery as queued.
 */
export class RunNodes {
  readonly #deps: RunNodesDeps
  #ended: number[] = []

  constructor(deps: RunNodesDeps) {
    this.#deps = deps
    const { cluster, lists, refusedReturns, now } = deps
    cluster.handle(ENDED, (payload) => {
      for (const seq of numbersIn(payload, 'runs')) lists.forget(seq)
    })
    cluster.handle(REFUSED, (payload) => {
      const { accountId, runId } = isObject(payload) ? payload : {}
      if (typeof accountId === 'string' && typeof runId === 'string') refusedReturns.add({ accountId, runId }, now())
    })
    cluster.handle(WAITS, (payload) => this.#answer(payload))
  }

  /** Notifies other nodes that a run has ended: they may hold its list, and messages that would deliver the list. */
  ended(runSeq: number): void {
    if (this.#deps.cluster.isSingleNode) return
    this.#ended.push(runSeq)
    if (this.#ended.length === 1) setImmediate(() => this.#notifyEnded())
  }

  #notifyEnded(): void {
    const runs = this.#ended
    this.#ended = []
    this.#notify(ENDED, { runs })
  }

  /** Notifies other nodes of a refused return, so that the node that delivers to the run makes no other attempt. */
  refused(run: NamedRun): void {
    if (!this.#deps.cluster.isSingleNode) this.#notify(REFUSED, run)
  }

  #notify(topic: string, payload: unknown): void {
    this.#deps.cluster.ask(topic, payload).catch(() => undefined)
  }

  /** Asks the other nodes about deliveries. Leaves out nodes that do not answer within a second. */
  async waits(query: WaitsQuery): Promise<Waits> {
    const since = new Map<number, number>()
    const holds = new Map<string, FlowHold>()
    const hasQuestion = query.seqs.length > 0 || query.flowKeys.length > 0
    const answers = this.#deps.cluster.isSingleNode || !hasQuestion ? [] : await this.#deps.cluster.ask(WAITS, query)
    for (const { answer } of answers) {
      if (!isObject(answer)) continue
      for (const [seq, at] of pairsIn(answer.since)) {
        if (typeof seq === 'number' && typeof at === 'number') since.set(seq, at)
      }
      for (const [key, hold] of pairsIn(answer.holds)) {
        if (typeof key === 'string' && isHold(hold)) holds.set(key, hold)
      }
    }
    return { since, holds }
  }

  #answer(payload: unknown): unknown {
    const { inFlight, queue } = this.#deps
    const accountId = isObject(payload) && typeof payload.accountId === 'string' ? payload.accountId : ''
    const since = numbersIn(payload, 'seqs').flatMap((seq) => {
      const at = inFlight.since(seq)
      return at === undefined ? [] : [[seq, at]]
    })
    const holds = listIn(payload, 'flowKeys').flatMap((key) => {
      const hold = typeof key === 'string' ? queue.flowHold(accountId, key) : undefined
      return hold ? [[key, hold]] : []
    })
    return { since, holds }
  }
}

function listIn(payload: unknown, name: string): readonly unknown[] {
  const list = isObject(payload) ? payload[name] : undefined
  return Array.isArray(list) ? list : []
}

const numbersIn = (payload: unknown, name: string): number[] =>
  listIn(payload, name).filter((value): value is number => Number.isSafeInteger(value))

function pairsIn(list: unknown): (readonly unknown[])[] {
  return Array.isArray(list) ? list.filter((pair): pair is unknown[] => Array.isArray(pair)) : []
}

function isHold(value: unknown): value is FlowHold {
  if (!isObject(value)) return false
  const { by, parallelism, rate, periodMs, until } = value
  if (by === 'rate') return [rate, periodMs, until].every((number) => typeof number === 'number')
  return by === 'pause' || (by === 'parallelism' && typeof parallelism === 'number')
}
