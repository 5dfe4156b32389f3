import { newId } from '../base/index.js'
import { CALM_MINUTES, isAlertKind, ruleShape } from '../contract/alerts/kinds.js'
import type { Condition } from './conditions.js'
import type { ConditionChanges, ConditionRow, Raised } from './transactions/alerts-conditions.js'
import { OTHER_SUBJECTS } from './transactions/alerts-sources.js'

/** An account is alerted again of a lasting state after this time. */
const REMINDER_MS = 24 * 3_600_000
const CALM_MS = CALM_MINUTES * 60_000
/** Most separate alerts of one rule and account in one look. The others share one alert. */
const MAX_AT_ONCE = 20

/** Input of one look, besides the states that hold now. */
export interface LookInput {
  readonly now: number
  /** States that accounts were alerted of. */
  readonly known: readonly ConditionRow[]
  /** Whether a state cannot be judged now, because its source could not be read. */
  readonly isUnjudged: (row: ConditionRow) => boolean
  /** The name of a database; `undefined` if it is gone. */
  readonly nameOf: (databaseId: string) => string | undefined
}

const keyOf = (accountId: string, kind: string, subject: string): string => JSON.stringify([accountId, kind, subject])

interface Alerting {
  readonly one: Condition
  /** The stored row of the state; absent if the state begins an episode. */
  readonly row: ConditionRow | undefined
}

/**
 * Compares the states that hold now with those that accounts were alerted of, and returns what changes. A
 * time in the future was stored before the clock was set back. It counts as now, so that neither a
 * reminder nor an end has to wait for that time.
 */
export function changesOf(current: readonly Condition[], judged: LookInput): ConditionChanges {
  const { now, known } = judged
  const rows = new Map(known.map((row) => [keyOf(row.account_id, row.kind, row.subject), row]))
  const put: ConditionRow[] = []
  const alerting: Alerting[] = []
  for (const [key, one] of new Map(current.map((one) => [keyOf(one.accountId, one.kind, one.subject), one]))) {
    const row = rows.get(key)
    rows.delete(key)
    if (!row || one.level > row.level || now - row.alerted_at >= REMINDER_MS) alerting.push({ one, row })
    else if (row.level !== one.level || row.gone_at !== null || row.alerted_at > now)
      put.push({ ...row, level: one.level, gone_at: null, alerted_at: Math.min(row.alerted_at, now) })
  }
  const news = newsOf(alerting, now)
  const missing = [...rows.values()].filter((row) => !judged.isUnjudged(row))
  const forget = missing.filter((row) => isOver(row, now))
  const leaving = missing.filter((row) => !isOver(row, now) && (row.gone_at ?? Infinity) > now)
  put.push(...news.put, ...leaving.map((row) => ({ ...row, gone_at: now })))
  return { put, forget, raised: news.raised, resolved: resolvedOf(forget, judged) }
}

function isOver({ kind, gone_at }: ConditionRow, now: number): boolean {
  // A rule of a newer Homeport is unknown here; its states end like those of other rules, after some quiet minutes.
  if (isAlertKind(kind) && ruleShape(kind).ends === 'at once') return true
  return gone_at !== null && now - gone_at >= CALM_MS
}

/** The alerts to raise for states, and the rows that record them. */
function newsOf(alerting: readonly Alerting[], now: number): { put: ConditionRow[]; raised: Raised[] } {
  const byRule = new Map<string, Alerting[]>()
  for (const each of alerting) {
    const rule = keyOf(each.one.accountId, each.one.kind, '')
    const group = byRule.get(rule)
    if (group) group.push(each)
    else byRule.set(rule, [each])
  }
  const news = [...byRule.values()].map((group) => newsOfRule(group, now))
  return { put: news.flatMap(({ put }) => put), raised: news.flatMap(({ raised }) => raised) }
}

