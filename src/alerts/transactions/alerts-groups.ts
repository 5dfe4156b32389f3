/**
 * What channels were sent: the last notification about each subject, with the alerts gathered for the next one, and the
 * episodes that channels were notified of.
 */
import type { Selectable } from 'kysely'
import { isObject, tryParseJson } from '../../base/index.js'
import { query } from '../../store/query.js'
import type { AlertGroupsTable, AlertNotifiedTable, AlertsTable } from '../../store/schema/alerts.js'
import { change, insertAll, type Transaction } from '../../store/statement.js'

/** The last notification about a subject on a channel, as it is stored. */
export type GroupRow = Selectable<AlertGroupsTable>
/** A channel that was notified of an episode, as it is stored. */
export type NotifiedRow = Selectable<AlertNotifiedTable>

/** Alerts that a channel has gathered for its next notification about a subject. */
export interface Gathered {
  /** All gathered alerts merged into one. */
  readonly alert: Selectable<AlertsTable>
  /** Numbers of the merged alerts in the history, at most `MAX_SEQS`. */
  readonly seqs: readonly number[]
}

const isGathered = (value: unknown): value is Gathered =>
  isObject(value) && isObject(value.alert) && Array.isArray(value.seqs)

/** The gathered alerts of a row; `undefined` if there are none, or if they are damaged. */
export function gatheredOf({ gathered }: Pick<GroupRow, 'gathered'>): Gathered | undefined {
  const value = gathered === null ? undefined : tryParseJson(gathered)
  return isGathered(value) ? value : undefined
}

/** Most due rows of one round. */
const MAX_DUE = 200

/** Rows whose gathered alerts are due. A `sent_at` in the future was stored before the clock was set back. */
export const dueGroups = query<{ now: number }, GroupRow>(({ db, p }) =>
  db
    .selectFrom('alert_groups')
    .selectAll()
    .where('due_at', 'is not', null)
    .where((eb) => eb.or([eb('due_at', '<=', p.now), eb('sent_at', '>', p.now)]))
    // Nothing is published for an account that is gone, because it has no signing key.
    .where('account_id', 'in', db.selectFrom('accounts').select('account_id'))
    .orderBy('due_at')
    .limit(MAX_DUE),
)

/** What channels of an account were sent about these subjects. */
export const groupsAbout = query<{ accountId: string; subjects: readonly string[] }, GroupRow>(({ db, p, d }) =>
  db
    .selectFrom('alert_groups')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('subject', p.subjects)),
)

/** The channels that were notified of these episodes. */
export const notifiedOf = query<{ episodeIds: readonly string[] }, NotifiedRow>(({ db, p, d }) =>
  db.selectFrom('alert_notified').selectAll().where(d.inTexts('episode_id', p.episodeIds)),
)

const dropGroup = query<{ channelId: string; kind: string; subject: string }>(({ db, p }) =>
  db
    .deleteFrom('alert_groups')
    .where('channel_id', '=', p.channelId)
    .where('kind', '=', p.kind)
    .where('subject', '=', p.subject),
)
const dropNotified = query<{ channelId: string; episodeId: string }>(({ db, p }) =>
  db.deleteFrom('alert_notified').where('channel_id', '=', p.channelId).where('episode_id', '=', p.episodeId),
)
const endEpisode = query<{ episodeId: string }>(({ db, p }) =>
  db.deleteFrom('alert_notified').where('episode_id', '=', p.episodeId),
)

/** The changes of one round. */
export interface GroupChanges {
  readonly groups: readonly GroupRow[]
  readonly notified: readonly NotifiedRow[]
  /** Episodes that have ended. */
  readonly ended: readonly string[]
}

/** Stores the changes of one round, within its transaction. */
export function* putGroups({ groups, notified, ended }: GroupChanges): Transaction<void> {
  for (const { channel_id: channelId, kind, subject } of groups) yield* change(dropGroup, { channelId, kind, subject })
  yield* insertAll('alert_groups', groups)
  for (const { channel_id: channelId, episode_id: episodeId } of notified)
    yield* change(dropNotified, { channelId, episodeId })
  yield* insertAll('alert_notified', notified)
  for (const episodeId of ended) yield* change(endEpisode, { episodeId })
}

const GROUPED = ['alert_groups', 'alert_notified'] as const
const dropOfChannel = GROUPED.map((table) =>
  query<{ channelId: string }>(({ db, p }) => db.deleteFrom(table).where('channel_id', '=', p.channelId)),
)

/** Deletes the rows of a channel, within the transaction that deletes the channel. */
export function* forgetChannel(channelId: string): Transaction<void> {
  for (const drop of dropOfChannel) yield* change(drop, { channelId })
}

const dropOldGroups = query<{ before: number }>(({ db, p }) =>
  db.deleteFrom('alert_groups').where('due_at', 'is', null).where('sent_at', '<', p.before),
)
// An episode without a row in `alert_conditions` has ended, and its end has been sent.
const dropOldNotified = query<{ before: number }>(({ db, p }) =>
  db
    .deleteFrom('alert_notified')
    .where('notified_at', '<', p.before)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('alert_conditions')
            .select('alert_conditions.account_id')
            .whereRef('alert_conditions.episode_id', '=', 'alert_notified.episode_id'),
        ),
      ),
    ),
)

/** Deletes rows that no group time and no episode needs any more. */
export function* sweepGroups(before: number): Transaction<void> {
  yield* change(dropOldGroups, { before })
  yield* change(dropOldNotified, { before })
}
