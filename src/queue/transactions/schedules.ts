import { type Insertable, type Selectable, sql } from 'kysely'
import { HomeportError } from '../../contract/errors/errors.js'
import { checksumOf, intact } from '../../store/checksum.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { MessageState } from '../../store/schema/messages.js'
import type { SchedulesTable } from '../../store/schema/queues.js'
import { all, change, first, only, refuse, type Transaction } from '../../store/statement.js'
import { countDaily, type DailyQuota } from './daily-messages.js'
import type { PendingRow, PublishEntry } from './messages.js'
import { offersAfter, publishEntries } from './messages-publish.js'

/** A schedule as it is stored. */
export type ScheduleRow = Selectable<SchedulesTable>
/** A schedule before its first fire. */
export type NewSchedule = Omit<
  Insertable<SchedulesTable>,
  'body_crc' | 'paused' | 'last_at' | 'last_messages' | 'error'
>

/** A schedule by its account and id. */
export interface ScheduleKey {
  accountId: string
  scheduleId: string
}

interface ScheduleKeys {
  accountId: string
  scheduleIds: readonly string[]
}

/** Size of a schedule. */
export interface ScheduleSize {
  readonly schedule_id: string
  /** Bytes of its body, its headers and the ids of its last messages. */
  readonly bytes: number
}

const bytesOf = sql<number>`coalesce(octet_length(body), 0) + octet_length(headers) + octet_length(last_messages)`

/** How many message ids of the last fires are stored. */
const MAX_REMEMBERED = 20

const replace = query<NewSchedule & { crc: number | null }>(({ db, p }) => {
  const columns = {
    cron: p.cron,
    destination: p.destination,
    headers: p.headers,
    body: p.body,
    body_crc: p.crc,
    queue: p.queue,
    caller_ip: p.caller_ip,
    paused: 0,
    created_at: p.created_at,
    next_at: p.next_at,
    error: null,
  }
  return db
    .insertInto('schedules')
    .values({
      account_id: p.account_id,
      schedule_id: p.schedule_id,
      ...columns,
      last_at: null,
      last_messages: '[]',
    })
    .onConflict((conflict) => conflict.columns(['account_id', 'schedule_id']).doUpdateSet(columns))
})

const oneSchedule = query<ScheduleKey, ScheduleRow>(({ db, p }) =>
  db.selectFrom('schedules').selectAll().where('account_id', '=', p.accountId).where('schedule_id', '=', p.scheduleId),
)
const countOf = query<{ accountId: string }, { schedules: number }>(({ db, p }) =>
  db
    .selectFrom('schedules')
    .select((q) => q.fn.countAll<number>().as('schedules'))
    .where('account_id', '=', p.accountId),
)

/**
 * Creates a schedule, or replaces all settings of the one with this id. The record of past fires stays.
 * @param args.most limit of schedules of its account. Two simultaneous requests may exceed it by one. Default: no limit.
 */
export const put = write(
  'schedules.put',
  function* ({ most, ...row }: NewSchedule & { most?: number | undefined }): Transaction<void> {
    const { account_id: accountId, schedule_id: scheduleId } = row
    if (most !== undefined && (yield* only(countOf, { accountId })).schedules >= most) {
      if (!(yield* first(oneSchedule, { accountId, scheduleId })))
        refuse(new HomeportError('too_many_schedules', { most }))
    }
    yield* change(replace, { ...row, crc: checksumOf(row.body) })
  },
)

const sizes = query<{ accountId: string }, ScheduleSize>(({ db, p }) =>
  db
    .selectFrom('schedules')
    .select(['schedule_id', bytesOf.as('bytes')])
    .where('account_id', '=', p.accountId)
    .orderBy('created_at')
    .orderBy('schedule_id'),
)
const namedSchedules = query<ScheduleKeys, ScheduleRow>(({ db, p, d }) =>
  db
    .selectFrom('schedules')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('schedule_id', p.scheduleIds)),
)
const statesOf = query<{ accountId: string; ids: readonly string[] }, { message_id: string; state: MessageState }>(
  ({ db, p, d }) =>
    db
      .selectFrom('messages')
      .select(['message_id', 'state'])
      .where('account_id', '=', p.accountId)
      .where(d.inTexts('message_id', p.ids)),
)

/** A schedule with the states of the messages of its last fires, as far as these are still stored. */
export interface ScheduleWithStates {
  readonly schedule: ScheduleRow
  readonly states: readonly { readonly message_id: string; readonly state: MessageState }[]
}

/** Only this file writes the column. */
const lastMessages = (row: ScheduleRow): string[] => JSON.parse(row.last_messages) as string[]

function* withStates(accountId: string, rows: readonly ScheduleRow[]): Transaction<ScheduleWithStates[]> {
  const ids = rows.flatMap(lastMessages)
  const found = ids.length > 0 ? yield* all(statesOf, { accountId, ids }) : []
  const byId = new Map(found.map((row) => [row.message_id, row]))
  return rows.map((schedule) => ({
    schedule,
    states: lastMessages(schedule)
      .map((id) => byId.get(id))
      .filter((row) => row !== undefined),
  }))
}

