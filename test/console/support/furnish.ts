import type { RunningHomeport } from '../../support/index.js'

/** Creates example data of a shop for every page. Returns the ID of its database. */
export async function furnish(homeport: RunningHomeport): Promise<string> {
  const shop = await create(homeport, { database_name: 'shop', read_regions: ['us-east-1'], budget: 20 })
  await create(homeport, { database_name: 'sessions', plan: 'fixed_250mb', eviction: true })
  await create(homeport, { database_name: 'staging', platform: 'gcp', primary_region: 'europe-west1' })
  await send(shop, [
    ...Array.from({ length: 40 }, (_, i) => [
      'HSET',
      `user:${i}`,
      'name',
      `Customer ${i}`,
      'mail',
      `c${i}@example.com`,
    ]),
    ['SET', 'config:theme', JSON.stringify({ dark: true, accent: 'harbour', products: [1, 2, 3] })],
    ['ZADD', 'bestsellers', '120', 'anchor', '80', 'compass', '64', 'lantern'],
    ['RPUSH', 'jobs', 'resize:1', 'resize:2', 'mail:7'],
    ['XADD', 'orders', '*', 'total', '42', 'currency', 'EUR'],
    ['SET', 'session:a81', 'user:1', 'EX', '3600'],
    ...Array.from({ length: 60 }, (_, i) => ['HGET', `user:${i}`, 'name']),
  ])
  await makeUser(shop, 'reporting', ['on', '~news:*', '~user:*', '+@read'])
  await makeUser(shop, 'importer', ['on', '~import:*', '&progress', '+@read', '+@write'])
  await homeport.api('POST', `/v2/redis/create-backup/${shop.database_id}`, { name: 'before the migration' })
  const { body } = await homeport.api('POST', '/v2/team', { team_name: 'crew', copy_cc: false })
  const { team_id } = body as { team_id: string }
  const member = { team_id, member_email: 'ada@example.com', member_role: 'dev' }
  await homeport.api('POST', '/v2/teams/member', member)
  await homeport.api('POST', '/v2/apikeys', { name: 'deploy' })
  await homeport.api('POST', '/v2/apikeys', { name: 'dashboards', read_only: true })
  return shop.database_id
}

interface Made {
  readonly database_id: string
  readonly rest_url: string
  readonly rest_token: string
}

async function create(homeport: RunningHomeport, some: object): Promise<Made> {
  const least = { platform: 'aws', primary_region: 'eu-central-1' }
  return (await homeport.api('POST', '/v2/redis/database', { ...least, ...some })).body as Made
}

/** Creates a database user. Its password must come from a token. */
async function makeUser(database: Made, name: string, rules: readonly string[]): Promise<void> {
  const token = await command(database, ['ACL', 'GENTOKEN', name])
  await command(database, ['ACL', 'SETUSER', name, ...rules, `>${token}`])
}

async function command({ rest_url, rest_token }: Made, line: readonly string[]): Promise<unknown> {
  const headers = { authorization: `Bearer ${rest_token}` }
  const response = await fetch(rest_url, { method: 'POST', headers, body: JSON.stringify(line) })
  return ((await response.json()) as { result: unknown }).result
}

async function send({ rest_url, rest_token }: Made, commands: readonly (readonly string[])[]): Promise<void> {
  const headers = { authorization: `Bearer ${rest_token}` }
  await fetch(`${rest_url}/pipeline`, { method: 'POST', headers, body: JSON.stringify(commands) })
}
