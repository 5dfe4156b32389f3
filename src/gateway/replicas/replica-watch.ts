import { type Clock, type Timer, unreachable } from '../../base/index.js'

/** Where an engine stands in the history of a database's changes. */
export interface Position {
  /** Names the history; every life of a primary begins a new one. */
  readonly history: string
  /** How far the engine has come in it, bytes. */
  readonly offset: number
}

/** Reads the position of a primary from the replication section of its INFO; undefined when it is none. */
export function primaryPosition(info: string): Position | undefined {
  return fieldOf(info, 'role') === 'master' ? positionOf(info, 'master_repl_offset') : undefined
}

/** Reads what a replica has applied from the same section; undefined while it does not follow its primary. */
export function replicaPosition(info: string): Position | undefined {
  const follows = fieldOf(info, 'role') === 'slave' && fieldOf(info, 'master_link_status') === 'up'
  return follows ? positionOf(info, 'slave_repl_offset') : undefined
}

/** Whether a replica has everything that its primary had at `goal`. */
function hasReached(replica: Position | undefined, goal: Position): boolean {
  return replica !== undefined && replica.history === goal.history && replica.offset >= goal.offset
}

function positionOf(info: string, offsetField: string): Position | undefined {
  const history = fieldOf(info, 'master_replid')
  const offset = Number(fieldOf(info, offsetField))
  return history !== undefined && Number.isSafeInteger(offset) ? { history, offset } : undefined
}

function fieldOf(info: string, field: string): string | undefined {
  return new RegExp(`^${field}:([^\r\n]*)`, 'm').exec(info)?.[1]
}

/** What a watch asks and does. Each question rejects when the engine cannot be asked. */
export interface WatchOptions {
  readonly askPrimary: () => Promise<Position | undefined>
  readonly askReplica: () => Promise<Position | undefined>
  /** Closes the connections to the replica; whoever waits for a reply there asks the primary. */
  readonly drop: () => void
  readonly clock: Clock
}

/**
 * What is known of the replica.
 *
 * ```
 *   unknown ──a round ends──▶ following ◀──the round ends── behind
 *      ▲                         │  └──a round takes too long──▲
 *      │ next question           ▼
 *    away ◀──── cannot be asked, does not answer, connection lost ──── any
 * ```
 *
 * - unknown: nothing; it has to show that it follows the primary.
 * - following: it answers and keeps up; whoever needs a little more than it has waits.
 * - behind: it answers but lags; nobody waits for it, though what it has may be read.
 * - away: it cannot be asked; it is left alone for a while.
 */
export type WatchState =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'following' }
  | { readonly kind: 'behind' }
  | { readonly kind: 'away'; readonly untilMs: number }

/** How long a read waits for the replica before the primary is asked instead. */
export const PATIENCE_MS = 50
/** A replica that leaves a question unanswered for so long is taken to hang. */
const STALL_MS = 500
/** Reads that are with the replica are backed by a question of ours so often. */
const BEAT_MS = 250
/** A replica that could not be asked is left alone for so long. */
const AWAY_MS = 500
/** Between two looks at a replica that lags: the first pause, and the longest. */
const FIRST_LOOK_MS = 1
const LONGEST_LOOK_MS = 25
/** A replica that lags is looked at for so long after somebody was interested. */
const ROUND_LIMIT_MS = 2_000

interface Waiter {
  readonly moment: number
  readonly timer: Timer
  readonly settle: (reached: boolean) => void
}

/**
 * Knows how far the replica of one database has come, in *moments*: whole numbers that grow with every look at the
 * primary. What the primary had done when the moment was m is at the replica once moment m is reached.
 *
 * A look is a *round*: ask the primary where it stands, then the replica until it stands there too. Rounds run only
 * while somebody asks, and one serves all who asked before it began, so writing costs nothing and reading little.
 */
export class ReplicaWatch {
  readonly #options: WatchOptions
  #state: WatchState = { kind: 'unknown' }
  #now = 1
  #reached = 0
  /** Grows whenever what is under way has lost its meaning. */
  #life = 0
  #isLooking = false
  #beat: Timer | undefined
  readonly #waiters = new Set<Waiter>()

  constructor(options: WatchOptions) {
    this.#options = options
  }