/** One schedule. */
export const get = read('schedules.get', function* (args: ScheduleKey): Transaction<ScheduleWithStates | undefined> {
  const row = yield* first(oneSchedule, args)
  return row && (yield* withStates(args.accountId, [wholeSchedule(row)]))[0]
})

/** Ids and sizes of an account's schedules, oldest first. */
export const list = read('schedules.list', function* (args: { accountId: string }): Transaction<ScheduleSize[]> {
  return yield* all(sizes, args)
})

/** Schedules in the order of the given ids. Missing ones are left out. */
export const some = read('schedules.some', function* (args: ScheduleKeys): Transaction<ScheduleWithStates[]> {
  const rows = new Map((yield* all(namedSchedules, args)).map((row) => [row.schedule_id, row]))
  const found = args.scheduleIds.map((id) => rows.get(id)).filter((row) => row !== undefined)
  return yield* withStates(args.accountId, found)
})

const removeOne = query<ScheduleKey>(({ db, p }) =>
  db.deleteFrom('schedules').where('account_id', '=', p.accountId).where('schedule_id', '=', p.scheduleId),
)

/** Deletes a schedule; its published messages stay. Returns how many were deleted. */
export const remove = write('schedules.remove', function* (args: ScheduleKey): Transaction<number> {
  return yield* change(removeOne, args)
})

const pauseOne = query<ScheduleKey & { paused: number; nextAt: number | null }>(({ db, p }) =>
  db
    .updateTable('schedules')
    .set({ paused: p.paused, next_at: p.nextAt })
    .where('account_id', '=', p.accountId)
    .where('schedule_id', '=', p.scheduleId)
    .where('paused', '<>', p.paused),
)
const lockSchedule = query<ScheduleKey, Pick<ScheduleRow, 'cron'>>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('schedules')
      .select('cron')
      .where('account_id', '=', p.accountId)
      .where('schedule_id', '=', p.scheduleId),
  ),
)

/**
 * Pauses a schedule, or resumes it with this next fire, which was computed from `cron`. Nothing changes if the schedule is
 * already in that state. Returns `false` if the schedule has another cron expression by now, or is gone.
 */
export const setPaused = write(
  'schedules.setPaused',
  function* (args: ScheduleKey & { cron: string; paused: 0 | 1; nextAt: number | null }): Transaction<boolean> {
    const { cron, ...pause } = args
    if ((yield* first(lockSchedule, pause))?.cron !== cron) return false
    yield* change(pauseOne, pause)
    return true
  },
)

/** A due schedule, without its content. */
export interface DueSchedule extends ScheduleKey {
  readonly bytes: number
  /** The beginning of its destination. */
  readonly target: string
}

const dueSchedules = query<{ now: number; limit: number }, DueSchedule>(({ db, p }) =>
  db
    .selectFrom(
      db
        .selectFrom('schedules')
        .select(['account_id as accountId', 'schedule_id as scheduleId', 'next_at', bytesOf.as('bytes')])
        .select(sql<string>`substr(destination, 1, 16)`.as('target'))
        .select(sql<number>`row_number() over (partition by account_id order by next_at, schedule_id)`.as('turn'))
        .where('paused', '=', 0)
        .where('next_at', 'is not', null)
        .where('next_at', '<=', p.now)
        .as('due'),
    )
    .select(['accountId', 'scheduleId', 'bytes', 'target'])
    .orderBy('turn')
    .orderBy('next_at')
    .limit(p.limit),
)
const earliest = query<{ after: number }, { next_at: number | null }>(({ db, p }) =>
  db
    .selectFrom('schedules')
    .select((q) => q.fn.min('next_at').as('next_at'))
    .where('paused', '=', 0)
    .where('next_at', 'is not', null)
    .where('next_at', '>', p.after),
)

/** @throws HomeportError `store_damaged` when the checksum of its body does not match. */
function wholeSchedule(row: ScheduleRow): ScheduleRow {
  intact(row.body, row.body_crc, 'schedules', () => `the body of ${row.schedule_id}`)
  return row
}

/** Due schedules. Accounts take turns, so that many schedules of one account do not delay those of others. */
export const due = read('schedules.due', function* (args: { now: number; limit: number }): Transaction<DueSchedule[]> {
  return yield* all(dueSchedules, args)
})

/** The time of the earliest fire after another time. */
export const next = read('schedules.next', function* (args: { after: number }): Transaction<number | null> {
  return (yield* first(earliest, args))?.next_at ?? null
})

const everyKey = query<object, { account_id: string; schedule_id: string }>(({ db }) =>
  db.selectFrom('schedules').select(['account_id', 'schedule_id']).orderBy('account_id').orderBy('schedule_id'),
)

