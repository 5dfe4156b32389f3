import { type Selectable, sql } from 'kysely'
import { all, change, first, only, read, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { FlowKeysTable } from '../../store/schema/queues.js'

/** A flow-control key as it is stored. */
export type FlowKeyRow = Selectable<FlowKeysTable>

interface Naming {
  readonly account_id: string
  readonly flow_key?: string | null
  readonly config: string
  readonly created_at: number
}

interface Asking {
  accountId: string
  key: string
  parallelism: number | null
  rate: number | null
  periodS: number
  at: number
}

const row = (p: Required<Asking>) => ({
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

const touch = query<Asking>(({ db, p }) =>
  db
    .insertInto('flow_keys')
    .values(row(p))
    .onConflict((conflict) => conflict.columns(['account_id', 'flow_key']).doUpdateSet({ updated_at: p.at })),
)

const ask = query<Asking>(({ db, p }) =>
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

/** The limits that a configuration asks for; `undefined` when it names a key only. */
function limitsOf(config: string): Pick<Asking, 'parallelism' | 'rate' | 'periodS'> | undefined {
  // Written by this program when the message was accepted.
  const { flow } = JSON.parse(config) as { flow?: { parallelism?: number; rate?: number; period?: number } }
  return flow && { parallelism: flow.parallelism ?? null, rate: flow.rate ?? null, periodS: flow.period ?? 1 }
}

/** A stored configuration for another message: the limits in it are those of its key, and another key has others. */
export function configUnder(stored: string, isSameKey: boolean): Readonly<Record<string, unknown>> {
  // Written by this program when the message was accepted.
  const { flow, ...others } = JSON.parse(stored) as Readonly<Record<string, unknown>>
  return { ...others, ...(flow !== undefined && isSameKey && { flow }) }
}

/** Makes the flow-control keys that new messages name known; the last message of a key decides about its limits. */
export function* noteFlowKeys(messages: readonly Naming[]): Transaction<void> {
  const last = new Map<string, Naming>()
  for (const message of messages) {
    if (message.flow_key) last.set(`${message.account_id}/${message.flow_key}`, message)
  }
  for (const { account_id: accountId, flow_key, config, created_at: at } of last.values()) {
    const limits = limitsOf(config)
    const shared = { accountId, key: flow_key ?? '', at }
    if (limits) yield* change(ask, { ...shared, ...limits })
    else yield* change(touch, { ...shared, parallelism: null, rate: null, periodS: 1 })
  }
}

const everyKey = query<object, FlowKeyRow>(({ db }) => db.selectFrom('flow_keys').selectAll())

/** All keys of all accounts: the engine holds them in memory. */
export const everything = read('flowKeys.everything', function* (args: object): Transaction<FlowKeyRow[]> {
  return yield* all(everyKey, args)
})

const keysOf = query<{ accountId: string; search: string }, FlowKeyRow>(({ db, p, d }) =>
  db
    .selectFrom('flow_keys')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where(d.contains('flow_key', p.search))
    .orderBy('flow_key'),
)

/** Keys of an account whose name contains a text; the empty text finds all. */
export const list = read('flowKeys.list', function* (args: { accountId: string; search: string }): Transaction<
  FlowKeyRow[]
> {
  return yield* all(keysOf, args)
})

const knownKey = query<{ accountId: string; key: string }, FlowKeyRow>(({ db, p }) =>
  db.selectFrom('flow_keys').selectAll().where('account_id', '=', p.accountId).where('flow_key', '=', p.key),
)

const dueOfKey = query<{ accountId: string; key: string; now: number }, { due: number }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select((q) => q.fn.countAll<number>().as('due'))
    .where('account_id', '=', p.accountId)
    .where('flow_key', '=', p.key)
    .where('finished_at', 'is', null)
    .where('state', '=', sql.lit('pending'))
    .where('next_at', '<=', p.now),
)

/** One key of an account and how many of its messages are due; `undefined` when no message has ever named it. */
export const get = read('flowKeys.get', function* (args: { accountId: string; key: string; now: number }): Transaction<
  { row: FlowKeyRow; due: number } | undefined
> {
  const row = yield* first(knownKey, args)
  return row && { row, due: (yield* only(dueOfKey, args)).due }
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

/** What an owner changes of a key; absent members stay. */
export interface FlowKeyChange {
  readonly paused?: 0 | 1
  readonly parallelism?: number
  readonly rate?: number
  readonly period_s?: number
  readonly pinned_parallelism?: 0 | 1
  readonly pinned_rate?: 0 | 1
}

/** Changes a key, made when there is none and `create` says so. Answers how it is now, `undefined` when there is none. */
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

const dueOf = query<{ accountId: string; now: number }, { flow_key: string; due: number }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select((q) => ['flow_key', q.fn.countAll<number>().as('due')])
    .where('account_id', '=', p.accountId)
    .where('flow_key', 'is not', null)
    .where('finished_at', 'is', null)
    .where('state', '=', sql.lit('pending'))
    .where('next_at', '<=', p.now)
    .groupBy('flow_key')
    .$narrowType<{ flow_key: string }>(),
)

/** How many messages of an account are due, by flow-control key. */
export const due = read('flowKeys.due', function* (args: { accountId: string; now: number }): Transaction<
  { flow_key: string; due: number }[]
> {
  return yield* all(dueOf, args)
})

const removeIdle = query<{ before: number }>(({ db, p }) =>
  db
    .deleteFrom('flow_keys')
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

/** Forgets keys that no message has named since `before` and that nobody has paused or pinned. */
export const sweep = write('flowKeys.sweep', function* (args: { before: number }): Transaction<
  { account_id: string; flow_key: string }[]
> {
  return (yield* all(removeIdle, args)) as { account_id: string; flow_key: string }[]
})
