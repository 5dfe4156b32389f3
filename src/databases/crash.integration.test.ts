import { mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { processesMarked, waitFor } from '../../test/support/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { HomeportError } from '../contract/errors/errors.js'
import { everyRow } from './lifecycle.js'
import { ask, create, databaseDirs, expectNothing, least } from './testing/checks.js'
import { type ManagementOptions, type ManagementServer, startManagement } from './testing/management.js'
import * as databases from './transactions/databases.js'

describe('a creation that fails', () => {
  const clock = new ManualClock()
  let server: ManagementServer
  /** The methods of the fleet that a test replaces. */
  let faults: Pick<ManagementOptions, 'ensure' | 'remove'> = {}

  beforeAll(async () => {
    server = await startManagement({
      clock,
      ensure: (fleet, spec) => (faults.ensure ? faults.ensure(fleet, spec) : fleet.ensure(spec)),
      remove: (fleet, databaseId) => (faults.remove ? faults.remove(fleet, databaseId) : fleet.remove(databaseId)),
    })
  })
  afterEach(async () => {
    faults = {}
    for (const { database_id } of await server.databases.list(server.owner, 'hide'))
      await server.databases.remove(server.owner, database_id)
  })

  it.each([
    ['the engine does not start', new HomeportError('engine_failed', { reason: 'it ended at once' }), 503],
    ['the disk is full', new HomeportError('store_full', {}), 503],
    ['something unforeseen happens', new Error('a defect'), 500],
  ])('leaves nothing when %s', async (_what, failure, expected) => {
    faults = {
      ensure: async (fleet, spec) => {
        await fleet.ensure(spec)
        throw failure
      },
    }
    const { status, body } = await server.api('POST', '/v2/redis/database', least, { 'idempotency-key': 'once' })
    expect(status).toBe(expected)
    expect(body.error).not.toContain('a defect')
    await expectNothing(server)
  })

  it('can be repeated with the same idempotency key', async () => {
    faults = { ensure: () => Promise.reject(new HomeportError('engine_failed', { reason: 'not yet' })) }
    const headers = { 'idempotency-key': 'again' }
    expect((await server.api('POST', '/v2/redis/database', least, headers)).status).toBe(503)
    faults = {}
    const record = await create(server, {}, headers)
    expect(await create(server, {}, headers)).toEqual(record)
  })

  it('is rolled back later when the rollback fails at first', async () => {
    let failures = 1
    faults = {
      ensure: async (fleet, spec) => {
        await fleet.ensure(spec)
        throw new HomeportError('engine_failed', { reason: 'it ended' })
      },
      remove: async (fleet, databaseId) => {
        if (failures-- > 0) throw new HomeportError('store_unavailable', {})
        await fleet.remove(databaseId)
      },
    }
    expect((await server.api('POST', '/v2/redis/database', least)).status).toBe(503)
    expect(databaseDirs(server)).toHaveLength(1)
    clock.advance(5_000)
    const rows = () => everyRow(server.store)
    await waitFor(async () => (await rows()).length === 0, { what: 'the rollback' })
    await expectNothing(server)
  })

  it('uses the next port when another program holds the first', async () => {
    const otherProgram = createServer()
    await new Promise<void>((resolve) => otherProgram.listen(server.redisPorts.from, '127.0.0.1', resolve))
    onTestFinished(() => void otherProgram.close())
    const record = await create(server)
    expect(record.port).toBe(server.redisPorts.from + 1)
    expect((await server.api('GET', `/v2/redis/database/${record.database_id}`)).body).toEqual(record)
  })
})

it('a restart keeps databases, rolls back a creation and completes a deletion that a crash interrupted', async () => {
  const first = await startManagement()
  const kept = await create(first, { read_regions: ['us-west-1'] })
  const login: [string, string] = ['default', kept.password ?? '']
  await ask(first, kept.database_id, 'us-east-1', login, ['SET', 'k', 'v'])
  const going = await create(first)
  await leaveHalfDone(first, kept.database_id, going.database_id)
  await first.close()
  expect(processesMarked(first.dataDir)).toEqual([])

  const again = await startManagement({ dataDir: first.dataDir, redisPorts: first.redisPorts })
  expect((await again.api('GET', '/v2/redis/databases')).body).toEqual([{ ...kept, state: 'passive' }])
  expect(databaseDirs(again)).toEqual([kept.database_id])
  expect(await ask(again, kept.database_id, 'us-east-1', login, ['GET', 'k'])).toBe('v')
  expect((await again.api('GET', `/v2/redis/database/${kept.database_id}`)).body).toEqual(kept)
  expect(again.databases.directory.byRestToken(kept.rest_token ?? '')?.database.port).toBe(kept.port)
  await create(again, {}, { 'idempotency-key': 'half' })
})

/** Leaves what a crash would: a deletion that has begun, a creation that has not ended, and an unknown directory. */
async function leaveHalfDone({ store, owner, dataDir, redisPorts }: ManagementServer, keptId: string, goingId: string) {
  const { accountId } = owner
  const audit = { log_id: 'l', account_id: accountId, actor: '', source: '', action: '', entity: '', details: '{}' }
  await store.run(databases.beginDelete, { accountId, databaseId: goingId, audit: { ...audit, ip: '', at: 1 } })
  const half = (await everyRow(store)).find((row) => row.database_id === keptId)
  if (!half) throw new Error('the database that stays is in the store')
  const { port: _, slug: _slug, state: _state, modifying_state: _modifying, ...rest } = half
  await store.run(databases.create, {
    database: { ...rest, database_id: 'half-made', rest_token: 'h1', read_only_rest_token: 'h2' },
    ports: { ...redisPorts, avoid: [] },
    slugs: ['half-made-1'],
    limit: 9,
    forgetBefore: 0,
    idempotency: { key: 'half', requestHash: 'h' },
  })
  for (const name of ['half-made', 'orphan'])
    mkdirSync(join(dataDir, 'databases', name, 'us-east-1'), { recursive: true })
}
