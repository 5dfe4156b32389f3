import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { ask, create, enginesOf } from '../testing/checks.js'
import { type ManagementServer, startManagement } from '../testing/management.js'
import { recordOf } from '../testing/requests.js'
import * as databasesChanges from '../transactions/databases-changes.js'

let server: ManagementServer
/** `Fleet.ensure` waits for it. */
let gate: Promise<void> | undefined
let failures = 0

beforeAll(async () => {
  server = await startManagement({
    ensure: async (fleet, spec) => {
      await gate
      if (failures-- > 0) throw new HomeportError('engine_failed', { reason: 'the test says so' })
      await fleet.ensure(spec)
    },
  })
})

afterEach(async () => {
  failures = 0
  gate = undefined
  for (const { database_id } of await server.databases.list(server.owner, 'hide'))
    await server.databases.remove(server.owner, database_id)
})

afterAll(() => server.close())

const regionsTo = ({ database_id }: DatabaseRecord, read_regions: readonly unknown[]) =>
  server.api('POST', `/v2/redis/update-regions/${database_id}`, { read_regions })
const login = ({ password = '' }: DatabaseRecord): [string, string] => ['default', password]

/** Closes the gate; returns the function that opens it. */
function closeGate(): () => void {
  let open = (): void => {}
  gate = new Promise((resolve) => {
    open = resolve
  })
  return open
}

describe('the read regions of a database', () => {
  it('can be added and removed while the primary loses neither a write nor a connection', async () => {
    const record = await create(server, { read_regions: ['us-west-1'] })
    const [primary] = await server.databases.endpoints(record.database_id)
    const [username, password] = login(record)
    const client = new Redis({ path: primary?.socketPath ?? '', username, password, retryStrategy: () => null })
    onTestFinished(() => client.disconnect())
    let lost = 0
    client.on('close', () => lost++)
    let acknowledged = 0
    let writing = true
    const writes = (async () => {
      while (writing) acknowledged = await client.incr('n')
    })()
    for (const regions of [['us-west-1', 'eu-west-1'], ['eu-west-1'], ['ap-south-1', 'eu-west-1'], []]) {
      expect(await regionsTo(record, regions)).toEqual({ status: 200, body: 'OK' })
      const all_members = ['us-east-1', ...regions]
      expect(await recordOf(server, record)).toEqual({
        ...record,
        read_regions: regions,
        all_members,
        replicas: 1 + regions.length,
      })
      const reached = (await server.databases.endpoints(record.database_id)).map((one) => one.region)
      expect(reached).toEqual(all_members)
      expect(enginesOf(server, record.database_id)).toHaveLength(all_members.length)
      const sofar = acknowledged
      for (const region of regions) {
        const copied = async () => Number(await ask(server, record.database_id, region, login(record), ['GET', 'n']))
        await waitFor(async () => (await copied()) >= sofar, { what: `the writes to reach ${region}` })
      }
    }
    writing = false
    await writes
    expect([await client.get('n'), lost]).toEqual([String(acknowledged), 0])
    expect(acknowledged).toBeGreaterThan(10)
  })

  it('are validated as at the creation', async () => {
    const record = await create(server)
    const german = await create(server, { platform: 'gcp', primary_region: 'us-central1' })
    const refused: readonly [DatabaseRecord, readonly unknown[], string][] = [
      [record, ['us-east-1'], 'must not hold the primary region'],
      [record, ['us-west-1', 'us-west-1'], 'must not repeat a region'],
      [record, ['moon'], 'must be one of us-east-1'],
      [german, ['us-west-1'], 'must be empty on platform "gcp"'],
    ]
    for (const [database, regions, text] of refused) {
      const { status, body } = await regionsTo(database, regions)
      expect([status, body.error]).toEqual([400, expect.stringContaining(text)])
    }
    expect((await server.api('POST', `/v2/redis/update-regions/${record.database_id}`, 'null')).status).toBe(400)
    expect(await regionsTo(record, [])).toEqual({ status: 200, body: 'OK' })
    expect(await recordOf(server, record)).toEqual(record)
  })

  it('stay unchanged when the engines fail to follow', async () => {
    const record = await create(server, { read_regions: ['us-west-1'] })
    failures = 1
    expect((await regionsTo(record, ['eu-west-1'])).status).toBe(503)
    expect(await recordOf(server, record)).toEqual(record)
    await waitFor(async () => (await server.databases.endpoints(record.database_id)).length === 2, {
      what: 'the replica',
    })
    expect(enginesOf(server, record.database_id)).toHaveLength(2)
  })
})

