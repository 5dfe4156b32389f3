import type { DatabaseRow } from '../transactions/database-row.js'
import type * as databases from '../transactions/databases.js'

/** A small database, whose tokens contain its id. */
export const databaseRow = (
  row: Pick<databases.NewDatabase, 'database_id' | 'account_id' | 'created_at'> & Partial<databases.NewDatabase>,
): databases.NewDatabase => ({
  name: 'shop',
  platform: 'aws',
  primary_region: 'us-east-1',
  read_regions: '[]',
  plan: 'payg',
  budget: 0,
  eviction: 0,
  tls: 0,
  persistence: 'append-only',
  password: 'p',
  rest_token: `rw-${row.database_id}`,
  read_only_rest_token: `ro-${row.database_id}`,
  ...row,
})

/** The creation of such a database. */
export const creationOf = (databaseId: string, accountId: string, at: number): databases.CreateArgs => ({
  database: databaseRow({ database_id: databaseId, account_id: accountId, created_at: at }),
  ports: { from: 9000, to: 9999, avoid: [] },
  slugs: [`calm-bay-${databaseId}`],
  limit: 10,
  forgetBefore: 0,
})

/** A small database as it is stored while it serves. Its secrets contain its id. */
export function servedRow(row: Partial<DatabaseRow> = {}): DatabaseRow {
  const { database_id: id = 'db' } = row
  return {
    ...databaseRow({ database_id: id, account_id: 'acc', created_at: 1 }),
    slug: `calm-bay-${id}`,
    port: 8800,
    state: 'active',
    modifying_state: '',
    password: `pw-${id}`,
    auto_upgrade: 0,
    production_pack: 0,
    allowed_ips: '[]',
    last_upgrade_at: 0,
    next_daily_backup_at: null,
    acl_users: '[]',
    keyspace_events: '',
    engine_settings: '{}',
    client_authority: null,
    data_problem: null,
    suspended_by_owner: 0,
    home: null,
    ...row,
  }
}
