import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Client, QstashDailyRatelimitError } from '@upstash/qstash'
import pg from 'pg'
import { expect, it } from 'vitest'
import { openSqlite } from '../../src/base/index.js'
import { startSink } from '../../src/queue/testing/sink.js'
import { describeOnEveryStore } from '../../src/store/testing/index.js'
import {
  type Answer,
  atCleanup,
  basicOf,
  call,
  commandHost,
  type RunningHomeport,
  startHomeport,
  waitFor,
} from '../support/index.js'
import { signedIn } from './signed-in.js'

interface Tenant {
  readonly account_id: string
  readonly email: string
  readonly api_key: string
  readonly queue_token: string
}

const LATER = { 'upstash-delay': '1d' }
const errorOf = ({ body }: Answer): string => String((body as { error?: unknown }).error)

describeOnEveryStore('accounts of tenants', (_openStore, on) => {
  const start = async (place: object = {}, env?: Record<string, string>) =>
    startHomeport({ ...place, ...(env === undefined ? {} : { env }) })

  const asTenant = ({ apiUrl, queueUrl }: RunningHomeport, tenant: Tenant) => {
    const authorization = basicOf(tenant.email, tenant.api_key)
    return {
      api: (method: string, path: string, json?: unknown) =>
        call(`${apiUrl}${path}`, { method, json, headers: { authorization } }),
      queue: (method: string, path: string, json?: unknown, headers: object = {}) =>
        call(`${queueUrl}${path}`, {
          method,
          headers: { authorization: `Bearer ${tenant.queue_token}`, ...LATER, ...headers },
          ...(json === undefined ? {} : { json }),
        }),
    }
  }

  async function newTenant(homeport: RunningHomeport, body: object): Promise<Tenant> {
    const made = await homeport.api('POST', '/v2/accounts', body)
    expect(made.status).toBe(200)
    return made.body as Tenant
  }

  it('are free by default, limited, suspended and resumed, and deleted with everything in spite of a crash', async () => {
    const { location } = await on.newPlace()
    const env = location === 'sqlite' ? undefined : { HOMEPORT_STORE: location }
    let homeport = await start({}, env)
    const tenant = await newTenant(homeport, { email: 'Ada@example.com' })
    const taken = await homeport.api('POST', '/v2/accounts', { email: 'ada@EXAMPLE.com' })
    expect([taken.status, errorOf(taken)]).toEqual([409, expect.stringContaining('already exists')])
    const { api, queue } = asTenant(homeport, tenant)

    const create = (name: string) =>
      api('POST', '/v2/redis/database', { database_name: name, platform: 'aws', primary_region: 'us-east-1' })
    const { body } = await create('shop')
    const database = body as { database_id: string; type: string; rest_url: string; rest_token: string }
    expect(database.type).toBe('free')
    expect((await create('second')).status).toBeGreaterThanOrEqual(400)
    const ping = () => call(`${homeport.restUrl}/ping`, { headers: { authorization: `Bearer ${database.rest_token}` } })
    expect((await ping()).body).toEqual({ result: 'PONG' })

    const foreign = [await api('GET', '/v2/accounts'), await api('DELETE', `/v2/accounts/${tenant.account_id}`)]
    expect(foreign.map(({ status }) => status)).toEqual([403, 403])
    expect(JSON.stringify((await homeport.api('GET', '/v2/accounts')).body)).not.toContain(tenant.api_key)
    expect((await homeport.api('GET', `/v2/redis/database/${database.database_id}`)).status).toBe(404)

    const to = 'https://example.invalid/x'
    const team = (await api('POST', '/v2/team', { team_name: 'crew', copy_cc: false })).body as { team_id: string }
    const token = await api('POST', '/v2/queue-tokens', { name: 'crew', team_id: team.team_id })
    const crew = { ...tenant, queue_token: (token.body as { token: string }).token }
    const used = [
      await asTenant(homeport, crew).queue('POST', `/v2/publish/${to}`, {}),
      await queue('POST', `/v2/publish/${to}`, {}),
      await queue('POST', `/v2/enqueue/orders/${to}`, {}),
      await queue('POST', `/v2/trigger/${to}`, {}),
      await queue('POST', '/v2/topics/all/endpoints', { endpoints: [{ url: to }] }),
      await api('POST', `/v2/redis/create-backup/${database.database_id}`, { name: 'b' }),
      await api('POST', '/v2/apikeys', { name: 'more' }),
      await queue('POST', `/v2/publish/${to}`, {}, { 'upstash-deduplication-id': 'once' }),
      await queue(
        'POST',
        `/v2/publish/${to}`,
        {},
        { 'upstash-flow-control-key': 'k', 'upstash-flow-control-value': 'rate=1' },
      ),
      await queue('POST', `/v2/schedules/${to}`, {}, { 'upstash-cron': '0 0 1 1 *' }),
      await queue('POST', '/v2/publish/http://127.0.0.1:9/x', {}, { 'upstash-delay': '0s', 'upstash-retries': '0' }),
      await queue('POST', '/v2/workflows/bulkActions', { kind: 'cancelRuns', selector: { label: 'none' } }),
      await api('POST', '/v2/alerts/channels', { name: 'ops', url: 'https://example.invalid/alerts', kinds: [] }),
      await api('POST', '/v2/alerts/silences', {
        kind: 'budget',
        until: Math.floor(Date.now() / 1000) + 9_999,
        reason: 'x',
      }),
    ]
    expect(used.map(({ status }) => Math.floor(status / 100))).toEqual(used.map(() => 2))

    const other = (await api('POST', '/v2/team', { team_name: 'other', copy_cc: false })).body as { team_id: string }
    const theirs = await api('POST', '/v2/queue-tokens', { name: 'theirs', team_id: other.team_id })
    const others = asTenant(homeport, { ...tenant, queue_token: (theirs.body as { token: string }).token })
    expect((await others.queue('POST', `/v2/publish/${to}`, {})).status).toBe(200)
    expect((await api('DELETE', `/v2/team/${other.team_id}`)).status).toBe(200)
    expect((await others.queue('GET', '/v2/queues')).status).toBe(401)
    expect((await api('GET', '/v2/teams')).body).toMatchObject([{ team_name: 'crew' }])

    await homeport.api('POST', `/v2/accounts/${tenant.account_id}/suspend`)
    const refused = [
      await api('GET', '/v2/redis/databases'),
      await queue('GET', '/v2/queues'),
      await asTenant(homeport, crew).queue('GET', '/v2/queues'),
      await ping(),
      await call(`${homeport.apiUrl}/v2/console/session`, {
        method: 'POST',
        headers: { 'x-homeport-console': '1' },
        json: { email: tenant.email, api_key: tenant.api_key },
      }),
    ]
    for (const answer of refused)
      expect([answer.status, errorOf(answer)]).toEqual([403, expect.stringContaining('suspended by the operator')])
    expect((await homeport.api('POST', `/v2/accounts/${tenant.account_id}/resume`)).status).toBe(200)
    expect((await ping()).body).toEqual({ result: 'PONG' })

    const ids = [tenant.account_id, team.team_id, other.team_id]
    const before = await tablesNaming(ids, homeport.place.dataDir, location)
    expect(before.length, before.join()).toBeGreaterThanOrEqual(17)

    const deletion = homeport.api('DELETE', `/v2/accounts/${tenant.account_id}`).catch(() => undefined)
    const rows = async () => (await homeport.api('GET', '/v2/accounts')).body as { email: string; state: string }[]
    const isBegun = async () => (await rows()).find(({ email }) => email === tenant.email)?.state !== 'active'
    await waitFor(isBegun, { what: 'the deletion to begin' })
    await homeport.kill('SIGKILL')
    await deletion
    homeport = await start(homeport.place, env)
    expect((await asTenant(homeport, tenant).api('GET', '/v2/redis/databases')).status).toBe(401)
    await waitFor(async () => (await rows()).length === 1, { what: 'the deletion to be completed' })
    for (const folder of ['databases', 'backups']) {
      const path = join(homeport.place.dataDir, folder)
      expect(existsSync(path) ? readdirSync(path) : []).toEqual([])
    }
    await homeport.kill('SIGTERM')
    // Only the operator's audit log still names them.
    expect(await tablesNaming(ids, homeport.place.dataDir, location)).toEqual(['audit_log'])
  })
})

