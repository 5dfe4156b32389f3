import { type RawBuilder, type Selectable, sql } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { FlowKeysTable } from '../../store/schema/queues.js'
import { all, change, first, type Transaction } from '../../store/statement.js'

/** A flow-control key as it is stored. */
export type FlowKeyRow = Selectable<FlowKeysTable>

interface KeyMention {
  readonly account_id: string
  readonly flow_key?: string | null
  readonly config: string
  readonly created_at: number
}

interface KeyLimits {
  accountId: string
  key: string
  parallelism: number | null
  rate: number | null
  periodS: number
  at: number
}

const row = (p: Required<KeyLimits>) => ({
  account_id: p.accountId,
  flow_key: p.key,
  parallelism: p.parallelism,
  rate: p.rate,
  period_s: p.periodS,
  paused: 0,
  pinned_parallelism: 0,
  pinned_rate: 0,
  updated_at: p.at,
})

const touch = query<KeyLimits>(({ db, p }) =>
  db
    .insertInto('flow_keys')
    .values(row(p))
    .onConflict((conflict) => conflict.columns(['account_id', 'flow_key']).doUpdateSet({ updated_at: p.at })),
)

const upsertLimits = query<KeyLimits>(({ db, p }) =>
  db
    .insertInto('flow_keys')
    .values(row(p))
    .onConflict((conflict) =>
      conflict.columns(['account_id', 'flow_key']).doUpdateSet({
        parallelism: sql<
          number | null
        >`case when flow_keys.pinned_parallelism = 1 then flow_keys.parallelism else excluded.parallelism end`,
        rate: sql<number | null>`case when flow_keys.pinned_rate = 1 then flow_keys.rate else excluded.rate end`,
        period_s: sql<number>`case when flow_keys.pinned_rate = 1 then flow_keys.period_s else excluded.period_s end`,
        updated_at: p.at,
      }),
    ),
)

/** The limits that a configuration sets; `undefined` when it only names a key. */
function limitsOf(config: string): Pick<KeyLimits, 'parallelism' | 'rate' | 'periodS'> | undefined {
  // This program wrote and validated the column.
  const { flow } = JSON.parse(config) as { flow?: { parallelism?: number; rate?: number; period?: number } }
  return flow && { parallelism: flow.parallelism ?? null, rate: flow.rate ?? null, periodS: flow.period ?? 1 }
}

/**
 * The stored configuration for a message that may have another flow-control key. Limits belong to a key, so another key
 * drops them.
 */
export function configUnder(stored: string, isSameKey: boolean): Readonly<Record<string, unknown>> {
  // This program wrote and validated the column.
  const { flow, ...others } = JSON.parse(stored) as Readonly<Record<string, unknown>>
  return { ...others, ...(flow !== undefined && isSameKey && { flow }) }
}

const keysAmong = query<{ accountId: string; keys: readonly string[] }, FlowKeyRow>(({ db, p, d }) =>
  db.selectFrom('flow_keys').selectAll().where('account_id', '=', p.accountId).where(d.inTexts('flow_key', p.keys)),
)

/** A key that is named again is written only if its limits differ or its row is this old. */
const REWRITE_AFTER_MS = 3_600_000

/** Whether the row of a key needs no write for a message that names the key. */
function isCurrent(row: FlowKeyRow, limits: ReturnType<typeof limitsOf>, at: number): boolean {
  if (Math.abs(at - row.updated_at) >= REWRITE_AFTER_MS) return false
  if (!limits) return true
  const isSameParallelism = row.pinned_parallelism === 1 || row.parallelism === limits.parallelism
  const isSameRate = row.pinned_rate === 1 || (row.rate === limits.rate && row.period_s === limits.periodS)
  return isSameParallelism && isSameRate
}

/**
 * Stores the flow-control keys that new messages name. The last message of a key sets its limits. A write
 * locks the row until the commit, which would limit a key to one commit at a time. So the row is written only
 * if it changes; most messages only read it.
 */
