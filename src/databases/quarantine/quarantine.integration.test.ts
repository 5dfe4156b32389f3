import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/support/index.js'
import { openSqlite, systemClock } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { BackupRecord } from '../../contract/databases/backups.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import type { QuarantineRecord } from '../../contract/databases/quarantine.js'
import { movedReason, QuarantineFiles } from '../../fleet/index.js'
import { Problems, silentLogger } from '../../telemetry/index.js'
import { ask, create, databaseDirs } from '../testing/checks.js'
import { type ManagementServer, startManagement } from '../testing/management.js'
import { refuseLostStore } from './quarantine.js'

const entriesIn = (dataDir: string): string[] => readdirSync(join(dataDir, 'quarantine'))

/** Deletes committed rows, as the loss of a write-ahead log does. */
function forget(dataDir: string, ...statements: readonly string[]): void {
  const db = openSqlite(join(dataDir, 'homeport.sqlite'))
  for (const statement of statements) db.exec(statement)
  db.close()
}

const forgetDatabase = (id: string): string => `DELETE FROM databases WHERE database_id = '${id}'`

async function withValue(server: ManagementServer, value: string): Promise<DatabaseRecord> {
  const record = await create(server)
  const login: [string, string] = ['default', record.password ?? '']
  await ask(server, record.database_id, 'us-east-1', login, ['SET', 'k', value])
  return record
}

it('a database that clients have written to is kept although its creation is incomplete in the store', async () => {
  const first = await startManagement()
  const written = await withValue(first, 'precious')
  await create(first)
  await first.close()
  // The store is as after the loss of the commit that ended the creation.
  forget(first.dataDir, "UPDATE databases SET modifying_state = 'creating'")
  const server = await startManagement({ dataDir: first.dataDir, redisPorts: first.redisPorts })
  expect((await server.api('GET', '/v2/redis/databases')).body).toEqual([])
  expect(databaseDirs(server)).toEqual([])
  const entries: QuarantineRecord[] = (await server.api('GET', '/v2/redis/quarantine')).body
  expect(entries.map((entry) => entry.database_id)).toEqual([written.database_id])
  const adopted = await server.api('POST', `/v2/redis/quarantine/${entries[0]?.id}/adopt`, { name: 'back' })
  expect(adopted).toMatchObject({ status: 200, body: { database_id: written.database_id } })
  const { password } = (await server.api('GET', `/v2/redis/database/${written.database_id}`)).body
  expect(await ask(server, written.database_id, 'us-east-1', ['default', password], ['GET', 'k'])).toBe('precious')
})