/** The tables with a row that names one of these accounts in any of its columns. */
async function tablesNaming(accountIds: readonly string[], dataDir: string, location: string): Promise<string[]> {
  const rows = location === 'sqlite' ? rowsOfFile(join(dataDir, 'homeport.sqlite')) : await rowsOfServer(location)
  const naming = rows.filter(([, text]) => accountIds.some((id) => text.includes(id)))
  return naming.map(([name]) => name).sort()
}

type TableText = readonly [name: string, text: string]

function rowsOfFile(path: string): TableText[] {
  const file = openSqlite(path, { readOnly: true })
  const tables = file.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as { name: string }[]
  const rows = tables.map(({ name }) => [name, JSON.stringify(file.prepare(`SELECT * FROM "${name}"`).all())] as const)
  file.close()
  return rows
}

async function rowsOfServer(url: string): Promise<TableText[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const tables = await client.query<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
    )
    const rows: TableText[] = []
    for (const { name } of tables.rows) {
      rows.push([name, JSON.stringify((await client.query(`SELECT * FROM "${name}"`)).rows)])
    }
    return rows
  } finally {
    await client.end()
  }
}

it('deliver nothing while suspended, also after a crash, and keep within their limits', async () => {
  let homeport = await startHomeport()
  const sink = await startSink()
  atCleanup(() => sink.close())
  const made = await homeport.api('POST', '/v2/accounts', {
    email: 'ada@example.com',
    database_limit: 0,
    daily_messages: 3,
  })
  const tenant = made.body as Tenant
  const authorization = basicOf(tenant.email, tenant.api_key)
  const create = (name: string) =>
    call(`${homeport.apiUrl}/v2/redis/database`, {
      method: 'POST',
      headers: { authorization },
      json: { database_name: name, platform: 'aws', primary_region: 'us-east-1' },
    })
  const client = () => new Client({ baseUrl: homeport.queueUrl, token: tenant.queue_token, retry: false })
  const command = commandHost()
  const limits = (...flags: string[]) =>
    command(['accounts', 'limits', 'ada@example.com', ...flags, '--data-dir', homeport.place.dataDir])

  expect(errorOf(await create('none'))).toContain('0 databases')
  expect((await limits('--databases', '1')).code).toBe(0)
  expect((await create('one')).body).toMatchObject({ type: 'free' })
  expect((await create('two')).status).toBeGreaterThanOrEqual(400)

  const received = () => sink.received.map(({ target }) => target)
  sink.answer = ({ target }) => (target === '/tenant' ? { status: 500 } : {})
  await client().publish({ url: `${sink.url}/first`, deduplicationId: 'once' })
  await client().publish({ url: `${sink.url}/first`, deduplicationId: 'once' })
  await waitFor(() => received().length === 1, { what: 'the first delivery' })
  const three = ['a', 'b', 'c'].map((name) => ({ url: `${sink.url}/${name}` }))
  const refused = await client()
    .batch(three)
    .catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(QstashDailyRatelimitError)
  expect(refused).toMatchObject({ limit: '3', remaining: '2', reset: expect.stringMatching(/^\d{10}$/) })
  await client().publish({ url: `${sink.url}/second` })
  await waitFor(() => received().length === 2, { what: 'the second delivery' })
  await client().publish({ url: `${sink.url}/tenant`, retries: 5, retryDelay: '2000' })
  await waitFor(() => received().includes('/tenant'), { what: 'the first attempt' })
  await homeport.api('POST', `/v2/accounts/${tenant.account_id}/suspend`)
  await homeport.queue('POST', `/v2/publish/${sink.url}/operator`, {}, { 'upstash-delay': '3s' })
  await homeport.kill('SIGKILL')
  homeport = await startHomeport(homeport.place)
  await waitFor(() => received().includes('/operator'), { what: 'a later message of another' })
  expect(received()).toEqual(['/first', '/second', '/tenant', '/operator'])
  sink.answer = () => ({})
  await homeport.api('POST', `/v2/accounts/${tenant.account_id}/resume`)
  await waitFor(() => received().length === 5, { what: 'the message of the resumed account' })

  await expect(client().publish({ url: `${sink.url}/fourth` })).rejects.toBeInstanceOf(QstashDailyRatelimitError)
  expect((await limits('--daily-messages', '4')).stdout).toContain('4 messages a day')
  await client().publish({ url: `${sink.url}/fourth` })
  await expect(client().publish({ url: `${sink.url}/fifth` })).rejects.toBeInstanceOf(QstashDailyRatelimitError)
  expect(await limits('--daily-messages', 'default')).toMatchObject({ code: 0, stderr: '' })
  await client().publish({ url: `${sink.url}/fifth` })
})

it('the commands accept the name of a team in place of its id', async () => {
  const homeport = await startHomeport()
  const { cli, works } = signedIn(() => homeport)
  await works('teams', 'create', 'the crew')
  const added = await cli(['teams', 'add', 'the crew', 'bob@example.com', 'dev'])
  expect(added.stderr).toContain("keys create <name> --team 'the crew' --member bob@example.com")
  await works('keys', 'create', 'bobs', '--team', 'the crew', '--member', 'bob@example.com')
  expect(await works('keys', 'list', '--team', 'the crew')).toMatch(/bobs .*bob@example.com/)
  await works('queue', 'tokens', 'create', 'shop', '--team', 'the crew')
  expect(await works('queue', 'tokens', 'list', '--team', 'the crew')).toContain('shop')
  await works('teams', 'remove', 'the crew', 'bob@example.com', '--yes')
  expect(await works('teams', 'members', 'the crew')).not.toContain('bob')
  expect(await cli(['teams', 'members', 'crew'])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('the crew ('),
  })
  expect(await works('teams', 'delete', 'the crew', '--yes')).toBe('deleted the crew\n')
})
