/**
 * Reads the events that become alerts from the rows of other modules: dead letters, failed runs and failed backups.
 *
 * A mark says up to where the rows of a source have been read for an account. A row gets its time before its commit, and
 * a commit can be late (the store was unavailable). So rows of the last minutes are read again, and known rows are left
 * out. The mark moves in the transaction that raises the alerts: a crash neither loses a row nor counts it twice.
 */
import { sql } from 'kysely'
import { isObject, tryParseJson } from '../../base/index.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { isText, reportUnreadable } from './alerts-columns.js'
import { beginEpisode } from './alerts-conditions.js'
import { type Occurrences, raise } from './alerts-history.js'
import { isEnabled } from './alerts-rules.js'

/** The source of events, which is also the name of their rule. */
export type EventSource = 'dead_letter' | 'run_failed' | 'backup_failed'

/** Rows with a time within this overlap are read again. */
const OVERLAP_MS = 10 * 60_000
/** Most rows that a mark knows by key. If there are more, the overlap is shorter. */
const MAX_KNOWN = 2_000
/** New rows per transaction. */
const BATCH = 1_000
/** Most subjects of one batch. Events with other subjects are counted together. */
const MAX_SUBJECTS = 20
/** The subject of events that are counted together. */
export const OTHER_SUBJECTS = 'others'
/** Most examples of one subject in a batch. */
const EXAMPLES = 10

type Place = readonly [at: number, key: string]

interface Mark {
  /** Rows up to here have been read and are not read again. */
  readonly at: number
  readonly key: string
  /** The time and key of rows after that place that have been read. */
  readonly known: readonly Place[]
  /** Set if the clock was ahead: rows up to here have been read too, although their time is in the future now. */
  readonly ahead?: Place | undefined
}

interface StoredEvent {
  /** NULL for a source without row numbers. */
  readonly seq: number | null
  readonly at: number
  readonly id: string
  readonly subject: string
  /** Status of the response; 0 if there was none; NULL for a source without responses. */
  readonly status: number | null
  readonly reason: string | null
}

interface EventRow extends StoredEvent {
  /** Identifies a row, and sorts rows of the same time as the query does. */
  readonly key: string
}

const withKey = (row: StoredEvent): EventRow => ({
  ...row,
  key: row.seq === null ? row.id : String(row.seq).padStart(16, '0'),
})

interface RowsQuery {
  accountId: string
  at: number
  limit: number
}

/**
 * Messages that carry alerts have this member in their configuration. No text
 * value can imitate it: its quotes are escaped.
 */
export const ALERT_MARK = 'x-alert'

const deadLetters = query<RowsQuery, StoredEvent>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select([
      'seq',
      sql<number>`finished_at`.as('at'),
      'message_id as id',
      'host as subject',
      'response_status as status',
      'error as reason',
    ])
    .where('account_id', '=', p.accountId)
    .where('dlq_id', 'is not', null)
    .where('kind', '=', 'http')
    .where('finished_at', '>=', p.at)
    .where(({ not }) => not(d.contains('config', sql.lit(`"${ALERT_MARK}":`))))
    .orderBy('finished_at')
    .orderBy('seq')
    .limit(p.limit),
)
const failedRuns = query<RowsQuery, StoredEvent>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select([
      'seq',
      sql<number>`died_at`.as('at'),
      'run_id as id',
      sql<string>`host || path`.as('subject'),
      'failure_status as status',
      sql<null>`null`.as('reason'),
    ])
    .where('account_id', '=', p.accountId)
    .where('dlq_id', 'is not', null)
    .where('died_at', '>=', p.at)
    .orderBy('died_at')
    .orderBy('seq')
    .limit(p.limit),
)
/** A failed import is not a backup, and its caller gets the reason in the reply. */
const failedBackups = query<RowsQuery, StoredEvent>(({ db, p }) =>
  db
    .selectFrom('backups')
    .innerJoin('databases', 'databases.database_id', 'backups.database_id')
    .select([
      sql<null>`null`.as('seq'),
      sql<number>`backups.finished_at`.as('at'),
      'backups.backup_id as id',
      'backups.database_id as subject',
      sql<null>`null`.as('status'),
      'backups.failure as reason',
    ])
    .where('databases.account_id', '=', p.accountId)
    .where('backups.state', '=', 'failed')
    .where('backups.kind', '!=', 'import')
    .where('backups.finished_at', '>=', p.at)
    .orderBy('backups.finished_at')
    .orderBy('backups.backup_id')
    .limit(p.limit),
)

const ROWS = { dead_letter: deadLetters, run_failed: failedRuns, backup_failed: failedBackups } as const

