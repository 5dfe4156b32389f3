/** Notifications. Due alerts become messages of the queue in the transaction that settles them. */
import { sql } from 'kysely'
import type { PublishEntry } from '../../queue/transactions/messages.js'
import { type Published, publishEntries } from '../../queue/transactions/messages-publish.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, type Transaction } from '../../store/statement.js'
import { type ChannelRow, channelsOf, kindsOf } from './alerts-channels.js'
import { reportUnreadable } from './alerts-columns.js'
import {
  dueGroups,
  type GroupChanges,
  type GroupRow,
  gatheredOf,
  groupsAbout,
  type NotifiedRow,
  notifiedOf,
  putGroups,
} from './alerts-groups.js'
import { type AlertRow, isDamaged, messageIdsOf } from './alerts-history.js'
import { activeSilences, type SilenceRow } from './alerts-silences.js'

/** Most alerts that one round settles. */
const MAX_DUE = 200

// A `last_at` in the future was stored before the clock was set back. Such an alert is due now.
const due = query<{ now: number; limit: number }, AlertRow>(({ db, p }) =>
  db
    .selectFrom('alerts')
    .selectAll()
    .where('state', '=', sql.lit('pending' as const))
    // Nothing is published for an account that is gone, because it has no signing key.
    .where('account_id', 'in', db.selectFrom('accounts').select('account_id'))
    .where((eb) => eb.or([eb('due_at', '<=', p.now), eb('last_at', '>', p.now)]))
    .orderBy('due_at')
    .orderBy('seq')
    .limit(p.limit),
)

/** The due alerts of an account, with everything that decides where they are sent. */
export interface DueAlerts {
  readonly accountId: string
  readonly alerts: readonly AlertRow[]
  readonly channels: readonly ChannelRow[]
  readonly silences: readonly SilenceRow[]
  /** What channels were sent about the subjects of the alerts, and other due gathered alerts. */
  readonly groups: readonly GroupRow[]
  /** Channels that were notified of the episodes of the alerts. */
  readonly notified: readonly NotifiedRow[]
}

/** Reads due alerts, by account. */
export const dueByAccount = read('alerts.due', function* (args: { now: number }): Transaction<DueAlerts[]> {
  const { now } = args
  const alerts = yield* all(due, { now, limit: MAX_DUE })
  const groups = yield* all(dueGroups, { now })
  const found: DueAlerts[] = []
  for (const accountId of new Set([...alerts, ...groups].map((row) => row.account_id))) {
    const own = (row: { account_id: string }): boolean => row.account_id === accountId
    found.push(yield* dueOf(accountId, now, alerts.filter(own), groups.filter(own)))
  }
  return found
})

function* dueOf(
  accountId: string,
  now: number,
  alerts: readonly AlertRow[],
  waiting: readonly GroupRow[],
): Transaction<DueAlerts> {
  const subjects = [...new Set(alerts.map(({ subject }) => subject))]
  const episodeIds = [...new Set(alerts.flatMap(({ episode_id }) => episode_id ?? []))]
  const groups = yield* all(groupsAbout, { accountId, subjects })
  const keyOf = ({ channel_id, kind, subject }: GroupRow): string => JSON.stringify([channel_id, kind, subject])
  const due: DueAlerts = {
    accountId,
    alerts,
    channels: yield* all(channelsOf, { accountId }),
    silences: yield* all(activeSilences, { accountId, now }),
    groups: [...new Map([...groups, ...waiting].map((row) => [keyOf(row), row])).values()],
    notified: yield* all(notifiedOf, { episodeIds }),
  }
  yield* reportDamaged(due)
  return due
}

function* reportDamaged({ alerts, channels, groups }: DueAlerts): Transaction<void> {
  const idOf = ({ channel_id }: { readonly channel_id: string }): string => channel_id
  yield* reportUnreadable(
    'alerts',
    alerts.filter(isDamaged).map(({ alert_id }) => alert_id),
  )
  yield* reportUnreadable('alert_channels', channels.filter((channel) => !kindsOf(channel)).map(idOf))
  const lost = groups.filter((group) => group.gathered !== null && !gatheredOf(group))
  yield* reportUnreadable('alert_groups', lost.map(idOf))
}

/** The outcome of an alert. */
export interface SettledAlert {
  readonly seq: number
  readonly state: Exclude<AlertRow['state'], 'pending'>
  readonly messageIds: readonly string[]
}

/** An alert that no channel may be notified of yet. */
export interface PostponedAlert {
  readonly seq: number
  readonly dueAt: number
}

/** A message with gathered alerts, which a channel gets later than others. */
export interface LateMessage {
  readonly messageId: string
  /** The numbers of the gathered alerts in the history. */
  readonly seqs: readonly number[]
}

/** The counters of a channel after a round. */
export type ChannelCounters = Pick<ChannelRow, 'channel_id' | 'window_start' | 'window_sent' | 'held_back'>

const settleOne = query<{ seq: number; state: AlertRow['state']; messages: string; now: number }>(({ db, p }) =>
  db.updateTable('alerts').set({ state: p.state, messages: p.messages, settled_at: p.now }).where('seq', '=', p.seq),
)
const setCounters = query<ChannelCounters>(({ db, p }) =>
  db
    .updateTable('alert_channels')
    .set({ window_start: p.window_start, window_sent: p.window_sent, held_back: p.held_back })
    .where('channel_id', '=', p.channel_id),
)

const postpone = query<PostponedAlert>(({ db, p }) =>
  db.updateTable('alerts').set({ due_at: p.dueAt }).where('seq', '=', p.seq),
)
const messagesBy = query<{ seqs: readonly number[] }, { seq: number; messages: string }>(({ db, p, d }) =>
  db.selectFrom('alerts').select(['seq', 'messages']).where(d.inNumbers('seq', p.seqs)),
)
const addMessage = query<{ seq: number; messages: string }>(({ db, p }) =>
  db.updateTable('alerts').set({ state: 'sent', messages: p.messages }).where('seq', '=', p.seq),
)

function* recordLate({ messageId, seqs }: LateMessage): Transaction<void> {
  for (const row of yield* all(messagesBy, { seqs }))
    yield* change(addMessage, { seq: row.seq, messages: JSON.stringify([...messageIdsOf(row), messageId]) })
}

/** The results of one round for an account. */
export interface Settlement extends GroupChanges {
  readonly alerts: readonly SettledAlert[]
  readonly postponed: readonly PostponedAlert[]
  readonly late: readonly LateMessage[]
  readonly channels: readonly ChannelCounters[]
  readonly entries: readonly PublishEntry[]
}

/** Settles alerts and publishes their notifications. */
export const settle = write('alerts.settle', function* (args: Settlement & { now: number }): Transaction<Published> {
  const { now } = args
  for (const { seq, state, messageIds } of args.alerts) {
    yield* change(settleOne, { seq, state, messages: JSON.stringify(messageIds), now })
  }
  for (const one of args.postponed) yield* change(postpone, one)
  for (const one of args.late) yield* recordLate(one)
  yield* putGroups(args)
  for (const counters of args.channels) yield* change(setCounters, counters)
  return yield* publishEntries(args.entries, now)
})
