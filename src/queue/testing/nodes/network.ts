import type { Process, Timeline } from './timeline.js'

/** What happens to a call. The numbers are delays in milliseconds. */
export type Fate =
  | { readonly kind: 'ok'; readonly there: number; readonly back: number }
  /** The call has no effect, and the caller learns that it failed. */
  | { readonly kind: 'refused'; readonly heard: number }
  /** The caller learns that the outcome is unknown. The call may have an effect, perhaps only after that. */
  | { readonly kind: 'unanswered'; readonly effect: number | undefined; readonly heard: number }

/** The longest usual time of one direction of a call. */
const QUICK_MS = 12
/** A call that takes longer than this disturbs its caller. */
export const SLOW_MS = 250

/** The network between the nodes, the store and each other: slow and lost calls, cut links, outages. */
export class Network {
  readonly #timeline: Timeline
  /** Calls are quick and none gets lost. */
  isQuiet = false
  /** Until then, many calls get lost. */
  stormUntil = 0
  storeAwayUntil = 0
  /** The number of the store's server that serves now. A call that was sent to an earlier server has no effect. */
  storeServer = 1
  /** Until when a process cannot reach the store. */
  readonly #awayFrom = new Map<Process, number>()
  /** Until when one process cannot reach another, by `<from> <to>`. */
  readonly #cut = new Map<string, number>()

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  cutFromStore(process: Process, ms: number): void {
    this.#awayFrom.set(process, this.#timeline.now + ms)
  }

  cutBetween(one: Process, other: Process, ms: number): void {
    this.#cut.set(`${one.name} ${other.name}`, this.#timeline.now + ms)
  }

  isStoreAway(process: Process): boolean {
    const { now } = this.#timeline
    return !this.isQuiet && (now < this.storeAwayUntil || now < (this.#awayFrom.get(process) ?? 0))
  }

  /** Whether messages of one process do not reach the other. */
  isCut(from: Process, to: Process): boolean {
    return !this.isQuiet && this.#timeline.now < (this.#cut.get(`${from.name} ${to.name}`) ?? 0)
  }

  #delays(): { readonly there: number; readonly back: number } {
    const { random, between } = this.#bound
    if (this.isQuiet) return { there: between(1, 3), back: between(1, 3) }
    const slow = (): number => (random.chance(0.01) ? between(300, 6_000) : between(0, QUICK_MS))
    return { there: slow(), back: slow() }
  }

  get #bound() {
    const timeline = this.#timeline
    return { random: timeline.random, between: (least: number, most: number) => timeline.between(least, most) }
  }

  get #lossRate(): number {
    if (this.isQuiet) return 0
    return this.#timeline.now < this.stormUntil ? 0.25 : 0.01
  }

  /**
   * The fate of a call of the store.
   * @param mayBeLate whether the call may take effect after the caller has learned of the loss. It may not if the caller
   * must send more statements, because then it holds its locks until its commit.
   */
  toStore(process: Process, isWrite: boolean, mayBeLate: boolean): Fate {
    const { random, between } = this.#bound
    if (this.isStoreAway(process)) return { kind: 'refused', heard: between(1, 1_000) }
    if (!random.chance(this.#lossRate)) return { kind: 'ok', ...this.#delays() }
    const heard = between(1, 2_000)
    if (!isWrite) return { kind: 'refused', heard }
    const late = mayBeLate ? heard + between(1, 3_000) : undefined
    const effects = [undefined, between(1, heard), between(1, heard), late]
    return { kind: 'unanswered', effect: random.pick(effects), heard }
  }

  /** The fate of a call of another node. */
  toPeer(from: Process, to: Process): Fate {
    const { random, between } = this.#bound
    if (this.isCut(from, to)) return { kind: 'unanswered', effect: undefined, heard: Number.POSITIVE_INFINITY }
    if (!random.chance(this.#lossRate)) return { kind: 'ok', ...this.#delays() }
    return {
      kind: 'unanswered',
      effect: random.chance(0.5) ? between(1, 20) : undefined,
      heard: Number.POSITIVE_INFINITY,
    }
  }
}