export function* storeFlowKeys(messages: readonly KeyMention[]): Transaction<void> {
  const byAccount = new Map<string, Map<string, KeyMention>>()
  for (const message of messages) {
    if (!message.flow_key) continue
    const mentions = byAccount.get(message.account_id) ?? new Map<string, KeyMention>()
    byAccount.set(message.account_id, mentions.set(message.flow_key, message))
  }
  // Rows are locked in the order of docs/store.md.
  for (const [accountId, mentions] of sorted(byAccount)) {
    const stored = yield* all(keysAmong, { accountId, keys: [...mentions.keys()] })
    const rowOf = new Map(stored.map((row) => [row.flow_key, row]))
    for (const [key, { config, created_at: at }] of sorted(mentions)) {
      const limits = limitsOf(config)
      const row = rowOf.get(key)
      if (row && isCurrent(row, limits, at)) continue
      if (limits) yield* change(upsertLimits, { accountId, key, at, ...limits })
      else yield* change(touch, { accountId, key, at, parallelism: null, rate: null, periodS: 1 })
    }
  }
}

function sorted<Value>(map: ReadonlyMap<string, Value>): [string, Value][] {
  return [...map].sort(([one], [other]) => (one < other ? -1 : 1))
}

/** The stored rows of these keys. */
export const named = read(
  'flowKeys.named',
  function* (args: {
    keysOf: readonly (readonly [accountId: string, keys: readonly string[]])[]
  }): Transaction<FlowKeyRow[]> {
    const rows: FlowKeyRow[] = []
    for (const [accountId, keys] of args.keysOf) rows.push(...(yield* all(keysAmong, { accountId, keys })))
    return rows
  },
)

/** A page of the keys of an account. */
export interface KeyPage {
  readonly accountId: string
  /** Only keys whose name contains this text; the empty text matches all. */
  readonly search: string
  /** Only keys after this one. */
  readonly after: string
  readonly limit: number
  readonly now: number
}

/** Most due messages of a key that a page counts. */
export const MAX_DUE = 100

/** A key and its number of due messages, at most `MAX_DUE`. */
export interface KeyWithDue {
  readonly row: FlowKeyRow
  readonly due: number
}

const keysOf = query<KeyPage, FlowKeyRow & { due: number }>(({ db, p, d }) =>
  db
    .selectFrom('flow_keys')
    .selectAll()
    .select((q) =>
      q
        .selectFrom(
          q
            .selectFrom('messages')
            .select('seq')
            .whereRef('messages.account_id', '=', 'flow_keys.account_id')
            .whereRef('messages.flow_key', '=', 'flow_keys.flow_key')
            .where('finished_at', 'is', null)
            .where('state', '=', sql.lit('pending'))
            .where('next_at', '<=', p.now)
            .limit(sql.lit(MAX_DUE))
            .as('some'),
        )
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .as('due'),
    )
    .where('account_id', '=', p.accountId)
    .where('flow_key', '>', p.after)
    .where(d.contains('flow_key', p.search))
    .orderBy('flow_key')
    .limit(p.limit)
    .$narrowType<{ due: number }>(),
)

/** The keys of an account, ordered by name, in pages: there may be a million. */
export const list = read('flowKeys.list', function* (args: KeyPage): Transaction<KeyWithDue[]> {
  return (yield* all(keysOf, args)).map(({ due, ...row }) => ({ row, due }))
})

const knownKey = query<{ accountId: string; key: string }, FlowKeyRow>(({ db, p }) =>
  db.selectFrom('flow_keys').selectAll().where('account_id', '=', p.accountId).where('flow_key', '=', p.key),
)

/** One key of an account; `undefined` when no message has ever named it. */
export const get = read('flowKeys.get', function* (args: { accountId: string; key: string }): Transaction<
  FlowKeyRow | undefined
> {
  return yield* first(knownKey, args)
})

const oneKey = query<{ accountId: string; key: string }, FlowKeyRow>(({ db, p, d }) =>
  d.forUpdate(
    db.selectFrom('flow_keys').selectAll().where('account_id', '=', p.accountId).where('flow_key', '=', p.key),
  ),
)

interface Change {
  accountId: string
  key: string
  parallelism: number | null
  rate: number | null
  periodS: number
  paused: number
  pinnedParallelism: number
  pinnedRate: number
  at: number
}

const update = query<Change>(({ db, p }) =>
  db
    .updateTable('flow_keys')
    .set({
      parallelism: p.parallelism,
      rate: p.rate,
      period_s: p.periodS,
      paused: p.paused,
      pinned_parallelism: p.pinnedParallelism,
      pinned_rate: p.pinnedRate,
      updated_at: p.at,
    })
    .where('account_id', '=', p.accountId)
    .where('flow_key', '=', p.key),
)

/** Changes of a key by its owner. Absent members stay. */
export interface FlowKeyChange {
  readonly paused?: 0 | 1
  readonly parallelism?: number
  readonly rate?: number
  readonly period_s?: number
  readonly pinned_parallelism?: 0 | 1
  readonly pinned_rate?: 0 | 1
}

