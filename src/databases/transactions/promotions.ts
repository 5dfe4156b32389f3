/** Makes a standby the home of its database when the home is dead: the furthest of the standbys that follow. */
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { holdRegistrations } from '../../cluster/transactions/cluster-nodes.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { setModifyingState } from './database-row.js'
import { takeHome } from './homes.js'
import { activeFrom, dropEpoch } from './moves.js'
import { dropTaken, failPending } from './recoveries.js'
import { newestIncarnation, ofDatabase, type StandbyRow, takesPart, turnStandbys } from './standbys.js'

/** Who takes a database over from whom. */
export interface Promotion {
  readonly databaseId: string
  readonly from: string
  readonly to: string
  /** The epoch of the database before the promotion. */
  readonly epoch: number
  /** Unix milliseconds. */
  readonly at: number
  readonly audit: NewAuditRow
}

/**
 * The result of a promotion; `why` is for the log. `late`: the database has another home. `waits`: another standby comes
 * first, or has not stored its place yet.
 */
export type Promoted =
  | { readonly kind: 'promoted' | 'late' }
  | { readonly kind: 'waits'; readonly why: string }
  | { readonly kind: 'refused'; readonly why: string }

/** The place of a copy whose home is dead. No stream changes the copy any more. */
export interface StandbyPosition {
  readonly databaseId: string
  readonly node: string
  /** The incarnation of the home that has died. */
  readonly incarnation: number
  /** Undefined: the copy cannot take over. */
  readonly place: { readonly replid: string; readonly offset: number } | undefined
}

const setStand = query<Omit<StandbyPosition, 'place'> & { replid: string | null; offset: number | null }>(({ db, p }) =>
  db
    .updateTable('database_standbys')
    .set({ stand_life: p.incarnation, stand_replid: p.replid, stand_offset: p.offset })
    .where('database_id', '=', p.databaseId)
    .where('node', '=', p.node)
    .where('state', '=', 'following')
    .where((e) => e.or([e('stand_life', 'is', null), e('stand_life', '<=', p.incarnation)])),
)

/**
 * Stores the place of a copy. Does nothing for an earlier incarnation of the home than is stored, or a copy that does not
 * follow.
 */
export const recordPosition = write(
  'promotions.stand',
  function* ({ place, ...args }: StandbyPosition): Transaction<void> {
    yield* change(setStand, { ...args, replid: place?.replid ?? null, offset: place?.offset ?? null })
  },
)

const lockDatabase = query<
  { databaseId: string },
  { home: string | null; modifying_state: string; epoch: number | null }
>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('databases')
      .select(['home', 'modifying_state'])
      .select((q) =>
        q
          .selectFrom('database_epochs')
          .select('epoch')
          .whereRef('database_epochs.database_id', '=', 'databases.database_id')
          .as('epoch'),
      )
      .where('database_id', '=', p.databaseId),
  ),
)

/**
 * Changes that end with the home: the row has nothing of them before they are complete, and the copy does not depend on
 * them.
 */
const ENDING_WITH_HOME: readonly string[] = ['', 'backing_up', 'changing_plan', 'updating_regions']

/**
 * Makes the node of a standby the home, with the next epoch. No node can register an incarnation meanwhile: one that
 * registered before is seen here, one that registers later reads the new home. May be repeated: then it returns the outcome
 * of the first time.
 */
export const promote = write('promotions.promote', function* (args: Promotion): Transaction<Promoted> {
  const { databaseId, from, to, at } = args
  yield* holdRegistrations()
  const row = yield* first(lockDatabase, { databaseId })
  const known = yield* resultFor(args, row)
  if (known) return known
  yield* takeHome(databaseId, from, to)
  yield* change(setModifyingState, { databaseId, modifyingState: '' })
  yield* activeFrom(to, { databaseId, at })
  yield* change(dropEpoch, { databaseId })
  const epoch = args.epoch + 1
  yield* insertAll('database_epochs', [{ database_id: databaseId, epoch }])
  yield* turnStandbys({ databaseId, from, to }, epoch)
  yield* change(failPending, { databaseId, at })
  yield* change(dropTaken, { databaseId, from })
  const taken = { database_id: databaseId, from_node: from, to_node: to, backup_id: '', taken_at: at }
  yield* insertAll('taken_homes', [taken])
  yield* recordAudit(args.audit)
  return { kind: 'promoted' }
})

const refused = (why: string): Promoted => ({ kind: 'refused', why })
const waits = (why: string): Promoted => ({ kind: 'waits', why })

/** The result if nothing has to be changed; undefined when the standby takes over. */
function* resultFor(
  { databaseId, from, to, epoch }: Promotion,
  row: { home: string | null; modifying_state: string; epoch: number | null } | undefined,
): Transaction<Promoted | undefined> {
  if (row?.home === to && row.epoch === epoch + 1) return { kind: 'promoted' }
  if (row?.home !== from || (row.epoch ?? 1) !== epoch) return { kind: 'late' }
  if (!ENDING_WITH_HOME.includes(row.modifying_state))
    return refused(`a change was not complete: ${row.modifying_state}`)
  const following = (yield* all(ofDatabase, { databaseId })).filter(({ state }) => state === 'following')
  const own = following.find(({ node }) => node === to)
  if (!own) return refused('the standby is not following')
  if (!(yield* takesPart(to))) return refused('this node was declared dead')
  const newest = yield* first(newestIncarnation, { name: from })
  if (newest?.state !== 'dead') return refused(`the node ${from} is ${newest?.state ?? 'unknown'}`)
  const present: StandbyRow[] = []
  for (const one of following) if (yield* takesPart(one.node)) present.push(one)
  const silent = present.find(({ stand_life }) => stand_life !== newest.incarnation)
  if (silent) return waits(`the node ${silent.node} has not stored where its copy stands`)
  const furthest = furthestOf(present)
  return furthest?.slot === own.slot ? undefined : waits(`the node ${furthest?.node ?? ''} comes first`)
}

/**
 * The copy that takes over: the one with the highest offset, then with the lowest slot. Offsets of two histories cannot be
 * compared, so only copies count that have the history of the copy that the home last found complete.
 */
function furthestOf(bySlot: readonly StandbyRow[]): StandbyRow | undefined {
  const placed = bySlot.filter(({ stand_replid }) => stand_replid !== null)
  const newest = greatest(placed, ({ complete_until }) => complete_until ?? 0)
  const same = placed.filter(({ stand_replid }) => stand_replid === newest?.stand_replid)
  return greatest(same, ({ stand_offset }) => stand_offset ?? 0)
}

/** The first row with the highest figure. */
function greatest<Row>(rows: readonly Row[], figure: (row: Row) => number): Row | undefined {
  return rows.reduce<Row | undefined>((best, row) => (best && figure(best) >= figure(row) ? best : row), undefined)
}
