import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { isPortFree, waitFor } from '../../test/support/index.js'
import * as accountsTransactions from '../accounts/transactions/accounts.js'
import { sha256Hex } from '../base/index.js'
import type { DatabaseRecord } from '../contract/databases/databases.js'
import { DEFAULT_PLANS, NO_LIMIT } from '../contract/databases/plans.js'
import { everyRow } from './lifecycle.js'
import { tallyOf } from './summaries.js'
import { ask, create, enginesOf, expectNothing, least } from './testing/checks.js'
import { type ManagementServer, startManagement } from './testing/management.js'

/** Shared by all tests that do not start their own server; without databases when a test starts. */
let server: ManagementServer

beforeAll(async () => {
  server = await startManagement()
})

afterEach(async () => {
  for (const { database_id } of await server.databases.list(server.owner, 'hide'))
    await server.databases.remove(server.owner, database_id)
})

describe('a new database', () => {
  it('takes snapshots only when it is asked for as bolt', async () => {
    const record = await create(server, { db_type: 'bolt' })
    expect(record).toMatchObject({ db_type: 'bolt', state: 'active' })
    expect(await enginesOf(server, record.database_id)).toHaveLength(1)
  })

  it('serves its owner and its read-only user, and has a complete record', async () => {
    const record = await create(server, { database_name: '  my shop ' })
    const { password = '', rest_token, read_only_rest_token = '', database_id } = record
    expect(record).toEqual({
      database_id,
      password,
      rest_token,
      read_only_rest_token,
      creation_time: record.creation_time,
      database_name: 'my shop',
      region: 'global',
      port: server.redisPorts.from,
      endpoint: 'localhost',
      state: 'active',
      tls: false,
      eviction: false,
      db_eviction: false,
      auto_upgrade: false,
      consistent: false,
      budget: 0,
      type: 'payg',
      db_resource_size: 'L',
      db_type: 'pebble',
      modifying_state: '',
      replicas: 1,
      database_type: 'Pay as You Go',
      multizone: false,
      db_daily_bandwidth_limit: Number.MAX_SAFE_INTEGER,
      primary_region: 'us-east-1',
      primary_members: ['us-east-1'],
      all_members: ['us-east-1'],
      read_regions: [],
      db_max_clients: 10_000,
      db_max_request_size: 10_485_760,
      db_max_entry_size: 104_857_600,
      db_disk_threshold: 107_374_182_400,
      db_memory_threshold: 3_221_225_472,
      db_request_limit: NO_LIMIT,
      db_max_commands_per_second: 10_000,
      db_conn_idle_timeout: 21_600_000_000_000,
      db_lua_timeout: 250_000_000,
      db_lua_credits_per_min: 10_000_000_000,
      db_store_max_idle: 900_000_000_000,
      db_max_loads_per_sec: 1_000_000,
      db_acl_enabled: 'false',
      db_acl_default_user_status: 'true',
      prometheus_enabled: 'false',
      last_plan_upgrade_time: 0,
      daily_backup_enabled: false,
      prod_pack_enabled: false,
      allowed_ip_ranges: [],
      customer_id: 'owner@homeport.local',
      user_email: 'owner@homeport.local',
      rest_url: 'http://127.0.0.1:8701',
      securityAddons: {
        ipWhitelisting: false,
        vpcPeering: false,
        privateLink: false,
        tlsMutualAuth: false,
        encryptionAtRest: false,
      },
    })
    expect(Math.abs(record.creation_time - Date.now() / 1000)).toBeLessThan(60)
    expect(password).toMatch(/^[0-9a-f]{32}$/)
    expect(new Set([password, rest_token, read_only_rest_token]).size).toBe(3)
    const owner: [string, string] = ['default', password]
    const reader: [string, string] = ['default_ro', read_only_rest_token]
    expect(await ask(server, database_id, 'us-east-1', owner, ['SET', 'k', 'v'])).toBe('OK')
    expect(await ask(server, database_id, 'us-east-1', reader, ['GET', 'k'])).toBe('v')
    await expect(ask(server, database_id, 'us-east-1', reader, ['SET', 'k', 'w'])).rejects.toThrow('NOPERM')
    const guess = ['AUTH', 'default', rest_token ?? '']
    await expect(ask(server, database_id, 'us-east-1', owner, guess)).rejects.toThrow('WRONGPASS')
    expect(await isPortFree(record.port)).toBe(false)
  })

  it('replicates to every read region before the request is answered', async () => {
    const record = await create(server, { read_regions: ['eu-west-1', 'ap-south-1'] })
    expect(record).toMatchObject({ replicas: 3, all_members: ['us-east-1', 'eu-west-1', 'ap-south-1'] })
    const login: [string, string] = ['default', record.password ?? '']
    const roles = (await server.databases.endpoints(record.database_id)).map(({ region, role }) => `${region} ${role}`)
    expect(roles).toEqual(['us-east-1 primary', 'eu-west-1 replica', 'ap-south-1 replica'])
    await ask(server, record.database_id, 'us-east-1', login, ['SET', 'k', 'v'])
    const copied = () => ask(server, record.database_id, 'ap-south-1', login, ['GET', 'k'])
    await waitFor(async () => (await copied()) === 'v', { what: 'the write to reach the read region' })
  })

  it('is bounded by the smaller of its size limits, and evicts keys when eviction is on', async () => {
    const plans = { ...DEFAULT_PLANS, free: { ...DEFAULT_PLANS.free, db_memory_threshold: 4 * 2 ** 20 } }
    const server = await startManagement({ plans })
    const keeping = await create(server, { plan: 'free' })
    const evicting = await create(server, { plan: 'free', eviction: true })
    expect(keeping).toMatchObject({
      type: 'free',
      db_resource_size: 'S',
      db_memory_threshold: 4_194_304,
      eviction: false,
    })
    const fill = async ({ database_id, password = '' }: DatabaseRecord) => {
      for (let i = 0; i < 8; i++) {
        await ask(server, database_id, 'us-east-1', ['default', password], ['SET', `k${i}`, 'x'.repeat(2 ** 20)])
      }
    }
    await expect(fill(keeping)).rejects.toThrow('OOM')
    await fill(evicting)
  })
})