const markOf = query<{ accountId: string; source: string }, { mark: string }>(({ db, p }) =>
  db.selectFrom('alert_marks').select('mark').where('account_id', '=', p.accountId).where('source', '=', p.source),
)
const dropMark = query<{ accountId: string; source: string }>(({ db, p }) =>
  db.deleteFrom('alert_marks').where('account_id', '=', p.accountId).where('source', '=', p.source),
)

/** An account whose events are read. */
export interface Watched {
  readonly accountId: string
  readonly createdAt: number
}

const everyAccount = query<object, Watched>(({ db }) =>
  db
    .selectFrom('accounts')
    .select(['account_id as accountId', 'created_at as createdAt'])
    .orderBy('created_at')
    .orderBy('account_id'),
)

/** All accounts and teams, the first one first. */
export const accounts = read('alerts.accounts', function* (_: object): Transaction<Watched[]> {
  return yield* all(everyAccount, {})
})

/** A younger account is read from its beginning. For an older account without a mark, only events from now on are read. */
const YOUNG_MS = 3_600_000

const isPlace = (item: unknown): boolean => Array.isArray(item) && typeof item[0] === 'number' && isText(item[1])

const isMark = (value: unknown): value is Mark =>
  isObject(value) &&
  typeof value.at === 'number' &&
  isText(value.key) &&
  Array.isArray(value.known) &&
  value.known.every(isPlace) &&
  (value.ahead === undefined || isPlace(value.ahead))

/** The stored mark of an account; `undefined` if there is none, or if it is damaged. */
function* storedMark(accountId: string, source: EventSource): Transaction<Mark | undefined> {
  const row = yield* first(markOf, { accountId, source })
  const mark = row && tryParseJson(row.mark)
  if (isMark(mark)) return mark
  yield* reportUnreadable('alert_marks', row ? [`${accountId}, ${source}`] : [])
  return undefined
}

function markFrom(stored: Mark | undefined, { createdAt }: Watched, now: number): Mark {
  if (!stored) return { at: createdAt > now - YOUNG_MS ? createdAt : now, key: '', known: [] }
  // The clock was set back, so new rows would get times before the mark. The mark moves back, and `ahead` keeps its place.
  if (stored.at <= now) return stored
  return { at: now - OVERLAP_MS, key: '', known: stored.known, ahead: latest([stored.ahead, [stored.at, stored.key]]) }
}

interface Read {
  readonly mark: Mark
  /** Whether no mark is stored yet, or one that is in the future because the clock was set back. */
  readonly isUnmarked: boolean
  readonly fresh: readonly EventRow[]
  /** Rows that were already read while the clock was ahead, and are not known by key yet. */
  readonly again: readonly EventRow[]
  /** Whether there may be more rows for the next batch. */
  readonly isCut: boolean
}

function* readFresh(watched: Watched, source: EventSource, now: number): Transaction<Read> {
  const stored = yield* storedMark(watched.accountId, source)
  const mark = markFrom(stored, watched, now)
  const isUnmarked = stored?.at !== mark.at
  const limit = (isUnmarked ? MAX_KNOWN : mark.known.length) + BATCH
  const rows = (yield* all(ROWS[source], { accountId: watched.accountId, at: mark.at, limit })).map(withKey)
  const known = new Set(mark.known.map(([, key]) => key))
  const unknown = rows.filter((row) => !known.has(row.key) && (row.at > mark.at || row.key > mark.key))
  const { ahead } = mark
  const isAgain = (row: EventRow): boolean => ahead !== undefined && row.at > now && byPlace(placeOf(row), ahead) <= 0
  return {
    mark,
    isUnmarked,
    fresh: unknown.filter((row) => !isAgain(row)),
    // Only at the first read after that: later, rows of the future are new ones of a node whose clock is a little ahead.
    again: isUnmarked ? unknown.filter(isAgain) : [],
    isCut: rows.length === limit,
  }
}

/** The account and source of events that have not been read. */
export interface Waiting {
  readonly watched: Watched
  readonly source: EventSource
}

/**
 * The accounts and sources with new events, or without a current mark. Call it for few accounts at a time, because it
 * may read thousands of rows of each.
 */
export const waiting = read(
  'alerts.waiting',
  function* (args: {
    watched: readonly Watched[]
    sources: readonly EventSource[]
    now: number
  }): Transaction<Waiting[]> {
    const found: Waiting[] = []
    for (const watched of args.watched) {
      for (const source of args.sources) {
        const { isUnmarked, fresh } = yield* readFresh(watched, source, args.now)
        if (isUnmarked || fresh.length > 0) found.push({ watched, source })
      }
    }
    return found
  },
  { turn: 'background' },
)

