import { type Clock, type Timer, unreachable } from '../../base/index.js'

/** The replication position of an engine. */
export interface Position {
  /** Replication id; every start of a primary begins a new history. */
  readonly history: string
  /** Replication offset in that history, bytes. */
  readonly offset: number
}

/** Reads a primary's position from the replication section of INFO; undefined when the engine is no primary. */
export function primaryPosition(info: string): Position | undefined {
  return fieldOf(info, 'role') === 'master' ? positionOf(info, 'master_repl_offset') : undefined
}

/** Reads what a replica has applied from the same section; undefined while it is not linked to its primary. */
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

/** The collaborators of a watch. Each question rejects when the engine cannot be asked. */
export interface WatchOptions {
  readonly askPrimary: () => Promise<Position | undefined>
  readonly askReplica: () => Promise<Position | undefined>
  /** Closes the connections to the replica; its pending reads go to the primary. */
  readonly drop: () => void
  readonly clock: Clock
}

/**
 * The state of the replica.
 *
 * ```
 *   unknown ──a round ends──▶ following ◀──the round ends── behind
 *      ▲                         │  └──a round takes too long──▲
 *      │ next question           ▼
 *    away ◀──── cannot be asked, does not answer, connection lost ──── any
 * ```
 *
 * - unknown: the replica has not shown yet that it follows the primary.
 * - following: it answers and keeps up; a read that needs a slightly newer state waits for it.
 * - behind: it answers but lags. No read waits for it, but reads that its state suffices for go to it.
 * - away: it cannot be reached, and is not asked until `untilMs`.
 */
export type WatchState =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'following' }
  | { readonly kind: 'behind' }
  | { readonly kind: 'away'; readonly untilMs: number }

/** Time that a read waits for the replica before it goes to the primary. */
export const REPLICA_WAIT_MS = 50
/** A replica that does not answer a question within this time counts as hung. */
const STALL_MS = 500
/** Interval of the questions that check the replica while it has reads. */
const CHECK_MS = 250
/** Time before a replica that could not be asked is asked again. */
const AWAY_MS = 500
/** Pauses between two questions to a replica that lags: the first, and the longest. */
const FIRST_PAUSE_MS = 1
const MAX_PAUSE_MS = 25
/** Longest round. The next read starts a new round for a replica that lags further. */
const ROUND_LIMIT_MS = 2_000

interface Waiter {
  readonly moment: number
  readonly timer: Timer
  readonly settle: (reached: boolean) => void
}

/**
 * Tracks how far the replica of one database has come, in *moments*: whole numbers that grow with every question to the
 * primary. Once moment m is reached, the replica has everything that the primary had done when m was the present.
 *
 * A *round* asks the primary for its position, then the replica until it is there too. Rounds run only while a read waits,
 * and one round serves all reads that waited before it began. So writes cost nothing, and reads little.
 */
export class ReplicaWatch {
  readonly #options: WatchOptions
  #state: WatchState = { kind: 'unknown' }
  #now = 1
  #reached = 0
  /** Changes whenever pending questions become void. */
  #epoch = 0
  #isInRound = false
  #check: Timer | undefined
  readonly #waiters = new Set<Waiter>()

  constructor(options: WatchOptions) {
    this.#options = options
  }

  /** The present moment: what the primary has answered so far belongs to it or to an earlier one. */
  get now(): number {
    return this.#now
  }

  /** Whether the replica has everything up to `moment` and can be asked. */
  has(moment: number): boolean {
    const { kind } = this.#state
    return moment <= this.#reached && (kind === 'following' || kind === 'behind')
  }

