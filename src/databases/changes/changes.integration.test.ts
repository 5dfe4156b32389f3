import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import { yieldToEventLoop } from '../../base/index.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { DEFAULT_PLANS } from '../../contract/databases/plans.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { ask, create, observerOf } from '../testing/checks.js'
import { type ManagementServer, startManagement } from '../testing/management.js'
import { recordOf } from '../testing/requests.js'

const MIB = 2 ** 20
const plans = { ...DEFAULT_PLANS, fixed_250mb: { ...DEFAULT_PLANS.fixed_250mb, db_memory_threshold: 8 * MIB } }

/** Shared by all tests that do not start their own server; without databases when a test starts. */
let server: ManagementServer
/** Makes `Fleet.ensure` fail. */
let refuseEngines: ((regions: number) => boolean) | undefined
let beforeAnswer: ((name: string) => Promise<void> | undefined) | undefined
let transactions: string[] = []

beforeAll(async () => {
  server = await startManagement({
    plans,
    onTransaction: (name) => void transactions.push(name),
    beforeAnswer: (name) => beforeAnswer?.(name),
    ensure: (fleet, spec) => {
      if (refuseEngines?.(spec.members.length)) throw new HomeportError('engine_failed', { reason: 'the test says so' })
      return fleet.ensure(spec)
    },
  })
})

afterEach(async () => {
  refuseEngines = undefined
  beforeAnswer = undefined
  for (const { database_id } of await server.databases.list(server.owner, 'hide'))
    await server.databases.remove(server.owner, database_id)
})

const ownerOf = ({ password = '' }: DatabaseRecord): [string, string] => ['default', password]
const post = (path: string, body?: unknown) => server.api('POST', `/v2/redis/${path}`, body)
const actsOn = async ({ database_id }: DatabaseRecord): Promise<string[]> => {
  const log = await server.store.run(accounts.auditLog, { accountId: server.owner.accountId, limit: 100 })
  return log.filter((entry) => entry.entity === database_id).map((entry) => entry.action)
}
async function ok(answer: Promise<{ status: number; body: unknown }>): Promise<void> {
  expect(await answer).toEqual({ status: 200, body: 'OK' })
}

describe('a short change', () => {
  it('renames the database and answers its record', async () => {
    const record = await create(server)
    const { status, body } = await post(`rename/${record.database_id}`, { name: '  new name ' })
    expect([status, body]).toEqual([200, { ...record, database_name: 'new name' }])
    expect(await recordOf(server, record)).toEqual(body)
    expect((await post(`rename/${record.database_id}`, { name: ' ' })).body.error).toContain(
      '`name` must have 1 to 128',
    )
    expect((await post(`rename/${record.database_id}`)).body.error).toContain('`name` is required')
    expect(await actsOn(record)).toEqual(['Rename Database', 'Create Database'])
  })

  it('sets the budget', async () => {
    const record = await create(server)
    const path = `/v2/redis/update-budget/${record.database_id}`
    await ok(server.api('PATCH', path, { budget: 360 }))
    expect(await recordOf(server, record)).toMatchObject({ budget: 360 })
    for (const budget of [-1, 1.5, '5', 1_000_001, undefined]) {
      expect((await server.api('PATCH', path, { budget })).status).toBe(400)
    }
    expect((await server.api('POST', path, { budget: 1 })).status).toBe(405)
  })

  it('toggles settings, with any empty body', async () => {
    const record = await create(server)
    const id = record.database_id
    let sent = 0
    const set = (verb: string) => post(`${verb}/${id}`, [undefined, '', '{}', 'null'][sent++ % 4])
    await ok(set('enable-eviction'))
    await ok(set('enable-eviction'))
    await ok(set('enable-autoupgrade'))
    const again = await set('enable-autoupgrade')
    expect([again.status, again.body.error]).toEqual([409, expect.stringContaining('already enabled')])
    await ok(set('enable-prodpack'))
    await ok(set('enable-prodpack'))
    const on = {
      eviction: true,
      db_eviction: true,
      auto_upgrade: true,
      prod_pack_enabled: true,
      prometheus_enabled: 'true',
      type: 'pro',
    }
    expect(await recordOf(server, record)).toEqual({ ...record, ...on })
    expect(await ask(server, id, 'us-east-1', observerOf(server, id), ['INFO', 'memory'])).toContain(
      'maxmemory_policy:allkeys-lru',
    )
    for (const verb of ['eviction', 'autoupgrade', 'prodpack']) await ok(set(`disable-${verb}`))
    const off = await set('disable-autoupgrade')
    expect([off.status, off.body.error]).toEqual([409, expect.stringContaining('already disabled')])
    expect(await recordOf(server, record)).toEqual(record)
    expect(await ask(server, id, 'us-east-1', observerOf(server, id), ['INFO', 'memory'])).toContain(
      'maxmemory_policy:noeviction',
    )
    expect(await actsOn(record)).toHaveLength(7)
  })

  it('stores the allow list as sent, and refuses invalid addresses', async () => {
    const record = await create(server)
    const path = `update-allowlist/${record.database_id}`
    const allowed_ips = ['203.0.113.7', '10.0.0.0/8', '2001:db8::/32']
    await ok(post(path, { allowed_ips }))
    expect(await recordOf(server, record)).toMatchObject({
      allowed_ip_ranges: allowed_ips,
      securityAddons: { ipWhitelisting: true },
    })
    expect(server.databases.directory.list()[0]?.allowedIpRanges).toEqual(allowed_ips)
    for (const wrong of ['10.0.0.0/33', 'home', '', '10.0.0']) {
      const { status, body } = await post(path, { allowed_ips: [wrong] })
      expect([status, body.error]).toEqual([400, expect.stringContaining(`found "${wrong}"`)])
    }
    await ok(post(path, { allowed_ips: [] }))
    expect(await recordOf(server, record)).toEqual(record)
  })

  it('turns TLS on for good', async () => {
    const record = await create(server)
    const { status, body } = await post(`enable-tls/${record.database_id}`)
    expect([status, body]).toEqual([200, { ...record, tls: true }])
    expect((await post(`enable-tls/${record.database_id}`, {})).body).toEqual(body)
    expect(server.databases.directory.list()[0]?.tls).toBe(true)
    expect(await actsOn(record)).toEqual(['Enable Database TLS', 'Create Database'])
  })
})

