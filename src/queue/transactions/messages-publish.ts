import { combineCalls, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, type Transaction, updateEach } from '../../store/statement.js'
import { replacedBy } from '../key-rule.js'
import { countDailyEach, type DailyQuota } from './daily-messages.js'
import type { NewMessage, PendingRow, PublishEntry } from './messages.js'
import { type Ended, endMessages, turnsOf } from './messages-cancel.js'
import { type PackedEntries, packEntries, unpackEntries } from './messages-packed.js'
import { type Accepted, acceptMessages, endTurns, offersOf } from './queue-turns.js'
import { takeKeys } from './rule-keys.js'

/** Result of a publication. */
export interface Published extends Accepted {
  /**
   * In the order of the entries: the id of the message that an entry duplicates. `undefined`, or a missing element, for
   * stored entries.
   */
  readonly duplicateOf: readonly (string | undefined)[]
  /** In the same order: the message of the same debounce or singleton key that an entry has replaced. Absent: none. */
  readonly replaced?: readonly (string | undefined)[]
  /**
   * In the same order: whether an entry was skipped for the message of its
   * singleton key (not as a duplicate). Absent: none.
   */
  readonly skipped?: readonly boolean[]
  /** In the same order: the due time of an entry if its debounce key has changed it. Absent: none. */
  readonly dueAt?: readonly (number | undefined)[]
  /** Numbers of the replaced messages. The dispatcher must drop them. Absent: none. */
  readonly dropped?: readonly number[]
}

interface KeyClaim {
  accountId: string
  key: string
  messageId: string
  expiresAt: number
  now: number
}

/** Takes a key that is free or has expired. Otherwise changes nothing. */
const claimKey = query<KeyClaim>(({ db, p }) =>
  db
    .insertInto('message_keys')
    .values({ account_id: p.accountId, dedup_key: p.key, message_id: p.messageId, expires_at: p.expiresAt })
    .onConflict((conflict) =>
      conflict
        .columns(['account_id', 'dedup_key'])
        .doUpdateSet({ message_id: p.messageId, expires_at: p.expiresAt })
        .where('message_keys.expires_at', '<=', p.now),
    ),
)

const keyHolder = query<{ accountId: string; key: string }, { message_id: string }>(({ db, p }) =>
  db
    .selectFrom('message_keys')
    .select('message_id')
    .where('account_id', '=', p.accountId)
    .where('dedup_key', '=', p.key),
)

const releaseKey = query<{ accountId: string; key: string; messageId: string }>(({ db, p }) =>
  db
    .deleteFrom('message_keys')
    .where('account_id', '=', p.accountId)
    .where('dedup_key', '=', p.key)
    .where('message_id', '=', p.messageId),
)

/** The message that already holds the key of an entry; `undefined` when the entry has just taken it or has none. */
function* holderOf(entry: PublishEntry, now: number): Transaction<string | undefined> {
  if (!entry.dedup) return undefined
  const { account_id: accountId, message_id: messageId } = entry.message
  const { key, expiresAt } = entry.dedup
  if ((yield* change(claimKey, { accountId, key, messageId, expiresAt, now })) === 1) return undefined
  return (yield* all(keyHolder, { accountId, key }))[0]?.message_id
}

/** The indexes of entries with a key, ordered by key. Entries with the same key keep their order. */
function inOrderOfKeys(entries: readonly PublishEntry[]): number[] {
  const keys = entries.map(({ message, dedup }) => (dedup ? `${message.account_id}/${dedup.key}` : ''))
  const keyed = [...keys.keys()].filter((index) => keys[index] !== '')
  return keyed.sort((a, b) => compare(keys[a] ?? '', keys[b] ?? '') || a - b)
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)

function* duplicatesOf(entries: readonly PublishEntry[], now: number): Transaction<(string | undefined)[]> {
  const duplicateOf: (string | undefined)[] = entries.map(() => undefined)
  // The same order everywhere, so that transactions with common keys cannot deadlock.
  for (const index of inOrderOfKeys(entries)) {
    const entry = entries[index]
    if (entry) duplicateOf[index] = yield* holderOf(entry, now)
  }
  return duplicateOf
}

