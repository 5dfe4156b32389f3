import { all, change, combineCalls, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { countDailyEach, type DailyQuota } from './daily-messages.js'
import type { NewMessage, PublishEntry } from './messages.js'
import { type PackedEntries, packEntries, unpackEntries } from './messages-packed.js'
import { type Accepted, acceptMessages } from './queue-turns.js'

/** Result of a publication. */
export interface Published extends Accepted {
  /**
   * In the order of the entries: the id of the message that an entry duplicates. `undefined`, or a missing element, for
   * stored entries.
   */
  readonly duplicateOf: readonly (string | undefined)[]
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

/** The message that already holds the key of an entry; `undefined` when the entry has just taken it or has none. */
function* holderOf(entry: PublishEntry, now: number): Transaction<string | undefined> {
  if (!entry.dedup) return undefined
  const { account_id: accountId, message_id: messageId } = entry.message
  const { key, expiresAt } = entry.dedup
  if ((yield* change(claimKey, { accountId, key, messageId, expiresAt, now })) === 1) return undefined
  return (yield* all(keyHolder, { accountId, key }))[0]?.message_id
}

/** The indexes of entries with a key. Of several with the same key, the first comes first. */
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
  const fresh = freshOf(entries, duplicateOf)
  const { seqs, turns } = yield* acceptMessages(fresh, now)
  return { duplicateOf, seqs, turns }
}

/** The stored messages; `seqs` has their numbers. */
export function freshOf(
  entries: readonly PublishEntry[],
  duplicateOf: readonly (string | undefined)[],
): readonly NewMessage[] {
  const fresh = duplicateOf.length === 0 ? entries : entries.filter((_, index) => duplicateOf[index] === undefined)
  return fresh.map((entry) => entry.message)
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

/** Messages without deduplication, flow-control key and queue are only inserted. */
const isPlain = ({ message, dedup }: PublishEntry): boolean => !dedup && !message.flow_key && !message.queue

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
function splitPublished({ duplicateOf, seqs, turns }: Published, all: readonly PublishArgs[]): Published[] {
  let entry = 0
  let stored = 0
  return all.map(({ entries }, index) => {
    const duplicates = duplicateOf.slice(entry, entry + entries.length)
    const fresh = entries.length - duplicates.filter((each) => each !== undefined).length
    entry += entries.length
    stored += fresh
    return { duplicateOf: duplicates, seqs: seqs.slice(stored - fresh, stored), turns: index === 0 ? turns : [] }
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

/** Stores messages of an account with a limit a day, each once for its deduplication key. */
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
