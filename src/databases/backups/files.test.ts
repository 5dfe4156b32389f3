import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { tempDir } from '../../../test/support/index.js'
import { sha256Hex } from '../../base/index.js'
import { BackupFiles, verifiedFile } from './files.js'

const path = join(tempDir(), 'backup.rdb')
const bytes = Buffer.alloc(300_000, 'backup ')
const facts = { sizeBytes: bytes.length, sha256: sha256Hex(bytes) }

it('the reader streams an intact file', async () => {
  writeFileSync(path, bytes)
  expect((await buffer(await verifiedFile(path, facts))).equals(bytes)).toBe(true)
})

it('the reader withholds the end of a file with a flipped bit', async () => {
  const damaged = Buffer.from(bytes)
  damaged[10] = (damaged[10] ?? 0) ^ 1
  writeFileSync(path, damaged)
  let seen = 0
  const read = async (): Promise<void> => {
    for await (const chunk of await verifiedFile(path, facts)) seen += (chunk as Buffer).length
  }
  await expect(read()).rejects.toMatchObject({ code: 'snapshot_unusable' })
  expect(seen).toBeGreaterThan(0)
  expect(seen).toBeLessThan(bytes.length)
})

it('the reader refuses a missing file, and one of another length, before the first byte', async () => {
  writeFileSync(path, bytes.subarray(0, 1_000))
  await expect(verifiedFile(path, facts)).rejects.toThrow('its file has changed since it was made')
  rmSync(path)
  await expect(verifiedFile(path, facts)).rejects.toThrow('its file cannot be read')
})

it('a sweep deletes what a crash has left of an upload or a copy, and keeps backups', async () => {
  const dataDir = tempDir()
  const files = new BackupFiles(dataDir)
  const kept = { database_id: 'db_kept', backup_id: 'bak_kept' }
  writeFileSync(await files.prepare(kept), bytes)
  writeFileSync(await files.prepareUpload({ database_id: 'db_kept', backup_id: 'bak_uploading' }), bytes)
  writeFileSync(await files.prepareUpload({ database_id: 'db_gone', backup_id: 'bak_uploading' }), bytes)
  writeFileSync(`${files.path({ database_id: 'db_kept', backup_id: 'bak_copying' })}.part`, bytes)
  expect(await files.sweep([{ ...kept, state: 'completed' }])).toEqual([])
  expect(readdirSync(join(dataDir, 'backups'), { recursive: true })).toEqual(['db_kept', 'db_kept/bak_kept.rdb'])
})

it('a file that cannot be looked at may be a backup, and a missing one is none', async () => {
  const dataDir = tempDir()
  const files = new BackupFiles(dataDir)
  const backup = { database_id: 'db', backup_id: 'bak' }
  expect(await files.mayHave(backup)).toBe(false)
  // The path leads through a file.
  mkdirSync(join(dataDir, 'backups'))
  writeFileSync(join(dataDir, 'backups', 'db'), '')
  expect(await files.mayHave(backup)).toBe(true)
})