describe('new credentials', () => {
  it('replace the old ones everywhere before the request is answered', async () => {
    const record = await create(server, { read_regions: ['eu-west-1'] })
    const id = record.database_id
    const { status, body } = await post(`reset-password/${id}`, {})
    const fresh: DatabaseRecord = body
    expect(status).toBe(200)
    const secrets = ['password', 'rest_token', 'read_only_rest_token'] as const
    for (const secret of secrets) expect(fresh[secret]).not.toBe(record[secret])
    expect(fresh).toEqual({ ...record, ...Object.fromEntries(secrets.map((secret) => [secret, fresh[secret]])) })
    const { directory } = server.databases
    expect(directory.authenticate(id, 'default', record.password ?? '')).toBeUndefined()
    expect(directory.authenticate(id, 'default_ro', record.read_only_rest_token ?? '')).toBeUndefined()
    expect(directory.byRestToken(record.rest_token ?? '')).toBeUndefined()
    expect(directory.byRestToken(fresh.rest_token ?? '')?.database.loginEpoch).toBe(1)
    for (const region of ['us-east-1', 'eu-west-1']) {
      expect(await ask(server, id, region, ownerOf(fresh), ['PING'])).toBe('PONG')
      const old = ['AUTH', ...ownerOf(record)]
      await expect(ask(server, id, region, ownerOf(fresh), old)).rejects.toThrow('WRONGPASS')
    }
  })

  it('stay when an earlier change hears late of its commit', async () => {
    const record = await create(server)
    const id = record.database_id
    let hear = (): void => {}
    const heard = new Promise<void>((resolve) => {
      hear = resolve
    })
    beforeAnswer = (name) => (name === 'databases.finishChange' ? heard : undefined)
    const changing = post(`${id}/change-plan`, { plan: 'fixed_1gb' })
    await waitFor(async () => (await recordOf(server, record)).type === 'paid', { what: 'the commit' })
    transactions = []
    const resetting = server.databases.changes.resetPassword(server.owner, id)
    await yieldToEventLoop()
    // Unless it waits for its turn.
    if (transactions.includes('databases.get')) await resetting
    hear()
    await Promise.all([ok(changing), resetting])
    const { directory } = server.databases
    expect(directory.authenticate(id, 'default', record.password ?? '')).toBeUndefined()
    expect(directory.authenticate(id, 'default', (await resetting).password)).toBe('default')
    expect(directory.find(id)?.maxDataBytes).toBe(1024 * MIB)
  })

  it('hold logins until the engines know them', async () => {
    const record = await create(server)
    const order: string[] = []
    const resetting = post(`reset-password/${record.database_id}`).then(() => order.push('reset'))
    const { directory } = server.databases
    await waitFor(() => !directory.authenticate(record.database_id, undefined, record.password ?? ''), {
      what: 'the old password to be refused',
      everyMs: 1,
    })
    const { username, password } = directory.engineCredentials(record.database_id, 'default')
    expect(await ask(server, record.database_id, 'us-east-1', [username, password], ['PING'])).toBe('PONG')
    await resetting
  })
})

