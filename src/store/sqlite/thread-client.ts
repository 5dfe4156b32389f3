import { once } from 'node:events'
import { TurnoverMap } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import { TransactionMeter } from '../../telemetry/index.js'
import { type AnyCombining, combineBatch, Gathering } from '../combining.js'
import type { AnyOperation } from '../operation.js'
import type { StoreWatch } from '../types.js'
import type { StoreThread } from './from-sources.js'
import type { CheckpointLink } from './paced-checkpoints.js'
import {
  type Call,
  type Failure,
  type FromThread,
  MAX_BATCH_SIZE,
  type Outcome,
  type ThreadSettings,
  type ToThread,
  toError,
} from './protocol.js'
import { startThread } from './start-thread.js'

/** A call without a reply yet. */
interface PendingCall {
  readonly call: Call
  /** When it was made, by `performance.now()`. */
  readonly atMs: number
  /** The calls that it combines; absent for a call of one caller. */
  readonly members?: readonly PendingCall[]
  /** How it is combined with others like it; absent if it is not. */
  readonly combining?: AnyCombining | undefined
  /** Encoding of its result, if any. */
  readonly encoding?: AnyOperation['encoding']
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/**
 * `open` → `closing` (refuses new calls) → `ended`; or `open` → `ended` when the thread fails. Later calls get the
 * refusal.
 */
type State = { readonly kind: 'open' } | { readonly kind: 'closing' | 'ended'; readonly refusal: HomeportError }

/**
 * Sends calls to one store thread. Calls of one tick are sent together, with delayed ones (`maxDelayMs`). Replies arrive in
 * the order in which the thread ran the calls.
 */
export class ThreadClient {
  readonly #worker: StoreThread
  readonly #access: ThreadSettings['access']
  readonly #watch: StoreWatch
  #state: State = { kind: 'open' }
  /** Calls that are not sent yet. */
  readonly #unsent = new Gathering<PendingCall>(() => this.#send())
  /** Calls that were sent, by id. */
  readonly #sent = new TurnoverMap<number, PendingCall>()
  /** Callers of `settled`, each with the last call that it waits for. */
  #waiting: { readonly upTo: number; readonly resolve: () => void }[] = []
  #onPaused = (): void => {}
  #lastId = 0
  /** When the first call of this tick was made, by `performance.now()`. */
  #calledAtMs = 0
  readonly #meter: TransactionMeter

