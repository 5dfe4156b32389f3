/** What a threshold of a rule counts, with its bounds. */
export interface ThresholdShape {
  readonly unit: 'seconds' | 'hours' | 'days' | '%'
  readonly default: number
  readonly least: number
  readonly most: number
  /** What the number means, as the end of a sentence: "alert when ...". */
  readonly meaning: string
}

/** A rule: something that an account can be alerted of. */
export interface AlertKindShape {
  /** `server`: about the whole server; only its first account is alerted. */
  readonly scope: 'account' | 'server'
  readonly summary: string
  /** The kind of object that its alerts are about. */
  readonly subject: string
  readonly threshold?: ThresholdShape
  /**
   * When a state has ended. `at once`: as soon as it is no longer found. `when calm`: when it has not been found for
   * `CALM_MINUTES`, because it comes and goes. Absent: the rule is about events, which have no end.
   */
  readonly ends?: 'at once' | 'when calm'
}

/** Every rule, in the order of lists. All are enabled unless the account changes that. */
export const ALERT_RULES = {
  dead_letter: {
    scope: 'account',
    summary: 'A message became a dead letter.',
    subject: 'host of the destination',
  },
  run_failed: {
    scope: 'account',
    summary: 'A workflow run failed.',
    subject: 'host and path of the workflow',
  },
  schedule_missed: {
    scope: 'account',
    summary: 'A schedule did not fire, or its last fire published nothing.',
    subject: 'schedule id',
    threshold: { unit: 'seconds', default: 300, least: 60, most: 86_400, meaning: 'a fire is late by this time' },
    ends: 'at once',
  },
  budget: {
    scope: 'account',
    summary: 'A database has spent much of its monthly budget. Alerts again at 90 % and at 100 %.',
    subject: 'database id',
    threshold: { unit: '%', default: 70, least: 1, most: 100, meaning: 'this share of the budget is spent' },
    ends: 'at once',
  },
  backup_failed: { scope: 'account', summary: 'A backup failed.', subject: 'database id', ends: 'at once' },
  backup_old: {
    scope: 'account',
    summary: 'A database with daily backups has no recent one.',
    subject: 'database id',
    threshold: { unit: 'hours', default: 48, least: 25, most: 8_760, meaning: 'the newest backup is older than this' },
    ends: 'at once',
  },
  engine_restarting: {
    scope: 'account',
    summary: 'The engine of a database keeps ending, or hung, and is restarted.',
    subject: 'database id',
    ends: 'when calm',
  },
  disk_full: {
    scope: 'server',
    summary: 'The disk with the data directory is nearly full. Alerts again at 97 %.',
    subject: 'data directory',
    threshold: { unit: '%', default: 90, least: 50, most: 99, meaning: 'this share of the disk is used' },
    ends: 'when calm',
  },
  certificate_expiring: {
    scope: 'server',
    summary: 'The certificate of databases with TLS expires soon. Alerts again when it has expired.',
    subject: 'certificate',
    threshold: { unit: 'days', default: 14, least: 1, most: 365, meaning: 'it is valid for less than this' },
    ends: 'at once',
  },
  store_corrupt: {
    scope: 'server',
    summary: 'The store of the server is damaged.',
    subject: 'table of the store',
    ends: 'when calm',
  },
  problem: {
    scope: 'account',
    summary: 'Another problem that only a person can put right, as Home shows it.',
    subject: 'kind of problem and what it concerns',
    ends: 'when calm',
  },
} as const satisfies Readonly<Record<string, AlertKindShape>>

/** The kind of an alert: the name of its rule. */
export type AlertKind = keyof typeof ALERT_RULES

/** The names of all rules. */
export const ALERT_KINDS = Object.keys(ALERT_RULES) as readonly AlertKind[]

/** Whether a text names a rule. */
export const isAlertKind = (text: string): text is AlertKind => Object.hasOwn(ALERT_RULES, text)

/** The declaration of a rule, with the type that all rules share. */
export const ruleShape = (kind: AlertKind): AlertKindShape => ALERT_RULES[kind]

/** Most channels of an account. */
export const MAX_ALERT_CHANNELS = 20
/** Most silences of an account. */
export const MAX_SILENCES = 100
/** How long alerts are kept in the history, days. */
export const ALERT_HISTORY_DAYS = 30
/** Default of `hourly_limit`: notifications that a channel gets in an hour. */
export const DEFAULT_HOURLY_LIMIT = 30
/** Default of `group_minutes`: how long further notifications about one subject are collected, minutes. */
export const DEFAULT_GROUP_MINUTES = 5
/** Bounds of `group_minutes`. */
export const GROUP_MINUTES = { least: 1, most: 1_440 } as const
/** A state that comes and goes has ended when it has been absent for this long, minutes. */
export const CALM_MINUTES = 15
/** Most examples that an alert keeps. */
export const MAX_EXAMPLES = 10
/** The longest silence, days. */
export const MAX_SILENCE_DAYS = 366