  /** Whether a read may wait for the replica. Starts a round if the replica lags; ends the state `away` when it is over. */
  mayWait(): boolean {
    switch (this.#state.kind) {
      case 'unknown':
      case 'following':
        return true
      case 'behind':
        this.#startRound()
        return false
      case 'away': {
        const leftMs = this.#state.untilMs - this.#options.clock.now()
        // More than `AWAY_MS` is left when the clock was set back.
        if (leftMs > 0 && leftMs <= AWAY_MS) return false
        this.#state = { kind: 'unknown' }
        return true
      }
      default:
        return unreachable(this.#state)
    }
  }

  /** Waits briefly until the replica has everything up to `moment`. Resolves to whether it has. */
  until(moment: number): Promise<boolean> {
    if (this.has(moment)) return Promise.resolve(true)
    if (!this.mayWait()) return Promise.resolve(false)
    return new Promise((resolve) => {
      const settle = (reached: boolean): void => {
        timer.cancel()
        this.#waiters.delete(waiter)
        resolve(reached)
      }
      const timer = this.#options.clock.after(REPLICA_WAIT_MS, () => this.#fallBehind(settle))
      const waiter = { moment, timer, settle }
      this.#waiters.add(waiter)
      this.#startRound()
    })
  }

  /** Call it when reads were sent to the replica: checks that it answers, so that the reads do not hang with it. */
  sent(): void {
    this.#check ??= this.#options.clock.after(CHECK_MS, () => void this.#checkAlive())
  }

  /** Records that the connection to the replica is lost. */
  lost(): void {
    this.#epoch++
    this.#isInRound = false
    this.#state = { kind: 'away', untilMs: this.#options.clock.now() + AWAY_MS }
    for (const { settle } of [...this.#waiters]) settle(false)
  }

  #fallBehind(settle: (reached: boolean) => void): void {
    if (this.#state.kind === 'following' || this.#state.kind === 'unknown') this.#state = { kind: 'behind' }
    settle(false)
  }

  #startRound(): void {
    if (this.#isInRound) return
    this.#isInRound = true
    const epoch = this.#epoch
    this.#round(epoch).catch(() => this.#giveUp(epoch))
  }

  async #round(epoch: number): Promise<void> {
    const moment = this.#now++
    const reached = await this.#follows(epoch, this.#options.clock.now() + ROUND_LIMIT_MS)
    if (epoch !== this.#epoch) return
    this.#isInRound = false
    if (!reached) return
    this.#reached = moment
    this.#state = { kind: 'following' }
    for (const { moment: needed, settle } of [...this.#waiters]) if (needed <= moment) settle(true)
    if (this.#waiters.size > 0) this.#startRound()
  }

  /** Whether the replica reaches the primary's present position before `deadlineMs`. */
  async #follows(epoch: number, deadlineMs: number): Promise<boolean> {
    // A primary that cannot be asked is no reason to give up the replica, which is no further behind than before.
    const goal = await this.#answerOf(this.#options.askPrimary()).catch(() => undefined)
    let pauseMs = FIRST_PAUSE_MS
    while (goal && epoch === this.#epoch && this.#options.clock.now() < deadlineMs) {
      if (hasReached(await this.#answerOf(this.#options.askReplica()), goal)) return true
      await this.#pause(pauseMs)
      pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)
    }
    return false
  }

  /** Rejects when the answer does not arrive in time. */
  #answerOf(answer: Promise<Position | undefined>): Promise<Position | undefined> {
    return new Promise((resolve, reject) => {
      const timer = this.#options.clock.after(STALL_MS, () => reject(new Error('the engine does not answer')))
      answer.then(resolve, reject).finally(() => timer.cancel())
    })
  }

  #giveUp(epoch: number): void {
    if (epoch !== this.#epoch) return
    this.lost()
    this.#options.drop()
  }

  /** Never rejects. */
  async #checkAlive(): Promise<void> {
    const epoch = this.#epoch
    await this.#answerOf(this.#options.askReplica()).catch(() => this.#giveUp(epoch))
    this.#check = undefined
  }

  #pause(pauseMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#options.clock.after(pauseMs, resolve)
    })
  }
}
