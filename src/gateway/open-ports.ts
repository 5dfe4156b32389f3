import type { Clock, Timer } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { DatabaseListener, type ListenerOptions } from './client/database-listener.js'
import type { DatabaseDirectory, GatewayLogger, ServedDatabase } from './deps.js'
import type { Lanes } from './engine/lanes.js'
import type { Guards } from './limits/guards.js'
import { PortFailures } from './port-failures.js'

/** The collaborators of `OpenPorts`. */
export interface OpenPortsDeps {
  readonly directory: DatabaseDirectory
  readonly lanes: Lanes
  readonly guards: Guards
  readonly clock: Clock
  readonly logger: GatewayLogger
  readonly listenerOptions: ListenerOptions
  /** Closes this node's passing port of a database that another node has served until now. */
  readonly release: (databaseId: string) => Promise<void> | undefined
}

interface OpenPort {
  readonly listener: DatabaseListener
  /** Even while its port is not open, the listener serves clients that other nodes pass on. */
  state: 'opening' | 'open' | 'failed'
  listening: Promise<void>
}

/** When the home of a database has just changed, another node on this machine may hold the port for a moment. */
const RETRY_PORTS_MS = 1_000

/**
 * Opens, updates and closes the ports of the databases that this node serves, as the directory says.
 * ```
 *   closed ──follow──▶ opening ──▶ open ──follow──▶ closing ──▶ closed
 *                        │ ▲
 *         the port is    ▼ │  every second
 *         not free     failed
 * ```
 */
export class OpenPorts {
  readonly #deps: OpenPortsDeps
  readonly #open = new Map<string, OpenPort>()
  readonly #failures: PortFailures
  readonly #closing = new Set<Promise<void>>()
  #retry: Timer | undefined
  #isStopped = false

  constructor(deps: OpenPortsDeps) {
    this.#deps = deps
    this.#failures = new PortFailures(deps.logger)
  }

  /** The open or opening port of a database. */
  listenerOf(databaseId: string): DatabaseListener | undefined {
    return this.#open.get(databaseId)?.listener
  }

  /** Opens, updates or closes the port of a database, as the directory says. */
  follow(databaseId: string): void {
    const { directory, guards } = this.#deps
    const database = directory.find(databaseId)
    const open = this.#open.get(databaseId)
    if (database && open) this.#forgetLogins(open.listener.database, database)
    if (database) guards.update(database)
    if (database && open && samePort(database, open.listener.database)) {
      if (database !== open.listener.database) open.listener.update(database)
      if (open.state === 'failed') this.#tryAgain(open)
      return
    }
    if (open) this.#forget(databaseId)
    if (database) this.#openOrReport(database)
    else guards.forget(databaseId)
  }

  /**
   * Resolves when the port of a database is open.
   * @throws HomeportError `database_not_found`; the error of the system when the port cannot be opened.
   */
  open(databaseId: string): Promise<void> {
    const open = this.#open.get(databaseId)
    if (open?.state === 'failed') this.#tryAgain(open)
    if (open) return open.listening
    const database = this.#deps.directory.find(databaseId)
    if (!database) return Promise.reject(new HomeportError('database_not_found', { databaseId }))
    return this.#openListener(database)
  }

  /** Resolves when every port is open that can be opened now. */
  async opened(): Promise<void> {
    await Promise.allSettled([...this.#open.values()].map(({ listening }) => listening))
  }

  /** Resolves when no port is closing. */
  async settled(): Promise<void> {
    await Promise.all(this.#closing)
  }

  /** Closes all ports for good. @param graceMs how long clients may take to finish. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true
    this.#retry?.cancel()
    for (const databaseId of [...this.#open.keys()]) this.#close(databaseId, graceMs)
    await this.settled()
  }

  #openOrReport(database: ServedDatabase): void {
    const { databaseId } = database
    this.#openListener(database).catch((error: unknown) => this.#failures.add({ databaseId, error }))
  }

  /** The credentials of engines change with those of clients. REST also serves a database whose port is not open. */
  #forgetLogins(before: ServedDatabase, now: ServedDatabase): void {
    const { lanes } = this.#deps
    if (now.loginEpoch !== before.loginEpoch) lanes.forget(now.databaseId)
    for (const user of goneUsers(before, now)) lanes.forgetUser(now.databaseId, user)
  }

  /** Rejects also when the database requires TLS and there is no certificate. */
  async #openListener(database: ServedDatabase): Promise<void> {
    const listener = new DatabaseListener(database, this.#deps.listenerOptions)
    const open: OpenPort = { listener, state: 'opening', listening: Promise.resolve() }
    this.#open.set(database.databaseId, open)
    open.listening = this.#listen(open)
    await open.listening
  }

  #tryAgain(open: OpenPort): void {
    open.state = 'opening'
    open.listening = this.#listen(open)
    open.listening.catch(() => undefined)
  }

  /** Waits for listeners that are closing: one of them may still hold the port. */
  async #listen(open: OpenPort): Promise<void> {
    const { databaseId } = open.listener.database
    await Promise.all([...this.#closing, this.#deps.release(databaseId)])
    try {
      await open.listener.listen()
      open.state = 'open'
    } catch (error) {
      open.state = 'failed'
      if (this.#open.get(databaseId) === open) {
        this.#retry ??= this.#deps.clock.after(RETRY_PORTS_MS, () => this.#retryFailed())
      }
      throw error
    }
  }

  #retryFailed(): void {
    this.#retry = undefined
    if (this.#isStopped) return
    for (const open of this.#open.values()) if (open.state === 'failed') this.#tryAgain(open)
  }

  #forget(databaseId: string): void {
    this.#close(databaseId, 0)
    this.#deps.lanes.forget(databaseId)
  }

  #close(databaseId: string, graceMs: number): void {
    const open = this.#open.get(databaseId)
    if (!open) return
    this.#open.delete(databaseId)
    const closed = open.listening.catch(() => undefined).then(() => open.listener.close(graceMs))
    this.#closing.add(closed)
    void closed.finally(() => this.#closing.delete(closed))
  }
}

/** Users that were deleted or replaced by another user of the same name. */
function goneUsers({ userMarks: past = {} }: ServedDatabase, { userMarks: now = {} }: ServedDatabase): string[] {
  return Object.keys(past).filter((user) => past[user] !== now[user])
}

function samePort(one: ServedDatabase, other: ServedDatabase): boolean {
  return one.port === other.port && one.tls === other.tls
}