/**
 * Raises the alerts of a batch of new events. `ids` and `episodeIds` have one id for each alert that may begin. Returns
 * whether there may be more events.
 */
export const collect = write(
  'alerts.collect',
  function* (
    args: Waiting & { ids: readonly string[]; episodeIds: readonly string[]; now: number },
  ): Transaction<boolean> {
    const { watched, source, ids, episodeIds, now } = args
    const { accountId } = watched
    const found = yield* readFresh(watched, source, now)
    const { fresh, isCut } = found
    if (fresh.length > 0 && (yield* isEnabled(accountId, source))) {
      let next = 0
      for (const group of groupsOf(source, fresh)) {
        const [alertId = '', freshId = ''] = [ids[next], episodeIds[next++]]
        yield* raise(accountId, group, { alertId, now, episodeId: yield* episodeOf(accountId, group, freshId, now) })
      }
    }
    yield* change(dropMark, { accountId, source })
    yield* insertAll('alert_marks', [{ account_id: accountId, source, mark: JSON.stringify(markAfter(found, now)) }])
    return isCut && fresh.length > 0
  },
)

/**
 * The episode of an event. A failed backup is a state of its database until a
 * backup is completed; other events have no end.
 */
function* episodeOf(
  accountId: string,
  { kind, subject }: Occurrences,
  freshId: string,
  now: number,
): Transaction<string | undefined> {
  if (kind !== 'backup_failed' || subject === OTHER_SUBJECTS) return undefined
  return yield* beginEpisode({ accountId, kind, subject }, { freshId, now })
}

/** How many alert ids, and how many episode ids, `collect` needs. */
export const MAX_RAISED = MAX_SUBJECTS + 1

/** The mark after a batch. Its place moves on, so that only rows of the overlap, at most `MAX_KNOWN`, are known by key. */
function markAfter({ mark, fresh, again }: Read, now: number): Mark {
  const read = [...mark.known, ...fresh.map(placeOf), ...again.map(placeOf)].sort(byPlace)
  const startOf = (after: number): number => read.filter(([at]) => at <= after).length
  // The place must not be in the future: the next look would treat it as a sign that the clock was set back.
  const from = Math.max(startOf(now - OVERLAP_MS), Math.min(startOf(now), read.length - MAX_KNOWN))
  const [at, key] = read[from - 1] ?? [mark.at, mark.key]
  const known = read.slice(from, from + MAX_KNOWN)
  const ahead = latest([mark.ahead, read.slice(from + MAX_KNOWN).at(-1)])
  return { at, key, known, ahead: ahead && ahead[0] > now ? ahead : undefined }
}

const placeOf = ({ at, key }: EventRow): Place => [at, key]

const byPlace = (one: Place, other: Place): number =>
  one[0] - other[0] || (one[1] === other[1] ? 0 : one[1] < other[1] ? -1 : 1)

const latest = (places: readonly (Place | undefined)[]): Place | undefined =>
  places
    .filter((place) => place !== undefined)
    .sort(byPlace)
    .at(-1)

const ADVICE: Readonly<Record<EventSource, string>> = {
  dead_letter: 'See `homeport queue dlq list` or Dead letters in the console; retry or delete them there.',
  run_failed: 'See `homeport runs failed` or Failed runs in the console; resume or restart them there.',
  backup_failed: 'Create one with `homeport db backup`; its error says what prevents it.',
}

function groupsOf(source: EventSource, rows: readonly EventRow[]): Occurrences[] {
  const bySubject = new Map<string, EventRow[]>()
  for (const row of rows) {
    const own = row.subject.slice(0, 300)
    const subject = bySubject.has(own) || bySubject.size < MAX_SUBJECTS ? own : OTHER_SUBJECTS
    const group = bySubject.get(subject)
    if (group) group.push(row)
    else bySubject.set(subject, [row])
  }
  return [...bySubject].map(([subject, group]) => ({
    kind: source,
    subject,
    severity: 'error',
    title: '',
    advice: ADVICE[source],
    count: group.length,
    examples: group.slice(0, EXAMPLES).map((row) => ({ at: row.at, id: row.id, text: textOf(row) })),
    firstAt: Math.min(...group.map((row) => row.at)),
    lastAt: Math.max(...group.map((row) => row.at)),
  }))
}

function textOf({ subject, status, reason }: EventRow): string {
  const what = status ? `answered ${status}` : (reason ?? 'failed')
  return `${subject.slice(0, 100)}: ${what.slice(0, 200)}`
}
