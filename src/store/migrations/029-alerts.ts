import type { Migration } from './migration.js'

/** Alerts: channels, rules, silences, history, and up to where their sources have been read. */
export const alerts: Migration = {
  number: 29,
  name: 'alerts',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE alert_channels (
      channel_id ${t.text} PRIMARY KEY,
      account_id ${t.text} NOT NULL,
      name ${t.text} NOT NULL,
      url ${t.text} NOT NULL,
      format ${t.text} NOT NULL CHECK (format IN ('json', 'slack')),
      kinds ${t.text} NOT NULL,
      hourly_limit ${t.integer} NOT NULL,
      created_at ${t.integer} NOT NULL,
      window_start ${t.integer} NOT NULL,
      window_sent ${t.integer} NOT NULL,
      held_back ${t.integer} NOT NULL
    )`,
    'CREATE INDEX alert_channels_by_account ON alert_channels (account_id, created_at, channel_id)',
    `CREATE TABLE alert_rules (
      account_id ${t.text} NOT NULL,
      kind ${t.text} NOT NULL,
      enabled ${t.integer} NOT NULL CHECK (enabled IN (0, 1)),
      threshold ${t.integer},
      PRIMARY KEY (account_id, kind)
    )`,
    `CREATE TABLE alert_silences (
      silence_id ${t.text} PRIMARY KEY,
      account_id ${t.text} NOT NULL,
      kind ${t.text},
      subject ${t.text},
      until ${t.integer} NOT NULL,
      reason ${t.text} NOT NULL,
      actor ${t.text} NOT NULL,
      created_at ${t.integer} NOT NULL
    )`,
    'CREATE INDEX alert_silences_by_account ON alert_silences (account_id, until)',
    `CREATE TABLE alerts (
      seq ${t.serial},
      alert_id ${t.text} NOT NULL,
      account_id ${t.text} NOT NULL,
      kind ${t.text} NOT NULL,
      subject ${t.text} NOT NULL,
      severity ${t.text} NOT NULL CHECK (severity IN ('warning', 'error')),
      title ${t.text} NOT NULL,
      advice ${t.text} NOT NULL,
      count ${t.integer} NOT NULL,
      examples ${t.text} NOT NULL,
      first_at ${t.integer} NOT NULL,
      last_at ${t.integer} NOT NULL,
      state ${t.text} NOT NULL CHECK (state IN ('pending', 'sent', 'held_back', 'silenced', 'no_channel')),
      due_at ${t.integer} NOT NULL,
      settled_at ${t.integer},
      messages ${t.text} NOT NULL,
      CHECK ((state = 'pending') = (settled_at IS NULL))
    )`,
    'CREATE INDEX alerts_by_account ON alerts (account_id, seq)',
    'CREATE INDEX alerts_by_subject ON alerts (account_id, kind, subject, seq)',
    "CREATE INDEX alerts_pending ON alerts (due_at, seq) WHERE state = 'pending'",
    `CREATE TABLE alert_marks (
      account_id ${t.text} NOT NULL,
      source ${t.text} NOT NULL,
      mark ${t.text} NOT NULL,
      PRIMARY KEY (account_id, source)
    )`,
    `CREATE TABLE alert_conditions (
      account_id ${t.text} NOT NULL,
      kind ${t.text} NOT NULL,
      subject ${t.text} NOT NULL,
      level ${t.integer} NOT NULL,
      alerted_at ${t.integer} NOT NULL,
      gone_at ${t.integer},
      PRIMARY KEY (account_id, kind, subject)
    )`,
  ],
}
