import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { ask, create } from './testing/checks.js'
import { type ManagementServer, startManagement } from './testing/management.js'

let server: ManagementServer
/** The transaction whose answer is lost next. */
let lostNext: string | undefined

const losesCommit = (name: string): boolean => {
  if (name !== lostNext) return false
  lostNext = undefined
  return true
}

beforeAll(async () => {
  server = await startManagement({ losesCommit })
})

afterEach(async () => {
  for (const { database_id } of await server.databases.list(server.owner, 'hide'))
    await server.databases.remove(server.owner, database_id)
})

const body = { database_name: 'lost', platform: 'aws', primary_region: 'us-east-1' }
const post = (path: string, sent?: unknown, headers?: Record<string, string>) =>
  server.api('POST', `/v2/redis/${path}`, sent, headers)

async function losing(name: string, request: () => ReturnType<typeof post>): Promise<void> {
  lostNext = name
  expect((await request()).status).toBe(503)
}

describe('a creation whose commit is not confirmed', () => {
  it('is undone when it had begun, and can be repeated with its idempotency key', async () => {
    const request = () => post('database', body, { 'idempotency-key': 'k' })
    await losing('databases.create', request)
    const again = async () => (await request()).status === 200
    await waitFor(again, { what: 'the database to be created' })
    const [record, ...others] = await server.databases.list(server.owner, 'show')
    expect(others).toEqual([])
    const { database_id: id = '', password = '' } = record ?? {}
    expect(await ask(server, id, 'us-east-1', ['default', password], ['PING'])).toBe('PONG')
  })

  it('succeeds when only its end was not confirmed', async () => {
    lostNext = 'databases.finishCreate'
    const { database_id: id, password = '' } = await create(server)
    expect(lostNext).toBeUndefined()
    expect(await ask(server, id, 'us-east-1', ['default', password], ['PING'])).toBe('PONG')
  })
})

describe('a change whose commit is not confirmed', () => {
  const servedTo = (id: string) => server.databases.directory.find(id)?.allowedIpRanges

  it('takes effect all the same, at the latest when it is repeated', async () => {
    const { database_id: id } = await create(server)
    const change = () => post(`update-allowlist/${id}`, { allowed_ips: ['192.0.2.0/24'] })
    await losing('databases.configure', change)
    await waitFor(() => servedTo(id)?.length === 1, { what: 'the list to be followed' })
    const { directory } = server.databases
    const row = directory.rowOf(id)
    if (row) directory.put({ ...row, allowed_ips: '[]' })
    expect((await change()).status).toBe(200)
    expect(servedTo(id)).toEqual(['192.0.2.0/24'])
  })

  it('does not keep the database busy when it had only begun', async () => {
    const { database_id: id } = await create(server)
    const change = () => post(`change-plan/${id}`, { plan_name: 'payg' })
    await losing('databases.beginChange', change)
    await waitFor(async () => (await change()).status === 200, { what: 'the plan to be changed' })
  })
})

describe('long work that had only begun when its commit was not confirmed', () => {
  const backupsOf = async (id: string) => (await server.api('GET', `/v2/redis/list-backup/${id}`)).body
  const backUp = (id: string) => post(`create-backup/${id}`, { name: 'nightly' })
  const isFree = (id: string) => async () =>
    (await server.databases.get(server.owner, id, 'hide')).modifying_state === ''

  it('is a failed backup', async () => {
    const { database_id: id } = await create(server)
    await losing('backups.begin', () => backUp(id))
    await waitFor(isFree(id), { what: 'the backup to be given up' })
    expect(await backupsOf(id)).toMatchObject([{ state: 'failed' }])
  })

  it('is a restore that has changed nothing', async () => {
    const { database_id: id } = await create(server)
    await backUp(id)
    const [{ backup_id }] = await backupsOf(id)
    const restore = () => post(`restore-backup/${id}`, { backup_id })
    await losing('restores.begin', restore)
    await waitFor(isFree(id), { what: 'the restore to be given up' })
    expect((await restore()).status).toBe(200)
  })

  it('is a failed import', async () => {
    const { database_id: id } = await create(server)
    await losing('imports.begin', () => post(`import/${id}`, { url: 'redis://127.0.0.1:1' }))
    await waitFor(isFree(id), { what: 'the import to be given up' })
    expect((await server.api('GET', `/v2/redis/import/${id}`)).body).toMatchObject({ state: 'failed' })
    expect(await backupsOf(id)).toMatchObject([{ state: 'failed' }])
  })

  it('is an acceptance of a loss that can be repeated', async () => {
    const { database_id: id } = await create(server)
    server.databases.recordDataReport(id, { kind: 'missing', what: 'the test says so' })
    const accept = () => post(`accept-loss/${id}`)
    await waitFor(async () => (await server.databases.get(server.owner, id, 'hide')).data_problem, { what: 'the loss' })
    await losing('databasesData.beginAccept', accept)
    await waitFor(isFree(id), { what: 'the acceptance to be given up' })
    expect((await accept()).status).toBe(200)
  })

  it('is a deletion that is completed', async () => {
    const { database_id: id } = await create(server)
    await losing('databases.beginDelete', () => server.api('DELETE', `/v2/redis/database/${id}`))
    const isGone = async () => (await server.databases.list(server.owner, 'hide')).length === 0
    await waitFor(isGone, { what: 'the database to be deleted' })
  })
})
