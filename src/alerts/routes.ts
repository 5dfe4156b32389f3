import { auditRow } from '../accounts/index.js'
import { type Clock, newId, type TargetPolicy } from '../base/index.js'
import type { AuditAction } from '../contract/accounts/audit.js'
import * as contract from '../contract/alerts/alerts.js'
import {
  ALERT_KINDS,
  type AlertKind,
  DEFAULT_GROUP_MINUTES,
  DEFAULT_HOURLY_LIMIT,
  isAlertKind,
  MAX_ALERT_CHANNELS,
  MAX_SILENCE_DAYS,
  MAX_SILENCES,
  ruleShape,
} from '../contract/alerts/kinds.js'
import {
  type CreateSilenceBody,
  createSilence as createSilenceEndpoint,
  deleteSilence as deleteSilenceEndpoint,
  listSilences,
  type Silence,
} from '../contract/alerts/silences.js'
import { HomeportError } from '../contract/errors/errors.js'
import { type Caller, ok, type Route, route } from '../http/index.js'
import { parseHttpUrl, type Queue, refuseForbidden } from '../queue/index.js'
import { freshOf, publish } from '../queue/transactions/messages-publish.js'
import { offersOf } from '../queue/transactions/queue-turns.js'
import type { Store } from '../store/index.js'
import { noticeMessage } from './notify.js'
import * as channels from './transactions/alerts-channels.js'
import * as history from './transactions/alerts-history.js'
import * as rules from './transactions/alerts-rules.js'
import * as silences from './transactions/alerts-silences.js'
import { alertView, testNotice } from './words.js'

/** What the operations are built from. */
export interface AlertRoutesDeps {
  readonly store: Store
  readonly clock: Clock
  readonly queue: Pick<Queue, 'offer'>
  /** Which URLs channels may have. */
  readonly targets: TargetPolicy
  /** Whether an account is the first one, which gets the alerts about the server. */
  readonly isFirst: (accountId: string) => boolean
  readonly link: string
}

/** The operations of alerts. */
export function alertRoutes(deps: AlertRoutesDeps): Route[] {
  return [...channelRoutes(deps), ...ruleRoutes(deps), ...silenceRoutes(deps), historyRoute(deps)]
}

const seconds = (atMs: number): number => Math.floor(atMs / 1000)

function audit({ clock }: AlertRoutesDeps, caller: Caller, action: AuditAction, entity: string, details: object = {}) {
  return auditRow(caller, { action, entity, details: { ...details } }, clock.now())
}

function channelRoutes(deps: AlertRoutesDeps): Route[] {
  const { store } = deps
  return [
    route(contract.listAlertChannels, async ({ caller }) => {
      const rows = await store.run(channels.list, { accountId: caller.accountId })
      return rows.map((row) => channelView(row, caller))
    }),
    route(contract.createAlertChannel, ({ caller, body }) => createChannel(deps, caller, body)),
    route(contract.changeAlertChannel, ({ caller, params, body }) => changeChannel(deps, caller, params.id, body)),
    route(contract.deleteAlertChannel, ({ caller, params }) => ok(deleteChannel(deps, caller, params.id))),
    route(contract.testAlertChannel, ({ caller, params }) => testChannel(deps, caller, params.id)),
  ]
}

/** The URL of a channel. A read-only caller sees only the origin, because the path of a Slack webhook is a secret. */
const shownUrl = (url: string, { access }: Caller): string => (access === 'write' ? url : `${new URL(url).origin}/…`)

function channelView(row: channels.ChannelRow, caller: Caller): contract.AlertChannel {
  return {
    channel_id: row.channel_id,
    name: row.name,
    url: shownUrl(row.url, caller),
    format: row.format,
    // A newer Homeport may have written kinds that this one does not know.
    kinds: (channels.kindsOf(row) ?? []).filter(isAlertKind),
    hourly_limit: row.hourly_limit,
    group_minutes: row.group_minutes,
    send_resolved: row.send_resolved === 1,
    enabled: row.enabled === 1,
    held_back: row.held_back,
    creation_time: seconds(row.created_at),
  }
}

const flag = (isSet: boolean): 0 | 1 => (isSet ? 1 : 0)