/** Stores messages, one for each deduplication key, within another transaction. */
export function* publishEntries(entries: readonly PublishEntry[], now: number): Transaction<Published> {
  const duplicateOf = entries.some((entry) => entry.dedup) ? yield* duplicatesOf(entries, now) : []
  if (entries.some((entry) => entry.rule)) return yield* publishRuled(entries, duplicateOf, now)
  const { seqs, turns } = yield* acceptMessages(freshOf(entries, { duplicateOf }), now)
  return { duplicateOf, seqs, turns }
}

/** Like `publishEntries`, for entries of which some have a debounce or singleton key. */
function* publishRuled(
  entries: readonly PublishEntry[],
  duplicates: readonly (string | undefined)[],
  now: number,
): Transaction<Published> {
  const duplicateOf = entries.map((_, index) => duplicates[index])
  const { replaced, dueAt, olderSeqs } = yield* takeKeys(entries, duplicateOf, now)
  yield* releaseKeysOfSkipped(entries, duplicates, duplicateOf)
  // Every transaction locks the rows of older messages before flow-control keys and queues.
  const older = yield* endMessages(olderSeqs, now)
  const fresh = freshOf(entries, { duplicateOf, dueAt })
  const { seqs, turns } = yield* acceptMessages(fresh, now)
  const isReplaced = new Set(replaced)
  const own = seqs.filter((_, index) => isReplaced.has(fresh[index]?.message_id))
  const ended = [...older, ...(yield* endMessages(own, now))]
  yield* noteSuccessors(entries, replaced, ended)
  const offers = yield* endTurns(turnsOf(ended))
  const dropped = ended.map(({ seq }) => seq)
  const skipped = duplicateOf.map((older, index) => older !== undefined && duplicates[index] === undefined)
  return { duplicateOf, seqs, turns: [...turns, ...offers], replaced, skipped, dueAt, dropped }
}

/**
 * Releases the deduplication keys of messages that are skipped for their singleton key. Duplicates of such a message in
 * the same publication become duplicates of the message for which it is skipped.
 */
function* releaseKeysOfSkipped(
  entries: readonly PublishEntry[],
  duplicates: readonly (string | undefined)[],
  duplicateOf: (string | undefined)[],
): Transaction<void> {
  const skippedFor = new Map<string, string>()
  for (const [index, { message, dedup }] of entries.entries()) {
    const older = duplicateOf[index]
    if (!dedup || older === undefined || duplicates[index] !== undefined) continue
    const { account_id: accountId, message_id: messageId } = message
    skippedFor.set(messageId, older)
    yield* change(releaseKey, { accountId, key: dedup.key, messageId })
  }
  for (const [index, older] of duplicateOf.entries()) duplicateOf[index] = skippedFor.get(older ?? '') ?? older
}

/** The messages of a publication that are stored, without duplicates; `seqs` has their numbers. */
export function freshOf(
  entries: readonly PublishEntry[],
  { duplicateOf, dueAt }: Pick<Published, 'duplicateOf' | 'dueAt'>,
): readonly NewMessage[] {
  const all = dueAt ? entries.map((entry, index) => dueLater(entry.message, dueAt[index])) : entries.map(messageOf)
  return duplicateOf.length === 0 ? all : all.filter((_, index) => duplicateOf[index] === undefined)
}

const messageOf = (entry: PublishEntry): NewMessage => entry.message

const dueLater = (message: NewMessage, at: number | undefined): NewMessage =>
  at === undefined ? message : { ...message, next_at: at }

/** Records in each replaced message which message has replaced it. */
function* noteSuccessors(
  entries: readonly PublishEntry[],
  replaced: readonly (string | undefined)[],
  ended: readonly Ended[],
): Transaction<void> {
  const rows = ended.flatMap(({ seq, message_id: messageId }) => {
    const successor = entries[replaced.indexOf(messageId)]
    return successor?.rule ? [{ seq, error: replacedBy(successor.message.message_id, successor.rule) }] : []
  })
  if (rows.length > 0) yield* updateEach('messages', rows, { match: ['seq'], where: { state: 'canceled' } })
}

