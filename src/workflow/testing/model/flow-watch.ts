import type { Random } from '../../../base/testing/random.js'
import type { PendingMessage } from '../../../queue/index.js'
import type { SimulatedDispatcher } from '../../../queue/testing/simulated-dispatcher.js'
import type { FlowKeyChange } from '../../../queue/transactions/flow-keys.js'
import * as flowKeys from '../../../queue/transactions/flow-keys.js'
import type { Store } from '../../../store/index.js'

/** The flow-control keys of triggers, with their settings. */
const KEYS = {
  narrow: 'parallelism=2',
  slow: 'rate=2, period=120s',
} as const
type Key = keyof typeof KEYS

const PERIOD_MS = 120_000
const RATE = 2
const PARALLELISM = 2

/** Settings of a random flow-control key, or none. */
export function someFlow(random: Random): Record<string, string> {
  const key = random.pick(['narrow', 'slow', undefined, undefined] as const)
  return key ? { 'upstash-flow-control-key': key, 'upstash-flow-control-value': KEYS[key] } : {}
}

/** Collaborators of the flow watch. */
export interface FlowWatchDeps {
  readonly store: Store
  readonly accountId: string
  readonly random: Random
  readonly now: () => number
  readonly engine: () => SimulatedDispatcher
}

/**
 * Checks deliveries against the limits of their flow-control key: nothing is sent under a paused key, parallelism and rate
 * are respected, and the engine counts exactly the requests that are open or started.
 */
export class FlowWatch {
  readonly #deps: FlowWatchDeps
  readonly paused = new Set<string>()
  #periodStart = Number.NEGATIVE_INFINITY
  #started = 0
  /** Start of the period in which the clock was set back: it may continue, or another one may start at the same time. */
  #unsure = Number.NaN
  /** Whether the clock was set back since the last period: the next period may begin too early. */
  #wasSetBack = false

  constructor(deps: FlowWatchDeps) {
    this.#deps = deps
  }

  /** A message is about to be sent. */
  sent({ flowKey, messageId }: PendingMessage): void {
    if (flowKey === undefined) return
    if (this.paused.has(flowKey)) throw new Error(`${messageId} was delivered under ${flowKey}, which is paused`)
    const open = this.#open(flowKey)
    if (flowKey === 'narrow' && open > PARALLELISM) throw new Error(`${open} requests are open under ${flowKey}`)
    if (flowKey === 'slow') this.#count()
  }

  #open(flowKey: string): number {
    const flights = this.#deps.engine().flights
    return flights.filter(({ message, state }) => message.flowKey === flowKey && state !== 'over').length
  }

  /** Counts a call in the period; the engine starts a period with its first call. */
  #count(): void {
    const { engine, accountId, now } = this.#deps
    const { periodStart } = engine().flow.use(accountId, 'slow', now())
    if (periodStart === this.#unsure) return
    const isNext = periodStart > this.#periodStart && !this.#wasSetBack
    const isTooSoon = isNext && periodStart < this.#periodStart + PERIOD_MS
    this.#wasSetBack = false
    if (isTooSoon) throw new Error(`a period of the rate began ${periodStart - this.#periodStart} ms after another`)
    this.#started = periodStart === this.#periodStart ? this.#started + 1 : 1
    this.#periodStart = periodStart
    if (this.#started > RATE) throw new Error(`${this.#started} requests began in one period of the rate ${RATE}`)
  }

  clockWasSetBack(): void {
    this.#unsure = this.#periodStart
    this.#wasSetBack = true
  }

  /** Periods are not durable: a restarted engine begins a new one. */
  forgetPeriod(): void {
    this.#periodStart = Number.NEGATIVE_INFINITY
  }

  /** The engine counts every open request, plus messages that are about to be sent. */
  checkPlaces(): void {
    const { engine, accountId, now } = this.#deps
    for (const key of Object.keys(KEYS)) {
      const { open } = engine().flow.use(accountId, key, now())
      const least = this.#open(key)
      if (open < least) throw new Error(`${key} counts ${open} open requests, and there are ${least}`)
    }
    this.#checkPeriod()
  }

  /** A period counts its calls, plus messages that are about to be sent, nothing else. */
  #checkPeriod(): void {
    const { engine, accountId, now } = this.#deps
    const { open, begun, periodStart } = engine().flow.use(accountId, 'slow', now())
    if (periodStart === this.#unsure) return
    const made = periodStart === this.#periodStart ? this.#started : 0
    const aboutTo = open - this.#open('slow')
    const isReal = begun >= made && begun <= made + aboutTo
    if (!isReal) throw new Error(`a period of the rate counts ${begun} calls; ${made} were made, ${aboutTo} may follow`)
    if (periodStart > 0 && begun === 0) throw new Error('a period of the rate has begun without a call')
  }

  /** With nothing to send and nothing in flight, the engine counts no open request. */
  checkEmpty(): void {
    const { engine, accountId, now } = this.#deps
    for (const key of Object.keys(KEYS)) {
      const { open } = engine().flow.use(accountId, key, now())
      if (open !== 0) throw new Error(`${key} counts ${open} open requests, and there is none`)
    }
  }

  /** Pauses or resumes some key, or ends its period. */
  async change(): Promise<void> {
    const { random } = this.#deps
    const key = random.pick(Object.keys(KEYS) as Key[]) ?? 'narrow'
    if (random.chance(0.3)) return this.#reset(key)
    return this.#set(key, this.paused.has(key) ? 0 : 1)
  }

  /** Resumes every key. */
  async resumeAll(): Promise<void> {
    for (const key of this.paused) await this.#set(key as Key, 0)
  }

  async #reset(key: Key): Promise<void> {
    if (!(await this.#modify(key, {}))) return
    this.#deps.engine().flow.resetRate(this.#deps.accountId, key)
    if (key === 'slow') this.#periodStart = Number.NEGATIVE_INFINITY
  }

  async #set(key: Key, paused: 0 | 1): Promise<void> {
    if (!(await this.#modify(key, { paused }))) return
    if (paused === 1) this.paused.add(key)
    else this.paused.delete(key)
  }

  async #modify(key: Key, change: FlowKeyChange): Promise<boolean> {
    const { store, accountId, engine, now } = this.#deps
    const row = await store.run(flowKeys.modify, { accountId, key, change, create: false, at: now() })
    if (row) engine().flow.set(row)
    return row !== undefined
  }
}
