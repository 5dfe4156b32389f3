import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { RuleKeysTable } from '../../store/schema/messages.js'
import { all, change, first, type Transaction } from '../../store/statement.js'
import { debouncedUntil, type KeyRule } from '../key-rule.js'
import type { NewMessage, PublishEntry } from './messages.js'

/**
 * Debounce and singleton keys. A row of `rule_keys` names the message that holds the key of an account. It is written in the
 * transaction that publishes the message. Nothing is written when the message ends: the next publication with the key checks
 * whether that message has ended. So only publications with these keys cost anything.
 *
 * A debounced message gives its key up in a commit before its first attempt (`close`). Two actors may meet there: a new
 * publication that wants to replace the message, and the dispatcher that wants to send it. Both change the row, so one
 * comes first. If it is the publication, the dispatcher finds the message cancelled and sends nothing. If it is the
 * dispatcher, the publication finds no row and begins a new burst.
 */

export { debouncedUntil, type KeyRule } from '../key-rule.js'

interface Place {
  accountId: string
  rule: KeyRule['kind']
  key: string
}

const take = query<Place & { messageId: string; since: number }>(({ db, p }) =>
  db
    .insertInto('rule_keys')
    .values({ account_id: p.accountId, rule: p.rule, rule_key: p.key, message_id: p.messageId, since: p.since })
    .onConflict((conflict) => conflict.columns(['account_id', 'rule', 'rule_key']).doNothing()),
)

type Holder = Pick<RuleKeysTable, 'message_id' | 'since'>

const lock = query<Place, Holder>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('rule_keys')
      .select(['message_id', 'since'])
      .where('account_id', '=', p.accountId)
      .where('rule', '=', p.rule)
      .where('rule_key', '=', p.key),
  ),
)

const pass = query<Place & { messageId: string; since: number }>(({ db, p }) =>
  db
    .updateTable('rule_keys')
    .set({ message_id: p.messageId, since: p.since })
    .where('account_id', '=', p.accountId)
    .where('rule', '=', p.rule)
    .where('rule_key', '=', p.key),
)

const unfinished = query<{ accountId: string; messageId: string }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select('seq')
    .where('account_id', '=', p.accountId)
    .where('message_id', '=', p.messageId)
    .where('finished_at', 'is', null),
)

/** Takes a free key, or locks the row of its holder until the commit. The dispatcher may remove the row in between. */
function* takeOrLock(place: Place, messageId: string, now: number): Transaction<Holder | undefined> {
  for (;;) {
    if ((yield* change(take, { ...place, messageId, since: now })) === 1) return undefined
    const holder = yield* first(lock, place)
    if (holder) return holder
  }
}

/** The effect of an entry's rule. */
type Verdict =
  | { readonly kind: 'stored' }
  /** An older message has not ended. */
  | { readonly kind: 'skipped'; readonly for: string }
  /** `seq`: of an older message in the store; absent for one of the same transaction. */
  | { readonly kind: 'replaces'; readonly messageId: string; readonly seq: number | undefined; readonly since: number }

const STORED: Verdict = { kind: 'stored' }

function* verdictOn(
  { account_id: accountId, message_id: messageId }: NewMessage,
  rule: KeyRule,
  now: number,
  fresh: ReadonlySet<string>,
): Transaction<Verdict> {
  const place = { accountId, rule: rule.kind, key: rule.key }
  const holder = yield* takeOrLock(place, messageId, now)
  if (!holder) return STORED
  const { message_id: older } = holder
  const row = fresh.has(older) ? undefined : yield* first(unfinished, { accountId, messageId: older })
  if (!row && !fresh.has(older)) {
    yield* change(pass, { ...place, messageId, since: now })
    return STORED
  }
  if (rule.kind === 'singleton' && rule.mode === 'skip') return { kind: 'skipped', for: older }
  const since = rule.kind === 'debounce' ? holder.since : now
  yield* change(pass, { ...place, messageId, since })
  return { kind: 'replaces', messageId: older, seq: row?.seq, since }
}

/** The effects of the rules on the entries of a publication. */
export interface Ruled {
  /** In the order of the entries: the message that an entry replaces. Missing elements: none. */
  readonly replaced: readonly (string | undefined)[]
  /** In the order of the entries: the due time of an entry if its rule has changed it. */
  readonly dueAt: readonly (number | undefined)[]
  /** Numbers of older messages in the store that are replaced. */
  readonly olderSeqs: readonly number[]
}

/**
 * The indexes of entries with a rule, in the same order everywhere, so that
 * transactions with common keys cannot deadlock.
 */
