import { AS_ACCEPTED, draftMessage } from '../queue/index.js'
import type { PublishEntry } from '../queue/transactions/messages.js'
import type { ChannelRow } from './transactions/alerts-channels.js'
import { ALERT_MARK } from './transactions/alerts-sources.js'
import { jsonBody, type Notice, slackBody } from './words.js'

/** With the default backoff, retries span more than a day, because a receiver may be down for a night. */
const RETRIES = 5
/** The label by which people find these messages in the queue. */
const LABEL = 'homeport-alert'

/** The time of notifications, and the link that they contain. */
export interface NotifyContext {
  readonly now: number
  /** The page of the console with the alerts. */
  readonly link: string
}

/** The message of the queue that carries a notification. `ALERT_MARK` keeps its dead letter from raising an alert. */
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
