import { afterAll, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import * as accounts from '../accounts/transactions/accounts.js'
import type { DatabaseRecord } from '../contract/databases/databases.js'
import { create } from './testing/checks.js'
import { type ManagementServer, startManagement } from './testing/management.js'
import { recordOf } from './testing/requests.js'
import { resume, suspend } from './transactions/databases-changes.js'

let server: ManagementServer

beforeAll(async () => {
  server = await startManagement()
})

afterAll(() => server.close())

const post = (path: string) => server.api('POST', `/v2/redis/${path}`)
const admissionOf = ({ database_id }: DatabaseRecord) => server.databases.usage.usageOf(database_id).admission

/** Suspends a database as its budget does, or ends that. */
async function byBudget(move: 'suspend' | 'resume', { database_id: databaseId }: DatabaseRecord): Promise<void> {
  const audit = { log_id: crypto.randomUUID(), actor: 'homeport', source: 'SYSTEM', action: 'x', entity: databaseId }
  const args = { databaseId, audit: { ...audit, details: '{}', ip: '', at: 1 } }
  const row = await server.store.run(move === 'suspend' ? suspend : resume, args)
  if (row) await server.databases.changes.publish(row)
}

it('its owner suspends a database: commands are refused, engines stop, and a resume ends it', async () => {
  const record = await create(server)
  const { database_id: id } = record
  expect(await post(`suspend/${id}`)).toEqual({ status: 200, body: 'OK' })
  expect(await post(`suspend/${id}`)).toEqual({ status: 200, body: 'OK' })
  expect(await recordOf(server, record)).toMatchObject({ state: 'suspended', suspended_by: 'owner' })
  expect(admissionOf(record)).toMatchObject({ kind: 'refused', error: { code: 'database_suspended' } })
  await expect(server.databases.endpoints(id)).rejects.toThrow('suspended by its owner')
  await waitFor(() => server.fleet.observe(id).every(({ state }) => state === 'stopped'), { what: 'no engine' })
  const { body } = await server.api('GET', `/v2/redis/database/${id}`)
  expect(body.password).toBe(record.password)
  expect(await post(`resume/${id}`)).toEqual({ status: 200, body: 'OK' })
  expect(admissionOf(record)).toEqual({ kind: 'open' })
  expect(await recordOf(server, record)).not.toHaveProperty('suspended_by')
  await server.databases.endpoints(id)
  const log = await server.store.run(accounts.auditLog, { accountId: server.owner.accountId, limit: 100 })
  const acts = log.filter(({ entity }) => entity === id).map(({ action }) => action)
  expect(acts).toEqual(['Resume Database', 'Suspend Database', 'Create Database'])
})

it('a suspension by the owner and one by the budget do not end each other', async () => {
  const record = await create(server)
  const { database_id: id } = record
  await byBudget('suspend', record)
  expect((await post(`resume/${id}`)).status).toBe(409)
  expect((await recordOf(server, record)).suspended_by).toBe('budget')
  await post(`suspend/${id}`)
  await byBudget('resume', record)
  expect((await recordOf(server, record)).suspended_by).toBe('owner')
  expect(admissionOf(record)).toMatchObject({ error: { code: 'database_suspended' } })
  await byBudget('suspend', record)
  expect((await post(`resume/${id}`)).status).toBe(200)
  expect((await recordOf(server, record)).suspended_by).toBe('budget')
})

it('a suspension outlives a restart', async () => {
  const record = await create(server)
  await post(`suspend/${record.database_id}`)
  const { dataDir, redisPorts } = server
  await server.close()
  server = await startManagement({ dataDir, redisPorts })
  expect(await recordOf(server, record)).toMatchObject({ state: 'suspended', suspended_by: 'owner' })
  expect(admissionOf(record)).toMatchObject({ error: { code: 'database_suspended' } })
})
