import type { Migration } from './migration.js'

/** Usage of databases: time series of limited length, daily totals, and the current state. */
export const usage: Migration = {
  number: 10,
  name: 'usage',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE usage_buckets (
      database_id ${t.text} NOT NULL,
      tier_ms ${t.integer} NOT NULL,
      start ${t.integer} NOT NULL,
      sample ${t.text} NOT NULL,
      PRIMARY KEY (database_id, tier_ms, start)
    )`,
    'CREATE INDEX usage_buckets_by_time ON usage_buckets (tier_ms, start)',
    `CREATE TABLE usage_days (
      database_id ${t.text} NOT NULL,
      day ${t.integer} NOT NULL,
      requests ${t.integer} NOT NULL,
      reads ${t.integer} NOT NULL,
      writes ${t.integer} NOT NULL,
      scripts ${t.integer} NOT NULL,
      others ${t.integer} NOT NULL,
      bytes_in ${t.integer} NOT NULL,
      bytes_out ${t.integer} NOT NULL,
      cost_nano ${t.integer} NOT NULL,
      held_kib_s ${t.integer} NOT NULL,
      PRIMARY KEY (database_id, day)
    )`,
    'CREATE INDEX usage_days_by_day ON usage_days (day)',
    `CREATE TABLE usage_standings (
      database_id ${t.text} PRIMARY KEY,
      accounted_at ${t.integer} NOT NULL,
      plan ${t.text} NOT NULL,
      looked_at ${t.integer} NOT NULL,
      keys ${t.integer} NOT NULL,
      used_bytes ${t.integer} NOT NULL,
      disk_bytes ${t.integer} NOT NULL
    )`,
    `CREATE TABLE usage_rollups (
      tier_ms ${t.integer} PRIMARY KEY,
      rolled_to ${t.integer} NOT NULL
    )`,
  ],
}
