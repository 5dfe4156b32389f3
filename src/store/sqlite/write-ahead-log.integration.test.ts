import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/support/index.js'
import { openSqlite, type SqliteDatabase } from '../../base/index.js'
import { damageOf as damageOfFile, inspectLog } from './write-ahead-log.js'

const FRAME_BYTES = 24 + 4_096

/** A log with many commits, left by a killed server. */
function makeLog(commits: number, before: (db: SqliteDatabase) => void = () => undefined): Buffer {
  const path = join(tempDir(), 'store.sqlite')
  const db = openSqlite(path)
  db.exec('PRAGMA journal_mode = WAL')
  db.exec('PRAGMA wal_autocheckpoint = 0')
  db.exec('CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)')
  before(db)
  const insert = db.prepare('INSERT INTO t (text) VALUES (?)')
  for (let n = 0; n < commits; n++) insert.run(`row ${n} ${'x'.repeat(1_000)}`)
  const log = readFileSync(`${path}-wal`)
  db.close()
  return log
}

function flipped(log: Buffer, at: number): Buffer {
  const copy = Buffer.from(log)
  copy[at] = (copy[at] ?? 0) ^ 4
  return copy
}

function damageOf(log: Buffer): ReturnType<typeof damageOfFile> {
  const path = join(tempDir(), 'log')
  writeFileSync(path, log)
  return damageOfFile(path)
}

describe('a write-ahead log', () => {
  const log = makeLog(50)

  it('is undamaged as SQLite left it, when it is empty, and when its end is cut off', async () => {
    expect(await damageOf(log)).toBeUndefined()
    expect(await damageOf(Buffer.alloc(0))).toBeUndefined()
    expect(await damageOf(log.subarray(0, log.length - 1_000))).toBeUndefined()
    expect(await damageOf(log.subarray(0, 32 + 10 * FRAME_BYTES + 7))).toBeUndefined()
  })

  it('is undamaged when it restarted over an older and longer one', async () => {
    const restarted = makeLog(3, (db) => {
      const insert = db.prepare('INSERT INTO t (text) VALUES (?)')
      for (let n = 0; n < 30; n++) insert.run('y'.repeat(2_000))
      db.exec('PRAGMA wal_checkpoint(RESTART)')
    })
    expect(restarted.length).toBeGreaterThan(20 * FRAME_BYTES)
    expect(await damageOf(restarted)).toBeUndefined()
  })

  it('is undamaged after a rolled-back transaction', async () => {
    const rolledBack = makeLog(1, (db) => {
      db.exec('PRAGMA cache_size = 2')
      db.exec('BEGIN')
      const insert = db.prepare('INSERT INTO t (text) VALUES (?)')
      for (let n = 0; n < 200; n++) insert.run('z'.repeat(2_000))
      db.exec('ROLLBACK')
    })
    expect(await damageOf(rolledBack)).toBeUndefined()
  })

  it('is damaged from the frame with a flipped bit, including all later commits', async () => {
    const frames = (log.length - 32) / FRAME_BYTES
    const at = 32 + 12 * FRAME_BYTES
    const damage = await damageOf(flipped(log, at + 2_000))
    expect(damage?.atByte).toBe(at)
    expect(damage?.lostCommits).toBeGreaterThan(20)
    expect(damage?.lostCommits).toBeLessThanOrEqual(frames - 12)
    for (const place of [0, 5, 9, 17]) expect((await damageOf(flipped(log, at + place)))?.atByte).toBe(at)
  })

  it('is followed over more than what is in memory at once', async () => {
    const long = makeLog(1_500)
    expect(await damageOf(long)).toBeUndefined()
    const at = long.length - 40 * FRAME_BYTES
    expect(at).toBeGreaterThan(4 * 2 ** 20)
    const damage = await damageOf(flipped(long, at + 3))
    expect(damage?.atByte).toBe(at)
    expect(damage?.lostCommits).toBeGreaterThan(20)
  })

  it('is damaged completely when its header is', async () => {
    for (const at of [1, 10, 17, 25])
      expect(await damageOf(flipped(log, at))).toEqual({ atByte: 0, sizeBytes: log.length, lostCommits: undefined })
    expect(await damageOf(Buffer.alloc(log.length))).toMatchObject({ lostCommits: undefined })
  })

  it('is copied into quarantine only when it is damaged', async () => {
    const dir = tempDir()
    const store = join(dir, 'homeport.sqlite')
    expect(await inspectLog(store, 0)).toBeUndefined()
    writeFileSync(`${store}-wal`, log)
    expect(await inspectLog(store, 0)).toBeUndefined()
    expect(existsSync(join(dir, 'quarantine'))).toBe(false)
    const damaged = flipped(log, 32 + 20 * FRAME_BYTES + 100)
    writeFileSync(`${store}-wal`, damaged)
    const found = await inspectLog(store, Date.UTC(2026, 0, 2))
    expect(found).toMatch(/^\d+ commits after byte \d+ of homeport\.sqlite-wal .* a copy of it is in quarantine\/2026/)
    const [entry] = readdirSync(join(dir, 'quarantine'))
    const copy = readFileSync(join(dir, 'quarantine', entry ?? '', 'data'))
    expect([copy.equals(damaged), readFileSync(`${store}-wal`).equals(damaged)]).toEqual([true, true])
  })
})