function checkedUrl({ targets }: AlertRoutesDeps, url: string): string {
  const parsed = parseHttpUrl(url)
  if ('problem' in parsed) throw new HomeportError('invalid_request', { problem: `The URL: ${parsed.problem}.` })
  refuseForbidden(url, targets)
  return url
}

async function createChannel(deps: AlertRoutesDeps, caller: Caller, body: contract.CreateChannelBody) {
  const now = deps.clock.now()
  const channel = {
    channel_id: newId('chan_', now),
    account_id: caller.accountId,
    name: body.name,
    url: checkedUrl(deps, body.url),
    format: body.format ?? 'json',
    kinds: JSON.stringify(body.kinds ?? []),
    hourly_limit: body.hourly_limit ?? DEFAULT_HOURLY_LIMIT,
    group_minutes: body.group_minutes ?? DEFAULT_GROUP_MINUTES,
    send_resolved: flag(body.send_resolved ?? true),
    enabled: flag(body.enabled ?? true),
    created_at: now,
    window_start: 0,
    window_sent: 0,
    held_back: 0,
  } as const
  const entry = audit(deps, caller, 'Create Alert Channel', channel.channel_id, { name: body.name })
  const args = { channel, limit: MAX_ALERT_CHANNELS, audit: entry }
  const outcome = await deps.store.run(channels.create, args)
  if (outcome === 'limit_reached') throw new HomeportError('alert_channel_limit', { limit: MAX_ALERT_CHANNELS })
  return channelView(channel, caller)
}

async function changeChannel(
  deps: AlertRoutesDeps,
  caller: Caller,
  channelId: string,
  body: contract.ChangeChannelBody,
) {
  const { kinds, url, send_resolved, enabled, ...rest } = body
  const fields = {
    ...rest,
    ...(send_resolved === undefined ? {} : { send_resolved: flag(send_resolved) }),
    ...(enabled === undefined ? {} : { enabled: flag(enabled) }),
    ...(url === undefined ? {} : { url: checkedUrl(deps, url) }),
    ...(kinds === undefined ? {} : { kinds: JSON.stringify(kinds) }),
  }
  const entry = audit(deps, caller, 'Change Alert Channel', channelId, { fields: Object.keys(body) })
  const args = { accountId: caller.accountId, channelId, fields, audit: entry }
  const row = await deps.store.run(channels.update, args)
  if (!row) throw new HomeportError('alert_channel_not_found', { channelId })
  return channelView(row, caller)
}

async function deleteChannel(deps: AlertRoutesDeps, caller: Caller, channelId: string): Promise<void> {
  const entry = audit(deps, caller, 'Delete Alert Channel', channelId)
  const wasThere = await deps.store.run(channels.remove, { accountId: caller.accountId, channelId, audit: entry })
  if (!wasThere) throw new HomeportError('alert_channel_not_found', { channelId })
}

async function testChannel(deps: AlertRoutesDeps, caller: Caller, channelId: string) {
  const { store, clock, queue, link } = deps
  const channel = await store.run(channels.get, { accountId: caller.accountId, channelId })
  if (!channel) throw new HomeportError('alert_channel_not_found', { channelId })
  checkedUrl(deps, channel.url)
  const now = clock.now()
  const entries = [noticeMessage(channel, testNotice(channel.name, now, link), now)]
  const published = await store.run(publish, { entries, now })
  queue.offer(offersOf(freshOf(entries, published), published))
  return { message_id: entries[0]?.message.message_id ?? '' }
}

function ruleRoutes(deps: AlertRoutesDeps): Route[] {
  const { store, isFirst } = deps
  const isFor = (accountId: string, kind: AlertKind): boolean =>
    ruleShape(kind).scope === 'account' || isFirst(accountId)
  return [
    route(contract.listAlertRules, async ({ caller: { accountId } }) => {
      const rows = await store.run(rules.list, { accountId })
      return ALERT_KINDS.filter((kind) => isFor(accountId, kind)).map((kind) =>
        ruleView(
          kind,
          rows.find((row) => row.kind === kind),
        ),
      )
    }),
    route(contract.changeAlertRule, async ({ caller, params: { kind }, body }) => {
      const { accountId } = caller
      if (!isAlertKind(kind) || !isFor(accountId, kind)) throw new HomeportError('alert_rule_not_found', { kind })
      const fields = ruleFields(kind, body)
      const entry = audit(deps, caller, 'Change Alert Rule', kind, fields)
      return ruleView(kind, await store.run(rules.update, { accountId, kind, fields, audit: entry }))
    }),
  ]
}

