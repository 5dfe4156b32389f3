import type { AlertKind } from '../contract/alerts/kinds.js'
import { ruleShape } from '../contract/alerts/kinds.js'
import type { Problem } from '../telemetry/index.js'
import type { BackedUp, FailingBackup, LateSchedule } from './transactions/alerts-conditions.js'
import type { RuleRow } from './transactions/alerts-rules.js'

/** The figures of a database that alerts judge. */
export interface WatchedDatabase {
  readonly accountId: string
  readonly databaseId: string
  readonly name: string
  /** US dollars a month; 0: none. */
  readonly budget: number
  /** Cost of this month, US dollars. */
  readonly spent: number
  /** Why its engine keeps ending; absent if it does not. */
  readonly restarts?: string
}

/** Space of the disk with the data directory, bytes. */
export interface DiskFigures {
  readonly freeBytes: number
  readonly totalBytes: number
}

/** Everything that is judged at one moment. */
export interface Observed {
  readonly now: number
  /** The node that observed the disk, the certificate and the problems; `undefined` on a server that is alone. */
  readonly node?: string | undefined
  /** The account that is alerted of conditions of the whole server. */
  readonly firstAccountId: string | undefined
  readonly rules: readonly RuleRow[]
  readonly databases: readonly WatchedDatabase[]
  readonly schedules: readonly LateSchedule[]
  readonly backups: readonly BackedUp[]
  /** Databases that were alerted of a failed backup, and whose newest backup failed. */
  readonly failing: readonly FailingBackup[]
  readonly problems: readonly Problem[]
  readonly disk: DiskFigures | undefined
  /** Unix milliseconds; `undefined`: there is no certificate. */
  readonly certificateExpiresAt: number | undefined
}

