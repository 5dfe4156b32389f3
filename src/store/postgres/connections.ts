import type pg from 'pg'
import type { Clock, Timer } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import { clockAheadMs, end, type Session } from './connector.js'
import { isLoss, isOfOneTransaction, isTooLong } from './errors.js'

/** The most connections that a store keeps. */
export const MAX_CONNECTIONS = 10
/** The most connections for the upkeep of a cluster, which runs its beats and checks one after the other. */
export const UPKEEP_CONNECTIONS = 3
/** How often unused connections are closed, the clock of the server is read, and callers that wait too long are refused. */
const UPKEEP_EVERY_MS = 15_000
/** A caller that has waited for a connection during this many upkeeps is refused: after 30 to 45 seconds. */
const MAX_WAIT_UPKEEPS = 3
/** After a failed connection, no further one is tried for this long while others are open. */
const GROWTH_PAUSE_MS = 1_000

/** What `Connections` is built from. */
export interface ConnectionsDeps {
  readonly clock: Clock
  /** Makes a connection that is guarded by the lock of the node. */
  readonly connect: () => Promise<Session>
  /** The most connections. Default: `MAX_CONNECTIONS`. */
  readonly most?: number
  /** Called regularly with the time by which the clock of the server is ahead of this machine's. */
  readonly onClock: (aheadMs: number) => void
}

interface Connection extends Session {
  state: 'idle' | 'busy' | 'ended'
}

interface Waiter {
  readonly resolve: (connection: Connection) => void
  readonly reject: (error: unknown) => void
  readonly sinceUpkeep: number
}

/**
 * The connection pool on which a store runs its transactions. It connects when a connection is needed, and always keeps one,
 * which holds the lock of the node.
 *
 * When a connection is lost, the others are in doubt: the server may have been replaced by another one, while connections to
 * the old one still look alive. So the idle ones are closed at once, and the busy ones after their transaction.
 */
export class Connections {
  readonly #deps: ConnectionsDeps
  /** A stack: the connection that was used last is used next, so that surplus connections stay unused. */
  #idle: Connection[] = []
  readonly #open = new Set<Connection>()
  /** Callers that wait, in the order of arrival; those before `#served` are already settled. */
  #waiting: Waiter[] = []
  #served = 0
  #connecting = 0
  /** The fewest idle connections since the last upkeep: this many were not needed. */
  #unused = 0
  /** The life of the server of the newest connection; connections to another one are not used again. Empty: all in doubt. */
  #life = ''
  /** As `#life`, but kept when the connections are in doubt. */
  #server = ''
  #onOtherServer: () => void = () => undefined
  #noGrowthUntilMs = 0
  #isClosing = false
  #upkeep: Timer
  #upkeeps = 0

  constructor(deps: ConnectionsDeps) {
    this.#deps = deps
    this.#upkeep = this.#nextUpkeep()
  }

