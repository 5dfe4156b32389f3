import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/support/index.js'
import { openSqlite, systemClock } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { QuarantineFiles } from '../../fleet/index.js'
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

async function withValue(server: ManagementServer, value: string) {
  const record = await create(server)
  const login: [string, string] = ['default', record.password ?? '']
  await ask(server, record.database_id, 'us-east-1', login, ['SET', 'k', value])
  return record
}

describe('files of databases that the store does not know', () => {
  it('are moved into quarantine and reported, and can be adopted with their data and id', async () => {
    const first = await startManagement()
    const kept = await create(first)
    const lost = await withValue(first, 'precious')
    await first.close()
    forget(first.dataDir, forgetDatabase(lost.database_id))
    const problems = new Problems(systemClock, silentLogger)
    const again = await startManagement({ dataDir: first.dataDir, redisPorts: first.redisPorts, problems })
    expect(databaseDirs(again)).toEqual([kept.database_id])
    const [entry] = (await again.api('GET', '/v2/redis/quarantine')).body
    expect(entry).toMatchObject({ kind: 'database', database_id: lost.database_id })
    expect(problems.visibleTo('')).toMatchObject([{ kind: 'quarantine', subject: entry.id }])
    const note = JSON.parse(readFileSync(join(first.dataDir, 'quarantine', entry.id, 'note.json'), 'utf8'))
    expect(note).toMatchObject({ from: `databases/${lost.database_id}`, reason: expect.any(String) })

    const adopted = await again.api('POST', `/v2/redis/quarantine/${entry.id}/adopt`, { name: 'back' })
    expect(adopted).toMatchObject({ status: 200, body: { database_id: lost.database_id } })
    const record = (await again.api('GET', `/v2/redis/database/${lost.database_id}`)).body
    expect(record).toMatchObject({ database_name: 'back', primary_region: 'us-east-1' })
    const login: [string, string] = ['default', record.password]
    expect(await ask(again, lost.database_id, 'us-east-1', login, ['GET', 'k'])).toBe('precious')
    expect(problems.count).toBe(0)
    expect(entriesIn(first.dataDir)).toEqual([])
    expect((await again.api('POST', `/v2/redis/quarantine/${entry.id}/adopt`, {})).status).toBe(404)
  })

  it('keep the server from starting when there are many, and are not touched', async () => {
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
    const consenting = await startManagement({ ...again, acceptUnknownData: 'quarantine' })
    expect((await consenting.api('GET', '/v2/redis/quarantine')).body).toHaveLength(2)
    expect(databaseDirs(consenting)).toEqual([])
  })

  it('are deleted after their retention and not before', async () => {
    const clock = new ManualClock(Date.now())
    const first = await startManagement()
    await create(first)
    const lost = await create(first)
    await first.close()
    forget(first.dataDir, forgetDatabase(lost.database_id))
    const again = await startManagement({ dataDir: first.dataDir, redisPorts: first.redisPorts, clock })
    clock.advance(6 * 86_400_000)
    expect((await again.api('GET', '/v2/redis/quarantine')).body).toHaveLength(1)
    clock.advance(2 * 86_400_000)
    // The next check is scheduled when the last one has ended.
    const isGone = () => {
      clock.advance(3_600_000)
      return entriesIn(first.dataDir).length === 0
    }
    await expect.poll(isGone).toBe(true)
  })
})

it('moves a backup that the store does not know into quarantine, and adopts it after a check', async () => {
  const first = await startManagement()
  const { database_id: id } = await withValue(first, 'saved')
  expect((await first.api('POST', `/v2/redis/create-backup/${id}`, { name: 'b' })).status).toBe(200)
  const [backup] = (await first.api('GET', `/v2/redis/list-backup/${id}`)).body
  await first.close()
  forget(first.dataDir, 'DELETE FROM backups')
  const again = await startManagement({ dataDir: first.dataDir, redisPorts: first.redisPorts })
  const [entry] = (await again.api('GET', '/v2/redis/quarantine')).body
  expect(entry).toMatchObject({ kind: 'backup', database_id: id, backup_id: backup.backup_id })
  expect(await again.api('POST', `/v2/redis/quarantine/${entry.id}/adopt`, { name: 'found' })).toMatchObject({
    status: 200,
    body: { database_id: id, backup_id: backup.backup_id },
  })
  expect((await again.api('GET', `/v2/redis/list-backup/${id}`)).body).toMatchObject([
    { backup_id: backup.backup_id, name: 'found', state: 'completed', key_count: 1, backup_size: backup.backup_size },
  ])
  expect((await again.api('POST', `/v2/redis/restore-backup/${id}`, { backup_id: backup.backup_id })).status).toBe(200)
})

it('lists an entry without its note, and refuses an id that leads to another folder', async () => {
  const dataDir = tempDir()
  const files = new QuarantineFiles(dataDir)
  const from = join(tempDir(), 'x')
  writeFileSync(from, 'data')
  const { id } = await files.take(from, { kind: 'backup', databaseId: 'd', reason: 'r', movedAt: 1 })
  rmSync(join(dataDir, 'quarantine', id, 'note.json'))
  expect(await files.list()).toMatchObject([{ id, kind: 'backup', reason: 'its note cannot be read' }])
  expect(await files.find('../x')).toBeUndefined()
})

it('refuses to create a new store beside databases, unless the operator agrees', async () => {
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