function ruleFields(kind: AlertKind, { enabled, threshold }: contract.ChangeRuleBody) {
  const bounds = ruleShape(kind).threshold
  if (typeof threshold === 'number' && (!bounds || threshold < bounds.least || threshold > bounds.most)) {
    const allowed = bounds ? `from ${bounds.least} to ${bounds.most} ${bounds.unit}` : 'absent: it has none'
    const problem = `The threshold of the rule ${kind} is ${threshold}; it must be ${allowed}.`
    throw new HomeportError('invalid_request', { problem })
  }
  return {
    ...(enabled === undefined ? {} : { enabled: enabled ? (1 as const) : (0 as const) }),
    ...(threshold === undefined ? {} : { threshold }),
  }
}

function ruleView(kind: AlertKind, row: rules.RuleRow | undefined): contract.AlertRule {
  const { summary, subject, scope, threshold } = ruleShape(kind)
  return {
    kind,
    summary,
    subject,
    scope,
    enabled: row?.enabled !== 0,
    ...(threshold && {
      threshold: row?.threshold ?? threshold.default,
      default_threshold: threshold.default,
      unit: threshold.unit,
      meaning: threshold.meaning,
    }),
  }
}

function silenceRoutes(deps: AlertRoutesDeps): Route[] {
  const { store, clock } = deps
  return [
    route(listSilences, async ({ caller: { accountId } }) => {
      const rows = await store.run(silences.list, { accountId, now: clock.now() })
      return rows.map(silenceView)
    }),
    route(createSilenceEndpoint, ({ caller, body }) => createSilence(deps, caller, body)),
    route(deleteSilenceEndpoint, ({ caller, params }) => ok(deleteSilence(deps, caller, params.id))),
  ]
}

async function createSilence(deps: AlertRoutesDeps, caller: Caller, body: CreateSilenceBody) {
  const now = deps.clock.now()
  const untilMs = body.until * 1000
  if (untilMs <= now || untilMs > now + MAX_SILENCE_DAYS * 86_400_000) {
    const problem = `"until" is ${body.until}; it must be in the future and at most ${MAX_SILENCE_DAYS} days away, in Unix seconds.`
    throw new HomeportError('invalid_request', { problem })
  }
  const silence = {
    silence_id: newId('sil_', now),
    account_id: caller.accountId,
    kind: body.kind ?? null,
    subject: body.subject ?? null,
    until: untilMs,
    reason: body.reason ?? '',
    actor: caller.email,
    created_at: now,
  }
  const entry = audit(deps, caller, 'Create Alert Silence', silence.silence_id, body)
  const outcome = await deps.store.run(silences.create, { silence, limit: MAX_SILENCES, now, audit: entry })
  if (outcome === 'limit_reached') throw new HomeportError('alert_silence_limit', { limit: MAX_SILENCES })
  return silenceView(silence)
}

async function deleteSilence(deps: AlertRoutesDeps, caller: Caller, silenceId: string): Promise<void> {
  const entry = audit(deps, caller, 'Delete Alert Silence', silenceId)
  const wasThere = await deps.store.run(silences.remove, { accountId: caller.accountId, silenceId, audit: entry })
  if (!wasThere) throw new HomeportError('alert_silence_not_found', { silenceId })
}

function silenceView(row: silences.SilenceRow): Silence {
  return {
    silence_id: row.silence_id,
    ...(row.kind === null ? {} : { kind: row.kind }),
    ...(row.subject === null ? {} : { subject: row.subject }),
    until: seconds(row.until),
    reason: row.reason,
    actor: row.actor,
    creation_time: seconds(row.created_at),
  }
}

const DEFAULT_PAGE = 50

function historyRoute({ store }: AlertRoutesDeps): Route {
  return route(contract.listAlertHistory, async ({ caller: { accountId }, query }) => {
    const { cursor, count = DEFAULT_PAGE, kind } = query
    const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(cursor)
    const rows = await store.run(history.list, { accountId, before, limit: count + 1, kind })
    const shown = rows.slice(0, count)
    const last = shown.at(-1)
    return { alerts: shown.map(alertView), ...(last && rows.length > count ? { cursor: String(last.seq) } : {}) }
  })
}
