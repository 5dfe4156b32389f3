import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import SqliteFile from 'better-sqlite3'
import { expect, it } from 'vitest'
import { describeOnEveryStore } from '../../src/store/testing/index.js'
import { type Answer, call, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'

interface Tenant {
  readonly account_id: string
  readonly email: string
  readonly api_key: string
  readonly queue_token: string
}

const LATER = { 'upstash-delay': '1d' }
const errorOf = ({ body }: Answer): string => String((body as { error?: unknown }).error)

describeOnEveryStore('accounts of others', (_openStore, on) => {
  const start = async (place: object = {}, env?: Record<string, string>) =>
    startHomeport({ ...place, ...(env === undefined ? {} : { env }) })

  const asTenant = ({ apiUrl, queueUrl }: RunningHomeport, tenant: Tenant) => {
    const basic = Buffer.from(`${tenant.email}:${tenant.api_key}`).toString('base64')
    return {
      api: (method: string, path: string, json?: unknown) =>
        call(`${apiUrl}${path}`, { method, json, headers: { authorization: `Basic ${basic}` } }),
      queue: (method: string, path: string, json?: unknown) =>
        call(`${queueUrl}${path}`, {
          ...{ method, headers: { authorization: `Bearer ${tenant.queue_token}`, ...LATER } },
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
    expect([taken.status, errorOf(taken)]).toEqual([409, expect.stringContaining('exists already')])
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
    ]
    expect(used.map(({ status }) => status)).toEqual(used.map(() => 200))

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
        ...{ method: 'POST', headers: { 'x-homeport-console': '1' } },
        json: { email: tenant.email, api_key: tenant.api_key },
      }),
    ]
    for (const answer of refused)
      expect([answer.status, errorOf(answer)]).toEqual([403, expect.stringContaining('suspended by the operator')])
    expect((await homeport.api('POST', `/v2/accounts/${tenant.account_id}/resume`)).status).toBe(200)
    expect((await ping()).body).toEqual({ result: 'PONG' })

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
    if (env === undefined) expectNoRows(homeport.place.dataDir, [tenant.account_id, team.team_id, other.team_id])
  })
})

/** Expects no row of any table that names one of these accounts in any of its columns, but for the operator's audit log. */
function expectNoRows(dataDir: string, accountIds: readonly string[]): void {
  const file = new SqliteFile(join(dataDir, 'homeport.sqlite'), { readonly: true })
  const tables = file.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as { name: string }[]
  const left = tables.flatMap(({ name }) => {
    const text = JSON.stringify(file.prepare(`SELECT * FROM "${name}"`).all())
    return accountIds.some((id) => text.includes(id)) ? [name] : []
  })
  file.close()
  expect(left).toEqual(['audit_log'])
}
