import { OwnerConcurrency, type Timer } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Caller } from '../../http/index.js'
import type { DatabasesDeps, SleepControl } from '../deps.js'
import type { Task } from '../sleep/index.js'

/**
 * Maximum backups and restores of an account at a time. Each loads its data a second time, in an engine of its own:
 * hundreds of them would use up the memory of the machine.
 */
const MAX_AT_ONCE = 4
/** How long `stop` waits for active work. The next start settles work that takes longer. */
const STOP_GRACE_MS = 5_000

/** What `Jobs` is built from. */
export interface JobsDeps extends Pick<DatabasesDeps, 'clock' | 'isStillMember'> {
  readonly sleep: Pick<SleepControl, 'during'>
}

/** The active backups, restores and imports: each continues when its caller disconnects, and ends with the server. */
export class Jobs {
  readonly #deps: JobsDeps
  readonly #stop = new AbortController()
  readonly #active = new Set<Promise<unknown>>()
  readonly #turns = new OwnerConcurrency(MAX_AT_ONCE)
  /** Reject the promises that callers wait for. */
  readonly #callers = new Set<(error: Error) => void>()

  constructor(deps: JobsDeps) {
    this.#deps = deps
  }

  /** Aborted when the server stops. */
  get stopping(): AbortSignal {
    return this.#stop.signal
  }

  /**
   * Runs work of an account when fewer than `MAX_AT_ONCE` others of it run. Checks the caller and the server again then:
   * while the caller waited, their rights may have been withdrawn, or the server may stop.
   */
  inTurn<Result>(caller: Caller, work: () => Promise<Result>): Promise<Result> {
    return this.#turns.take(caller.accountId, async () => {
      if (this.stopping.aborted) throw new HomeportError('starting', {})
      if (this.#deps.isStillMember?.(caller) === false) throw new HomeportError('unauthorized', { scheme: 'Basic' })
      return work()
    })
  }

  /** Runs work that continues when its caller disconnects. The database stays awake meanwhile. */
  run<Result>(databaseId: string, task: Task, begin: () => Promise<Result>): Promise<Result> {
    const work = this.#deps.sleep.during(databaseId, task, begin)
    const ended = work.finally(() => this.#active.delete(work))
    this.#active.add(work)
    return new Promise<Result>((resolve, reject) => {
      this.#callers.add(reject)
      ended.then(resolve, reject).finally(() => this.#callers.delete(reject))
    })
  }

  /**
   * Begins no more work in turns, and waits up to 5 s for the active work. Then its callers get an error.
   * @param stopOthers stops the services that begin work by themselves; they have the same 5 s.
   */
  async stop(stopOthers: () => readonly (Promise<unknown> | undefined)[]): Promise<void> {
    this.#stop.abort()
    let timer: Timer | undefined
    const graceOver = new Promise<void>((resolve) => {
      timer = this.#deps.clock.after(STOP_GRACE_MS, resolve)
    })
    await Promise.race([Promise.allSettled([...stopOthers(), ...this.#active]), graceOver])
    timer?.cancel()
    for (const reject of this.#callers) reject(new HomeportError('starting', {}))
  }
}
