import { pause, systemClock } from '../../src/base/index.js'
import { type ListCall, listBreach, type RegisterCall, registerBreach } from './history.js'

/** A way to the database: sends a command, and answers its result. It throws when the command has no answer or an error. */
export type Route = (command: readonly string[]) => Promise<unknown>

/** How many keys of each kind the clients share: few, so that they meet. A list that has grown is replaced by a new one. */
const KEYS = 3
const LIST_LENGTH = 200

/** What clients do and how often. */
export interface RecorderOptions {
  /** Begins the names of the keys, which must be new. */
  readonly name: string
  readonly random: () => number
  /** Number of clients for each route. */
  readonly clients: number
  /** Time between two calls of a client. */
  readonly betweenMs: number
}

/** Clients that read and write registers and lists by several routes, each one call at a time, and remember what they saw. */
export class Recorder {
  readonly #registers = new Map<string, RegisterCall[]>()
  readonly #lists = new Map<string, ListCall[]>()
  readonly #routes: readonly Route[]
  readonly #random: () => number
  readonly #name: string
  readonly #betweenMs: number
  readonly #clients: readonly Promise<void>[]
  #written = 0
  #isOver = false

  constructor(routes: readonly Route[], options: RecorderOptions) {
    this.#routes = routes
    this.#random = options.random
    this.#name = options.name
    this.#betweenMs = options.betweenMs
    this.#clients = routes.flatMap((route) => Array.from({ length: options.clients }, () => this.#act(route)))
  }

  /** How many calls have been answered so far. */
  get answered(): number {
    const all = [...this.#registers.values(), ...this.#lists.values()].flat()
    return all.filter(({ endedAt }) => endedAt < Number.POSITIVE_INFINITY).length
  }

  /** Ends the clients, reads every key once more by the last route, and returns why no order explains the calls on a key. */
  async breaches(): Promise<string[]> {
    this.#isOver = true
    await Promise.all(this.#clients)
    const last = this.#routes.at(-1) as Route
    for (const key of this.#registers.keys()) await this.#readRegister(last, key)
    for (const key of this.#lists.keys()) await this.#readList(last, key)
    const found = (key: string, breach: string | undefined) => (breach === undefined ? [] : [`${key}: ${breach}`])
    return [
      ...[...this.#registers].flatMap(([key, calls]) => found(key, registerBreach(calls))),
      ...[...this.#lists].flatMap(([key, calls]) => found(key, listBreach(calls))),
    ]
  }

  async #act(route: Route): Promise<void> {
    while (!this.#isOver) {
      const number = Math.floor(this.#random() * KEYS)
      const [register, list] = [`${this.#name}:register:${number}`, this.#listKey(number)]
      const acts = [this.#readRegister, this.#write, this.#readList, this.#append]
      const act = acts[Math.floor(this.#random() * acts.length)] as (typeof acts)[number]
      const isOfRegister = act === this.#readRegister || act === this.#write
      // A call without an answer is remembered as such.
      await act.call(this, route, isOfRegister ? register : list).catch(() => undefined)
      await pause(systemClock, this.#betweenMs)
    }
  }

  /** A list that few elements have been appended to. */
  #listKey(number: number): string {
    const full = Math.floor(this.#written / (LIST_LENGTH * KEYS))
    return `${this.#name}:list:${full}:${number}`
  }

  async #readRegister(route: Route, key: string): Promise<void> {
    const beganAt = performance.now()
    const value = await route(['GET', key])
    const call = { kind: 'read', value: value === null ? null : String(value), beganAt } as const
    added(this.#registers, key).push({ ...call, endedAt: performance.now() })
  }

  async #write(route: Route, key: string): Promise<void> {
    const call = { kind: 'write', value: `v${++this.#written}`, beganAt: performance.now() } as const
    const isAnswered = await route(['SET', key, call.value]).then(
      () => true,
      () => false,
    )
    added(this.#registers, key).push({ ...call, endedAt: isAnswered ? performance.now() : Number.POSITIVE_INFINITY })
  }

  async #readList(route: Route, key: string): Promise<void> {
    const beganAt = performance.now()
    const elements = (await route(['LRANGE', key, '0', '-1'])) as string[]
    added(this.#lists, key).push({ kind: 'read', elements, beganAt, endedAt: performance.now() })
  }

  async #append(route: Route, key: string): Promise<void> {
    const call = { kind: 'append', element: `e${++this.#written}`, beganAt: performance.now() } as const
    const length = await route(['RPUSH', key, call.element]).then(Number, () => undefined)
    const endedAt = length === undefined ? Number.POSITIVE_INFINITY : performance.now()
    added(this.#lists, key).push({ ...call, length, endedAt })
  }
}

function added<Call>(calls: Map<string, Call[]>, key: string): Call[] {
  const known = calls.get(key) ?? []
  calls.set(key, known)
  return known
}