  #nextUpkeep(): Timer {
    return this.#deps.clock.after(UPKEEP_EVERY_MS, () => {
      void this.#keepUp()
      this.#upkeep = this.#nextUpkeep()
    })
  }

  /** Makes the first connection, which holds the lock of the node from then on. */
  async open(): Promise<void> {
    await this.use(() => Promise.resolve())
  }

  /**
   * Runs `work` on a connection that nobody else uses. If the connection breaks, runs it once more on another one: the
   * server may have ended the first one long ago. Work whose commit may have happened rejects with `store_outcome_unknown`
   * and is not repeated.
   */
  async use<Result>(work: (client: pg.ClientBase) => Promise<Result>): Promise<Result> {
    for (let attempt: 'first' | 'second' = 'first'; ; attempt = 'second') {
      const connection = this.#idle.pop() ?? (await this.#next())
      if (this.#idle.length < this.#unused) this.#unused = this.#idle.length
      connection.state = 'busy'
      try {
        return await work(connection.client)
      } catch (error) {
        const isLost = isLoss(error)
        if (isLost || isError(error, 'store_outcome_unknown')) this.#lose(connection, error)
        if (attempt === 'second' || !isLost || isTooLong(error)) throw error
      } finally {
        this.#release(connection)
      }
    }
  }

  /** Closes all connections. Wait for all work first: callers that wait for a connection never get one. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#upkeep.cancel()
    this.#idle = []
    await Promise.all([...this.#open].map((connection) => this.#end(connection)))
  }

  #next(): Promise<Connection> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject, sinceUpkeep: this.#upkeeps })
      this.#grow()
    })
  }

  /** Connects for the waiting callers, within the limits. */
  #grow(): void {
    const isRefused = this.#open.size > 0 && performance.now() < this.#noGrowthUntilMs
    if (isRefused || this.#isClosing) return
    const { most = MAX_CONNECTIONS } = this.#deps
    while (this.#open.size + this.#connecting < most && this.#connecting < this.#waiting.length - this.#served) {
      this.#connecting++
      this.#deps.connect().then(
        (session) => this.#connected(session),
        (error: unknown) => this.#connectFailed(error),
      )
    }
  }

  #connected(session: Session): void {
    this.#connecting--
    const connection: Connection = { ...session, state: 'busy' }
    this.#open.add(connection)
    // Removes an idle connection that breaks. A busy one fails its statements, so its user finds out.
    session.client.once('error', () => connection.state === 'idle' && this.#end(connection))
    session.client.once('end', () => this.#ended(connection))
    if (session.server.life !== this.#life) {
      this.#life = session.server.life
      this.#endIdle()
    }
    this.#noteServer(session.server.life)
    this.#deps.onClock(session.server.clockAheadMs)
    this.#release(connection)
  }

  /** Calls `listener` after a connection to another server, or to one that was restarted: it may lack the last commits. */
  onOtherServer(listener: () => void): void {
    this.#onOtherServer = listener
  }

  #noteServer(server: string): void {
    const isOther = this.#server !== '' && server !== this.#server
    this.#server = server
    if (isOther) this.#onOtherServer()
  }

  /** A connection attempt failed. Open connections serve the waiting callers; without any, all callers get the error. */
  #connectFailed(error: unknown): void {
    this.#connecting--
    this.#noGrowthUntilMs = performance.now() + GROWTH_PAUSE_MS
    const isTaken = isError(error, 'store_in_use')
    if (isTaken) this.#doubtAll()
    if (!isTaken && this.#open.size + this.#connecting > 0) return
    for (const waiter of this.#waiting.splice(0).slice(this.#takeServed())) waiter.reject(error)
  }

  #release(connection: Connection): void {
    if (connection.state === 'ended') return void this.#grow()
    if (this.#isClosing || connection.server.life !== this.#life) return void this.#end(connection)
    const waiter = this.#waiting[this.#served]
    if (!waiter) {
      connection.state = 'idle'
      this.#idle.push(connection)
      return
    }
    this.#served++
    this.#forgetServed()
    waiter.resolve(connection)
  }

  #takeServed(): number {
    const served = this.#served
    this.#served = 0
    return served
  }

  #lose(connection: Connection, error: unknown): void {
    void this.#end(connection)
    if (!isOfOneTransaction(error)) this.#doubtAll()
  }

  /** Closes idle connections now, and busy ones after their transaction unless a new one has met the same server by then. */
  #doubtAll(): void {
    this.#life = ''
    this.#endIdle()
  }

  #endIdle(): void {
    for (const connection of this.#idle.splice(0)) void this.#end(connection)
  }

  #end(connection: Connection): Promise<void> {
    this.#ended(connection)
    return end(connection.client)
  }

  #ended(connection: Connection): void {
    const wasIdle = connection.state === 'idle'
    connection.state = 'ended'
    this.#open.delete(connection)
    if (wasIdle) this.#idle = this.#idle.filter((each) => each !== connection)
    this.#grow()
  }

  /** Never rejects. */
  async #keepUp(): Promise<void> {
    this.#upkeeps++
    this.#refuseLate()
    // One connection stays: it holds the lock of the node.
    const surplus = Math.min(this.#unused, this.#open.size - 1)
    for (const connection of this.#idle.splice(0, surplus)) void this.#end(connection)
    this.#unused = this.#idle.length
    if (this.#idle.length === 0) return
    await this.use(clockAheadMs).then(this.#deps.onClock, () => undefined)
  }

  #refuseLate(): void {
    const tooEarly = this.#upkeeps - MAX_WAIT_UPKEEPS
    while ((this.#waiting[this.#served]?.sinceUpkeep ?? Infinity) <= tooEarly) {
      this.#waiting[this.#served]?.reject(new Error('timeout exceeded when waiting for a connection'))
      this.#served++
    }
    this.#forgetServed()
  }

  /** Removes settled callers in bulk: to remove the first of many thousands costs as much as to remove them all. */
  #forgetServed(): void {
    if (this.#served === this.#waiting.length || this.#served >= 1_000) this.#waiting.splice(0, this.#takeServed())
  }
}
