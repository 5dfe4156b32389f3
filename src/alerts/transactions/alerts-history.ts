/** Alerts. An alert gathers occurrences until its notification is due. After that it belongs to the history. */
import { type Selectable, sql } from 'kysely'
import { isObject } from '../../base/index.js'
import { DEFAULT_GROUP_MINUTES, GROUP_MINUTES, MAX_EXAMPLES } from '../../contract/alerts/kinds.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { AlertsTable } from '../../store/schema/alerts.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { type ChannelRow, channelsOf, kindsOf } from './alerts-channels.js'
import { isText, listIn } from './alerts-columns.js'
import { sweepGroups } from './alerts-groups.js'

/** An alert as it is stored. */
export type AlertRow = Selectable<AlertsTable>

/** One occurrence of an alert. */
export interface AlertExample {
  /** Unix milliseconds. */
  readonly at: number
  /** Id of the message, run, backup, database or file. */
  readonly id: string
  readonly text: string
}

/** Occurrences about one subject. */
export interface Occurrences {
  readonly kind: string
  readonly subject: string
  readonly severity: AlertRow['severity']
  /** One sentence; empty for rules whose sentence is made from the count (`titleOf`). */
  readonly title: string
  readonly advice: string
  readonly count: number
  readonly examples: readonly AlertExample[]
  readonly firstAt: number
  readonly lastAt: number
}

/** Whether a channel gets the alerts of a rule. A channel with damaged kinds gets all. */
export function acceptsKind(channel: Pick<ChannelRow, 'enabled' | 'kinds'>, kind: string): boolean {
  const kinds = kindsOf(channel) ?? []
  return channel.enabled === 1 && (kinds.length === 0 || kinds.includes(kind))
}

/** How long a channel gathers, milliseconds. */
export const groupMsOf = (channel: Pick<ChannelRow, 'group_minutes'>): number => channel.group_minutes * 60_000

/** The shortest group time of the channels that want alerts of a rule. An alert of the history spans no more than this. */
function shortestGroupMs(channels: readonly ChannelRow[], kind: string): number {
  const wanting = channels.filter((channel) => acceptsKind(channel, kind)).map(groupMsOf)
  return wanting.length === 0 ? DEFAULT_GROUP_MINUTES * 60_000 : Math.min(...wanting)
}

const latestOf = query<{ accountId: string; kind: string; subject: string }, AlertRow>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('alerts')
      .selectAll()
      .where('account_id', '=', p.accountId)
      .where('kind', '=', p.kind)
      .where('subject', '=', p.subject)
      .where('status', '!=', sql.lit('resolved' as const))
      .orderBy('seq', 'desc')
      .limit(1),
  ),
)

type Joined = Pick<
  AlertRow,
  'seq' | 'severity' | 'title' | 'advice' | 'count' | 'examples' | 'last_at' | 'status' | 'episode_id'
>

const setJoined = query<Joined>(({ db, p }) =>
  db
    .updateTable('alerts')
    .set({
      severity: p.severity,
      title: p.title,
      advice: p.advice,
      count: p.count,
      examples: p.examples,
      last_at: p.last_at,
      status: p.status,
      episode_id: p.episode_id,
    })
    .where('seq', '=', p.seq),
)

const isExample = (item: unknown): item is AlertExample =>
  isObject(item) && typeof item.at === 'number' && isText(item.id) && isText(item.text)

/** The occurrences that an alert shows; none if they are damaged. */
export const examplesOf = ({ examples }: Pick<AlertRow, 'examples'>): AlertExample[] =>
  listIn(examples, isExample) ?? []

/** The messages that carry the notification of an alert; none if they are damaged. */
export const messageIdsOf = ({ messages }: Pick<AlertRow, 'messages'>): string[] => listIn(messages, isText) ?? []

/** Whether a part of an alert is damaged. */
export const isDamaged = ({ examples, messages }: Pick<AlertRow, 'examples' | 'messages'>): boolean =>
  !listIn(examples, isExample) || !listIn(messages, isText)

/** The id, time and episode of an alert to raise. */
export interface Raising {
  /** The id of the alert, if a new one begins. */
  readonly alertId: string
  readonly now: number
  /** The episode of the state; absent for an event. */
  readonly episodeId?: string | undefined
}

/**
 * Raises an alert within another transaction. Occurrences join the pending alert about their subject. If there is none, they
 * begin an alert, which is due now or when the first channel may be notified of the subject again.
 */
export function* raise(accountId: string, found: Occurrences, raising: Raising): Transaction<void> {
  const { kind, subject } = found
  const { now, episodeId } = raising
  const latest = yield* first(latestOf, { accountId, kind, subject })
  const status = episodeId === undefined ? ('event' as const) : ('firing' as const)
  if (latest?.state === 'pending') {
    yield* change(setJoined, { ...joined(latest, found), status, episode_id: episodeId ?? null })
    return
  }
  const settledAt = latest?.settled_at ?? 0
  const groupMs = shortestGroupMs(yield* all(channelsOf, { accountId }), kind)
  // A time in the future was stored before the clock was set back, and does not count.
  const isRecent = settledAt <= now && settledAt > now - groupMs
  yield* insertAll('alerts', [
    {
      ...newAlert(accountId, found, raising),
      status,
      due_at: isRecent ? settledAt + groupMs : now,
    },
  ])
}

