import { newId } from '../../../base/index.js'
import * as bulkAction from '../../../bulk/transactions/bulk-action.js'
import type * as bulkBatch from '../../../bulk/transactions/bulk-batch.js'
import * as bulkControl from '../../../bulk/transactions/bulk-control.js'
import * as bulkKinds from '../../../bulk/transactions/bulk-kinds.js'
import { outcomeOf, unpackSeqs } from '../../../bulk/transactions/bulk-pack.js'
import * as bulkRead from '../../../bulk/transactions/bulk-read.js'
import * as bulkSelect from '../../../bulk/transactions/bulk-select.js'
import type { BulkKindName } from '../../../store/schema/bulk.js'
import { type RevivalKind, revivalOf } from '../../dead-letters/revival.js'
import type { DeadRun, Revival } from '../../transactions/runs-revive.js'
import { plainMessages, readActions, runsOf } from '../model/census.js'
import type { CrowdDeps } from './deps.js'

const CHUNK_ITEMS = 8
/** Kinds of actions on runs, and on messages. */
const OF_RUNS = [
  'cancelRuns',
  'resumeRuns',
  'restartRuns',
  'retryFailureCallbacks',
  'deleteDeadRuns',
] as const satisfies readonly BulkKindName[]
const OF_MESSAGES = [
  'cancelMessages',
  'retryDeadLetters',
  'deleteDeadLetters',
] as const satisfies readonly BulkKindName[]
type Kind = (typeof OF_RUNS)[number] | (typeof OF_MESSAGES)[number]

interface Action {
  readonly seq: number
  readonly actionId: string
  readonly kind: Kind
  readonly items: readonly number[]
  /** Chunks that are not finished. */
  chunks: number[]
  /** Items reported as succeeded. */
  readonly done: Set<number>
}

/** Collaborators of the bulk actions. */
export interface CrowdBulkDeps extends CrowdDeps {
  /** An action reported that these runs were cancelled. */
  readonly cancelled: (seqs: readonly number[]) => void
  /** A dead run was resumed or restarted. */
  readonly revived: (dead: DeadRun, revival: Revival) => void
  readonly deletedDead: (seqs: readonly number[]) => void
  readonly cancelledMessages: (seqs: readonly number[]) => void
  /** An action reported that these dead letters were retried or deleted. */
  readonly leftDeadLetters: (seqs: readonly number[]) => void
}

/** Bulk actions of a crowd: several on the same runs and messages, and the same batch by two workers at once. */
export class CrowdBulk {
  readonly #deps: CrowdBulkDeps
  readonly #actions: Action[] = []

  constructor(deps: CrowdBulkDeps) {
    this.#deps = deps
  }

  /** Does one random action. */
  act(): Promise<void> {
    const dice = this.#deps.random.below(10)
    if (dice < 2) return this.#start()
    return dice < 9 ? this.#work() : this.#control()
  }

  async #start(): Promise<void> {
    const { random, store, accountId, now } = this.#deps
    const kind = random.pick([...OF_RUNS, ...OF_MESSAGES]) ?? 'cancelRuns'
    const set = (await this.#candidates(kind)).filter(() => random.chance(kind.startsWith('cancel') ? 0.3 : 0.9))
    set.sort((a, b) => a - b)
    const chunks = bulkSelect.packChunks(set, CHUNK_ITEMS)
    const none = { settings: null, reason: null, ratePerSecond: null, fence: null, absent: [] }
    const who = { actor: 'crowd@example.com', source: 'QUEUE_TOKEN', ip: '::1', selector: '{}' }
    const actionId = newId('bulk_', now())
    const args = { actionId, accountId, kind, chunks, at: now(), ...none, ...who }
    const { seq } = await store.run(bulkAction.createAction, args)
    this.#actions.push({ seq, actionId, kind, items: set, chunks: chunks.map((_, index) => index), done: new Set() })
  }

