import { sql } from 'kysely'
import { change, only, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import {
  ACTION_COLUMNS,
  type ActionArgs,
  type BulkActionRow,
  finishIfDecided,
  insertActionOf,
  insertChunks,
  type SetChunks,
} from './bulk-action.js'

/**
 * Storing an action whose set is large. In one transaction its chunks would keep everybody who writes for a quarter of a
 * second, so they are stored before it, a batch at a time, with a draft that becomes the action at the end:
 *
 *   draftAction ── addToDraft, again and again ── createDrafted ──▶ the action, as `createAction` would have stored it
 *        └──────────────────┴── dropDraft; dropDrafts at the next start of the server
 *
 * A draft is an action of no account that is paused: whoever looks up the actions of an account does not meet it, and
 * nobody works on it. So no action ever has only a part of its set.
 */
const NOBODY = ''

/** Begins a draft. @returns its number, which the action will have. */
export const draftAction = write('bulk.draft', function* (args: ActionArgs): Transaction<number> {
  return yield* insertActionOf({ ...args, accountId: NOBODY, fence: null }, { matched: 0, notFound: 0 }, 'paused')
})

/** Chunks that follow those that a draft has. */
export interface DraftBatch extends SetChunks {
  readonly actionSeq: number
  /** The number of the first. */
  readonly from: number
}

/** Adds chunks to a draft; everybody else's writes go before it. */
export const addToDraft = write(
  'bulk.addToDraft',
  function* ({ actionSeq, from, ...set }: DraftBatch): Transaction<void> {
    yield* insertChunks(actionSeq, set, from)
  },
  { turn: 'background' },
)

const totalsOf = query<{ actionSeq: number }, { items: number; pending: number }>(({ db, p }) =>
  db
    .selectFrom('bulk_chunks')
    .select((eb) => [
      eb.fn.coalesce(eb.fn.sum<number>('items'), sql<number>`0`).as('items'),
      eb.fn.coalesce(eb.fn.sum<number>('pending'), sql<number>`0`).as('pending'),
    ])
    .where('action_seq', '=', p.actionSeq),
)

interface Becoming {
  readonly actionSeq: number
  readonly accountId: string
  readonly matched: number
  readonly notFound: number
  readonly fence: string | null
  readonly fenceUntil: number | null
}

const become = query<Becoming, BulkActionRow>(({ db, p }) =>
  db
    .updateTable('bulk_actions')
    .set({
      account_id: p.accountId,
      state: 'running',
      matched: p.matched,
      not_found: p.notFound,
      fence: p.fence,
      fence_until: p.fenceUntil,
    })
    .where('seq', '=', p.actionSeq)
    .where('account_id', '=', sql.lit(NOBODY))
    .returning(ACTION_COLUMNS),
)

/** Makes the action of a draft that has its whole set; one that has nothing to decide is finished at once. */
export const createDrafted = write(
  'bulk.createDrafted',
  function* ({ actionSeq, ...args }: ActionArgs & { actionSeq: number }): Transaction<BulkActionRow> {
    const sums = yield* only(totalsOf, { actionSeq })
    // A sum is a decimal number in PostgreSQL.
    const matched = Number(sums.items)
    const action = yield* only(become, {
      actionSeq,
      accountId: args.accountId,
      matched,
      notFound: matched - Number(sums.pending),
      fence: args.fence?.target ?? null,
      fenceUntil: args.fence?.until ?? null,
    })
    return yield* finishIfDecided(action, args.at)
  },
)

const removeDraft = query<{ actionSeq: number }>(({ db, p }) =>
  db.deleteFrom('bulk_actions').where('seq', '=', p.actionSeq).where('account_id', '=', sql.lit(NOBODY)),
)

/** Gives a draft up. Nothing happens to one that has become an action. */
export const dropDraft = write('bulk.dropDraft', function* (args: { actionSeq: number }): Transaction<void> {
  yield* change(removeDraft, args)
})

const removeDrafts = query<{ before: number }>(({ db, p }) =>
  db.deleteFrom('bulk_actions').where('account_id', '=', sql.lit(NOBODY)).where('created_at', '<', p.before),
)

/** Gives up the drafts that a server has left which ended before it could make actions of them. */
export const dropDrafts = write('bulk.dropDrafts', function* (args: { before: number }): Transaction<void> {
  yield* change(removeDrafts, args)
})