describe('files that the store does not know', () => {
  const clock = new ManualClock(Date.now())
  const problems = new Problems(systemClock, silentLogger)
  let dataDir: string
  let server: ManagementServer
  /** The store knows these, but not the backup of the first. */
  let known: string[]
  let kept: DatabaseRecord
  /** It does not know these. */
  let lost: DatabaseRecord
  let forgotten: DatabaseRecord
  let backup: BackupRecord

  beforeAll(async () => {
    const first = await startManagement()
    ;[kept, lost, forgotten] = [
      await withValue(first, 'saved'),
      await withValue(first, 'precious'),
      await create(first),
    ]
    const { database_id: id } = kept
    known = [id, (await create(first)).database_id]
    expect((await first.api('POST', `/v2/redis/create-backup/${id}`, { name: 'b' })).status).toBe(200)
    backup = (await first.api('GET', `/v2/redis/list-backup/${id}`)).body[0]
    await first.close()
    dataDir = first.dataDir
    const lostIds = [lost.database_id, forgotten.database_id]
    forget(dataDir, ...lostIds.map(forgetDatabase), 'DELETE FROM backups')
    server = await startManagement({ dataDir, redisPorts: first.redisPorts, problems, clock })
  })

  const listed = async (): Promise<QuarantineRecord[]> => (await server.api('GET', '/v2/redis/quarantine')).body
  const entryOf = async (kind: string, id: string): Promise<QuarantineRecord> => {
    const entry = (await listed()).find((one) => one.kind === kind && one.database_id === id)
    if (!entry) throw new Error(`no ${kind} of ${id} is in quarantine`)
    return entry
  }
  const adopt = ({ id }: QuarantineRecord, name: string) =>
    server.api('POST', `/v2/redis/quarantine/${id}/adopt`, { name })

  it('are moved into quarantine and reported', async () => {
    expect(databaseDirs(server).sort()).toEqual(known.sort())
    expect(await listed()).toHaveLength(3)
    const entry = await entryOf('database', lost.database_id)
    expect(problems.visibleTo('')).toHaveLength(3)
    expect(problems.visibleTo('')).toContainEqual(expect.objectContaining({ kind: 'quarantine', subject: entry.id }))
    const note = JSON.parse(readFileSync(join(dataDir, 'quarantine', entry.id, 'note.json'), 'utf8'))
    expect(note).toMatchObject({ from: `databases/${lost.database_id}`, reason: expect.any(String) })
  })

  it('of a database can be adopted with its data and id', async () => {
    const entry = await entryOf('database', lost.database_id)
    expect(await adopt(entry, 'back')).toMatchObject({ status: 200, body: { database_id: lost.database_id } })
    const record = (await server.api('GET', `/v2/redis/database/${lost.database_id}`)).body
    expect(record).toMatchObject({ database_name: 'back', primary_region: 'us-east-1' })
    const login: [string, string] = ['default', record.password]
    expect(await ask(server, lost.database_id, 'us-east-1', login, ['GET', 'k'])).toBe('precious')
    expect(problems.count).toBe(2)
    expect(entriesIn(dataDir)).toHaveLength(2)
    expect((await adopt(entry, 'again')).status).toBe(404)
  })

  it('of a backup can be adopted after a check', async () => {
    const { database_id: id } = kept
    const { backup_id } = backup
    const entry = await entryOf('backup', id)
    expect(entry).toMatchObject({ backup_id })
    expect(await adopt(entry, 'found')).toMatchObject({ status: 200, body: { database_id: id, backup_id } })
    expect((await server.api('GET', `/v2/redis/list-backup/${id}`)).body).toMatchObject([
      { backup_id, name: 'found', state: 'completed', key_count: 1, backup_size: backup.backup_size },
    ])
    expect((await server.api('POST', `/v2/redis/restore-backup/${id}`, { backup_id })).status).toBe(200)
  })

  it('are deleted after their retention and not before', async () => {
    /** Lets hours pass, each with time for the check that falls due in it. */
    const pass = async (hours: number): Promise<void> => {
      for (let hour = 0; hour < hours; hour++) {
        clock.advance(3_600_000)
        await server.api('GET', '/v2/redis/databases')
      }
    }
    const { database_id: id } = kept
    const backupsOf = async (): Promise<BackupRecord[]> => (await server.api('GET', `/v2/redis/list-backup/${id}`)).body
    const before = await backupsOf()
    expect(before.map((one) => one.internal_backup_tag)).toContain('safety')
    clock.jump(30 * 86_400_000)
    await pass(3)
    expect(await listed()).toHaveLength(1)
    expect(await backupsOf()).toEqual(before)
    clock.jump(-30 * 86_400_000)
    clock.advance(6 * 86_400_000)
    await pass(12)
    expect(await listed()).toMatchObject([{ database_id: forgotten.database_id }])
    // A check that fails is followed by another one.
    const [folder, away] = [join(dataDir, 'quarantine'), join(dataDir, 'away')]
    renameSync(folder, away)
    writeFileSync(folder, '')
    await pass(6)
    rmSync(folder)
    renameSync(away, folder)
    clock.advance(2 * 86_400_000)
    // The next check is scheduled when the last one has ended.
    const isGone = () => {
      clock.advance(3_600_000)
      return entriesIn(dataDir).length === 0
    }
    await expect.poll(isGone).toBe(true)
  })
})