  /** Items in any state: their state may change between the start of the action and their batch. */
  async #candidates(kind: Kind): Promise<number[]> {
    const { store, accountId } = this.#deps
    if (OF_MESSAGES.some((one) => one === kind)) return store.run(plainMessages, { accountId })
    return (await runsOf(store, accountId)).map(({ seq }) => seq)
  }

  /** Processes a batch; sometimes by two workers at once. */
  async #work(): Promise<void> {
    const { random } = this.#deps
    const action = random.pick(this.#actions.filter(({ chunks }) => chunks.length > 0))
    const chunk = action && random.pick(action.chunks)
    if (!action || chunk === undefined) return
    const items = Math.min(CHUNK_ITEMS, action.items.length - chunk * CHUNK_ITEMS)
    const states = await Promise.all(
      Array.from({ length: random.chance(0.5) ? 2 : 1 }, () => this.#decide(action, chunk, items)),
    )
    if (states.includes('paused')) return
    const place = action.chunks.indexOf(chunk)
    if (place >= 0) action.chunks.splice(place, 1)
  }

  async #decide(action: Action, chunk: number, to: number): Promise<string> {
    const batch = { actionSeq: action.seq, chunk, from: 0, to, at: this.#deps.now() }
    const { succeeded, offers, action: row } = await this.#run(action, batch)
    const fresh = succeeded.filter((seq) => !action.done.has(seq))
    for (const seq of fresh) action.done.add(seq)
    this.#report(action.kind, fresh)
    this.#deps.offer(offers)
    return row.state
  }

  #run(action: Action, batch: bulkBatch.BatchArgs): Promise<bulkBatch.DecidedBatch> {
    const { store } = this.#deps
    switch (action.kind) {
      case 'cancelRuns':
        return store.run(bulkKinds.cancelRunsBatch, batch)
      case 'deleteDeadRuns':
        return store.run(bulkKinds.deleteDeadRunsBatch, batch)
      case 'retryFailureCallbacks':
        return store.run(bulkKinds.retryCallbacksBatch, batch)
      case 'resumeRuns':
        return this.#revive('resume', batch)
      case 'restartRuns':
        return this.#revive('restart', batch)
      case 'cancelMessages':
        return store.run(bulkKinds.cancelMessagesBatch, batch)
      case 'deleteDeadLetters':
        return store.run(bulkKinds.deleteDeadLettersBatch, batch)
      case 'retryDeadLetters':
        return this.#retry(batch)
    }
  }

  /** Reports succeeded items once to the trackers of their kind. */
  #report(kind: Kind, seqs: readonly number[]): void {
    const { cancelled, deletedDead, cancelledMessages, leftDeadLetters } = this.#deps
    const listeners: { readonly [K in Kind]?: (seqs: readonly number[]) => void } = {
      cancelRuns: cancelled,
      deleteDeadRuns: deletedDead,
      cancelMessages: cancelledMessages,
      deleteDeadLetters: leftDeadLetters,
      retryDeadLetters: leftDeadLetters,
    }
    listeners[kind]?.(seqs)
  }

  async #revive(kind: RevivalKind, batch: bulkBatch.BatchArgs): Promise<bulkBatch.DecidedBatch> {
    const { store, accountId, revived } = this.#deps
    const dead = await store.run(bulkKinds.revivableBatch, { ...batch, accountId })
    const overrides = { revision: { config: {}, headers: {} }, dueAt: batch.at }
    const revivals = dead.map((run) => revivalOf(kind, run, overrides, batch.at))
    const decided = await store.run(bulkKinds.reviveRunsBatch, { ...batch, revivals, dueAt: batch.at })
    const lives = new Set((await runsOf(store, accountId)).map(({ run_id }) => run_id))
    for (const revival of revivals) {
      const before = dead.find(({ seq }) => seq === revival.seq)
      // Two workers on one batch both get all its results, but only one has created the runs.
      const isOurs = decided.succeeded.includes(revival.seq) && lives.has(revival.run.run_id)
      if (before && isOurs) revived(before, revival)
    }
    return decided
  }

  #retry(batch: bulkBatch.BatchArgs): Promise<bulkBatch.DecidedBatch> {
    const ids = Array.from({ length: batch.to }, () => newId('msg_', batch.at))
    const revision = { nextAt: batch.at, maxRetries: undefined, config: '{}', flowKey: undefined, labels: undefined }
    return this.#deps.store.run(bulkKinds.retryDeadLettersBatch, { ...batch, ids, revision })
  }

  /** After a restart the server continues the running actions, chunk by chunk. */
  async restart(): Promise<void> {
    const { store, accountId } = this.#deps
    const running = await store.run(bulkRead.running, {})
    for (const { seq, account_id } of running) {
      const action = this.#actions.find((one) => one.seq === seq)
      if (!action && account_id === accountId) throw new Error(`the action ${seq} runs, but was never started`)
      if (!action) continue
      const chunks = await store.run(bulkRead.openChunks, { actionSeq: seq, from: 0, limit: 1_000 })
      action.chunks = chunks.map(({ chunk }) => chunk)
    }
  }

  async #control(): Promise<void> {
    const { random, store, accountId, now } = this.#deps
    const action = random.pick(this.#actions)
    if (!action) return
    const what = random.pick([bulkControl.pause, bulkControl.resume, bulkControl.resume, bulkControl.abort])
    const by = { actor: 'crowd@example.com', source: 'QUEUE_TOKEN', ip: '::1', logId: newId('log_', now()) }
    if (what) await store.run(what, { accountId, actionId: action.actionId, by, reason: null, at: now() })
  }

  /** Resumes and finishes every action. */
  async finish(): Promise<void> {
    const { store, accountId, now } = this.#deps
    for (const { actionId } of this.#actions) {
      const by = { actor: 'crowd@example.com', source: 'QUEUE_TOKEN', ip: '::1', logId: newId('log_', now()) }
      await store.run(bulkControl.resume, { accountId, actionId, by, reason: null, at: now() })
    }
    while (this.#actions.some(({ chunks }) => chunks.length > 0)) await this.#work()
  }

  /** Checks that counters match the stored outcomes, and the reported results. */
  async check(): Promise<void> {
    for (const { action, chunks } of await this.#deps.store.run(readActions, { accountId: this.#deps.accountId })) {
      const known = this.#actions.find(({ seq }) => seq === action.seq)
      const done = new Set<number>()
      for (const { seqs, outcomes } of chunks) {
        const items = seqs ? unpackSeqs(seqs) : []
        for (const [index, seq] of items.entries()) if (outcomeOf(outcomes?.[index]) === 'succeeded') done.add(seq)
      }
      if (done.size !== action.succeeded)
        throw new Error(`${action.action_id} counts ${action.succeeded} of ${done.size}`)
      const isSame = known && done.size === known.done.size && [...done].every((seq) => known.done.has(seq))
      if (!isSame)
        throw new Error(
          `${action.action_id} (${action.kind}) has done ${[...done]}, and reported ${[...(known?.done ?? [])]}`,
        )
      const { matched, succeeded, already_finished, already_cancelled, not_found, failed, skipped, state } = action
      const sum = succeeded + already_finished + already_cancelled + not_found + failed + skipped
      const isOver = state === 'finished' || state === 'aborted'
      if (isOver !== (sum === matched))
        throw new Error(`${action.action_id} is ${state} with ${sum} of ${matched} outcomes`)
    }
  }
}
