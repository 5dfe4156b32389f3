import { MAX_EXAMPLES } from '../contract/alerts/kinds.js'
import { type NotifyContext, noticeMessage } from './notify.js'
import type { ChannelRow } from './transactions/alerts-channels.js'
import { type Gathered, type GroupRow, gatheredOf, type NotifiedRow } from './transactions/alerts-groups.js'
import { type AlertRow, acceptsKind, examplesOf, groupMsOf } from './transactions/alerts-history.js'
import type {
  ChannelCounters,
  DueAlerts,
  LateMessage,
  PostponedAlert,
  SettledAlert,
  Settlement,
} from './transactions/alerts-notify.js'
import type { SilenceRow } from './transactions/alerts-silences.js'
import { alertView } from './words.js'

const HOUR_MS = 3_600_000
/** Most alerts of the history that a gathered notification names. */
const MAX_SEQS = 50

/**
 * Decides the outcome of the due alerts of an account, and drafts their notifications:
 *
 * - An alert that is silenced, or that no channel wants, stays in the history unsent.
 * - A channel that was notified of the subject within its group time gathers alerts,
 *   and sends them together when that time is
 *   over. A notification beyond the channel's hourly limit is held back.
 * - The end of a state is sent at once, to the channels that were notified of the
 *   state. It does not count against the limit,
 *   because each end follows a notification that did.
 */
export function settleAlerts(due: DueAlerts, context: NotifyContext): Settlement {
  const round = new Round(due, context)
  for (const alert of due.alerts) round.settle(alert)
  for (const group of due.groups) round.sendGathered(group)
  return round.settlement
}

type Counters = { -readonly [Name in keyof ChannelCounters]: ChannelCounters[Name] }
type Sending = { readonly messageId: string } | 'held back'

const groupKey = (channelId: string, kind: string, subject: string): string =>
  JSON.stringify([channelId, kind, subject])

class Round {
  readonly #due: DueAlerts
  readonly #context: NotifyContext
  readonly #counters: Map<string, Counters>
  readonly #groups: Map<string, GroupRow>
  readonly #changed = new Map<string, GroupRow>()
  readonly #notified: NotifiedRow[] = []
  readonly #alerts: SettledAlert[] = []
  readonly #postponed: PostponedAlert[] = []
  readonly #late: LateMessage[] = []
  readonly #ended: string[] = []
  readonly #entries: Settlement['entries'][number][] = []

  constructor(due: DueAlerts, context: NotifyContext) {
    this.#due = due
    this.#context = context
    this.#counters = new Map(due.channels.map((channel) => [channel.channel_id, freshCounters(channel, context.now)]))
    this.#groups = new Map(due.groups.map((row) => [groupKey(row.channel_id, row.kind, row.subject), row]))
  }

  get settlement(): Settlement {
    return {
      alerts: this.#alerts,
      postponed: this.#postponed,
      late: this.#late,
      entries: this.#entries,
      channels: [...this.#counters.values()],
      groups: [...this.#changed.values()],
      notified: this.#notified,
      ended: this.#ended,
    }
  }

  settle(alert: AlertRow): void {
    const isSilenced = this.#isSilenced(alert)
    const wanting = this.#due.channels.filter((channel) => acceptsKind(channel, alert.kind))
    if (alert.status === 'resolved') this.#settleEnd(alert, isSilenced ? [] : wanting, isSilenced)
    else if (isSilenced) this.#done(alert, 'silenced')
    else if (wanting.length === 0) this.#done(alert, 'no_channel')
    else this.#settleNews(alert, wanting)
  }

  /** Sends the gathered alerts of a channel, if they are due, still wanted and not sent in this round. */
  sendGathered(row: GroupRow): void {
    const { now } = this.#context
    const key = groupKey(row.channel_id, row.kind, row.subject)
    const gathered = gatheredOf(row)
    const isDue = row.due_at !== null && (row.due_at <= now || row.sent_at > now)
    if (!isDue || this.#changed.has(key)) return
    const channel = this.#due.channels.find(({ channel_id }) => channel_id === row.channel_id)
    const isUnwanted = !gathered || !channel || !acceptsKind(channel, row.kind) || this.#isSilenced(gathered.alert)
    if (isUnwanted) this.#putGroup({ ...row, due_at: null, gathered: null })
    else this.#send(channel, gathered)
  }

  #done({ seq }: AlertRow, state: SettledAlert['state'], messageIds: readonly string[] = []): void {
    this.#alerts.push({ seq, state, messageIds })
  }

  #isSilenced(alert: Pick<AlertRow, 'kind' | 'subject'>): boolean {
    return this.#due.silences.some((silence) => covers(silence, alert))
  }

  /** Settles an event or a new state: channels whose group time is over are notified, the others gather it. */
  #settleNews(alert: AlertRow, wanting: readonly ChannelRow[]): void {
    const waits = wanting.map((channel) => ({ channel, dueAt: this.#gathersUntil(channel, alert) }))
    const ready = waits.filter(({ dueAt }) => dueAt === undefined)
    if (ready.length === 0) {
      this.#postponed.push({ seq: alert.seq, dueAt: Math.min(...waits.map(({ dueAt = 0 }) => dueAt)) })
      return
    }
    const messageIds: string[] = []
    for (const { channel, dueAt } of waits) {
      const all = gatherMore(this.#gatheredBy(channel, alert), alert)
      if (dueAt === undefined) {
        const sending = this.#send(channel, all)
        if (sending !== 'held back') messageIds.push(sending.messageId)
      } else this.#gather(channel, { ...all, seqs: [...all.seqs, alert.seq].slice(-MAX_SEQS) }, dueAt)
    }
    this.#done(alert, messageIds.length > 0 ? 'sent' : 'held_back', messageIds)
  }

  /**
   * Settles the end of a state: notifies only channels that were notified of the
   * state, and drops what they had gathered.
   */
  #settleEnd(alert: AlertRow, wanting: readonly ChannelRow[], isSilenced: boolean): void {
    const { episode_id: episodeId } = alert
    const notified = new Set(
      this.#due.notified.filter(({ episode_id }) => episode_id === episodeId).map(({ channel_id }) => channel_id),
    )
    const drafts = wanting
      .filter(({ channel_id, send_resolved }) => send_resolved === 1 && notified.has(channel_id))
      .map((channel) => this.#draft(channel, alert))
    for (const channel of this.#due.channels) this.#dropGathered(channel, alert)
    if (episodeId !== null) this.#ended.push(episodeId)
    this.#done(alert, isSilenced ? 'silenced' : drafts.length > 0 ? 'sent' : 'no_channel', drafts)
  }

  #dropGathered(channel: ChannelRow, { kind, subject, episode_id }: AlertRow): void {
    const row = this.#groups.get(groupKey(channel.channel_id, kind, subject))
    const gathered = row && gatheredOf(row)
    if (row && gathered?.alert.episode_id === episode_id) this.#putGroup({ ...row, due_at: null, gathered: null })
  }

  /** Until when a channel gathers alerts about a subject; `undefined`: the channel may be notified now. */
  #gathersUntil(channel: ChannelRow, { kind, subject }: AlertRow): number | undefined {
    const { now } = this.#context
    const row = this.#groups.get(groupKey(channel.channel_id, kind, subject))
    const dueAt = (row?.sent_at ?? 0) + groupMsOf(channel)
    // A time in the future was stored before the clock was set back, and does not count.
    return row && row.sent_at <= now && dueAt > now ? dueAt : undefined
  }

  #gatheredBy(channel: ChannelRow, { kind, subject }: AlertRow): Gathered | undefined {
    const row = this.#groups.get(groupKey(channel.channel_id, kind, subject))
    return row && gatheredOf(row)
  }

  #gather({ channel_id }: ChannelRow, gathered: Gathered, dueAt: number): void {
    const row = this.#groups.get(groupKey(channel_id, gathered.alert.kind, gathered.alert.subject))
    if (row) this.#putGroup({ ...row, due_at: dueAt, gathered: JSON.stringify(gathered) })
  }

  #putGroup(row: GroupRow): void {
    const key = groupKey(row.channel_id, row.kind, row.subject)
    this.#groups.set(key, row)
    this.#changed.set(key, row)
  }