  /** The present moment: what the primary has answered so far belongs to it or to an earlier one. */
  get now(): number {
    return this.#now
  }

  /** Whether the replica has everything of `moment` and may be asked. */
  has(moment: number): boolean {
    const { kind } = this.#state
    return moment <= this.#reached && (kind === 'following' || kind === 'behind')
  }

  /** Whether a read may wait for the replica. One that lags is looked at meanwhile, one that was away is asked again. */
  mayWait(): boolean {
    switch (this.#state.kind) {
      case 'unknown':
      case 'following':
        return true
      case 'behind':
        this.#look()
        return false
      case 'away':
        if (this.#options.clock.now() < this.#state.untilMs) return false
        this.#state = { kind: 'unknown' }
        return true
      default:
        return unreachable(this.#state)
    }
  }

  /** Waits a little until the replica has everything of `moment`; answers whether it has. */
  until(moment: number): Promise<boolean> {
    if (this.has(moment)) return Promise.resolve(true)
    if (!this.mayWait()) return Promise.resolve(false)
    return new Promise((resolve) => {
      const settle = (reached: boolean): void => {
        timer.cancel()
        this.#waiters.delete(waiter)
        resolve(reached)
      }
      const timer = this.#options.clock.after(PATIENCE_MS, () => this.#fallBehind(settle))
      const waiter = { moment, timer, settle }
      this.#waiters.add(waiter)
      this.#look()
    })
  }

  /** Reads were sent to the replica: should it hang, they must not hang with it. */
  sent(): void {
    this.#beat ??= this.#options.clock.after(BEAT_MS, () => void this.#checkAlive())
  }

  /** The connection to the replica is lost. */
  lost(): void {
    this.#life++
    this.#isLooking = false
    this.#state = { kind: 'away', untilMs: this.#options.clock.now() + AWAY_MS }
    for (const { settle } of [...this.#waiters]) settle(false)
  }

  #fallBehind(settle: (reached: boolean) => void): void {
    if (this.#state.kind === 'following' || this.#state.kind === 'unknown') this.#state = { kind: 'behind' }
    settle(false)
  }

  #look(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    const life = this.#life
    this.#round(life).catch(() => this.#giveUp(life))
  }

  async #round(life: number): Promise<void> {
    const moment = this.#now++
    const reached = await this.#follows(life, this.#options.clock.now() + ROUND_LIMIT_MS)
    if (life !== this.#life) return
    this.#isLooking = false
    if (!reached) return
    this.#reached = moment
    this.#state = { kind: 'following' }
    for (const { moment: wanted, settle } of [...this.#waiters]) if (wanted <= moment) settle(true)
    if (this.#waiters.size > 0) this.#look()
  }

  /** Whether the replica gets to where the primary stands now, before `deadlineMs`. */
  async #follows(life: number, deadlineMs: number): Promise<boolean> {
    // While the primary cannot be asked, what the replica has is as good as before.
    const goal = await this.#answerOf(this.#options.askPrimary()).catch(() => undefined)
    let pauseMs = FIRST_LOOK_MS
    while (goal && life === this.#life && this.#options.clock.now() < deadlineMs) {
      if (hasReached(await this.#answerOf(this.#options.askReplica()), goal)) return true
      await this.#pause(pauseMs)
      pauseMs = Math.min(2 * pauseMs, LONGEST_LOOK_MS)
    }
    return false
  }

  /** Rejects when the answer does not come in time. */
  #answerOf(answer: Promise<Position | undefined>): Promise<Position | undefined> {
    return new Promise((resolve, reject) => {
      const timer = this.#options.clock.after(STALL_MS, () => reject(new Error('the engine does not answer')))
      answer.then(resolve, reject).finally(() => timer.cancel())
    })
  }

  #giveUp(life: number): void {
    if (life !== this.#life) return
    this.lost()
    this.#options.drop()
  }

  /** Never rejects. */
  async #checkAlive(): Promise<void> {
    const life = this.#life
    await this.#answerOf(this.#options.askReplica()).catch(() => this.#giveUp(life))
    this.#beat = undefined
  }

  #pause(pauseMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#options.clock.after(pauseMs, resolve)
    })
  }
}
