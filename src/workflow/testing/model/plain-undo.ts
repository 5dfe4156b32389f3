import { newId } from '../../../base/index.js'
import type { Random } from '../../../base/testing/random.js'
import * as bulkAction from '../../../bulk/transactions/bulk-action.js'
import * as bulkSelect from '../../../bulk/transactions/bulk-select.js'
import * as bulkUndo from '../../../bulk/transactions/bulk-undo.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import type { Store } from '../../../store/index.js'
import { type PlainRow, readPlain } from './census.js'

const CHUNK_ITEMS = 8
const CLOCKS = ['original', 'hold', 'now'] as const
type Clock = (typeof CLOCKS)[number]

/** Collaborators of the undo of messages. */
export interface PlainUndoDeps {
  readonly store: Store
  readonly accountId: string
  readonly random: Random
  readonly now: () => number
  readonly offer: (rows: readonly PendingRow[], isAgain?: boolean) => void
  /** Whether a message is left alone. */
  readonly isKept: (seq: number) => boolean
}

/**
 * Brings some cancelled messages back with a bulk action, whose set also has messages that were not cancelled. Exactly the
 * cancelled messages must come back, unchanged, and due as the requested clock says. Sometimes decides a batch twice, as
 * after a lost response.
 * @returns the messages that came back, as they were before.
 */
export async function undoSome(deps: PlainUndoDeps, cancelled: readonly number[]): Promise<readonly PlainRow[]> {
  const { store, accountId, random, now, offer } = deps
  const before = (await store.run(readPlain, { accountId })).filter(
    ({ seq, state }) => random.chance(state === 'canceled' ? 0.7 : 0.1) && !deps.isKept(seq),
  )
  const expected = before.filter(({ state }) => state === 'canceled')
  const strangers = expected.map(({ seq }) => seq).filter((seq) => !cancelled.includes(seq))
  if (strangers.length > 0) throw new Error(`${strangers} are cancelled, and nobody has cancelled them`)
  const [clock, at] = [random.pick(CLOCKS) ?? 'original', now()]
  const chunks = bulkSelect.packChunks(
    before.map(({ seq }) => seq),
    CHUNK_ITEMS,
  )
  const none = { settings: null, reason: null, ratePerSecond: null, fence: null, absent: [] }
  const who = { actor: 'model@example.com', source: 'QUEUE_TOKEN', ip: '::1', selector: '{}' }
  const action = {
    actionId: newId('bulk_', at),
    accountId,
    kind: 'undoCancelMessages',
    chunks,
    at,
    ...none,
    ...who,
  } as const
  const { seq: actionSeq } = await store.run(bulkAction.createAction, action)
  let succeeded = 0
  for (const [chunk, { items }] of chunks.entries()) {
    const batch = { actionSeq, chunk, from: 0, to: items, clock, at }
    for (let times = random.chance(0.2) ? 2 : 1; times > 0; times--) {
      const decided = await store.run(bulkUndo.undoMessagesBatch, batch)
      succeeded = decided.action.succeeded
      offer(decided.offers, true)
    }
  }
  if (succeeded !== expected.length) throw new Error(`${succeeded} messages came back instead of ${expected.length}`)
  const after = new Map((await store.run(readPlain, { accountId })).map((row) => [row.seq, row]))
  for (const row of before) checkBack(row, after.get(row.seq), clock, at)
  return expected
}

function checkBack(before: PlainRow, after: PlainRow | undefined, clock: Clock, at: number): void {
  const { seq, state, queue } = before
  const [was, is] = [before, after].map((row) => JSON.stringify(row && fixedOf(row)))
  if (was !== is) throw new Error(`message ${seq} was ${was} before the undo, and is ${is}`)
  if (state !== 'canceled' || !after) return
  const isOpen = after.state === 'pending' || (after.state === 'held' && queue !== null)
  if (!isOpen || after.finished_at !== null) throw new Error(`message ${seq} came back as ${after.state}`)
  const dueAt = dueAfter(before, clock, at)
  if (after.next_at !== dueAt) throw new Error(`message ${seq} (${clock}) is due at ${after.next_at}, not ${dueAt}`)
}

function dueAfter({ next_at, finished_at }: PlainRow, clock: Clock, at: number): number {
  switch (clock) {
    case 'original':
      return next_at
    case 'now':
      return at
    case 'hold':
      return next_at + Math.max(0, at - (finished_at ?? at))
  }
}

/** The columns that no undo changes. */
const fixedOf = ({ state: _, next_at: _due, finished_at: _end, ...fixed }: PlainRow) => fixed