describe('another plan', () => {
  it('is accepted in every spelling, and applied to the running engine', async () => {
    const record = await create(server, { plan: 'free' })
    const id = record.database_id
    await ask(server, id, 'us-east-1', ownerOf(record), ['SET', 'k', 'v'])
    const [before] = await server.databases.endpoints(id)
    await ok(post(`${id}/change-plan`, { plan_name: 'fixed_1gb' }))
    const changed = await recordOf(server, record)
    expect(changed).toMatchObject({ type: 'paid', db_resource_size: 'M', db_memory_threshold: 1024 * MIB })
    expect(Math.abs(changed.last_plan_upgrade_time - Date.now() / 1000)).toBeLessThan(60)
    expect(await ask(server, id, 'us-east-1', observerOf(server, id), ['INFO', 'memory'])).toContain(
      `maxmemory:${1024 * MIB}\r\n`,
    )
    expect(await ask(server, id, 'us-east-1', ownerOf(record), ['GET', 'k'])).toBe('v')
    expect((await server.databases.endpoints(id))[0]?.generation).toBe(before?.generation)
    expect(server.databases.directory.list()[0]?.maxClients).toBe(10_000)
    await ok(post(`change-plan/${id}`, { plan: 'payg' }))
    expect(await recordOf(server, record)).toMatchObject({ type: 'payg' })
    await ok(post(`change-plan/${id}`, { plan_name: 'fixed_1gb', plan: 'fixed_1gb' }))
    expect(await recordOf(server, record)).toMatchObject({ type: 'paid', db_resource_size: 'M' })
  })

  it('accepts the names pro and paid of some clients', async () => {
    const record = await create(server)
    await ok(post(`change-plan/${record.database_id}`, { plan: 'pro' }))
    expect(await recordOf(server, record)).toMatchObject({
      type: 'pro',
      db_resource_size: 'L',
      prod_pack_enabled: true,
    })
    await ok(post(`change-plan/${record.database_id}`, { plan: 'paid', prod_pack_enabled: false, auto_upgrade: true }))
    expect(await recordOf(server, record)).toMatchObject({ type: 'paid', db_resource_size: 'S', auto_upgrade: true })
    expect(await actsOn(record)).toEqual(['Change Database Plan', 'Change Database Plan', 'Create Database'])
  })

  it('is refused with both sizes when it is too small for the data', async () => {
    const record = await create(server)
    const id = record.database_id
    for (let i = 0; i < 10; i++) {
      await ask(server, id, 'us-east-1', ownerOf(record), ['SET', `k${i}`, 'x'.repeat(MIB)])
    }
    const { status, body } = await post(`${id}/change-plan`, { plan_name: 'fixed_250mb' })
    expect(status).toBe(409)
    const [, used, limit] = /holds (\d+) bytes of data, but plan "fixed_250mb" allows (\d+)/.exec(body.error) ?? []
    expect(Number(limit)).toBe(8 * MIB)
    expect(Number(used)).toBeGreaterThan(10 * MIB)
    expect(await recordOf(server, record)).toEqual(record)
    await ok(post(`change-plan/${id}`, { plan: 'paid' }))
    expect(await recordOf(server, record)).toMatchObject({
      type: 'paid',
      db_resource_size: 'M',
      last_plan_upgrade_time: 0,
    })
  })

  it('is refused with an explanation when the request is contradictory', async () => {
    const record = await create(server, { read_regions: ['us-west-1', 'eu-west-1'] })
    const path = `${record.database_id}/change-plan`
    const refused: readonly [unknown, number, string][] = [
      ['', 400, '`plan_name` is required: one of free, payg, fixed_250mb'],
      [{ plan_name: 'platinum' }, 400, '`plan_name` must be one of free'],
      [{ plan_name: 'free', plan: 'payg' }, 400, 'but `plan` is "payg"'],
      [{ plan: 'payg', database_id: 'other' }, 400, '`database_id` is not the database of the path'],
      [{ plan: 'free' }, 400, '`read_regions` may hold at most 1 on plan "free"; found 2'],
      [{ plan: 'free', prod_pack_enabled: true }, 409, 'Plan "free" does not include'],
    ]
    for (const [body, status, text] of refused) {
      const answer = await post(path, body)
      expect([answer.status, answer.body.error]).toEqual([status, expect.stringContaining(text)])
    }
    expect(await recordOf(server, record)).toEqual(record)
  })

  it('leaves the old one when the engine fails to take it', async () => {
    const record = await create(server)
    let failures = 1
    refuseEngines = () => failures-- > 0
    const { status } = await post(`${record.database_id}/change-plan`, { plan: 'fixed_5gb' })
    expect(status).toBe(503)
    expect(await recordOf(server, record)).toEqual(record)
    await ok(post(`${record.database_id}/change-plan`, { plan: 'fixed_5gb' }))
  })
})
