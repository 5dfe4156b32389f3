import { sql } from 'kysely'
import { insertMessages, type NewMessage, type PendingRow, toPendingRows } from '../../queue/transactions/messages.js'
import { isParkedTime, movedTo } from '../../queue/transactions/messages-parked.js'
import { query } from '../../store/query.js'
import { all, change, insertAll, type Transaction } from '../../store/statement.js'
import { restoreAttempts } from './runs-attempts.js'
import { type CancelledRun, type KeptDelivery, readKept } from './runs-kept.js'
import { notifyParents } from './runs-parents.js'
import { endPauses, type PausedWorkflow, parkBegun, storedPause } from './runs-pause.js'
import { dropRemains, type RemainRow, readRemains } from './runs-remains.js'
import { childEndOf } from './runs-revive.js'
import { type DeliveryColumns, type ElementMeta, type ParentLink, RUN_MESSAGE_KIND, type RunRow } from './runs-rows.js'
import { moveRunBursts } from './runs-rules.js'
import type { WaitRecord } from './runs-wait.js'

/**
 * Brings cancelled runs back in place, with the same ids, steps, deliveries and waits. `runs-kept.ts` has the data that a
 * cancel keeps for that.
 */

/**
 * When the deliveries of a run that is brought back are due. `original`: as before the cancel, or immediately if that time
 * has passed. `hold`: later by the time that the run was cancelled. `now`: immediately; waits keep their deadlines.
 */
export type UndoClock = 'original' | 'hold' | 'now'

/** The runs to bring back. */
export interface UndoRunsArgs {
  /** `runs.seq`; those that are not cancelled are ignored. */
  readonly seqs: readonly number[]
  readonly accountId: string
  /** Only runs that this action cancelled, `bulk_actions.seq`. Absent: any cancel counts. */
  readonly cancelledBy?: number | undefined
  readonly clock: UndoClock
  /** The action that brings them back. */
  readonly by: number
  /** Unix milliseconds. */
  readonly at: number
  /** Paused workflows that the runs belong to. Absent: none. */
  readonly paused?: readonly PausedWorkflow[] | undefined
}

/** Outcome of an undo. */
export interface UndoneRuns {
  readonly undone: readonly number[]
  /** Runs that stay cancelled, because an older version cancelled them and did not keep their deliveries. */
  readonly notKept: readonly number[]
  /** For `queue.offer` after the commit, as messages that are offered again. */
  readonly offers: readonly PendingRow[]
}

type Cancelled = CancelledRun &
  Pick<RunRow, 'seq' | 'url' | 'paused_at' | 'pause' | 'parent_seq' | 'parent'> & { readonly finished_at: number }

const lockCancelled = query<{ seqs: readonly number[]; accountId: string }, Cancelled>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select([
        'seq',
        'url',
        'paused_at',
        'pause',
        'canceled_by',
        'parent_seq',
        'parent',
        sql<number>`finished_at`.as('finished_at'),
      ])
      .where(d.inNumbers('seq', p.seqs))
      .where('account_id', '=', p.accountId)
      .where('state', '=', sql.lit('RUN_CANCELED'))
      .orderBy('seq', 'desc'),
  ),
)
/** On PostgreSQL, `open_runs` is a table, and its triggers do not add a run that becomes active again. */
const setStarted = query<{ seqs: readonly number[] }>(({ db, p, d }) => {
  const values = { state: 'RUN_STARTED', finished_at: null, canceled_by: null, replaced_by: null } as const
  const started = d.inNumbers('seq', p.seqs)
  if (d.name === 'sqlite') return db.updateTable('runs').set(values).where(started)
  const opened = db.with('opened', (q) =>
    q
      .insertInto('open_runs')
      .columns(['account_id', 'seq'])
      .expression(q.selectFrom('runs').select(['account_id', 'seq']).where(started))
      .onConflict((conflict) => conflict.doNothing()),
  )
  return opened.updateTable('runs').set(values).where(started)
})

/** Brings cancelled runs back, as part of another transaction. */
export function* undoRuns(args: UndoRunsArgs): Transaction<UndoneRuns> {
  const { seqs, accountId, cancelledBy, at, by } = args
  const locked = yield* all(lockCancelled, { seqs, accountId })
  const mine = locked.filter(({ canceled_by }) => cancelledBy === undefined || canceled_by === cancelledBy)
  const kept = yield* readKept(mine)
  const runs = mine.filter(({ seq }) => kept.has(seq))
  const undone = runs.map(({ seq }) => seq)
  const notKept = mine.filter(({ seq }) => !kept.has(seq)).map(({ seq }) => seq)
  if (undone.length === 0) return { undone, notKept, offers: [] }
  yield* change(setStarted, { seqs: undone })
  if (args.clock === 'hold') yield* moveRunBursts(new Map(runs.map((run) => [run.seq, held(run, args)])))
  const remains = yield* readRemains(undone)
  const messages = yield* messagesOf(runs, kept, remains, args)
  const own = toPendingRows(messages, yield* insertMessages(messages))
  // `at`: the undo moves due times up to now, so the pause of the workflow must hold them only from now on.
  const workflows = args.paused?.map((workflow) => ({ ...workflow, at }))
  const stored = yield* parkBegun(runs, yield* bringAttemptsBack(own, kept), workflows)
  yield* insertAll('run_waits', waitRows(runs, remains, args))
  const offers = yield* resumeReleased(runs, stored, args)
  yield* dropRemains(undone)
  yield* insertAll(
    'run_returns',
    runs.map(({ seq, finished_at }) => {
      return { run_seq: seq, cancelled_at: finished_at, returned_at: at, returned_by: by }
    }),
  )
  yield* forgetNotifiedParents(runs)
  return { undone, notKept, offers: [...offers, ...(yield* reportChildren(undone, at, cancelledBy))] }
}