describe('a database that is being changed', () => {
  it('refuses every other change with its modifying_state, and serves meanwhile', async () => {
    const record = await create(server)
    const id = record.database_id
    const open = closeGate()
    const first = regionsTo(record, ['us-west-1'])
    await waitFor(async () => (await recordOf(server, record)).modifying_state !== '', { what: 'the change to begin' })
    expect(await recordOf(server, record)).toEqual({ ...record, modifying_state: 'updating_regions' })
    const others: readonly [string, string, unknown?][] = [
      ['POST', `rename/${id}`, { name: 'x' }],
      ['POST', `reset-password/${id}`],
      ['POST', `enable-tls/${id}`],
      ['POST', `enable-eviction/${id}`],
      ['POST', `enable-autoupgrade/${id}`],
      ['POST', `enable-prodpack/${id}`],
      ['POST', `${id}/change-plan`, { plan: 'fixed_1gb' }],
      ['PATCH', `update-budget/${id}`, { budget: 1 }],
      ['POST', `update-regions/${id}`, { read_regions: ['eu-west-1'] }],
      ['POST', `update-allowlist/${id}`, { allowed_ips: ['10.0.0.1'] }],
      ['DELETE', `database/${id}`],
    ]
    for (const [method, path, body] of others) {
      const answer = await server.api(method, `/v2/redis/${path}`, body)
      expect([path, answer.status, answer.body.error]).toEqual([
        path,
        409,
        expect.stringContaining('"updating_regions"'),
      ])
    }
    expect(await ask(server, id, 'us-east-1', login(record), ['PING'])).toBe('PONG')
    open()
    expect(await first).toEqual({ status: 200, body: 'OK' })
    expect(await recordOf(server, record)).toMatchObject({
      modifying_state: '',
      read_regions: ['us-west-1'],
      tls: false,
    })
  })

  it('accepts one of two concurrent changes', async () => {
    const record = await create(server)
    const answers = await Promise.all([
      regionsTo(record, ['us-west-1']),
      server.api('POST', `/v2/redis/change-plan/${record.database_id}`, { plan: 'fixed_1gb' }),
    ])
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 409])
    const { read_regions, type, modifying_state } = await recordOf(server, record)
    const isFirst = answers[0]?.status === 200
    expect([read_regions, type, modifying_state]).toEqual(isFirst ? [['us-west-1'], 'payg', ''] : [[], 'paid', ''])
  })

  it('has the old configuration after a restart during the change', async () => {
    const first = await startManagement()
    const record = await create(first, { read_regions: ['us-west-1'] })
    const args = { accountId: first.owner.accountId, databaseId: record.database_id }
    await first.store.run(databasesChanges.begin, { ...args, modifyingState: 'updating_regions' })
    await first.close()
    // As far as a change can get before its commit: a replica in a region that the row does not have.
    const half = join(first.dataDir, 'databases', record.database_id, 'eu-west-1')
    mkdirSync(half, { mode: 0o700 })
    writeFileSync(join(half, 'engine.conf'), '')
    const further = join(first.dataDir, 'databases', record.database_id, 'eu-west-2')
    mkdirSync(further, { mode: 0o700 })
    const again = await startManagement({ dataDir: first.dataDir, redisPorts: first.redisPorts })
    onTestFinished(() => again.close())
    expect([existsSync(half), existsSync(further)]).toEqual([false, false])
    expect((await again.api('GET', '/v2/redis/databases')).body).toEqual([{ ...record, state: 'passive' }])
    expect((await again.databases.endpoints(record.database_id)).length).toBeGreaterThan(0)
    const renamed = await again.api('POST', `/v2/redis/rename/${record.database_id}`, { name: 'free again' })
    expect(renamed.status).toBe(200)
  })
})
