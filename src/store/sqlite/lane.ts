import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { systemClock, type Timer, TurnoverMap } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import type { AnyOperation } from '../operation.js'
import type { StoreWatch } from '../types.js'
import type { CheckpointLink } from './paced-checkpoints.js'
import {
  type Call,
  type Failure,
  type FromThread,
  LARGEST_BATCH,
  type Outcome,
  type ThreadSettings,
  type ToThread,
  toError,
} from './protocol.js'
import { startThread } from './start-thread.js'

type AnyTogether = NonNullable<AnyOperation['together']>

/** A caller who has no answer yet. */
interface Waiting {
  readonly call: Call
  /** How it goes together with others like it; absent where it goes by itself. */
  readonly together?: AnyTogether | undefined
  /** How its result comes over; absent where it comes as it is. */
  readonly crossing?: AnyOperation['crossing']
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/**
 * `open` → `closing` (no further calls are taken) → `ended`; or `open` → `ended` when the thread ends by itself. Who
 * calls later gets the refusal.
 */
type State = { readonly kind: 'open' } | { readonly kind: 'closing' | 'ended'; readonly refusal: HomeportError }

/**
 * The way to one store thread: calls of one tick go together, with those that have waited for company; answers come back
 * in the order in which the thread has worked on them.
 */
export class Lane {
  readonly #worker: Worker
  readonly #access: ThreadSettings['access']
  readonly #watch: StoreWatch
  #state: State = { kind: 'open' }
  /** Asked for and not yet given to the thread. */
  #unsent: Waiting[] = []
  /** When that is to happen: after this tick, or later when nobody waits for any of it. */
  #plan: 'none' | 'soon' | Timer = 'none'
  /** Given to the thread, by the ids of the calls. */
  readonly #sent = new TurnoverMap<number, Waiting>()
  #held = (): void => {}
  #lastId = 0

