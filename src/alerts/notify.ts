import { AS_ACCEPTED, draftMessage } from '../queue/index.js'
import type { PublishEntry } from '../queue/transactions/messages.js'
import type { ChannelRow } from './transactions/alerts-channels.js'
import type { AlertRow } from './transactions/alerts-history.js'
import type { ChannelCounters, DueAlerts, SettledAlert } from './transactions/alerts-notify.js'
import type { SilenceRow } from './transactions/alerts-silences.js'
import { ALERT_MARK } from './transactions/alerts-sources.js'
import { alertView, jsonBody, type Notice, slackBody } from './words.js'

const HOUR_MS = 3_600_000
/** More than a day with the default backoff: a receiver may be away for a night. */
const RETRIES = 5
/** By which people find these messages in the queue. */
const LABEL = 'homeport-alert'

/** What settling the due alerts of an account comes to. */
export interface Settlement {
  readonly alerts: readonly SettledAlert[]
  readonly channels: readonly ChannelCounters[]
  readonly entries: readonly PublishEntry[]
}

/** Where notifications are made and when. */
export interface NotifyContext {
  readonly now: number
  /** The page of the console with the alerts. */
  readonly link: string
}

/**
 * Decides what becomes of due alerts and drafts their messages. An alert that is silenced, or that no channel wants, or
 * whose channels have all reached their limits, stays in the history unsent.
 */
export function settleAlerts({ alerts, channels, silences }: DueAlerts, context: NotifyContext): Settlement {
  const { now } = context
  const counters = new Map(channels.map((channel) => [channel.channel_id, freshCounters(channel, now)]))
  const entries: PublishEntry[] = []
  const settled = alerts.map((alert): SettledAlert => {
    const wanting = channels.filter((channel) => wants(channel, alert.kind))
    const done = (state: SettledAlert['state'], messageIds: string[] = []) => ({ seq: alert.seq, state, messageIds })
    if (silences.some((silence) => covers(silence, alert))) return done('silenced')
    if (wanting.length === 0) return done('no_channel')
    const drafts = wanting.flatMap((channel) => {
      const counter = counters.get(channel.channel_id)
      return counter ? draftFor(channel, counter, alert, context) : []
    })
    entries.push(...drafts)
    return done(
      drafts.length > 0 ? 'sent' : 'held_back',
      drafts.map(({ message }) => message.message_id),
    )
  })
  return { alerts: settled, channels: [...counters.values()], entries }
}

type Counters = { -readonly [Name in keyof ChannelCounters]: ChannelCounters[Name] }

/** The counters of a channel; a new hour begins when the old one is over, or lies ahead because the clock was set back. */
function freshCounters({ channel_id, window_start, window_sent, held_back }: ChannelRow, now: number): Counters {
  const isOver = now - window_start >= HOUR_MS || window_start > now
  return { channel_id, held_back, ...(isOver ? { window_start: now, window_sent: 0 } : { window_start, window_sent }) }
}

function draftFor(channel: ChannelRow, counters: Counters, alert: AlertRow, { now, link }: NotifyContext) {
  if (counters.window_sent >= channel.hourly_limit) {
    counters.held_back++
    return []
  }
  const draft = noticeMessage(
    channel,
    { alert: alertView(alert), heldBack: counters.held_back, isTest: false, link },
    now,
  )
  counters.window_sent++
  counters.held_back = 0
  return [draft]
}

// Only the routes write the column, from values that were checked.
const kindsOf = (channel: Pick<ChannelRow, 'kinds'>): string[] => JSON.parse(channel.kinds) as string[]

function wants(channel: ChannelRow, kind: string): boolean {
  const kinds = kindsOf(channel)
  return kinds.length === 0 || kinds.includes(kind)
}

const covers = ({ kind, subject }: SilenceRow, alert: AlertRow): boolean =>
  (kind ?? alert.kind) === alert.kind && (subject ?? alert.subject) === alert.subject

/** The message of the queue that carries a notification. Its dead letter raises no alert: it has the mark of alerts. */
export function noticeMessage(channel: ChannelRow, notice: Notice, now: number): PublishEntry {
  const body = Buffer.from(JSON.stringify(channel.format === 'slack' ? slackBody(notice) : jsonBody(notice)))
  const headers = {
    'content-type': 'application/json',
    'upstash-retries': String(RETRIES),
    'upstash-label': LABEL,
  }
  const drafting = { accountId: channel.account_id, callerIp: null, now, limits: AS_ACCEPTED }
  const { message, dedup } = draftMessage({ destination: channel.url, headers, body }, drafting)
  return { message: { ...message, config: JSON.stringify({ [ALERT_MARK]: true }) }, dedup }
}
