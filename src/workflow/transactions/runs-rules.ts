import type { PendingRow } from '../../queue/transactions/messages.js'
import { debouncedUntil, type KeyRule, type KeySweepStep } from '../../queue/transactions/rule-keys.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { RunRuleKeysTable } from '../../store/schema/runs.js'
import { all, change, first, type Transaction } from '../../store/statement.js'
import { cancelRuns } from './runs-cancel.js'

/**
 * Debounce and singleton keys of runs. A row of `run_rule_keys` names the run that holds a key of an account, as `rule_keys`
 * of the queue names a message. The transaction of a trigger locks the row before it starts the run. So if two triggers have
 * the same key, the later one sees the run of the earlier one. Nothing is written when a run ends.
 *
 * A debounced run gives its key up in a commit before its first delivery (`close`). From then on, no trigger replaces it.
 */

interface Place {
  accountId: string
  rule: KeyRule['kind']
  key: string
}

const take = query<Place & { since: number }>(({ db, p }) =>
  db
    .insertInto('run_rule_keys')
    .values({ account_id: p.accountId, rule: p.rule, rule_key: p.key, run_seq: 0, since: p.since })
    .onConflict((conflict) => conflict.columns(['account_id', 'rule', 'rule_key']).doNothing()),
)

type Holder = Pick<RunRuleKeysTable, 'run_seq' | 'since'>

const lock = query<Place, Holder>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('run_rule_keys')
      .select(['run_seq', 'since'])
      .where('account_id', '=', p.accountId)
      .where('rule', '=', p.rule)
      .where('rule_key', '=', p.key),
  ),
)

const hold = query<Place & { runSeq: number; since: number }>(({ db, p }) =>
  db
    .updateTable('run_rule_keys')
    .set({ run_seq: p.runSeq, since: p.since })
    .where('account_id', '=', p.accountId)
    .where('rule', '=', p.rule)
    .where('rule_key', '=', p.key),
)

/** An active run that holds a key. */
export interface HoldingRun {
  readonly seq: number
  readonly run_id: string
  readonly created_at: number
}

const active = query<{ runSeq: number }, HoldingRun>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'run_id', 'created_at'])
    .where('seq', '=', p.runSeq)
    .where('state', '=', 'RUN_STARTED'),
)

const named = query<{ accountId: string; runId: string }, { seq: number }>(({ db, p }) =>
  db.selectFrom('runs').select('seq').where('account_id', '=', p.accountId).where('run_id', '=', p.runId),
)

/** Locks the row of a key until the commit. Repeats if a delivery removed the row between the two statements. */
function* lockKey(place: Place, at: number): Transaction<Holder> {
  for (;;) {
    yield* change(take, { ...place, since: at })
    const holder = yield* first(lock, place)
    if (holder) return holder
  }
}

/** A key that a trigger has locked. */
export type LockedKey =
  /** The older run continues, and the trigger starts no run. */
  | { readonly kind: 'taken'; readonly by: HoldingRun }
  /** A repetition of the trigger held the key meanwhile, and has started the run. */
  | { readonly kind: 'repeated' }
  | {
      readonly kind: 'free'
      /** The run that was cancelled for the new one. */
      readonly replaced?: HoldingRun
      /** Messages for `queue.offer` after the commit. */
      readonly offers: readonly PendingRow[]
      /** When the burst of a debounce key began. */
      readonly since: number
      /** When the first delivery of a debounced run is due. */
      readonly dueAt?: number
    }