  private constructor(worker: Worker, access: ThreadSettings['access'], watch: StoreWatch) {
    this.#worker = worker
    this.#access = access
    this.#watch = watch
    worker.on('message', (message: FromThread) => this.#receive(message))
    worker.on('error', (error: Error) => this.#end(error))
    worker.on('exit', () => this.#end(new Error('the store thread has ended')))
  }

  /**
   * Starts a thread and resolves when it works: the writer has then brought the schema up to date.
   * @throws HomeportError `store_not_opened`, `store_full` or `store_newer`.
   */
  static async open(settings: ThreadSettings, watch: StoreWatch): Promise<Lane> {
    const worker = startThread(settings)
    // Rejects when the thread ends with an error instead.
    const [message]: FromThread[] = await once(worker, 'message')
    if (message?.kind === 'failed') throw openingError(message.failure, settings.path)
    return new Lane(worker, settings.access, watch)
  }

  /** Runs one operation on the thread; one that has patience goes with the next that has none. */
  run({ name, patienceMs = 0, together, crossing }: AnyOperation, args: unknown): Promise<unknown> {
    if (this.#state.kind !== 'open') return Promise.reject(this.#state.refusal)
    return new Promise((resolve, reject) => {
      this.#unsent.push({ call: this.#call(name, args), together, crossing, resolve, reject })
      if (patienceMs === 0) this.#sendSoon()
      else if (this.#plan === 'none') this.#plan = systemClock.after(patienceMs, () => this.#send())
    })
  }

  #call(name: string, args: unknown): Call {
    return { id: ++this.#lastId, name, args }
  }

  /** What is asked for in one tick goes together. */
  #sendSoon(): void {
    if (this.#plan === 'soon') return
    if (this.#plan !== 'none') this.#plan.cancel()
    this.#plan = 'soon'
    setImmediate(() => this.#send())
  }

  /** Waits for what is under way and ends the thread. May be called more than once. */
  async close(): Promise<void> {
    if (this.#state.kind === 'ended') return
    const ended = once(this.#worker, 'exit')
    if (this.#state.kind === 'open') {
      this.#send()
      this.#state = { kind: 'closing', refusal: new HomeportError('starting', {}) }
      this.#tell({ kind: 'close' })
    }
    await ended
  }

  /** Has operations of the background wait until `checkpoint`; `held` is called when the last one before is committed. */
  hold(held: () => void): void {
    this.#held = held
    if (this.#state.kind === 'open') this.#tell({ kind: 'hold' })
  }

  /** Has the thread checkpoint what is left of the log, before operations of the background go on. */
  checkpoint(): void {
    if (this.#state.kind === 'open') this.#tell({ kind: 'checkpoint' })
  }

  /** Gives the thread the way to a checkpoint thread. */
  lend(link: CheckpointLink): void {
    if (this.#state.kind === 'open') this.#worker.postMessage({ kind: 'lend', link } satisfies ToThread, [link.port])
  }

  #send(): void {
    if (this.#plan !== 'none' && this.#plan !== 'soon') this.#plan.cancel()
    this.#plan = 'none'
    while (this.#unsent.length > 0) this.#sendBatch(this.#joined(this.#unsent.splice(0, LARGEST_BATCH)))
  }

  /** Makes one call of those that go together. */
  #joined(batch: readonly Waiting[]): readonly Waiting[] {
    const groups = new Map<AnyTogether, Waiting[]>()
    for (const waiting of batch) {
      if (!waiting.together) continue
      const group = groups.get(waiting.together)
      if (group) group.push(waiting)
      else groups.set(waiting.together, [waiting])
    }
    const many = [...groups].filter(([, group]) => group.length > 1)
    if (many.length === 0) return batch
    const joined = many.map(([together, group]) => this.#joinedCall(together, group))
    const isAlone = ({ together }: Waiting): boolean => !together || groups.get(together)?.length === 1
    return [...batch.filter(isAlone), ...joined]
  }

  #joinedCall(together: AnyTogether, group: readonly Waiting[]): Waiting {
    const all = group.map(({ call }) => call.args) as never[]
    return {
      call: this.#call(together.operation.name, together.join(all)),
      resolve: (result) => {
        const results = together.split(result, all)
        group.forEach((waiting, index) => {
          waiting.resolve(results[index])
        })
      },
      reject: (error) => this.#sendApart(group, error),
    }
  }

  /** One of them may be the reason why all were refused. */
  #sendApart(group: readonly Waiting[], error: Error): void {
    if (this.#state.kind === 'open') this.#sendBatch(group)
    else for (const { reject } of group) reject(error)
  }

  #sendBatch(batch: readonly Waiting[]): void {
    try {
      this.#tell({ kind: 'run', calls: batch.map((waiting) => waiting.call) })
      for (const waiting of batch) this.#sent.set(waiting.call.id, waiting)
    } catch (error) {
      // Arguments that cannot cross the thread boundary: a mistake of one caller, who alone gets to know.
      if (batch.length > 1) for (const waiting of batch) this.#sendBatch([waiting])
      else for (const { call, reject } of batch) reject(new TypeError(`arguments of ${call.name}: ${String(error)}`))
    }
  }

  #tell(message: ToThread): void {
    this.#worker.postMessage(message)
  }

  #receive(message: FromThread): void {
    if (message.kind === 'held') this.#held()
    if (message.kind === 'damaged') this.#watch.onDamage(message.damage)
    if (message.kind !== 'done') return
    for (const { id, outcome } of message.answers) {
      const waiting = this.#sent.get(id)
      this.#sent.delete(id)
      if (waiting) this.#settle(waiting, outcome)
    }
  }

  #settle(waiting: Waiting, outcome: Outcome): void {
    if ('value' in outcome) {
      waiting.resolve(waiting.crossing ? waiting.crossing.unpack(outcome.value) : outcome.value)
      return
    }
    const error = toError(outcome.failure, waiting.call.name)
    if (isError(error, 'store_damaged')) this.#watch.onDamage(error.details)
    waiting.reject(error)
  }

  /** The thread is gone, because it was told to or because something broke. */
  #end(cause: Error): void {
    if (this.#state.kind === 'ended') return
    const wasTold = this.#state.kind === 'closing' && this.#sent.size === 0
    const unavailable = new HomeportError('store_unavailable', {}, { cause })
    const unknown = new HomeportError('store_outcome_unknown', {}, { cause })
    this.#state = { kind: 'ended', refusal: this.#state.kind === 'closing' ? this.#state.refusal : unavailable }
    for (const waiting of this.#sent.values()) waiting.reject(this.#access === 'write' ? unknown : unavailable)
    this.#sent.clear()
    for (const waiting of this.#unsent.splice(0)) waiting.reject(unavailable)
    if (!wasTold) this.#watch.onFailure(cause)
  }
}

function openingError(failure: Failure, path: string): Error {
  const error = toError(failure, 'open')
  if (isError(error, 'store_damaged'))
    return new HomeportError('store_not_opened', { where: path, reason: error.details.found })
  if (failure.code !== undefined) return error
  return new HomeportError('store_not_opened', { where: path, reason: failure.message })
}