/** Restores the failed attempts of deliveries, so that they continue with the retries that were left. Most have none. */
function* bringAttemptsBack(
  messages: readonly PendingRow[],
  kept: ReadonlyMap<number, readonly KeptDelivery[]>,
): Transaction<readonly PendingRow[]> {
  const failed = [...kept.values()].flat().filter(({ retried }) => retried > 0)
  if (failed.length === 0) return messages
  const retriedOf = new Map(failed.map(({ messageId, retried }) => [messageId, retried]))
  const found = messages.map((row) => ({ ...row, retried: retriedOf.get(row.message_id) ?? 0 }))
  yield* restoreAttempts(found.filter(({ retried }) => retried > 0))
  return found
}

/**
 * Resumes runs that a pause of their workflow held, if the workflow was resumed while they were cancelled: that resume skips
 * cancelled runs.
 * @returns the messages to offer.
 */
function* resumeReleased(
  runs: readonly Cancelled[],
  messages: readonly PendingRow[],
  { paused = [], at }: UndoRunsArgs,
): Transaction<readonly PendingRow[]> {
  const pausedUrls = new Set(paused.map(({ url }) => url))
  const released = runs.filter(({ url, pause }) => storedPause(pause).ofWorkflow && !pausedUrls.has(url))
  if (released.length === 0) return messages
  const seqs = new Set(released.map(({ seq }) => seq))
  const others = messages.filter(({ group_key }) => group_key === null || !seqs.has(group_key))
  return [...others, ...(yield* endPauses(released, at))]
}

/**
 * Milliseconds by which an undo with `hold` moves due times. 0 for a run that was paused with `hold` before the cancel: its
 * resume moves the due times by the whole time.
 */
const held = ({ finished_at, pause }: Cancelled, { clock, at }: UndoRunsArgs): number =>
  clock === 'hold' && (pause === null || storedPause(pause).clock === 'keep') ? Math.max(0, at - finished_at) : 0

interface Element {
  readonly run_seq: number
  readonly position: number
  readonly message_id: string
  readonly meta: string | null
}

/** The first element of each list, which has the settings of the trigger, and the delivered elements. */
const elements = query<{ seqs: readonly number[]; messageIds: readonly string[] }, Element>(({ db, p, d }) =>
  db
    .selectFrom('steps')
    .select(['run_seq', 'position', 'message_id', 'meta'])
    .where(d.inNumbers('run_seq', p.seqs))
    .where((q) => q.or([q('position', '=', sql.lit(0)), d.inTexts('message_id', p.messageIds)])),
)

function* messagesOf(
  runs: readonly Cancelled[],
  kept: ReadonlyMap<number, readonly KeptDelivery[]>,
  remains: readonly RemainRow[],
  args: UndoRunsArgs,
): Transaction<NewMessage[]> {
  const pending = runs.flatMap((run) => (kept.get(run.seq) ?? []).map((delivery) => ({ run, ...delivery })))
  const messageIds = pending.map(({ messageId }) => messageId)
  const rows = yield* all(elements, { seqs: runs.map(({ seq }) => seq), messageIds })
  const lists = new Lists(rows, remains)
  return pending.flatMap(({ run, messageId, dueAt, delivery, createdAt = args.at }): NewMessage[] => {
    // Written by `keepDeliveries`.
    const columns = lists.delivery(run.seq, messageId, delivery as DeliveryColumns | null)
    if (!columns) return []
    const isNow = args.clock === 'now' && !lists.isDeadline(messageId)
    const next_at = isNow ? movedTo(args.at, dueAt) : dueAt + held(run, args)
    return [
      {
        ...columns,
        message_id: messageId,
        account_id: args.accountId,
        kind: RUN_MESSAGE_KIND,
        group_key: run.seq,
        body: null,
        next_at,
        created_at: isNow && isParkedTime(dueAt) ? args.at : createdAt,
      },
    ]
  })
}

/** The settings of the deliveries of some runs. */
class Lists {
  readonly #first = new Map<number, DeliveryColumns | undefined>()
  readonly #elements = new Map<string, ElementMeta>()
  readonly #waits = new Map<string, WaitRecord>()

