import type * as databases from '../transactions/databases.js'

/** The creation of a small database; its tokens contain its id. */
export const creationOf = (databaseId: string, accountId: string, at: number): databases.CreateArgs => ({
  database: {
    database_id: databaseId,
    account_id: accountId,
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
    rest_token: `rw-${databaseId}`,
    read_only_rest_token: `ro-${databaseId}`,
    created_at: at,
  },
  ports: { from: 9000, to: 9999, avoid: [] },
  slugs: [`calm-bay-${databaseId}`],
  limit: 10,
  forgetBefore: 0,
})