describe('reading databases', () => {
  it('lists and gets them, with and without credentials, oldest first', async () => {
    const made = [
      await create(server, { database_name: 'one' }),
      await create(server, { database_name: 'two', plan: 'fixed_1gb' }),
    ]
    expect((await server.api('GET', '/v2/redis/databases')).body).toEqual(made)
    const path = `/v2/redis/database/${made[1]?.database_id}`
    expect((await server.api('GET', path)).body).toEqual(made[1])
    const { password, rest_token, read_only_rest_token, ...rest } = made[1] as DatabaseRecord
    expect((await server.api('GET', `${path}?credentials=hide`)).body).toEqual(rest)
    const listed = (await server.api('GET', '/v2/redis/databases?credentials=hide')).body
    expect(JSON.stringify(listed)).not.toMatch(/password|_token/)
    expect((await server.api('GET', `${path}?credentials=maybe`)).status).toBe(400)
  })

  it('answers 404 for databases of other accounts', async () => {
    for (const method of ['GET', 'DELETE']) {
      const { status, body } = await server.api(method, '/v2/redis/database/no-such-id')
      expect(status).toBe(404)
      expect(body.error).toContain('database not found: this account has no database with the id "no-such-id"')
    }
  })

  it('hides credentials for writing from a read-only key, and refuses it every write', async () => {
    const record = await create(server)
    const { store, accounts, databases, owner } = server
    await addKey(server, { name: 'reader', readOnly: 1 })
    await accounts.start() // reloads keys
    const login = { authorization: `Basic ${Buffer.from(`${owner.email}:reader-secret`).toString('base64')}` }
    const seen = (await server.api('GET', `/v2/redis/database/${record.database_id}`, undefined, login)).body
    expect(seen).toMatchObject({ read_only_rest_token: record.read_only_rest_token })
    expect(seen).not.toHaveProperty('password')
    expect(seen).not.toHaveProperty('rest_token')
    for (const [method, path] of [
      ['POST', '/v2/redis/database'],
      ['DELETE', '/v2/redis/database/readonly-check-nonexistent'],
    ] as const) {
      const { status, body } = await server.api(method, path, least, login)
      expect([status, body.error]).toEqual([403, expect.stringContaining('Readonly API key')])
    }
    expect([await everyRow(store), databases.directory.list()]).toEqual([[expect.anything()], [expect.anything()]])
  })
})

/** Inserts another account with one key, whose secret is `<name>-secret`, into the store. */
async function addKey(
  on: ManagementServer,
  key: { name: string; readOnly: 0 | 1; type?: 'free' | 'paid' },
): Promise<void> {
  const id = `acc-${key.name}`
  const signing = { signing_current: 'sig_a', signing_next: 'sig_b' }
  const account = key.type ? id : on.owner.accountId
  await on.store.run(accountsTransactions.create, {
    account: {
      account_id: id,
      email: `${key.name}@homeport.local`,
      type: key.type ?? 'free',
      ...signing,
      queue_user_id: id,
      queue_token_hash: id,
      created_at: 1,
    },
    key: {
      key_id: id,
      account_id: account,
      name: key.name,
      read_only: key.readOnly,
      created_at: 1,
      key_hash: sha256Hex(`${key.name}-secret`),
    },
  })
}