  private constructor(worker: StoreThread, access: ThreadSettings['access'], watch: StoreWatch) {
    this.#worker = worker
    this.#access = access
    this.#watch = watch
    this.#meter = watch.meter?.[access] ?? new TransactionMeter()
    worker.on('message', (message: FromThread) => this.#receive(message))
    worker.on('error', (error: Error) => this.#end(error))
    worker.on('exit', () => this.#end(new Error('the store thread has ended')))
  }

  /**
   * Starts a thread and resolves when it is ready; the writer has then migrated the schema.
   * @throws HomeportError `store_not_opened`, `store_full` or `store_newer`.
   */
  static async open(settings: ThreadSettings, watch: StoreWatch): Promise<ThreadClient> {
    const worker = startThread(settings)
    // Rejects if the thread fails instead.
    const [message]: FromThread[] = await once(worker, 'message')
    if (message?.kind === 'failed') throw openingError(message.failure, settings.path)
    return new ThreadClient(worker, settings.access, watch)
  }

  /** Runs an operation on the thread. One with `maxDelayMs` is sent with the next one without. */
  run(operation: AnyOperation, args: unknown): Promise<unknown> {
    const { compact } = operation
    const packed = compact?.pack(args as never)
    if (!compact || packed === undefined) return this.#run(operation, args)
    return this.#run(compact.operation, packed).then((short) =>
      short === undefined ? this.#run(operation, args) : compact.unpack(short as never, args as never),
    )
  }

  #run({ name, maxDelayMs = 0, combining, encoding }: AnyOperation, args: unknown): Promise<unknown> {
    if (this.#state.kind !== 'open') return Promise.reject(this.#state.refusal)
    // The clock is read once for all calls of a tick.
    if (!this.#unsent.isDueSoon) this.#calledAtMs = performance.now()
    const atMs = this.#calledAtMs
    return new Promise((resolve, reject) => {
      this.#meter.pending++
      const how = combining?.only === 'postgres' ? undefined : combining
      this.#unsent.add({ call: this.#call(name, args), atMs, combining: how, encoding, resolve, reject }, maxDelayMs)
    })
  }

  #call(name: string, args: unknown): Call {
    return { id: ++this.#lastId, name, args }
  }

  /** Waits for pending calls and ends the thread. May be called more than once. */
  async close(): Promise<void> {
    if (this.#state.kind === 'ended') return
    const ended = once(this.#worker, 'exit')
    if (this.#state.kind === 'open') {
      this.#send()
      this.#state = { kind: 'closing', refusal: new HomeportError('starting', {}) }
      this.#post({ kind: 'close' })
    }
    await ended
  }

  /** Resolves when every call that was sent until now is answered. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ upTo: this.#lastId, resolve })
      this.#wakeSettled()
    })
  }

  #wakeSettled(): void {
    if (this.#waiting.length === 0) return
    let first = Number.POSITIVE_INFINITY
    for (const id of this.#sent.keys()) first = Math.min(first, id)
    const over = this.#waiting.filter(({ upTo }) => upTo < first)
    this.#waiting = this.#waiting.filter(({ upTo }) => upTo >= first)
    for (const { resolve } of over) resolve()
  }

  /** Makes background batches wait until `checkpoint`; calls `onPaused` when the running one is committed. */
  pauseBatches(onPaused: () => void): void {
    this.#onPaused = onPaused
    if (this.#state.kind === 'open') this.#post({ kind: 'pause-batches' })
  }

  /** Makes the thread checkpoint the rest of the log, then continue with background batches. */
  checkpoint(): void {
    if (this.#state.kind === 'open') this.#post({ kind: 'checkpoint' })
  }

  /** Gives the thread a link to the checkpoint thread. */
  link(link: CheckpointLink): void {
    if (this.#state.kind === 'open') this.#worker.postMessage({ kind: 'link', link } satisfies ToThread, [link.port])
  }

  #send(): void {
    while (this.#unsent.size > 0) {
      const batch = this.#unsent.take(MAX_BATCH_SIZE)
      this.#sendBatch(combineBatch(batch, (combining, group) => this.#combinedCall(combining, group)))
    }
  }

  #combinedCall(combining: AnyCombining, group: readonly PendingCall[]): PendingCall {
    const all = group.map(({ call }) => call.args) as never[]
    return {
      atMs: group[0]?.atMs ?? 0,
      members: group,
      call: this.#call(combining.operation.name, combining.join(all)),
      resolve: (result) => {
        const results = combining.split(result, all)
        group.forEach((pending, index) => {
          pending.resolve(results[index])
        })
      },
      reject: (error) => this.#sendSeparately(group, error),
    }
  }

  /** Sends the calls separately, because one of them may be the reason for the refusal. */
  #sendSeparately(group: readonly PendingCall[], error: Error): void {
    if (this.#state.kind === 'open') this.#sendBatch(group)
    else for (const { reject } of group) reject(error)
  }

  #sendBatch(batch: readonly PendingCall[]): void {
    try {
      this.#post({ kind: 'run', calls: batch.map((pending) => pending.call) })
      for (const pending of batch) this.#sent.set(pending.call.id, pending)
    } catch (error) {
      // Arguments that cannot be cloned are a defect of one caller; only that one gets the error.
      if (batch.length > 1) for (const pending of batch) this.#sendBatch([pending])
      else
        for (const { call, reject } of batch) {
          this.#meter.pending--
          reject(new TypeError(`arguments of ${call.name}: ${String(error)}`))
        }
    }
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message)
  }

  #receive(message: FromThread): void {
    if (message.kind === 'batches-paused') this.#onPaused()
    if (message.kind === 'damaged') this.#watch.onDamage(message.damage)
    if (message.kind !== 'done') return
    const nowMs = performance.now()
    for (const { id, outcome } of message.answers) {
      const pending = this.#sent.get(id)
      this.#sent.delete(id)
      if (pending) this.#settle(pending, outcome, nowMs)
    }
    this.#wakeSettled()
  }

  /** Combined calls that failed are sent again separately, and counted then. */
  #count({ atMs, members }: PendingCall, outcome: Outcome, nowMs: number): void {
    const hasFailed = !('value' in outcome)
    if (hasFailed && !members) this.#meter.failed++
    if (!members) this.#meter.ended(atMs, nowMs)
    else if (!hasFailed) for (const member of members) this.#meter.ended(member.atMs, nowMs)
  }

  #settle(pending: PendingCall, outcome: Outcome, nowMs: number): void {
    this.#count(pending, outcome, nowMs)
    if ('value' in outcome) {
      pending.resolve(pending.encoding ? pending.encoding.unpack(outcome.value) : outcome.value)
      return
    }
    const error = toError(outcome.failure, pending.call.name)
    if (isError(error, 'store_damaged')) this.#watch.onDamage(error.details)
    pending.reject(error)
  }

  /** The thread has ended, on request or because of a failure. */
  #end(cause: Error): void {
    if (this.#state.kind === 'ended') return
    const wasRequested = this.#state.kind === 'closing' && this.#sent.size === 0
    const unavailable = new HomeportError('store_unavailable', {}, { cause })
    const unknown = new HomeportError('store_outcome_unknown', {}, { cause })
    this.#state = { kind: 'ended', refusal: this.#state.kind === 'closing' ? this.#state.refusal : unavailable }
    for (const pending of this.#sent.values()) pending.reject(this.#access === 'write' ? unknown : unavailable)
    this.#sent.clear()
    this.#wakeSettled()
    for (const pending of this.#unsent.take(this.#unsent.size)) pending.reject(unavailable)
    if (!wasRequested) this.#watch.onFailure(cause)
  }
}

function openingError(failure: Failure, path: string): Error {
  const error = toError(failure, 'open')
  if (isError(error, 'store_damaged'))
    return new HomeportError('store_not_opened', { where: path, reason: error.details.found })
  if (isError(error, 'store_unavailable'))
    return new HomeportError('store_not_opened', { where: path, reason: 'another process keeps it locked' })
  if (failure.code !== undefined) return error
  return new HomeportError('store_not_opened', { where: path, reason: failure.message })
}
