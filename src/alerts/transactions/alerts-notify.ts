/** Notifications: pending alerts that are due become messages of the queue, in the transaction that settles them. */
import { sql } from 'kysely'
import type { PublishEntry } from '../../queue/transactions/messages.js'
import { type Published, publishEntries } from '../../queue/transactions/messages-publish.js'
import { all, change, read, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { type ChannelRow, channelsOf } from './alerts-channels.js'
import { type AlertRow, GROUP_MS } from './alerts-history.js'
import { lasting, type SilenceRow } from './alerts-silences.js'

/** Alerts that one round settles. */
const MOST_DUE = 200

// Due later than any can be: the clock was set back since.
const due = query<{ now: number; latest: number; limit: number }, AlertRow>(({ db, p }) =>
  db
    .selectFrom('alerts')
    .selectAll()
    .where('state', '=', sql.lit('pending' as const))
    // Nothing is published for an account that is gone: there is no key to sign it with.
    .where('account_id', 'in', db.selectFrom('accounts').select('account_id'))
    .where((eb) => eb.or([eb('due_at', '<=', p.now), eb('due_at', '>', p.latest)]))
    .orderBy('due_at')
    .orderBy('seq')
    .limit(p.limit),
)

/** The due alerts of an account with what decides where they go. */
export interface DueAlerts {
  readonly accountId: string
  readonly alerts: readonly AlertRow[]
  readonly channels: readonly ChannelRow[]
  readonly silences: readonly SilenceRow[]
}

/** Alerts whose notification is due, by account. */
export const dueByAccount = read('alerts.due', function* (args: { now: number }): Transaction<DueAlerts[]> {
  const { now } = args
  const rows = yield* all(due, { now, latest: now + GROUP_MS, limit: MOST_DUE })
  const byAccount = new Map<string, AlertRow[]>()
  for (const row of rows) byAccount.set(row.account_id, [...(byAccount.get(row.account_id) ?? []), row])
  const found: DueAlerts[] = []
  for (const [accountId, alerts] of byAccount) {
    const channels = yield* all(channelsOf, { accountId })
    found.push({ accountId, alerts, channels, silences: yield* all(lasting, { accountId, now }) })
  }
  return found
})

/** The outcome of an alert. */
export interface SettledAlert {
  readonly seq: number
  readonly state: Exclude<AlertRow['state'], 'pending'>
  readonly messageIds: readonly string[]
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

/** Settles alerts and publishes their notifications. */
export const settle = write(
  'alerts.settle',
  function* (args: {
    alerts: readonly SettledAlert[]
    channels: readonly ChannelCounters[]
    entries: readonly PublishEntry[]
    now: number
  }): Transaction<Published> {
    const { now } = args
    for (const { seq, state, messageIds } of args.alerts) {
      yield* change(settleOne, { seq, state, messages: JSON.stringify(messageIds), now })
    }
    for (const counters of args.channels) yield* change(setCounters, counters)
    return yield* publishEntries(args.entries, now)
  },
)