  /** Drafts a notification with everything gathered, or holds it back. */
  #send(channel: ChannelRow, { alert, seqs }: Gathered): Sending {
    const { now } = this.#context
    const { channel_id, account_id } = channel
    const { kind, subject, episode_id } = alert
    const counters = this.#counters.get(channel_id)
    const before = this.#groups.get(groupKey(channel_id, kind, subject))
    if (counters && counters.window_sent >= channel.hourly_limit) {
      counters.held_back++
      if (before) this.#putGroup({ ...before, due_at: null, gathered: null })
      return 'held back'
    }
    const messageId = this.#draft(channel, alert)
    if (counters) counters.window_sent++
    this.#putGroup({ account_id, channel_id, kind, subject, sent_at: now, due_at: null, gathered: null })
    if (episode_id !== null) this.#notified.push({ account_id, channel_id, episode_id, notified_at: now })
    if (seqs.length > 0) this.#late.push({ messageId, seqs })
    return { messageId }
  }

  #draft(channel: ChannelRow, alert: AlertRow): string {
    const { now, link } = this.#context
    const counters = this.#counters.get(channel.channel_id)
    const notice = { alert: alertView(alert), heldBack: counters?.held_back ?? 0, isTest: false, link }
    const entry = noticeMessage(channel, notice, now)
    if (counters) counters.held_back = 0
    this.#entries.push(entry)
    return entry.message.message_id
  }
}

/**
 * The counters of a channel. A new hour begins when the old one is over, or is in
 * the future because the clock was set back.
 */
function freshCounters({ channel_id, window_start, window_sent, held_back }: ChannelRow, now: number): Counters {
  const isOver = now - window_start >= HOUR_MS || window_start > now
  return { channel_id, held_back, ...(isOver ? { window_start: now, window_sent: 0 } : { window_start, window_sent }) }
}

const covers = ({ kind, subject }: SilenceRow, alert: Pick<AlertRow, 'kind' | 'subject'>): boolean =>
  (kind ?? alert.kind) === alert.kind && (subject ?? alert.subject) === alert.subject

/** Merges an alert into the gathered ones: one alert with the id and text of the newest. */
function gatherMore(before: Gathered | undefined, alert: AlertRow): Gathered {
  if (!before) return { alert, seqs: [] }
  const { alert: older, seqs } = before
  const examples = [...examplesOf(older), ...examplesOf(alert)].slice(0, MAX_EXAMPLES)
  return {
    alert: {
      ...alert,
      severity: older.severity === 'error' ? 'error' : alert.severity,
      count: older.count + alert.count,
      examples: JSON.stringify(examples),
      first_at: Math.min(older.first_at, alert.first_at),
      last_at: Math.max(older.last_at, alert.last_at),
    },
    seqs,
  }
}
