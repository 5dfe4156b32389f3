import { newId } from '../../../base/index.js'
import * as bulkAction from '../../../bulk/transactions/bulk-action.js'
import * as bulkControl from '../../../bulk/transactions/bulk-control.js'
import * as bulkKinds from '../../../bulk/transactions/bulk-kinds.js'
import type * as bulkPart from '../../../bulk/transactions/bulk-part.js'
import * as bulkRead from '../../../bulk/transactions/bulk-read.js'
import * as bulkSelect from '../../../bulk/transactions/bulk-select.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import type { Store } from '../../../store/index.js'
import type { BulkKindName } from '../../../store/schema/bulk.js'
import { type RevivalKind, revivalOf } from '../../dead-letters/revival.js'
import type { Revival } from '../../transactions/runs-revive.js'
import type { RunRow } from '../../transactions/runs-rows.js'
import type { Random } from './random.js'

const CHUNK_ITEMS = 8
/** What an action does to a run, and which runs it can be done to. */
const KINDS = [
  'cancelRuns',
  'deleteDeadRuns',
  'resumeRuns',
  'restartRuns',
  'retryFailureCallbacks',
] as const satisfies readonly BulkKindName[]
type Kind = (typeof KINDS)[number]

interface Part {
  readonly chunk: number
  readonly from: number
  readonly to: number
}

interface Action {
  readonly seq: number
  readonly actionId: string
  readonly kind: Kind
  /** The fixed set, in the order of its items. */
  readonly set: readonly number[]
  parts: Part[]
  isPaused: boolean
  /** Items that have come to an outcome. */
  readonly decided: Set<number>
  succeeded: number
  /** Items that a fence has kept from starting. */
  fenced: number
}

/** What actions see and change of the world. */
export interface BulkWorld {
  readonly store: Store
  readonly accountId: string
  readonly random: Random
  now(): number
  rows(): Promise<readonly RunRow[]>
  /** Runs have just been cancelled. */
  cancelled(runs: readonly RunRow[]): void
  /** A dead run lives on as another one: where it stood, or from its payload under a message of its own. */
  revived(dead: RunRow, revival: Revival): void
  offer(rows: readonly PendingRow[]): void
}

/**
 * Bulk actions over the runs of a world, worked on part by part while everything else goes on. Each part must have been
 * done to exactly those of its runs that it could be done to at that moment, and each action must come to exactly one
 * outcome for each run of its set.
 */
export class BulkActions {
  readonly #world: BulkWorld
  #going: Action[] = []

  constructor(world: BulkWorld) {
    this.#world = world
  }

  /** Fixes a set of runs in any state and stores an action over it. */
  async start(): Promise<void> {
    const { random, store, accountId } = this.#world
    // Dead letters are few, and most of what an action does is done to them.
    const chosen = (await this.#world.rows()).filter(({ dlq_id }) => random.chance(dlq_id === null ? 0.2 : 0.9))
    const set = chosen.map(({ seq }) => seq)
    set.sort((a, b) => a - b)
    const kind = this.#someKind(chosen)
    const at = this.#world.now()
    const chunks = bulkSelect.packChunks(set, CHUNK_ITEMS)
    const none = { settings: null, reason: null, ratePerSecond: null, fence: null, absent: [] }
    const who = { actor: 'model@example.com', source: 'QUEUE_TOKEN', ip: '::1', selector: '{}' }
    const args = { actionId: newId('bulk_', at), accountId, kind, chunks, at, ...none, ...who }
    const { seq } = await store.run(bulkAction.createAction, args)
    const parts = chunks.flatMap(({ items }, chunk) => halves(chunk, items))
    const progress = { isPaused: false, decided: new Set<number>(), succeeded: 0, fenced: 0 }
    this.#going.push({ seq, actionId: args.actionId, kind, set, parts, ...progress })
  }

  /** Failure functions that have failed are few. */
  #someKind(chosen: readonly RunRow[]): Kind {
    const { random } = this.#world
    const canRetry = chosen.some((run) => isPossible('retryFailureCallbacks', run))
    if (canRetry && random.chance(0.5)) return 'retryFailureCallbacks'
    return KINDS[random.below(KINDS.length)] ?? 'cancelRuns'
  }