const newAlert = (accountId: string, found: Occurrences, { alertId, episodeId }: Raising) => ({
  alert_id: alertId,
  account_id: accountId,
  kind: found.kind,
  subject: found.subject,
  severity: found.severity,
  title: found.title,
  advice: found.advice,
  count: found.count,
  examples: JSON.stringify(found.examples.slice(0, MAX_EXAMPLES)),
  first_at: found.firstAt,
  last_at: found.lastAt,
  state: 'pending' as const,
  settled_at: null,
  messages: '[]',
  episode_id: episodeId ?? null,
})

function joined(row: AlertRow, found: Occurrences): Omit<Joined, 'status' | 'episode_id'> {
  const { title, advice, lastAt } = found
  return {
    seq: row.seq,
    severity: row.severity === 'error' ? 'error' : found.severity,
    title,
    advice,
    count: row.count + found.count,
    examples: JSON.stringify([...examplesOf(row), ...found.examples].slice(0, MAX_EXAMPLES)),
    last_at: Math.max(row.last_at, lastAt),
  }
}

const dropPending = query<{ accountId: string; kind: string; subject: string; episodeId: string }>(({ db, p }) =>
  db
    .deleteFrom('alerts')
    .where('account_id', '=', p.accountId)
    .where('kind', '=', p.kind)
    .where('subject', '=', p.subject)
    .where('state', '=', sql.lit('pending' as const))
    .where('episode_id', '=', p.episodeId),
)

/**
 * Raises the end of an episode within another transaction. The end is due at once. It replaces a pending alert about the
 * episode, because channels that were not notified yet no longer need to be.
 */
export function* resolve(accountId: string, found: Occurrences, raising: Raising): Transaction<void> {
  const { kind, subject } = found
  const { episodeId = '' } = raising
  yield* change(dropPending, { accountId, kind, subject, episodeId })
  yield* insertAll('alerts', [
    { ...newAlert(accountId, found, raising), status: 'resolved' as const, due_at: raising.now },
  ])
}

interface PageQuery {
  accountId: string
  before: number
  limit: number
}

const page = query<PageQuery, AlertRow>(({ db, p }) =>
  db
    .selectFrom('alerts')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('seq', '<', p.before)
    .orderBy('seq', 'desc')
    .limit(p.limit),
)
const pageOfKind = query<PageQuery & { kind: string }, AlertRow>(({ db, p }) =>
  db
    .selectFrom('alerts')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('kind', '=', p.kind)
    .where('seq', '<', p.before)
    .orderBy('seq', 'desc')
    .limit(p.limit),
)

/** Alerts of an account before a sequence number, newest first. */
export const list = read('alerts.list', function* (args: PageQuery & { kind?: string | undefined }): Transaction<
  AlertRow[]
> {
  const { kind, ...rest } = args
  return kind === undefined ? yield* all(page, rest) : yield* all(pageOfKind, { ...rest, kind })
})

/** Most alerts that one step of a sweep deletes. */
const SWEEP_STEP = 500
/** Most alerts in the history of an account. */
const MAX_ALERTS = 5_000

const oldAlerts = query<{ before: number; limit: number }, { seq: number }>(({ db, p }) =>
  db.selectFrom('alerts').select('seq').where('first_at', '<', p.before).where('state', '!=', 'pending').limit(p.limit),
)
const beyondMost = query<{ accountId: string; skip: number; limit: number }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('alerts')
    .select('seq')
    .where('account_id', '=', p.accountId)
    .where('state', '!=', 'pending')
    .orderBy('seq', 'desc')
    .limit(p.limit)
    .offset(p.skip),
)
const dropAlerts = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.deleteFrom('alerts').where(d.inNumbers('seq', p.seqs)),
)

/** Deletes a batch of alerts that are too old, or too many for their account. Returns whether there may be more. */
export const sweep = write(
  'alerts.sweep',
  function* (args: { before: number; now: number; accountIds: readonly string[] }): Transaction<boolean> {
    yield* sweepGroups(args.now - GROUP_MINUTES.most * 60_000)
    const rows = yield* all(oldAlerts, { before: args.before, limit: SWEEP_STEP })
    for (const accountId of args.accountIds) {
      rows.push(...(yield* all(beyondMost, { accountId, skip: MAX_ALERTS, limit: SWEEP_STEP })))
    }
    if (rows.length > 0) yield* change(dropAlerts, { seqs: [...new Set(rows.map((row) => row.seq))] })
    return rows.length >= SWEEP_STEP
  },
)

const TABLES = [
  ...(['alerts', 'alert_channels', 'alert_rules', 'alert_silences', 'alert_marks', 'alert_conditions'] as const),
  ...(['alert_groups', 'alert_notified'] as const),
] as const

const dropOrphans = TABLES.map((table) =>
  query<object>(({ db }) =>
    db.deleteFrom(table).where('account_id', 'not in', db.selectFrom('accounts').select('account_id')),
  ),
)

/** Deletes all rows of accounts and teams that are gone. */
export const sweepOrphans = write('alerts.sweepOrphans', function* (_: object): Transaction<void> {
  for (const drop of dropOrphans) yield* change(drop, {})
})
