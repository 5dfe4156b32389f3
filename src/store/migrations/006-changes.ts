import type { Migration } from './migration.js'

/** Settings of a database that can change after its creation; teams with their members and keys. */
export const changes: Migration = {
  number: 6,
  name: 'changes',
  breaking: true,
  statements: (t) => [
    `ALTER TABLE databases ADD COLUMN auto_upgrade ${t.integer} NOT NULL DEFAULT 0 CHECK (auto_upgrade IN (0, 1))`,
    `ALTER TABLE databases ADD COLUMN production_pack ${t.integer} NOT NULL DEFAULT 0
      CHECK (production_pack IN (0, 1))`,
    `ALTER TABLE databases ADD COLUMN allowed_ips ${t.text} NOT NULL DEFAULT '[]'`,
    `ALTER TABLE databases ADD COLUMN last_upgrade_at ${t.integer} NOT NULL DEFAULT 0`,
    `ALTER TABLE api_keys ADD COLUMN holder ${t.text}`,
    `CREATE TABLE teams (
      team_id ${t.text} PRIMARY KEY REFERENCES accounts (account_id),
      name ${t.text} NOT NULL,
      copy_cc ${t.integer} NOT NULL CHECK (copy_cc IN (0, 1)),
      created_at ${t.integer} NOT NULL
    )`,
    `CREATE TABLE team_members (
      team_id ${t.text} NOT NULL REFERENCES teams (team_id),
      email_key ${t.text} NOT NULL,
      email ${t.text} NOT NULL,
      role ${t.text} NOT NULL CHECK (role IN ('owner', 'admin', 'dev', 'finance')),
      created_at ${t.integer} NOT NULL,
      PRIMARY KEY (team_id, email_key)
    )`,
    "CREATE UNIQUE INDEX team_members_owner ON team_members (team_id) WHERE role = 'owner'",
    'CREATE INDEX team_members_by_email ON team_members (email_key, team_id)',
  ],
}
