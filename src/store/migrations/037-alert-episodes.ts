import type { Migration } from './migration.js'

/**
 * Channels have their own time for grouping and can be turned off. States that last have an episode: a channel that was
 * notified of an episode is also notified of its end.
 */
export const alertEpisodes: Migration = {
  number: 37,
  name: 'alert_episodes',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE alert_channels ADD COLUMN enabled ${t.integer} NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1))`,
    `ALTER TABLE alert_channels ADD COLUMN group_minutes ${t.integer} NOT NULL DEFAULT 5`,
    `ALTER TABLE alert_channels ADD COLUMN send_resolved ${t.integer} NOT NULL DEFAULT 1 CHECK (send_resolved IN (0, 1))`,
    `ALTER TABLE alerts ADD COLUMN status ${t.text} NOT NULL DEFAULT 'event' CHECK (status IN ('event', 'firing', 'resolved'))`,
    `ALTER TABLE alerts ADD COLUMN episode_id ${t.text}`,
    `ALTER TABLE alert_conditions ADD COLUMN episode_id ${t.text}`,
    `ALTER TABLE alert_conditions ADD COLUMN alert_subject ${t.text}`,
    `ALTER TABLE alert_conditions ADD COLUMN began_at ${t.integer}`,
    `CREATE TABLE alert_groups (
      account_id ${t.text} NOT NULL,
      channel_id ${t.text} NOT NULL,
      kind ${t.text} NOT NULL,
      subject ${t.text} NOT NULL,
      sent_at ${t.integer} NOT NULL,
      due_at ${t.integer},
      gathered ${t.text},
      PRIMARY KEY (channel_id, kind, subject),
      CHECK ((due_at IS NULL) = (gathered IS NULL))
    )`,
    'CREATE INDEX alert_groups_by_account ON alert_groups (account_id, subject)',
    'CREATE INDEX alert_groups_due ON alert_groups (due_at) WHERE due_at IS NOT NULL',
    `CREATE TABLE alert_notified (
      account_id ${t.text} NOT NULL,
      channel_id ${t.text} NOT NULL,
      episode_id ${t.text} NOT NULL,
      notified_at ${t.integer} NOT NULL,
      PRIMARY KEY (episode_id, channel_id)
    )`,
  ],
}