/**
 * Changes a key; with `create`, creates it first if it does not exist. Returns the new row, or `undefined` when there
 * is none.
 */
export const modify = write(
  'flowKeys.modify',
  function* (args: {
    accountId: string
    key: string
    change: FlowKeyChange
    create: boolean
    at: number
  }): Transaction<FlowKeyRow | undefined> {
    const { accountId, key, at } = args
    if (args.create) yield* change(touch, { accountId, key, parallelism: null, rate: null, periodS: 1, at })
    const found = yield* first(oneKey, { accountId, key })
    if (!found) return undefined
    const next: FlowKeyRow = { ...found, ...args.change, updated_at: at }
    yield* change(update, {
      accountId,
      key,
      at,
      parallelism: next.parallelism,
      rate: next.rate,
      periodS: next.period_s,
      paused: next.paused,
      pinnedParallelism: next.pinned_parallelism,
      pinnedRate: next.pinned_rate,
    })
    return next
  },
)

/** Where a sweep or a paged read continues: at the keys after this one, in the order of accounts and names. */
export interface KeyPlace {
  readonly account_id: string
  readonly flow_key: string
}

/** Before the first key, and after the last one: ids of accounts are letters, digits and `_`. */
export const FIRST_KEY: KeyPlace = { account_id: '', flow_key: '' }
const LAST_KEY: KeyPlace = { account_id: '~', flow_key: '' }

interface Range {
  afterAccount: string
  afterKey: string
}

const isAfter = ({ afterAccount, afterKey }: Range): RawBuilder<boolean> =>
  sql<boolean>`(account_id, flow_key) > (${afterAccount}, ${afterKey})`

const keysAfter = query<Range & { limit: number }, FlowKeyRow>(({ db, p }) =>
  db.selectFrom('flow_keys').selectAll().where(isAfter(p)).orderBy('account_id').orderBy('flow_key').limit(p.limit),
)

/** The next page of keys of all accounts, for the dispatcher's memory. */
export const page = read('flowKeys.page', function* (args: { after: KeyPlace; limit: number }): Transaction<
  FlowKeyRow[]
> {
  const { account_id: afterAccount, flow_key: afterKey } = args.after
  return yield* all(keysAfter, { afterAccount, afterKey, limit: args.limit })
})

const keyAhead = query<Range & { ahead: number }, KeyPlace>(({ db, p }) =>
  db
    .selectFrom('flow_keys')
    .select(['account_id', 'flow_key'])
    .where(isAfter(p))
    .orderBy('account_id')
    .orderBy('flow_key')
    .offset(p.ahead)
    .limit(1),
)

const removeIdle = query<Range & { upToAccount: string; upToKey: string; before: number }>(({ db, p }) =>
  db
    .deleteFrom('flow_keys')
    .where(isAfter(p))
    .where(sql<boolean>`(account_id, flow_key) <= (${p.upToAccount}, ${p.upToKey})`)
    .where('updated_at', '<', p.before)
    .where('paused', '=', 0)
    .where('pinned_parallelism', '=', 0)
    .where('pinned_rate', '=', 0)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('messages')
            .select('seq')
            .whereRef('messages.account_id', '=', 'flow_keys.account_id')
            .whereRef('messages.flow_key', '=', 'flow_keys.flow_key')
            .where('messages.finished_at', 'is', null),
        ),
      ),
    )
    .returning(['account_id', 'flow_key']),
)

/** What a step of a sweep has deleted, and where the next one begins; `undefined` at the end. */
export interface Swept {
  readonly removed: readonly KeyPlace[]
  readonly next: KeyPlace | undefined
}

/** Among the next `limit` keys, deletes those that no message has named since `before` and that are not paused or pinned. */
export const sweep = write(
  'flowKeys.sweep',
  function* (args: { before: number; after: KeyPlace; limit: number }): Transaction<Swept> {
    const { before, after, limit } = args
    const range = { afterAccount: after.account_id, afterKey: after.flow_key }
    const next = yield* first(keyAhead, { ...range, ahead: limit - 1 })
    const upTo = next ?? LAST_KEY
    const removing = { ...range, upToAccount: upTo.account_id, upToKey: upTo.flow_key, before }
    return { removed: (yield* all(removeIdle, removing)) as KeyPlace[], next }
  },
  { turn: 'background' },
)
