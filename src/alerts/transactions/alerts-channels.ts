/** Channels of accounts: where alerts are sent. */
import type { Insertable, Selectable } from 'kysely'
import { lockAccount, type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { AlertChannelsTable } from '../../store/schema/alerts.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { isText, listIn } from './alerts-columns.js'
import { forgetChannel } from './alerts-groups.js'

/** A channel as it is stored. */
export type ChannelRow = Selectable<AlertChannelsTable>

/** The kinds of alerts that a channel gets, none for all; `undefined` if they are damaged. */
export const kindsOf = ({ kinds }: Pick<ChannelRow, 'kinds'>): string[] | undefined => listIn(kinds, isText)

interface ChannelKey {
  accountId: string
  channelId: string
}

/** The channels of an account, oldest first. */
export const channelsOf = query<{ accountId: string }, ChannelRow>(({ db, p }) =>
  db
    .selectFrom('alert_channels')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .orderBy('created_at')
    .orderBy('channel_id'),
)
const oneChannel = query<ChannelKey, ChannelRow>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('alert_channels')
      .selectAll()
      .where('account_id', '=', p.accountId)
      .where('channel_id', '=', p.channelId),
  ),
)

/** The channels of an account, oldest first. */
export const list = read('alertChannels.list', function* (args: { accountId: string }): Transaction<ChannelRow[]> {
  return yield* all(channelsOf, args)
})

/** One channel; `undefined` when the account has none with this id. */
export const get = read('alertChannels.get', function* (args: ChannelKey): Transaction<ChannelRow | undefined> {
  return yield* first(oneChannelRead, args)
})
const oneChannelRead = query<ChannelKey, ChannelRow>(({ db, p }) =>
  db
    .selectFrom('alert_channels')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('channel_id', '=', p.channelId),
)

/** Inserts a channel. `limit_reached`: the account already has `limit` channels. */
export const create = write(
  'alertChannels.create',
  function* (args: {
    channel: Insertable<AlertChannelsTable>
    limit: number
    audit: NewAuditRow
  }): Transaction<'created' | 'limit_reached'> {
    const accountId = args.channel.account_id
    yield* first(lockAccount, { accountId })
    if ((yield* all(channelsOf, { accountId })).length >= args.limit) return 'limit_reached'
    yield* insertAll('alert_channels', [args.channel])
    yield* recordAudit(args.audit)
    return 'created'
  },
)

/** The fields of a channel that can be changed. */
export type ChannelFields = Pick<
  ChannelRow,
  'name' | 'url' | 'format' | 'kinds' | 'hourly_limit' | 'enabled' | 'group_minutes' | 'send_resolved'
>

const setFields = query<ChannelKey & ChannelFields>(({ db, p }) =>
  db
    .updateTable('alert_channels')
    .set({
      name: p.name,
      url: p.url,
      format: p.format,
      kinds: p.kinds,
      hourly_limit: p.hourly_limit,
      enabled: p.enabled,
      group_minutes: p.group_minutes,
      send_resolved: p.send_resolved,
    })
    .where('account_id', '=', p.accountId)
    .where('channel_id', '=', p.channelId),
)

/** Changes some fields of a channel. Returns the new row, or `undefined` when there is none. */
export const update = write(
  'alertChannels.update',
  function* (
    args: ChannelKey & { fields: Partial<ChannelFields>; audit: NewAuditRow },
  ): Transaction<ChannelRow | undefined> {
    const { accountId, channelId } = args
    const row = yield* first(oneChannel, { accountId, channelId })
    if (!row) return undefined
    const changed = { ...row, ...args.fields }
    const { name, url, format, kinds, hourly_limit, enabled, group_minutes, send_resolved } = changed
    const fields = { name, url, format, kinds, hourly_limit, enabled, group_minutes, send_resolved }
    yield* change(setFields, { accountId, channelId, ...fields })
    yield* recordAudit(args.audit)
    return changed
  },
)

const dropChannel = query<ChannelKey>(({ db, p }) =>
  db.deleteFrom('alert_channels').where('account_id', '=', p.accountId).where('channel_id', '=', p.channelId),
)

/** Deletes a channel. Returns whether there was one. */
export const remove = write(
  'alertChannels.remove',
  function* (args: ChannelKey & { audit: NewAuditRow }): Transaction<boolean> {
    const { accountId, channelId } = args
    if ((yield* change(dropChannel, { accountId, channelId })) === 0) return false
    yield* forgetChannel(channelId)
    yield* recordAudit(args.audit)
    return true
  },
)