/** Keys of all schedules. Used when damaged rows prevent reading them together. */
export const keys = read('schedules.keys', function* (_: object): Transaction<ScheduleKey[]> {
  const rows = yield* all(everyKey, {})
  return rows.map(({ account_id: accountId, schedule_id: scheduleId }) => ({ accountId, scheduleId }))
})

/** The schedule if it is due. */
export const ifDue = read('schedules.ifDue', function* (args: ScheduleKey & { now: number }): Transaction<
  ScheduleRow | undefined
> {
  const row = yield* first(oneSchedule, args)
  return row && row.paused === 0 && row.next_at !== null && row.next_at <= args.now ? wholeSchedule(row) : undefined
})

/** A schedule whose next fire is in the future. */
export interface AheadRow extends Pick<ScheduleRow, 'account_id' | 'schedule_id' | 'cron' | 'last_at'> {
  readonly next_at: number
}

const aheadSchedules = query<ScheduleKey & { now: number; limit: number }, AheadRow>(({ db, p }) =>
  db
    .selectFrom('schedules')
    .select(['account_id', 'schedule_id', 'cron', 'last_at'])
    .select(sql<number>`next_at`.as('next_at'))
    .where('paused', '=', 0)
    .where('next_at', '>', p.now)
    .where(sql<boolean>`(account_id, schedule_id) > (${p.accountId}, ${p.scheduleId})`)
    .orderBy('account_id')
    .orderBy('schedule_id')
    .limit(p.limit),
)

/** The next page, after a schedule, of schedules of all accounts whose next fire is in the future. */
export const ahead = read(
  'schedules.ahead',
  function* (args: ScheduleKey & { now: number; limit: number }): Transaction<AheadRow[]> {
    return yield* all(aheadSchedules, args)
  },
)

const moveFire = query<ScheduleKey & { from: number; to: number }>(({ db, p }) =>
  db
    .updateTable('schedules')
    .set({ next_at: p.to })
    .where('account_id', '=', p.accountId)
    .where('schedule_id', '=', p.scheduleId)
    .where('paused', '=', 0)
    .where('next_at', '=', p.from),
)

/** Moves the next fire of a schedule, if it has not changed meanwhile. */
export const pullBack = write(
  'schedules.pullBack',
  function* (args: ScheduleKey & { from: number; to: number }): Transaction<number> {
    return yield* change(moveFire, args)
  },
)

/** The `error` of a schedule whose fire was skipped because its account is suspended, as it is stored. */
export const SUSPENDED_FIRE = 'Skipped: the account was suspended by the operator of the server.'

/** One fire. */
export interface Fire extends ScheduleKey {
  /** The due fire. If the schedule has moved on, nothing happens. */
  readonly dueAt: number
  /** When the fired schedule was created. If the schedule was replaced since then, nothing happens. Absent: no check. */
  readonly madeAt?: number
  readonly nextAt: number | null
  readonly now: number
  readonly entries: readonly PublishEntry[]
  /** The daily limit of the account; absent if it has none. */
  readonly quota?: DailyQuota | undefined
  /** Why nothing is published. */
  readonly error: string | null
}

const lockDue = query<ScheduleKey & { dueAt: number }, ScheduleRow>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('schedules')
      .selectAll()
      .where('account_id', '=', p.accountId)
      .where('schedule_id', '=', p.scheduleId)
      .where('paused', '=', 0)
      .where('next_at', '=', p.dueAt),
  ),
)
const advance = query<ScheduleKey & { nextAt: number | null; lastAt: number; messages: string; error: string | null }>(
  ({ db, p }) =>
    db
      .updateTable('schedules')
      .set({ next_at: p.nextAt, last_at: p.lastAt, last_messages: p.messages, error: p.error })
      .where('account_id', '=', p.accountId)
      .where('schedule_id', '=', p.scheduleId),
)

/** The effects of a fire on memory. */
export interface Fired {
  readonly offers: readonly PendingRow[]
  /** Numbers of messages that the fire has replaced. The dispatcher must drop them. */
  readonly dropped: readonly number[]
}

/** Fires once: moves the schedule on and publishes its messages in one transaction. */
export const fire = write('schedules.fire', function* (args: Fire): Transaction<Fired> {
  const row = yield* first(lockDue, args)
  if (!row || row.created_at !== (args.madeAt ?? row.created_at)) return { offers: [], dropped: [] }
  const published = yield* publishEntries(args.entries, args.now)
  const { duplicateOf } = published
  if (args.quota) yield* countDaily(args.quota, published.seqs.length, args.now)
  const fresh = args.entries.map((entry, index) => duplicateOf[index] ?? entry.message.message_id)
  const messages = JSON.stringify([...fresh, ...lastMessages(row)].slice(0, Math.max(MAX_REMEMBERED, fresh.length)))
  // The clock may have been set back since the fire was due. A last fire before
  // `dueAt` would let the same fire happen again.
  yield* change(advance, { ...args, lastAt: Math.max(args.now, args.dueAt), messages })
  return { offers: offersAfter(args.entries, published), dropped: published.dropped ?? [] }
})