function inOrderOfKeys(entries: readonly PublishEntry[]): number[] {
  const keys = entries.map(({ message, rule }) => (rule ? `${message.account_id}/${rule.kind}/${rule.key}` : ''))
  const ruled = [...keys.keys()].filter((index) => keys[index] !== '')
  return ruled.sort((a, b) => compare(keys[a] ?? '', keys[b] ?? '') || a - b)
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)

/**
 * Takes the keys of the rules of entries that are no duplicates.
 * @param duplicateOf gets the message for which an entry is skipped.
 */
export function* takeKeys(
  entries: readonly PublishEntry[],
  duplicateOf: (string | undefined)[],
  now: number,
): Transaction<Ruled> {
  const replaced: (string | undefined)[] = entries.map(() => undefined)
  const dueAt: (number | undefined)[] = entries.map(() => undefined)
  const olderSeqs: number[] = []
  const fresh = new Set<string>()
  for (const index of inOrderOfKeys(entries)) {
    const entry = entries[index]
    if (!entry?.rule || duplicateOf[index] !== undefined) continue
    const verdict = yield* verdictOn(entry.message, entry.rule, now, fresh)
    if (verdict.kind === 'skipped') duplicateOf[index] = verdict.for
    else fresh.add(entry.message.message_id)
    if (verdict.kind !== 'replaces') continue
    replaced[index] = verdict.messageId
    if (verdict.seq !== undefined) olderSeqs.push(verdict.seq)
    if (entry.rule.kind === 'debounce') dueAt[index] = debouncedUntil(entry.rule, verdict.since, now)
  }
  return { replaced, dueAt, olderSeqs }
}

const giveUp = query<{ accountId: string; messageId: string }>(({ db, p }) =>
  db
    .deleteFrom('rule_keys')
    .where('account_id', '=', p.accountId)
    .where('message_id', '=', p.messageId)
    .where('rule', '=', 'debounce'),
)

/**
 * Releases the key of a debounced message before its first attempt. Returns whether the message is still pending: another
 * message may have replaced it.
 */
export const close = write(
  'ruleKeys.close',
  function* (args: { accountId: string; messageId: string }): Transaction<boolean> {
    yield* change(giveUp, args)
    return (yield* first(unfinished, args)) !== undefined
  },
)

const burstsOf = query<{ accountId: string; messageIds: readonly string[] }, { message_id: string }>(({ db, p, d }) =>
  db
    .selectFrom('rule_keys')
    .select('message_id')
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('message_id', p.messageIds))
    .where('rule', '=', 'debounce'),
)
const moveBurst = query<{ accountId: string; messageId: string; byMs: number }>(({ db, p }) =>
  db
    .updateTable('rule_keys')
    .set((eb) => ({ since: eb('since', '+', p.byMs) }))
    .where('account_id', '=', p.accountId)
    .where('message_id', '=', p.messageId)
    .where('rule', '=', 'debounce'),
)

/**
 * Moves the start of the bursts of messages that are brought back with later due times, within another transaction.
 * Otherwise the longest delay of a burst would be over too early.
 * @param byMs how much later each message is due, milliseconds, by message id.
 */
export function* moveBursts(accountId: string, byMs: ReadonlyMap<string, number>): Transaction<void> {
  for (const { message_id: messageId } of yield* all(burstsOf, { accountId, messageIds: [...byMs.keys()] }))
    yield* change(moveBurst, { accountId, messageId, byMs: byMs.get(messageId) ?? 0 })
}

/** A step of a sweep over keys by age: about `limit` of the keys that were taken between two times. */
export interface KeySweepStep {
  readonly from: number
  readonly before: number
  readonly limit: number
}

const sinceAhead = query<{ from: number; before: number; ahead: number }, { since: number }>(({ db, p }) =>
  db
    .selectFrom('rule_keys')
    .select('since')
    .where('since', '>=', p.from)
    .where('since', '<', p.before)
    .orderBy('since')
    .offset(p.ahead)
    .limit(1),
)

const removeUnused = query<{ from: number; upTo: number }>(({ db, p }) =>
  db
    .deleteFrom('rule_keys')
    .where('since', '>=', p.from)
    .where('since', '<=', p.upTo)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('messages')
            .select('seq')
            .whereRef('messages.account_id', '=', 'rule_keys.account_id')
            .whereRef('messages.message_id', '=', 'rule_keys.message_id')
            .where('messages.finished_at', 'is', null),
        ),
      ),
    ),
)

/** Deletes keys whose message has ended. Returns the time at which the next step continues; `undefined` at the end. */
export const sweep = write(
  'ruleKeys.sweep',
  function* ({ from, before, limit }: KeySweepStep): Transaction<number | undefined> {
    const last = yield* first(sinceAhead, { from, before, ahead: limit - 1 })
    yield* change(removeUnused, { from, upTo: last?.since ?? before - 1 })
    return last && last.since + 1
  },
  { turn: 'background' },
)