/** A state that lasts and that an account is alerted of. */
export interface Condition {
  readonly accountId: string
  readonly kind: AlertKind
  readonly subject: string
  /** How bad the state is. The account is alerted again when the level grows. */
  readonly level: number
  readonly severity: 'warning' | 'error'
  readonly title: string
  readonly advice: string
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** The threshold of a rule for an account. */
function thresholdOf(rules: readonly RuleRow[], accountId: string, kind: AlertKind): number {
  const own = rules.find((row) => row.account_id === accountId && row.kind === kind)?.threshold
  return own ?? ruleShape(kind).threshold?.default ?? 0
}

/** The states that hold now. */
export function conditionsOf(observed: Observed): Condition[] {
  const { databases, schedules, backups, failing, problems } = observed
  return [
    ...databases.flatMap((database) => [...budgetConditions(database, observed), ...engineConditions(database)]),
    ...schedules.flatMap((schedule) => scheduleConditions(schedule, observed)),
    ...backups.flatMap((backup) => backupConditions(backup, observed)),
    ...failing.map(failingCondition),
    ...problems.flatMap((problem) => problemConditions(problem, observed)),
    ...diskConditions(observed),
    ...certificateConditions(observed),
  ]
}

const dollars = (amount: number): string => `$${amount.toFixed(2)}`

function budgetConditions({ accountId, databaseId, name, budget, spent }: WatchedDatabase, { rules }: Observed) {
  if (budget <= 0) return []
  const percent = (spent / budget) * 100
  const threshold = thresholdOf(rules, accountId, 'budget')
  const reached = [100, 90, threshold].find((mark) => mark >= threshold && percent >= mark)
  if (reached === undefined) return []
  const isSpent = reached >= 100
  return [
    condition('budget', { accountId, subject: databaseId }, reached, {
      severity: isSpent ? 'error' : 'warning',
      title: `The database "${name}" has spent ${Math.floor(percent)} % of its budget: ${dollars(spent)} of ${dollars(budget)} this month.`,
      advice: isSpent
        ? 'It is suspended until the month ends. Raise the budget to resume it.'
        : 'At 100 % it is suspended until the month ends. Raise the budget to avoid that.',
    }),
  ]
}

function engineConditions({ accountId, databaseId, name, restarts }: WatchedDatabase): Condition[] {
  if (restarts === undefined) return []
  return [
    condition('engine_restarting', { accountId, subject: databaseId }, 1, {
      severity: 'error',
      title: `The engine of the database "${name}" keeps ending and is restarted: ${restarts}.`,
      advice: 'See the log of the server, and run `homeport doctor`.',
    }),
  ]
}

function scheduleConditions({ account_id, schedule_id, next_at, error }: LateSchedule, { now, rules }: Observed) {
  const lateMs = next_at === null ? 0 : now - next_at
  const isLate = lateMs > thresholdOf(rules, account_id, 'schedule_missed') * 1000
  if (!isLate && error === null) return []
  const title = isLate
    ? `The schedule ${schedule_id} is ${Math.floor(lateMs / 60_000)} minutes late.`
    : `The schedule ${schedule_id} has published nothing at its last fire: ${error}`
  const advice = isLate
    ? 'See the log of the server: it says why schedules cannot be fired.'
    : 'Correct the schedule; its next fire that publishes ends this.'
  const about = { accountId: account_id, subject: schedule_id }
  return [condition('schedule_missed', about, 1, { severity: 'error', title, advice })]
}

function backupConditions({ account_id, database_id, name, created_at, newest }: BackedUp, { now, rules }: Observed) {
  const hours = thresholdOf(rules, account_id, 'backup_old')
  if (now - (newest ?? created_at) <= hours * HOUR_MS) return []
  const found = newest === null ? 'has no backup' : `has no backup since ${new Date(newest).toISOString()}`
  return [
    condition('backup_old', { accountId: account_id, subject: database_id }, 1, {
      severity: 'error',
      title: `The database "${name}" ${found}, although it has daily backups.`,
      advice: 'Create one with `homeport db backup`; its error says what prevents it.',
    }),
  ]
}

function failingCondition({ account_id, database_id, name, failure }: FailingBackup): Condition {
  return condition('backup_failed', { accountId: account_id, subject: database_id }, 1, {
    severity: 'error',
    title: `The newest backup of the database "${name}" failed: ${(failure ?? 'no reason is known').slice(0, 300)}`,
    advice: 'Create one with `homeport db backup`; its error says what prevents it.',
  })
}

/** The subject of a condition. In a cluster, it names the node. */
const ofNode = (subject: string, node: string | undefined): string =>
  node === undefined ? subject : `${subject} (${node})`

const byNode = (title: string, node: string | undefined): string =>
  node === undefined ? title : `Node ${node}: ${title}`

function problemConditions(problem: Problem, { firstAccountId, node }: Observed): Condition[] {
  const accountId = problem.accountId ?? firstAccountId
  if (accountId === undefined) return []
  const { kind, subject, severity, title, advice } = problem
  const text = { severity, title, advice }
  if (kind === 'engine_hung') return [condition('engine_restarting', { accountId, subject }, 1, text)]
  if (kind === 'store_damaged') return [condition('store_corrupt', { accountId, subject }, 1, text)]
  // Alerts for the owner of a database do not name the node.
  const at = problem.accountId === undefined ? node : undefined
  const about = { accountId, subject: ofNode(`${kind} ${subject}`, at) }
  return [condition('problem', about, 1, { ...text, title: byNode(title, at) })]
}

const DISK_WORST = 97

const sizeOf = (bytes: number): string =>
  bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GB` : `${Math.floor(bytes / 2 ** 20)} MB`

function diskConditions({ disk, node, firstAccountId: accountId, rules }: Observed): Condition[] {
  if (!disk || disk.totalBytes <= 0 || accountId === undefined) return []
  const percent = (1 - disk.freeBytes / disk.totalBytes) * 100
  if (percent < thresholdOf(rules, accountId, 'disk_full')) return []
  const isWorst = percent >= DISK_WORST
  return [
    condition('disk_full', { accountId, subject: ofNode('data directory', node) }, isWorst ? 2 : 1, {
      severity: isWorst ? 'error' : 'warning',
      title: byNode(
        `The disk with the data directory is ${Math.floor(percent)} % full: ${sizeOf(disk.freeBytes)} are free.`,
        node,
      ),
      advice:
        'Free space or enlarge the disk. When it is full, databases accept only deletions and nothing is published.',
    }),
  ]
}

function certificateConditions(observed: Observed): Condition[] {
  const { certificateExpiresAt, node, firstAccountId: accountId, now, rules } = observed
  if (certificateExpiresAt === undefined || accountId === undefined) return []
  const days = (certificateExpiresAt - now) / DAY_MS
  if (days >= thresholdOf(rules, accountId, 'certificate_expiring')) return []
  const hasExpired = days <= 0
  const at = new Date(certificateExpiresAt).toISOString()
  return [
    condition('certificate_expiring', { accountId, subject: ofNode('certificate', node) }, hasExpired ? 2 : 1, {
      severity: hasExpired ? 'error' : 'warning',
      title: byNode(`The certificate of databases with TLS ${hasExpired ? 'expired' : 'expires'} at ${at}.`, node),
      advice: 'Replace its files; docs/tls.md says how. `homeport doctor` shows which they are.',
    }),
  ]
}

type Text = Pick<Condition, 'severity' | 'title' | 'advice'>

const condition = (
  kind: AlertKind,
  { accountId, subject }: Pick<Condition, 'accountId' | 'subject'>,
  level: number,
  text: Text,
): Condition => ({ accountId, kind, subject, level, ...text })
