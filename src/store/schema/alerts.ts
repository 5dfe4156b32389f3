import type { Flag } from './accounts.js'
import type { Assigned } from './assigned.js'

/** Where an account is sent its alerts. */
export interface AlertChannelsTable {
  channel_id: string
  account_id: string
  name: string
  url: string
  format: 'json' | 'slack'
  /** JSON array of kinds of alerts; empty means all. */
  kinds: string
  /** Notifications an hour. */
  hourly_limit: number
  created_at: number
  /** When the hour began in which `window_sent` notifications were sent; 0 before the first. */
  window_start: number
  window_sent: number
  /** Notifications held back since the last one that was sent. */
  held_back: number
  /** 0: the channel gets no notifications. */
  enabled: Flag
  /** After a notification about a subject, further ones about it wait this long. */
  group_minutes: number
  /** Whether the channel is notified when a state ends. */
  send_resolved: Flag
}

/** The changes of an account to a rule; a rule without a row has its defaults. */
export interface AlertRulesTable {
  account_id: string
  kind: string
  enabled: Flag
  /** In the unit of the kind; NULL: the default. */
  threshold: number | null
}

/** A silence: matching alerts are not sent until it ends. */
export interface AlertSilencesTable {
  silence_id: string
  account_id: string
  /** NULL: every kind. */
  kind: string | null
  /** NULL: every subject. */
  subject: string | null
  until: number
  reason: string
  actor: string
  created_at: number
}

/** An alert: everything that happened about one subject until the notification, as one row. */
export interface AlertsTable {
  seq: Assigned<number>
  alert_id: string
  account_id: string
  kind: string
  subject: string
  severity: 'warning' | 'error'
  title: string
  advice: string
  count: number
  /** JSON array of `AlertExample` (alerts module). */
  examples: string
  first_at: number
  last_at: number
  /** `pending` until `due_at`; the others are final and give the outcome of the notification. */
  state: 'pending' | 'sent' | 'held_back' | 'silenced' | 'no_channel'
  due_at: number
  settled_at: number | null
  /** JSON array of the ids of the messages that carry the notification. */
  messages: string
  /** `event`: it just happened; `firing`: a state began, got worse or lasts; `resolved`: a state ended. */
  status: 'event' | 'firing' | 'resolved'
  /** Same for all alerts of a state from its beginning to its end; NULL for events. */
  episode_id: string | null
}

/** Position up to which a source has been read for an account. */
export interface AlertMarksTable {
  account_id: string
  source: string
  /** JSON of a `Mark` (alerts module). */
  mark: string
}

/** A state that an account has been alerted of and that lasts. */
export interface AlertConditionsTable {
  account_id: string
  kind: string
  subject: string
  /** Severity; the account is alerted again when it grows. */
  level: number
  alerted_at: number
  /** Time since which the state has been absent; NULL while it lasts. */
  gone_at: number | null
  /** NULL in rows of an older version. */
  episode_id: string | null
  /** Subject of its alerts: its own, or that of states that are counted together. NULL: its own. */
  alert_subject: string | null
  /** NULL in rows of an older version. */
  began_at: number | null
}

/** The last notification about a subject on a channel, and the alerts gathered for the next one. */
export interface AlertGroupsTable {
  account_id: string
  channel_id: string
  kind: string
  subject: string
  sent_at: number
  /** When the gathered alerts are sent; NULL: none. */
  due_at: number | null
  /** JSON of `Gathered` (alerts module). */
  gathered: string | null
}

/** A channel that was notified of a state that has not ended. */
export interface AlertNotifiedTable {
  account_id: string
  channel_id: string
  episode_id: string
  notified_at: number
}

/** Tables of alerts. */
export interface AlertTables {
  alert_channels: AlertChannelsTable
  alert_rules: AlertRulesTable
  alert_silences: AlertSilencesTable
  alerts: AlertsTable
  alert_marks: AlertMarksTable
  alert_conditions: AlertConditionsTable
  alert_groups: AlertGroupsTable
  alert_notified: AlertNotifiedTable
}
