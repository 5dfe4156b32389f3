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