function newsOfRule(group: readonly Alerting[], now: number): { put: ConditionRow[]; raised: Raised[] } {
  const alone = group.slice(0, MAX_AT_ONCE).map((each) => ({ each, row: alertedRow(each, now) }))
  const rest = group.slice(MAX_AT_ONCE)
  // States that share an alert share an episode, which ends when the last of them has ended.
  const shared = { episode_id: newId('epi_', now), alert_subject: OTHER_SUBJECTS }
  const together = rest.map((each) => ({ ...alertedRow(each, now), ...(each.row?.episode_id ? {} : shared) }))
  const raised = alone.map(({ each, row }) =>
    raisedFrom([each.one], row.alert_subject ?? row.subject, row.episode_id ?? undefined, now),
  )
  if (rest.length > 0) {
    const isShared = together.some(({ episode_id }) => episode_id === shared.episode_id)
    const ones = rest.map(({ one }) => one)
    raised.push(raisedFrom(ones, OTHER_SUBJECTS, isShared ? shared.episode_id : undefined, now))
  }
  return { put: [...alone.map(({ row }) => row), ...together], raised }
}

const alertedRow = ({ one, row }: Alerting, now: number): ConditionRow => ({
  account_id: one.accountId,
  kind: one.kind,
  subject: one.subject,
  level: one.level,
  alerted_at: now,
  gone_at: null,
  alert_subject: row?.alert_subject ?? null,
  episode_id: row?.episode_id ?? newId('epi_', now),
  began_at: row?.began_at ?? row?.alerted_at ?? now,
})

function raisedFrom(group: readonly Condition[], subject: string, episodeId: string | undefined, now: number): Raised {
  const one = group[0] as Condition
  const { accountId, kind, severity, advice } = one
  const title = group.length === 1 ? one.title : `${group.length} more alerts of the rule ${kind}.`
  const examples = group.map((other) => ({ at: now, id: other.subject, text: other.title }))
  const found = { kind, subject, severity, title, advice, count: group.length, examples, firstAt: now, lastAt: now }
  return { accountId, alertId: newId('alert_', now), episodeId, found }
}

/** The alerts for episodes whose last state has ended. */
function resolvedOf(forget: readonly ConditionRow[], { now, known, nameOf }: LookInput): Raised[] {
  const gone = new Set(forget)
  const lasting = new Set(known.filter((row) => !gone.has(row)).map((row) => row.episode_id))
  const ended = new Map(forget.map((row) => [row.episode_id, row]))
  return [...ended].flatMap(([episodeId, row]) => {
    if (episodeId === null || lasting.has(episodeId)) return []
    const { account_id: accountId, kind, began_at, alerted_at, gone_at } = row
    const subject = row.alert_subject ?? row.subject
    const found = {
      kind,
      subject,
      severity: 'warning' as const,
      title: endedTitle(kind, subject, nameOf),
      advice: 'There is nothing to do.',
      count: 1,
      examples: [],
      firstAt: began_at ?? alerted_at,
      lastAt: gone_at ?? now,
    }
    return [{ accountId, alertId: newId('alert_', now), episodeId, found }]
  })
}

const OF_DATABASES: Readonly<Partial<Record<string, (name: string) => string>>> = {
  budget: (name) => `The database "${name}" is below the alert threshold of its budget again.`,
  backup_failed: (name) => `The newest backup of the database "${name}" has not failed.`,
  backup_old: (name) => `The database "${name}" has a recent backup again, or no daily backups any more.`,
  engine_restarting: (name) =>
    `The engine of the database "${name}" has run for ${CALM_MINUTES} minutes without ending.`,
}

/** One sentence that says what has ended. */
function endedTitle(kind: string, subject: string, nameOf: LookInput['nameOf']): string {
  if (subject === OTHER_SUBJECTS) return `The other alerts of the rule ${kind} have ended.`
  const ofDatabase = OF_DATABASES[kind]
  if (ofDatabase) {
    const name = nameOf(subject)
    return name === undefined ? `The database ${subject} is gone.` : ofDatabase(name)
  }
  switch (kind) {
    case 'schedule_missed':
      return `The schedule ${subject} is not late any more, or it was paused or deleted.`
    case 'disk_full':
      return 'The disk with the data directory has space again.'
    case 'certificate_expiring':
      return 'The certificate of databases with TLS has been replaced.'
    case 'store_corrupt':
      return `The store shows no damage of ${subject} any more.`
    default:
      return `This problem is over: ${subject}.`
  }
}
