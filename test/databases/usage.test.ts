import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis as RestClient } from '@upstash/redis'
import { Redis } from 'iovalkey'
import { expect, it, onTestFinished } from 'vitest'
import { firstColumn, openSqlite } from '../../src/base/index.js'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import { DEFAULT_PLANS } from '../../src/contract/databases/plans.js'
import type { DatabaseStats } from '../../src/contract/databases/stats.js'
import { type RunningHomeport, startHomeport, tempDir, waitFor } from '../support/index.js'

/** Usage on a real server: counts survive SIGKILL, and limits hold on both protocols. */

const FLUSH_MS = 100

/** Plans on which a few commands reach a limit. */
function smallPlans(): string {
  const file = join(tempDir(), 'plans.json')
  const free = { ...DEFAULT_PLANS.free, db_request_limit: 30 }
  const payg = { ...DEFAULT_PLANS.payg, price_per_100k_commands: 10_000 }
  writeFileSync(file, JSON.stringify({ free, payg }))
  return file
}

const start = (plansFile: string, server?: RunningHomeport) =>
  startHomeport({ ...server?.place, args: ['--plans-file', plansFile, '--usage-flush-ms', `${FLUSH_MS}`] })

async function create(server: RunningHomeport, some: object): Promise<DatabaseRecord> {
  const least = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }
  return (await server.api('POST', '/v2/redis/database', { ...least, ...some })).body as DatabaseRecord
}

function connect({ port, password = '' }: DatabaseRecord): Redis {
  const client = new Redis({ host: '127.0.0.1', port, password, retryStrategy: () => null, enableReadyCheck: false })
  client.on('error', () => undefined)
  onTestFinished(() => client.disconnect())
  return client
}

const restOf = ({ rest_url: url, rest_token: token = '' }: DatabaseRecord) =>
  new RestClient({ url, token, retry: false, enableTelemetry: false })

const statsOf = async (server: RunningHomeport, { database_id }: DatabaseRecord) =>
  (await server.api('GET', `/v2/redis/stats/${database_id}`)).body as DatabaseStats
const stateOf = async (server: RunningHomeport, { database_id }: DatabaseRecord) =>
  ((await server.api('GET', `/v2/redis/database/${database_id}`)).body as DatabaseRecord).state

/** The stored counts, which survive a SIGKILL. */
function storedRequests({ place }: RunningHomeport, { database_id }: DatabaseRecord): number {
  const file = openSqlite(join(place.dataDir, 'homeport.sqlite'), { readOnly: true })
  try {
    const sum = 'SELECT coalesce(sum(requests), 0) FROM usage_days WHERE database_id = ?'
    return firstColumn(file.prepare(sum).all(database_id))[0] as number
  } finally {
    file.close()
  }
}

/** Sends many commands at once; returns how many succeeded, and the first refusal. */
async function sendMany(client: Redis): Promise<[number, string | undefined]> {
  const sent = Array.from({ length: 100 }, () => client.get('k'))
  const refusals = (await Promise.allSettled(sent)).filter((answer) => answer.status === 'rejected')
  return [sent.length - refusals.length, String(refusals[0]?.reason)]
}

it('counts requests, and enforces the monthly limit and the budget across a SIGKILL', async () => {
  const plansFile = smallPlans()
  let server = await start(plansFile)
  const limited = await create(server, { plan: 'free' })
  const budgeted = await create(server, { budget: 2, read_regions: ['eu-west-1'] })

  const client = connect(limited)
  await client.set('k', 'v')
  for (let i = 0; i < 18; i++) await client.get(i % 2 ? 'k' : 'missing')
  await restOf(limited).eval('return 1', [], [])
  const stats = await statsOf(server, limited)
  expect(stats).toMatchObject({
    total_monthly_requests: 20,
    total_monthly_read_requests: 18,
    total_monthly_write_requests: 1,
    total_monthly_script_requests: 1,
  })
  expect(stats.dailybandwidth).toBeGreaterThan(500)
  const seen = async () => {
    const { hits, misses, keyspace } = await statsOf(server, limited)
    return [hits, misses, keyspace].every((series) => (series.at(-1)?.y ?? 0) + (series.at(-2)?.y ?? 0) > 0)
  }
  await waitFor(seen, { what: 'what the engine counts' })

  // A write to a database with one read region is two requests, of which each costs ten cents.
  const writer = connect(budgeted)
  for (let i = 0; i < 5; i++) await writer.set('k', 'v')
  const isWritten = async () => (await statsOf(server, budgeted)).total_monthly_billing === 1
  await waitFor(isWritten, { what: 'the cost of five writes' })

  const isStored = () => storedRequests(server, limited) === 20 && storedRequests(server, budgeted) === 10
  await waitFor(isStored, { what: 'the usage to be written down', everyMs: 50 })
  await server.kill('SIGKILL')
  server = await start(plansFile, server)

  expect((await statsOf(server, limited)).total_monthly_requests).toBe(20)
  expect(await sendMany(connect(limited))).toEqual([
    10,
    expect.stringContaining('ERR max requests limit exceeded. Limit: 30, Usage: 30'),
  ])
  expect(await sendMany(connect(budgeted))).toEqual([
    10,
    expect.stringContaining('ERR This database has been suspended for exceeding the defined budget limit'),
  ])
  await expect(restOf(budgeted).get('k')).rejects.toThrow('exceeding the defined budget limit')
  await waitFor(async () => (await stateOf(server, budgeted)) === 'suspended', { what: 'the suspension' })
  expect((await statsOf(server, budgeted)).total_monthly_billing).toBe(2)
  const { body } = await server.api('PATCH', `/v2/redis/update-budget/${budgeted.database_id}`, { budget: 3 })
  expect(body).toBe('OK')
  expect(await connect(budgeted).get('k')).toBe('v')
})

it('the server shows keys and sizes up to the last command, and those of a restored backup', async () => {
  const server = await startHomeport({ args: ['--usage-flush-ms', '60000'] })
  const [shop, copy] = [
    await create(server, { plan: 'payg' }),
    await create(server, { plan: 'payg', database_name: 'copy' }),
  ]
  const figures = async (of: DatabaseRecord) => {
    const { keyspace, diskusage, current_storage } = await statsOf(server, of)
    return { keys: keyspace.at(-1)?.y, disk: diskusage.at(-1)?.y, storage: current_storage }
  }
  const much = 'x'.repeat(500_000)
  for (const key of ['a', 'b', 'c']) await restOf(shop).set(key, much)
  const seen = {
    keys: 3,
    disk: expect.toSatisfy((bytes) => bytes > 500_000),
    storage: expect.toSatisfy((bytes) => bytes > 1e6),
  }
  expect(await figures(shop)).toEqual(seen)

  await server.api('POST', `/v2/redis/create-backup/${shop.database_id}`, { name: 'all' })
  const [backup] = (await server.api('GET', `/v2/redis/list-backup/${shop.database_id}`)).body as {
    backup_id: string
  }[]
  const restore = { backup_id: backup?.backup_id }
  expect((await server.api('POST', `/v2/redis/restore-backup/${copy.database_id}`, restore)).body).toBe('OK')
  expect(await figures(copy)).toEqual({ ...seen, disk: expect.toSatisfy((bytes) => bytes > 0) })
})