/** What to offer to the dispatcher after a publication of these entries. */
export function offersAfter(entries: readonly PublishEntry[], published: Published): PendingRow[] {
  const offers = offersOf(freshOf(entries, published), published)
  const dropped = new Set(published.dropped)
  return dropped.size === 0 ? offers : offers.filter(({ seq }) => !dropped.has(seq))
}

interface PublishArgs {
  readonly entries: readonly PublishEntry[]
  readonly now: number
}

const publishPacked = write('messages.publishPacked', function* (packed: PackedEntries): Transaction<Published> {
  return yield* publishEntries(unpackEntries(packed), packed.now)
})

const publishAll = write(
  'messages.publishAll',
  function* (args: PublishArgs): Transaction<Published> {
    return yield* publishEntries(args.entries, args.now)
  },
  { isSingle: isPlainPublication },
)

/** Messages without deduplication, rule, flow-control key and queue are only inserted. */
const isPlain = ({ message, dedup, rule }: PublishEntry): boolean =>
  !dedup && !rule && !message.flow_key && !message.queue

function isPlainPublication({ entries }: PublishArgs): boolean {
  return entries.every(isPlain)
}

const bytesOf = ({ entries }: PublishArgs): number =>
  entries.reduce((sum, { message }) => sum + (message.body?.byteLength ?? 0), 0)

const rowsOf = ({ entries }: PublishArgs): number => entries.length

/** Stores messages, each once for its deduplication key. */
export const publish = write(
  'messages.publish',
  function* (args: PublishArgs): Transaction<Published> {
    return yield* publishEntries(args.entries, args.now)
  },
  {
    isSingle: isPlainPublication,
    combining: combineCalls(publishPacked, {
      join: (all) => packEntries(...joined(all)),
      here: { operation: publishAll, join: (all) => argsOf(...joined(all)) },
      split: splitPublished,
      bytesOf,
      rowsOf,
    }),
  },
)

const argsOf = (entries: readonly PublishEntry[], now: number): PublishArgs => ({ entries, now })

function joined(calls: readonly PublishArgs[]): Parameters<typeof argsOf> {
  const now = calls.reduce((latest, args) => Math.max(latest, args.now), 0)
  return [calls.flatMap((args) => args.entries), now]
}

/** Splits the result of a shared commit by publication. Turns are reported once, with the first. */
function splitPublished(published: Published, all: readonly PublishArgs[]): Published[] {
  const { duplicateOf, seqs, turns, dropped } = published
  let entry = 0
  let stored = 0
  return all.map(({ entries }, index) => {
    const part = <Value>(values: readonly Value[]): Value[] => values.slice(entry, entry + entries.length)
    const duplicates = part(duplicateOf)
    // Every publication gets all dropped messages, because another one may have replaced a message that it stored.
    const ruled = dropped && {
      replaced: part(published.replaced ?? []),
      skipped: part(published.skipped ?? []),
      dueAt: part(published.dueAt ?? []),
      dropped,
    }
    const fresh = entries.length - duplicates.filter((each) => each !== undefined).length
    entry += entries.length
    stored += fresh
    return {
      duplicateOf: duplicates,
      seqs: seqs.slice(stored - fresh, stored),
      turns: index === 0 ? turns : [],
      ...ruled,
    }
  })
}

interface CountedArgs extends PublishArgs {
  readonly quota: DailyQuota
}

/** Publications of one account. If they exceed its limit together, none is stored. */
const publishCountedAll = write(
  'messages.publishCountedAll',
  function* (calls: readonly CountedArgs[]): Transaction<Published> {
    const published = yield* publishEntries(...joined(calls))
    const each = splitPublished(published, calls)
    yield* countDailyEach(calls.map(({ quota, now }, index) => ({ quota, count: each[index]?.seqs.length ?? 0, now })))
    return published
  },
)

/** Stores messages of an account with a daily limit, each once for its deduplication key. */
export const publishCounted = write(
  'messages.publishCounted',
  function* (args: CountedArgs): Transaction<Published> {
    return yield* publishCountedAll.body([args])
  },
  {
    combining: combineCalls(publishCountedAll, {
      join: (all: readonly CountedArgs[]) => all,
      split: splitPublished,
      bytesOf,
      groupOf: ({ quota }) => quota.accountId,
      only: 'postgres',
    }),
  },
)