  /** Works on the next part of some action; sometimes again on the same, as after an answer that got lost. */
  async work(): Promise<void> {
    const { random } = this.#world
    const action = random.pick(this.#going.filter(({ isPaused }) => !isPaused))
    if (!action) return
    const part = action.parts.shift()
    if (part) await this.#decide(action, part)
    if (part && random.chance(0.1)) await this.#decide(action, part)
    if (action.parts.length === 0) await this.#check(action, 'finished')
  }

  /** Ends some action before its time. */
  async abort(): Promise<void> {
    const { random, store, accountId } = this.#world
    const action = random.pick(this.#going)
    if (!action || action.parts.length === 0) return
    await store.run(bulkControl.abort, { accountId, ...this.#controlling(action) })
    await this.#expectNothing(action, 'aborted')
    await this.#check(action, 'aborted')
  }

  /** Holds some action up, or lets it go on. */
  async pause(): Promise<void> {
    const { random, store, accountId } = this.#world
    const action = random.pick(this.#going)
    if (!action || action.parts.length === 0) return
    if (action.isPaused) return this.#resume(action)
    await store.run(bulkControl.pause, { accountId, ...this.#controlling(action) })
    action.isPaused = true
    await this.#expectNothing(action, 'paused')
  }

  async #resume(action: Action): Promise<void> {
    const { store, accountId } = this.#world
    await store.run(bulkControl.resume, { accountId, ...this.#controlling(action) })
    action.isPaused = false
  }

  /** A new life of the server goes on with what runs, and with nothing else. */
  async restart(): Promise<void> {
    const { store, accountId } = this.#world
    const rows = (await store.run(bulkRead.running, {})).filter((row) => row.account_id === accountId)
    const expected = this.#going.filter(({ isPaused, parts }) => !isPaused && parts.length > 0)
    const isSame = rows.length === expected.length && rows.every(({ seq }) => expected.some((one) => one.seq === seq))
    if (!isSame) {
      const names = (actions: readonly { readonly seq: number }[]): string => actions.map(({ seq }) => seq).join()
      throw new Error(`a restart goes on with the actions ${names(rows)} instead of ${names(expected)}`)
    }
    for (const action of expected) {
      const chunks = await store.run(bulkRead.openChunks, { actionSeq: action.seq, from: 0, limit: 1_000 })
      action.parts = chunks.flatMap(({ chunk, items }) => halves(chunk, items))
    }
  }

  #controlling({ actionId }: Action) {
    const at = this.#world.now()
    const by = { actor: 'model@example.com', source: 'QUEUE_TOKEN', ip: '::1', logId: newId('log_', at) }
    return { actionId, by, reason: null, at }
  }

  /** Works on everything that is left. */
  async finish(): Promise<void> {
    for (const action of this.#going) if (action.isPaused) await this.#resume(action)
    while (this.#going.length > 0) await this.work()
  }

  async #decide(action: Action, part: Part): Promise<void> {
    const all = action.set.slice(part.chunk * CHUNK_ITEMS + part.from, part.chunk * CHUNK_ITEMS + part.to)
    const items = all.filter((seq) => !action.decided.has(seq))
    const before = (await this.#world.rows()).filter(({ seq }) => items.includes(seq))
    const fenced = before.filter((run) => isFenced(action.kind, run))
    const possible = before.filter((run) => isPossible(action.kind, run) && !fenced.includes(run))
    const { action: row, offers } = await this.#run(action, part)
    for (const seq of items) action.decided.add(seq)
    this.#checkFenced(action, row, fenced.length)
    const succeeded = row.succeeded - action.succeeded
    if (succeeded !== possible.length) {
      throw new Error(`a part of ${action.actionId} (${action.kind}) did ${succeeded} instead of ${possible.length}`)
    }
    action.succeeded = row.succeeded
    if (action.kind === 'cancelRuns') this.#world.cancelled(possible)
    this.#world.offer(offers)
  }

  /** What a fence refuses is counted as failed, once, and stays where it is. */
  #checkFenced(action: Action, row: bulkPart.DecidedPart['action'], expected: number): void {
    const refused = row.failed - action.fenced
    if (refused !== expected) {
      throw new Error(`a part of ${action.actionId} (${action.kind}) refused ${refused} instead of ${expected}`)
    }
    action.fenced = row.failed
  }

  async #expectNothing(action: Action, state: string): Promise<void> {
    const [part] = action.parts
    const before = action.succeeded
    const decided = part && (await this.#run(action, part))
    if (decided && (decided.succeeded.length > 0 || decided.action.succeeded > before)) {
      throw new Error(`${action.actionId} went on after it was ${state}`)
    }
  }

  #run(action: Action, part: Part): Promise<bulkPart.DecidedPart> {
    const { store } = this.#world
    const args = { actionSeq: action.seq, ...part, at: this.#world.now() }
    switch (action.kind) {
      case 'cancelRuns':
        return store.run(bulkKinds.cancelRunsPart, args)
      case 'deleteDeadRuns':
        return store.run(bulkKinds.deleteDeadRunsPart, args)
      case 'retryFailureCallbacks':
        return store.run(bulkKinds.retryCallbacksPart, args)
      case 'resumeRuns':
        return this.#revive('resume', args)
      case 'restartRuns':
        return this.#revive('restart', args)
    }
  }

  async #revive(kind: RevivalKind, args: bulkPart.ChunkPart): Promise<bulkPart.DecidedPart> {
    const { store, accountId } = this.#world
    const dead = await store.run(bulkKinds.revivablePart, { ...args, accountId })
    const overrides = { revision: { config: {}, headers: {} }, dueAt: args.at }
    const revivals = dead.filter((run) => !isBehindFence(run)).map((run) => revivalOf(kind, run, overrides, args.at))
    const fenced = dead.filter(isBehindFence).map(({ seq }) => seq)
    const decided = await store.run(bulkKinds.reviveRunsPart, { ...args, revivals, fenced, dueAt: args.at })
    const done = new Set(decided.succeeded)
    for (const revival of revivals.filter(({ seq }) => done.has(seq))) {
      const before = dead.find(({ seq }) => seq === revival.seq)
      if (before) this.#world.revived(before, revival)
    }
    return decided
  }

  /** Every run of the set has exactly one outcome. */
  async #check(action: Action, state: 'finished' | 'aborted'): Promise<void> {
    this.#going = this.#going.filter((going) => going !== action)
    const { store, accountId } = this.#world
    const row = await store.run(bulkRead.action, { accountId, actionId: action.actionId })
    if (row?.state !== state) throw new Error(`${action.actionId} is ${row?.state} instead of ${state}`)
    const decided = bulkAction.decidedItems(row)
    if (decided !== action.set.length) {
      throw new Error(`${action.actionId} has ${decided} outcomes for ${action.set.length} runs`)
    }
  }
}

function isPossible(kind: Kind, run: RunRow): boolean {
  switch (kind) {
    case 'cancelRuns':
      return run.state === 'RUN_STARTED'
    case 'retryFailureCallbacks':
      return run.dlq_id !== null && run.failure_state === 'CALLBACK_FAIL'
    case 'deleteDeadRuns':
    case 'resumeRuns':
    case 'restartRuns':
      return run.dlq_id !== null
  }
}

/** In every world a fence stands before the runs of some programs. */
const isBehindFence = ({ flow_key }: Pick<RunRow, 'flow_key'>): boolean => flow_key !== null

function isFenced(kind: Kind, run: RunRow): boolean {
  const starts = kind === 'resumeRuns' || kind === 'restartRuns'
  return starts && run.dlq_id !== null && isBehindFence(run)
}

/** Parts do not have to be whole chunks. */
function halves(chunk: number, items: number): Part[] {
  const middle = Math.floor(items / 2)
  const cuts = [
    { chunk, from: 0, to: middle },
    { chunk, from: middle, to: items },
  ]
  return cuts.filter(({ from, to }) => from < to)
}