/** Locks the key of a trigger, and cancels the older run if the rule says so. `holdKey` must follow when the run exists. */
export function* lockForRun(accountId: string, runId: string, rule: KeyRule, at: number): Transaction<LockedKey> {
  const { run_seq: runSeq, since } = yield* lockKey({ accountId, rule: rule.kind, key: rule.key }, at)
  if (yield* first(named, { accountId, runId })) return { kind: 'repeated' }
  const older = yield* first(active, { runSeq })
  if (older && rule.kind === 'singleton' && rule.mode === 'skip') return { kind: 'taken', by: older }
  const { cancelled, offers } = older
    ? yield* cancelRuns.body({ seqs: [older.seq], at })
    : { cancelled: [], offers: [] }
  // The older run may just have ended by itself.
  if (!older || cancelled.length === 0) return { kind: 'free', offers, since: at }
  const free = { kind: 'free', replaced: older, offers } as const
  return rule.kind === 'debounce' ? { ...free, since, dueAt: debouncedUntil(rule, since, at) } : { ...free, since: at }
}

const noteSuccessor = query<{ older: number; runSeq: number }>(({ db, p }) =>
  db.updateTable('runs').set({ replaced_by: p.runSeq }).where('seq', '=', p.older),
)

/** Gives a locked key to a new run, and names it as the successor of the run that was cancelled for it. */
export function* holdKey(
  accountId: string,
  rule: KeyRule,
  { runSeq, since, replaced }: Pick<LockedKey & { kind: 'free' }, 'since' | 'replaced'> & { readonly runSeq: number },
): Transaction<void> {
  yield* change(hold, { accountId, rule: rule.kind, key: rule.key, runSeq, since })
  if (replaced) yield* change(noteSuccessor, { older: replaced.seq, runSeq })
}

const giveUp = query<{ runSeq: number }>(({ db, p }) =>
  db.deleteFrom('run_rule_keys').where('run_seq', '=', p.runSeq).where('rule', '=', 'debounce'),
)

/**
 * Removes the debounce key of a run before its first delivery. @returns whether the run is still active: another run may
 * have replaced it.
 */
export const close = write('runRules.close', function* (args: { runSeq: number }): Transaction<boolean> {
  yield* change(giveUp, args)
  return (yield* first(active, args)) !== undefined
})

const burstsOf = query<{ seqs: readonly number[] }, { run_seq: number }>(({ db, p, d }) =>
  db.selectFrom('run_rule_keys').select('run_seq').where(d.inNumbers('run_seq', p.seqs)).where('rule', '=', 'debounce'),
)
const moveBurst = query<{ runSeq: number; byMs: number }>(({ db, p }) =>
  db
    .updateTable('run_rule_keys')
    .set((eb) => ({ since: eb('since', '+', p.byMs) }))
    .where('run_seq', '=', p.runSeq)
    .where('rule', '=', 'debounce'),
)

/** Does the same for runs as `moveBursts` of the queue for messages. */
export function* moveRunBursts(byMs: ReadonlyMap<number, number>): Transaction<void> {
  for (const { run_seq: runSeq } of yield* all(burstsOf, { seqs: [...byMs.keys()] }))
    yield* change(moveBurst, { runSeq, byMs: byMs.get(runSeq) ?? 0 })
}

const sinceAhead = query<{ from: number; before: number; ahead: number }, { since: number }>(({ db, p }) =>
  db
    .selectFrom('run_rule_keys')
    .select('since')
    .where('since', '>=', p.from)
    .where('since', '<', p.before)
    .orderBy('since')
    .offset(p.ahead)
    .limit(1),
)

const removeUnused = query<{ from: number; upTo: number }>(({ db, p }) =>
  db
    .deleteFrom('run_rule_keys')
    .where('since', '>=', p.from)
    .where('since', '<=', p.upTo)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('runs')
            .select('seq')
            .whereRef('runs.seq', '=', 'run_rule_keys.run_seq')
            .where('runs.state', '=', 'RUN_STARTED'),
        ),
      ),
    ),
)

/** Deletes old keys whose run has ended, as `sweep` of the queue's keys does for messages. */
export const sweep = write(
  'runRules.sweep',
  function* ({ from, before, limit }: KeySweepStep): Transaction<number | undefined> {
    const last = yield* first(sinceAhead, { from, before, ahead: limit - 1 })
    yield* change(removeUnused, { from, upTo: last?.since ?? before - 1 })
    return last && last.since + 1
  },
  { turn: 'background' },
)
