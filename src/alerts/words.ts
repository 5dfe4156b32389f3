import type { Alert } from '../contract/alerts/alerts.js'
import { type AlertRow, examplesOf, messageIdsOf } from './transactions/alerts-history.js'
import { OTHER_SUBJECTS } from './transactions/alerts-sources.js'

const seconds = (atMs: number): number => Math.floor(atMs / 1000)

const counted = (count: number, one: string, many: string): string => (count === 1 ? `A ${one}` : `${count} ${many}`)

const others = (subject: string, words: string): string => (subject === OTHER_SUBJECTS ? words : subject)

/** One sentence that says what happened, with its count. */
function titleOf({ kind, subject, count, title }: Pick<AlertRow, 'kind' | 'subject' | 'count' | 'title'>): string {
  if (title !== '') return title
  switch (kind) {
    case 'dead_letter':
      return `${counted(count, 'message', 'messages')} to ${others(subject, 'other destinations')} became ${count === 1 ? 'a dead letter' : 'dead letters'}.`
    case 'run_failed':
      return `${counted(count, 'workflow run', 'workflow runs')} of ${others(subject, 'other workflows')} failed.`
    case 'backup_failed':
      return `${counted(count, 'backup', 'backups')} of ${others(subject, 'other databases')} failed.`
    default:
      return title
  }
}

/** An alert as the history shows it. */
export function alertView(row: AlertRow): Alert {
  return {
    alert_id: row.alert_id,
    status: row.status,
    ...(row.episode_id === null ? {} : { episode_id: row.episode_id }),
    kind: row.kind,
    subject: row.subject,
    severity: row.severity,
    title: titleOf(row),
    advice: row.advice,
    count: row.count,
    examples: examplesOf(row).map(({ at, id, text }) => ({ at: seconds(at), id, text })),
    first_at: seconds(row.first_at),
    last_at: seconds(row.last_at),
    state: row.state,
    ...(row.settled_at === null ? {} : { notified_at: seconds(row.settled_at) }),
    message_ids: messageIdsOf(row),
  }
}

/** The content of a notification, in any format. */
export interface Notice {
  readonly alert: Omit<Alert, 'state' | 'notified_at' | 'message_ids'>
  /** Number of notifications that the channel's limit has held back since the last one that was sent. */
  readonly heldBack: number
  readonly isTest: boolean
  /** The page of the console with the alerts. */
  readonly link: string
}

/** The body of a notification in the format `json`. */
export function jsonBody({ alert, heldBack, isTest, link }: Notice): object {
  const { alert_id, status, episode_id, kind, subject, severity, title, advice, count, examples } = alert
  const { first_at, last_at } = alert
  const id = { alert_id, status, ...(episode_id !== undefined && { episode_id }) }
  const facts = { ...id, kind, subject, severity, title, advice, count, examples, first_at, last_at }
  return { type: 'homeport.alert', test: isTest, ...facts, held_back: heldBack, link }
}

/** Escapes the three characters that Slack reads as markup (Slack's reference, "Formatting text"). */
const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')

const signOf = ({ status, severity }: Notice['alert']): string =>
  status === 'resolved' ? ':large_green_circle:' : severity === 'error' ? ':red_circle:' : ':warning:'

/** The body of a notification in the format `slack`. */
export function slackBody({ alert, heldBack, isTest, link }: Notice): object {
  const lines = [
    `${isTest ? ':white_check_mark:' : signOf(alert)} *${escaped(alert.title)}*`,
    ...(alert.status === 'resolved' ? [] : [escaped(alert.advice)]),
    ...alert.examples.map(({ id, text }) => `• \`${escaped(id).replace(/`/g, "'")}\` ${escaped(text)}`),
    ...(heldBack > 0
      ? [`${counted(heldBack, 'earlier notification was', 'earlier notifications were')} held back.`]
      : []),
    `<${link}|Open the alerts>`,
  ]
  return { text: lines.join('\n') }
}

/** The notification of the test button. */
export function testNotice(channelName: string, atMs: number, link: string): Notice {
  const alert = {
    alert_id: 'test',
    status: 'event' as const,
    kind: 'test',
    subject: channelName,
    severity: 'warning' as const,
    title: `This is a test of the alert channel "${channelName}".`,
    advice: 'Nothing has happened. Alerts of this account will look like this.',
    count: 1,
    examples: [],
    first_at: seconds(atMs),
    last_at: seconds(atMs),
  }
  return { alert, heldBack: 0, isTest: true, link }
}