  constructor(rows: readonly Element[], remains: readonly RemainRow[]) {
    for (const { run_seq, position, message_id, meta } of rows) {
      // Written by this module when it accepted the element.
      const parsed = JSON.parse(meta ?? '{}') as ElementMeta
      if (position === 0) this.#first.set(run_seq, parsed.delivery)
      this.#elements.set(message_id, parsed)
    }
    for (const { message_id, kind, data } of remains) {
      if (kind === 'wait') this.#waits.set(message_id, waitOf(data).record)
    }
  }

  isDeadline(messageId: string): boolean {
    return this.#waits.has(messageId)
  }

  /** `undefined` if nothing is left to deliver, such as after a first contact that the SDK has confirmed. */
  delivery(runSeq: number, messageId: string, own: DeliveryColumns | null): DeliveryColumns | undefined {
    const wait = this.#waits.get(messageId)
    const element = this.#elements.get(messageId)
    if (!wait && !element) return undefined
    return own ?? wait?.delivery ?? element?.delivery ?? this.#first.get(runSeq)
  }
}

function waitOf(data: string) {
  // Written by `keepWaits`; older versions left out the time.
  const { event_id, wait, created_at } = JSON.parse(data) as { event_id: string; wait: string; created_at?: number }
  return { eventId: event_id, wait, since: created_at, record: JSON.parse(wait) as WaitRecord }
}

function waitRows(runs: readonly Cancelled[], remains: readonly RemainRow[], args: UndoRunsArgs) {
  const bySeq = new Map(runs.map((run) => [run.seq, run]))
  return remains.flatMap(({ kind, run_seq, message_id, due_at, data }) => {
    const run = bySeq.get(run_seq)
    if (kind !== 'wait' || !run) return []
    const { eventId: event_id, wait, since: created_at = args.at } = waitOf(data)
    const deadline = due_at + held(run, args)
    return [{ account_id: args.accountId, run_seq, event_id, message_id, wait, deadline, created_at }]
  })
}

const answeredAmong = query<{ messageIds: readonly string[]; seqs: readonly number[] }, { message_id: string }>(
  ({ db, p, d }) =>
    db
      .selectFrom('steps')
      .select('message_id')
      .where(d.inNumbers('run_seq', p.seqs))
      .where(d.inTexts('message_id', p.messageIds)),
)
const dropLink = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.updateTable('runs').set({ parent_seq: null }).where(d.inNumbers('seq', p.seqs)),
)

const linkOf = (parent: string | null): ParentLink => JSON.parse(parent ?? '{}') as ParentLink

/** Unlinks runs from parents that were notified of their cancel: such a parent has the result of its step already. */
function* forgetNotifiedParents(runs: readonly Cancelled[]): Transaction<void> {
  const invoked = runs.filter(({ parent_seq, parent }) => parent_seq !== null && parent !== null)
  if (invoked.length === 0) return
  const messageIds = invoked.map(({ parent }) => linkOf(parent).messageId)
  const answered = yield* all(answeredAmong, { messageIds, seqs: invoked.map(({ parent_seq }) => parent_seq ?? 0) })
  const notified = new Set(answered.map(({ message_id }) => message_id))
  const seqs = invoked.filter(({ parent }) => notified.has(linkOf(parent).messageId)).map(({ seq }) => seq)
  if (seqs.length > 0) yield* change(dropLink, { seqs })
}

type Child = Pick<RunRow, 'seq' | 'state' | 'parent' | 'canceled_by'> & {
  readonly parent_seq: number
}

const endedChildren = query<{ seqs: readonly number[] }, Child>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'state', 'parent', 'canceled_by'])
      .select(sql<number>`parent_seq`.as('parent_seq'))
      .where(d.inNumbers('parent_seq', p.seqs))
      .where('parent', 'is not', null)
      .orderBy('seq', 'desc'),
  ),
)

/**
 * Reports invoked runs that ended while the run that invoked them was cancelled: nothing else reports them. If a whole
 * action is undone, the invoked runs that it cancelled are brought back too, and report their end themselves. Invoked runs
 * that such an undo leaves cancelled are reported when it has ended. An undo of single runs reports all of them.
 * @param seqs the runs that invoked them.
 * @param returning leaves out runs that this action cancelled, `bulk_actions.seq`. Absent: leaves out none.
 */
export function* reportChildren(seqs: readonly number[], at: number, returning?: number): Transaction<PendingRow[]> {
  const children = (yield* all(endedChildren, { seqs })).filter(({ state }) => state !== 'RUN_STARTED')
  if (children.length === 0) return []
  const messageIds = children.map(({ parent }) => linkOf(parent).messageId)
  const answered = yield* all(answeredAmong, { messageIds, seqs })
  const reported = new Set(answered.map(({ message_id }) => message_id))
  const offers: PendingRow[] = []
  for (const child of children) {
    const isReturning = returning !== undefined && child.canceled_by === returning
    if (isReturning || reported.has(linkOf(child.parent).messageId)) continue
    offers.push(...(yield* notifyParents([child], yield* childEndOf(child), at)))
  }
  return offers
}
