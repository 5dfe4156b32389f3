import { sql } from 'kysely'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { change, only, type Transaction } from '../../store/statement.js'
import {
  ACTION_COLUMNS,
  type ActionArgs,
  type BulkActionRow,
  finishIfDecided,
  insertActionRow,
  insertChunks,
  type SetChunks,
} from './bulk-action.js'

/**
 * Stores an action whose set is large. Inserting all chunks in one transaction would block other writers for a quarter
 * of a second, so they are inserted before it, batch by batch, under a draft that becomes the action at the end:
 *
 * ```
 * draftAction ── addToDraft, repeated ── createDrafted ──▶ the action, as `createAction` would have stored it
 *      └──────────────────┴── dropDraft, or dropDrafts at the next start of the server
 * ```
 *
 * A draft is a paused action of the empty account: no account lists it and the worker skips it. An action therefore
 * never has an incomplete set.
 */
export const NO_ACCOUNT = ''

/** Creates a draft. @returns its number, which becomes the number of the action. */
export const draftAction = write('bulk.draft', function* (args: ActionArgs): Transaction<number> {
  return yield* insertActionRow({ ...args, accountId: NO_ACCOUNT, fence: null }, { matched: 0, notFound: 0 }, 'paused')
})

/** Chunks to append to a draft. */
export interface DraftBatch extends SetChunks {
  readonly actionSeq: number
  /** Number of the first chunk. */
  readonly from: number
}

/** Appends chunks to a draft, in the background: the writes of others go first. */
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

interface Conversion {
  readonly actionSeq: number
  readonly accountId: string
  readonly matched: number
  readonly notFound: number
  readonly fence: string | null
  readonly fenceUntil: number | null
}

const convertDraft = query<Conversion, BulkActionRow>(({ db, p }) =>
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
    .where('account_id', '=', sql.lit(NO_ACCOUNT))
    .returning(ACTION_COLUMNS),
)

/** Turns a complete draft into the action. An action with nothing to decide is finished at once. */
export const createDrafted = write(
  'bulk.createDrafted',
  function* ({ actionSeq, ...args }: ActionArgs & { actionSeq: number }): Transaction<BulkActionRow> {
    const sums = yield* only(totalsOf, { actionSeq })
    // PostgreSQL answers sums as decimal text.
    const matched = Number(sums.items)
    const action = yield* only(convertDraft, {
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
  db.deleteFrom('bulk_actions').where('seq', '=', p.actionSeq).where('account_id', '=', sql.lit(NO_ACCOUNT)),
)

/** Deletes a draft. Does nothing if the draft has become an action. */
export const dropDraft = write('bulk.dropDraft', function* (args: { actionSeq: number }): Transaction<void> {
  yield* change(removeDraft, args)
})

const removeDrafts = query<{ before: number }>(({ db, p }) =>
  db.deleteFrom('bulk_actions').where('account_id', '=', sql.lit(NO_ACCOUNT)).where('created_at', '<', p.before),
)

/** Deletes the drafts of a server that ended before it could turn them into actions. */
export const dropDrafts = write('bulk.dropDrafts', function* (args: { before: number }): Transaction<void> {
  yield* change(removeDrafts, args)
})