describe('a creation that is refused', () => {
  it('answers the problem, and leaves nothing', async () => {
    const refused: readonly (readonly [unknown, number, string])[] = [
      ['{"database_name":', 400, 'not valid JSON'],
      ['', 400, '`database_name` is required'],
      ['null', 400, '`platform` is required: one of aws, gcp'],
      ['[]', 400, 'must be an object'],
      [{ ...least, platform: 'gcp' }, 400, 'belongs to platform "aws"'],
      [{ ...least, read_regions: ['us-east-1'] }, 400, 'primary region'],
      [{ ...least, plan: 'platinum' }, 400, 'free, payg, fixed_250mb, fixed_1gb'],
      [{ ...least, database_name: 'a\u0007b' }, 400, 'control characters'],
      [JSON.stringify({ ...least, database_name: 'x'.repeat(10 * 2 ** 20) }), 413, 'limit of 1048576 bytes'],
    ]
    for (const [body, status, text] of refused) {
      const answer = await server.api('POST', '/v2/redis/database', body)
      expect([answer.status, answer.body.error]).toEqual([status, expect.stringContaining(text)])
    }
    const unauthorized = await server.api('POST', '/v2/redis/database', least, { authorization: 'Basic eDp5' })
    expect(unauthorized.status).toBe(401)
    await expectNothing(server)
  })

  it('limits a free account to plan free and to its number of databases', async () => {
    await addKey(server, { name: 'small', readOnly: 0, type: 'free' })
    await server.accounts.start() // reloads accounts
    const login = { authorization: `Basic ${Buffer.from('small@homeport.local:small-secret').toString('base64')}` }
    expect((await server.api('POST', '/v2/redis/database', { ...least, plan: 'payg' }, login)).status).toBe(403)
    const record = await create(server, {}, login)
    expect(record).toMatchObject({ type: 'free', customer_id: 'small@homeport.local' })
    const second = await server.api('POST', '/v2/redis/database', least, login)
    expect([second.status, second.body.error]).toEqual([429, expect.stringContaining('limit of 1 database')])
    expect((await server.api('GET', '/v2/redis/databases')).body).toEqual([])
    expect((await server.api('GET', `/v2/redis/database/${record.database_id}`)).status).toBe(404)
    expect((await server.api('DELETE', `/v2/redis/database/${record.database_id}`)).status).toBe(404)
    expect((await server.api('DELETE', `/v2/redis/database/${record.database_id}`, undefined, login)).status).toBe(200)
  })

  it('reports that all ports are taken', async () => {
    const { from } = server.redisPorts
    const small = await startManagement({ redisPorts: { from, to: from } })
    onTestFinished(() => small.close())
    await create(small)
    const { status, body } = await small.api('POST', '/v2/redis/database', least)
    expect([status, body.error]).toEqual([503, expect.stringContaining(`all ports from ${from} to ${from} are in use`)])
    expect((await small.api('GET', '/v2/redis/databases')).body).toHaveLength(1)
  })
})

describe('an idempotency key', () => {
  it('creates one database for many concurrent requests', async () => {
    const headers = { 'idempotency-key': 'k'.repeat(255) }
    const records = await Promise.all([1, 2, 3].map(() => create(server, {}, headers)))
    expect(new Set(records.map((record) => JSON.stringify(record))).size).toBe(1)
    expect((await server.api('GET', '/v2/redis/databases')).body).toHaveLength(1)
  })

  it('is refused with another body, when too long, and after its database was deleted', async () => {
    const headers = { 'idempotency-key': 'mine' }
    const { database_id } = await create(server, {}, headers)
    const other = await server.api('POST', '/v2/redis/database', { ...least, budget: 5 }, headers)
    expect([other.status, other.body.error]).toEqual([409, expect.stringContaining('different body')])
    const long = await server.api('POST', '/v2/redis/database', least, { 'idempotency-key': 'k'.repeat(256) })
    expect([long.status, long.body.error]).toEqual([400, expect.stringContaining('255 characters; found 256')])
    await server.api('DELETE', `/v2/redis/database/${database_id}`)
    const gone = await server.api('POST', '/v2/redis/database', least, headers)
    expect([gone.status, gone.body.error]).toEqual([409, expect.stringContaining('has been deleted')])
    await expectNothing(server)
  })
})

describe('a deletion', () => {
  it.each([
    [undefined, 'null'],
    ['{}', ''],
  ])('leaves nothing, with any empty body (%s, %s)', async (...sent) => {
    const { database_id, database_name } = await create(server, { read_regions: ['us-west-1'] })
    expect(enginesOf(server, database_id)).toHaveLength(2)
    const { accountId } = server.owner
    const auditLog = () => server.store.run(accountsTransactions.auditLog, { accountId, limit: 100 })
    const [creation] = await auditLog()
    expect(creation).toMatchObject({ entity: database_id, entity_name: database_name })
    const { known, settings } = await server.databases.known(accountId)
    expect(known.map(({ row }) => row.database_id)).toEqual([database_id])
    expect(tallyOf(known, settings)).toMatchObject({ active: 1, passive: 0, modifying: 0 })
    const answers = await Promise.all(
      sent.map((body) => server.api('DELETE', `/v2/redis/database/${database_id}`, body)),
    )
    expect(answers).toEqual([
      { status: 200, body: 'OK' },
      { status: 200, body: 'OK' },
    ])
    await expectNothing(server)
    expect((await server.databases.known(accountId)).known).toEqual([])
    expect((await server.api('DELETE', `/v2/redis/database/${database_id}`)).status).toBe(404)
    const entries = (await auditLog()).filter((entry) => entry.entity === database_id)
    expect(entries.map((entry) => entry.action)).toEqual(['Delete Database', 'Create Database'])
    expect(JSON.parse(entries[0]?.details ?? '')).toEqual({ name: database_name })
  })
})
