import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { tempDir, waitFor } from '../../../../test/support/index.js'
import { ManualClock } from '../../../base/testing/manual-clock.js'
import type { BackupRecord } from '../../../contract/databases/backups.js'
import type { DatabaseRecord } from '../../../contract/databases/databases.js'
import { BackupKeys, ObjectStorage } from '../../../objects/index.js'
import { ObjectServer } from '../../../objects/testing/object-server.js'
import { silentLogger } from '../../../telemetry/index.js'
import { Problems } from '../../../telemetry/problems.js'
import { create } from '../../testing/checks.js'
import { type ManagementOptions, type ManagementServer, startManagement } from '../../testing/management.js'
import { backUp, command, restore } from '../../testing/requests.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
let objects: ObjectServer

beforeAll(async () => {
  objects = await ObjectServer.start()
})
beforeEach(() => {
  objects.fault = () => undefined
})
afterAll(() => objects.stop())

const RETENTION = { count: 2, ageMs: 30 * DAY_MS, bytes: 0 }

async function start(prefix: string, options: ManagementOptions = {}, keys?: BackupKeys) {
  const dir = options.dataDir ?? tempDir()
  const own = keys ?? (await BackupKeys.open(dir))
  const clock = new ManualClock()
  const problems = new Problems(clock, silentLogger)
  const storage = new ObjectStorage(objects.options(prefix))
  const objectStorage = { storage, keys: own, retention: RETENTION }
  const server = await startManagement({ clock, problems, ...options, objectStorage })
  return { server, clock, keys: own, problems }
}

const listed = async (server: ManagementServer, { database_id }: DatabaseRecord): Promise<BackupRecord[]> =>
  (await server.api('GET', `/v2/redis/list-backup/${database_id}`)).body
const fileOf = (server: ManagementServer, { database_id, backup_id }: BackupRecord) =>
  join(server.dataDir, 'backups', database_id, `${backup_id}.rdb`)

/** Waits for a state, an hour of the clock at a time. */
const later = (clock: ManualClock, isThere: () => Promise<boolean>, what: string): Promise<unknown> =>
  waitFor(
    async () => {
      clock.advance(HOUR_MS)
      return isThere()
    },
    { what },
  )

async function stored(server: ManagementServer, record: DatabaseRecord): Promise<BackupRecord> {
  let found: BackupRecord | undefined
  const what = 'the backup to be stored'
  await waitFor(
    async () => {
      found = (await listed(server, record)).find((one) => one.storage?.state === 'stored')
      return found !== undefined
    },
    { what },
  )
  if (!found) throw new Error(what)
  return found
}

const keysAt = async (prefix: string): Promise<string[]> => {
  const storage = new ObjectStorage(objects.options(prefix))
  const keys: string[] = []
  for await (const { key } of storage.list('')) keys.push(key)
  await storage.close()
  return keys
}