it('the server does not start beside many databases that the store does not know, and does not touch them', async () => {
  const first = await startManagement()
  const records = [await create(first), await create(first)]
  await first.close()
  forget(first.dataDir, 'DELETE FROM databases')
  const again = { dataDir: first.dataDir, redisPorts: first.redisPorts }
  await expect(startManagement(again)).rejects.toMatchObject({
    code: 'unknown_data',
    details: { databases: 2, known: 0 },
    message: expect.stringContaining('--accept-unknown-data quarantine'),
  })
  const present = readdirSync(join(first.dataDir, 'databases')).sort()
  expect(present).toEqual(records.map((record) => record.database_id).sort())
  expect(existsSync(join(first.dataDir, 'quarantine'))).toBe(false)
  // The old files of a database that another node serves are no problem.
  const from = join(tempDir(), 'old')
  writeFileSync(from, 'data')
  const note = { kind: 'database', databaseId: 'd', reason: movedReason('b'), movedAt: Date.now() } as const
  await new QuarantineFiles(first.dataDir).take(from, note)
  const problems = new Problems(systemClock, silentLogger)
  const consenting = await startManagement({ ...again, acceptUnknownData: 'quarantine', problems })
  expect((await consenting.api('GET', '/v2/redis/quarantine')).body).toHaveLength(3)
  expect(problems.count).toBe(2)
  expect(databaseDirs(consenting)).toEqual([])
})

it('the quarantine lists an entry without its note, and refuses an id that leads to another folder', async () => {
  const dataDir = tempDir()
  const files = new QuarantineFiles(dataDir)
  const from = join(tempDir(), 'x')
  writeFileSync(from, 'data')
  const { id } = await files.take(from, { kind: 'backup', databaseId: 'd', reason: 'r', movedAt: 1 })
  const note = join(dataDir, 'quarantine', id, 'note.json')
  rmSync(note)
  expect(await files.list()).toMatchObject([{ id, kind: 'backup', reason: 'its note cannot be read' }])
  mkdirSync(note)
  expect(await files.list()).toMatchObject([{ id, reason: 'its note cannot be read' }])
  expect(await files.find('../x')).toBeUndefined()
})

it('the quarantine keeps an entry that is being filled, and a start deletes entries that a crash left empty', async () => {
  const dataDir = tempDir()
  const files = new QuarantineFiles(dataDir)
  const { data } = await files.open({ kind: 'database', databaseId: 'd', from: 'd', reason: 'r', movedAt: 1 })
  expect(await files.prune(2)).toEqual([])
  writeFileSync(data, 'data')
  expect(await files.prune(0)).toEqual([])
  expect(await files.list()).toHaveLength(1)
  await files.open({ kind: 'database', databaseId: 'e', from: 'e', reason: 'r', movedAt: 1 })
  await files.deleteUnfilled()
  expect(entriesIn(dataDir)).toHaveLength(1)
})

it('the server refuses to create a new store beside databases, unless the operator agrees', async () => {
  const dataDir = tempDir()
  const config = { dataDir, store: { kind: 'sqlite' }, acceptUnknownData: 'few' } as const
  await expect(refuseLostStore(config)).resolves.toBeUndefined()
  mkdirSync(join(dataDir, 'databases', 'one'), { recursive: true })
  await expect(refuseLostStore(config)).rejects.toMatchObject({ code: 'store_missing', details: { databases: 1 } })
  await expect(refuseLostStore({ ...config, acceptUnknownData: 'quarantine' })).resolves.toBeUndefined()
  writeFileSync(join(dataDir, 'homeport.sqlite'), '')
  await expect(refuseLostStore(config)).rejects.toMatchObject({ code: 'store_missing' })
  writeFileSync(join(dataDir, 'homeport.sqlite-wal'), 'a log')
  await expect(refuseLostStore(config)).resolves.toBeUndefined()
})