describe('backups in object storage', () => {
  it('are uploaded encrypted, listed with their place, and restored without the local file', async () => {
    let hasSpace = true
    const { server } = await start('first/', { checkSpace: () => (hasSpace ? undefined : Promise.resolve(false)) })
    const record = await create(server)
    await command(server, record, 'SET', 'greeting', 'hello-in-plain-text')
    expect((await backUp(server, record)).body).toBe('OK')
    const backup = await stored(server, record)
    const key = `databases/${record.database_id}/${backup.backup_id}`
    expect(backup).toMatchObject({ on_disk: true, storage: { object: `s3://homeport/first/${key}` } })
    const storage = new ObjectStorage(objects.options('first/'))
    const chunks: Buffer[] = []
    for await (const chunk of storage.get(key)) chunks.push(chunk)
    await storage.close()
    const sealed = Buffer.concat(chunks)
    expect(sealed.length).toBe(backup.storage?.size)
    expect(sealed.includes('hello-in')).toBe(false)
    expect(sealed.includes('nightly')).toBe(false)

    rmSync(fileOf(server, backup))
    expect((await listed(server, record))[0]).toMatchObject({ on_disk: false, storage: { state: 'stored' } })
    await command(server, record, 'SET', 'greeting', 'later')
    hasSpace = false
    const download = `/v2/redis/download-backup/${record.database_id}/${backup.backup_id}`
    expect(await server.api('GET', download)).toMatchObject({ status: 503 })
    expect(existsSync(fileOf(server, backup))).toBe(false)
    hasSpace = true
    expect(await restore(server, record, backup.backup_id)).toEqual({ status: 200, body: 'OK' })
    expect(await command(server, record, 'GET', 'greeting')).toBe('hello-in-plain-text')

    await server.api('DELETE', `/v2/redis/delete-backup/${record.database_id}/${backup.backup_id}`)
    await waitFor(async () => (await keysAt('first/')).length === 0, { what: 'the object to be deleted' })
  })

  it('wait while the storage is away, and are uploaded later', async () => {
    objects.fault = () => ({ kind: 'status', status: 503, code: 'SlowDown' })
    const { server, clock, problems } = await start('away/')
    await waitFor(() => problems.count === 1, { what: 'the problem' })
    const record = await create(server)
    await backUp(server, record)
    const waiting = async () => (await listed(server, record))[0]?.storage
    await waitFor(async () => (await waiting())?.failure !== undefined, { what: 'the failure' })
    expect(await waiting()).toMatchObject({ state: 'waiting', failure: expect.stringContaining('503 SlowDown') })
    expect(problems.all()[0]?.title).toContain('kept on this machine only')
    objects.fault = () => undefined
    await later(clock, async () => (await waiting())?.state === 'stored', 'the upload')
    await waitFor(() => problems.count === 0, { what: 'the problem to be solved' })
  })

  it('are deleted while the storage is full, and then there is space for the next one', async () => {
    const { server, clock } = await start('full/')
    const record = await create(server)
    await backUp(server, record, 'first')
    const { database_id, backup_id } = await stored(server, record)
    const isFull = async () => (await keysAt('full/')).length > 0
    let wasFull = true
    objects.fault = ({ method }) =>
      wasFull && method === 'PUT' ? { kind: 'status', status: 507, code: 'QuotaExceeded' } : undefined
    await backUp(server, record, 'second')
    const second = async () => (await listed(server, record)).find((one) => one.name === 'second')?.storage
    await waitFor(async () => (await second())?.failure !== undefined, { what: 'the failure' })
    await server.api('DELETE', `/v2/redis/delete-backup/${database_id}/${backup_id}`)
    await later(clock, async () => !(await isFull()), 'the object to be deleted')
    wasFull = false
    await later(clock, async () => (await second())?.state === 'stored', 'the upload')
  })

  it('do not wait for a backup whose upload always fails, nor do deletions', async () => {
    const { server, clock, problems } = await start('refused/')
    const record = await create(server)
    await backUp(server, record, 'first')
    const first = await stored(server, record)
    let refused = ''
    objects.fault = ({ method, url }) => {
      if (method !== 'PUT') return undefined
      refused ||= url ?? ''
      return url === refused ? { kind: 'status', status: 403, code: 'Locked' } : undefined
    }
    const stateOf = async (name: string) => (await listed(server, record)).find((one) => one.name === name)?.storage
    await backUp(server, record, 'refused')
    await waitFor(() => problems.count === 1, { what: 'the problem' })
    await backUp(server, record, 'second')
    await waitFor(async () => (await stateOf('second'))?.state === 'stored', { what: 'the second upload' })
    await server.api('DELETE', `/v2/redis/delete-backup/${record.database_id}/${first.backup_id}`)
    const isGone = async () => !(await keysAt('refused/')).some((key) => key.endsWith(first.backup_id))
    await waitFor(isGone, { what: 'the first to be deleted' })
    // Neither do backups whose upload failed too, because the storage was away for a moment.
    const isRefused = objects.fault
    objects.fault = () => ({ kind: 'status', status: 503, code: 'SlowDown' })
    await backUp(server, record, 'third')
    await waitFor(async () => (await stateOf('third'))?.failure !== undefined, { what: 'the failure' })
    objects.fault = isRefused
    await later(clock, async () => (await stateOf('third'))?.state === 'stored', 'the third upload')
    expect(await stateOf('refused')).toMatchObject({ state: 'waiting', failure: expect.stringContaining('Locked') })
    expect(problems.count).toBe(1)
  })

  it('are not stored when the storage alters or cuts them', async () => {
    const { server, clock } = await start('altered/')
    const record = await create(server)
    for (const fault of [
      { kind: 'flip', atByte: 100 },
      { kind: 'cut', afterBytes: 60 },
    ] as const) {
      objects.fault = ({ method, url }) => (method === 'GET' && !url?.includes('max-keys') ? fault : undefined)
      await backUp(server, record, fault.kind)
      await waitFor(async () => (await listed(server, record))[0]?.storage?.failure !== undefined, {
        what: 'the failure',
      })
      const [backup] = await listed(server, record)
      expect(backup).toMatchObject({ on_disk: true, storage: { state: 'waiting' } })
      objects.fault = () => undefined
      const areStored = async () => (await listed(server, record)).every((one) => one.storage?.state === 'stored')
      await later(clock, areStored, 'the upload')
    }
    // And when it alters them later, nothing is restored.
    const [backup] = await listed(server, record)
    if (!backup) throw new Error('no backup')
    rmSync(fileOf(server, backup))
    await command(server, record, 'SET', 'kept', 'yes')
    objects.fault = ({ method }) => (method === 'GET' ? { kind: 'flip', atByte: 90 } : undefined)
    const refused = await restore(server, record, backup.backup_id)
    expect(refused).toMatchObject({ status: 400, body: { error: expect.stringContaining('damaged or cut off') } })
    expect(await command(server, record, 'GET', 'kept')).toBe('yes')
    expect(existsSync(fileOf(server, backup))).toBe(false)
  })

  it('do not include a file that has changed', async () => {
    objects.fault = () => ({ kind: 'status', status: 403, code: 'AccessDenied' })
    const { server, clock, problems } = await start('changed/')
    await waitFor(() => problems.count === 1, { what: 'the problem' })
    const record = await create(server)
    await backUp(server, record)
    await waitFor(async () => (await listed(server, record))[0]?.storage?.failure !== undefined, {
      what: 'the failure',
    })
    const [backup] = await listed(server, record)
    if (!backup) throw new Error('no backup')
    writeFileSync(fileOf(server, backup), Buffer.concat([readFileSync(fileOf(server, backup)), Buffer.from('x')]))
    objects.fault = () => undefined
    await later(clock, async () => (await listed(server, record))[0]?.storage?.state === 'unusable', 'the refusal')
    expect(await keysAt('changed/')).toEqual([])
  })

  it('are restored by another server that has the key, and by none that has not', async () => {
    const first = await start('moved/')
    const record = await create(first.server)
    await command(first.server, record, 'MSET', 'a', '1', 'b', '2')
    await backUp(first.server, record, 'to move')
    const backup = await stored(first.server, record)
    const from = { database_id: record.database_id, backup_id: backup.backup_id }

    const keyless = tempDir()
    const second = await start('moved/', {}, await BackupKeys.open(keyless))
    const other = await create(second.server)
    const into = `/v2/redis/adopt-stored-backup/${other.database_id}`
    const list = async () => (await second.server.api('GET', '/v2/redis/stored-backups')).body
    expect(await list()).toMatchObject([
      { ...from, problem: expect.stringContaining('is encrypted with the backup key') },
    ])
    expect(await second.server.api('POST', into, from)).toMatchObject({ status: 400 })

    await second.keys.learn(first.keys.texts)
    expect(await list()).toMatchObject([
      { ...from, name: 'to move', database_name: record.database_name, key_count: 2 },
    ])
    // Of two at the same time, one is refused, and the database stays busy until the other has ended.
    const both = await Promise.all([1, 2].map(() => second.server.api('POST', into, from)))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    const adopted = both.find(({ status }) => status === 200) ?? { status: 0, body: {} }
    expect(adopted).toMatchObject({ status: 200, body: { database_id: other.database_id } })
    expect(await restore(second.server, other, adopted.body.backup_id)).toEqual({ status: 200, body: 'OK' })
    expect(await command(second.server, other, 'GET', 'b')).toBe('2')
    expect(await second.server.api('POST', into, { ...from, backup_id: 'bak_none' })).toMatchObject({ status: 404 })
  })

  it('expire on the disk before they expire in the storage', async () => {
    let onCheck: (() => Promise<unknown>) | undefined
    const { server, clock } = await start('daily/', {
      checkSnapshot: (fleet, file) => onCheck?.().then(() => fleet.checkSnapshot(file)),
    })
    const record = await create(server)
    await server.api('POST', `/v2/redis/change-plan/${record.database_id}`, { plan_name: 'payg' })
    expect((await server.api('PATCH', `/v2/redis/enable-dailybackup/${record.database_id}`)).body).toBe('OK')
    const seen = new Set<string>()
    const dayPasses = async () => {
      const before = [clock.now(), seen.size] as const
      const isStored = async () => {
        if (clock.now() < before[0] + 1.1 * DAY_MS) clock.advance(HOUR_MS)
        for (const one of await listed(server, record)) if (one.storage?.state === 'stored') seen.add(one.backup_id)
        return seen.size > before[1]
      }
      await waitFor(isStored, { what: 'the daily backup' })
    }
    for (const _ of [1, 2, 3]) await dayPasses()
    await later(clock, async () => (await keysAt('daily/')).length === 2, 'the oldest to be deleted')
    const isOnDisk = async () => (await listed(server, record)).map((one) => one.on_disk).join() === 'true,false'
    await later(clock, isOnDisk, 'the older file to be deleted')
    // Its file is deleted again while the restore makes its safety backup.
    const [, older] = await listed(server, record)
    if (!older) throw new Error('no older backup')
    onCheck = () => later(clock, async () => !existsSync(fileOf(server, older)), 'the older file to be deleted again')
    expect(await restore(server, record, older.backup_id)).toEqual({ status: 200, body: 'OK' })
  })
})
