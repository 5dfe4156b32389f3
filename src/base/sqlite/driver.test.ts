import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { codeOf } from '../errors.js'
import { BetterSqlite3Database, loadBetterSqlite3 } from './better-sqlite3.js'
import { missingSqliteDriver, openSqlite, sqliteDriver } from './driver.js'
import { nameOfSqliteError } from './error-names.js'
import type { SqliteDatabase, SqliteOpening } from './types.js'

/** These run on the driver of the Node that runs them, so that both drivers are held to the same results. */

function open(path = join(tempDir(), 'file'), opening: SqliteOpening = {}): SqliteDatabase {
  const db = openSqlite(path, { busyTimeoutMs: 0, ...opening })
  onTestFinished(() => db.close())
  return db
}

function failure(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    return codeOf(error)
  }
  return 'no error'
}

it('Homeport uses the package only where Node has no driver', () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isComplete = major >= 24 || (major === 22 && minor >= 16)
  expect(sqliteDriver()).toBe(isComplete ? 'node:sqlite' : 'better-sqlite3')
})

it('the driver says when the package is missing or was not compiled', () => {
  const notInstalled = () => {
    throw Object.assign(new Error("Cannot find module 'better-sqlite3'"), { code: 'MODULE_NOT_FOUND' })
  }
  expect(failure(() => loadBetterSqlite3(notInstalled))).toBe('SQLITE_DRIVER_MISSING')
  class NotCompiled {
    static readonly SqliteError = class extends Error {}
    constructor() {
      throw new Error('Could not locate the bindings file.')
    }
  }
  const Driver = loadBetterSqlite3(() => NotCompiled)
  const opening = { readOnly: false, mustExist: false, busyTimeoutMs: 0 }
  expect(failure(() => new BetterSqlite3Database(Driver, ':memory:', opening))).toBe('SQLITE_DRIVER_MISSING')
  expect(missingSqliteDriver()).toBeUndefined()
})

it('the driver stores and reads values of every kind', () => {
  const db = open()
  db.exec('CREATE TABLE t (id INTEGER PRIMARY KEY, v)')
  const insert = db.prepare('INSERT INTO t (v) VALUES (?)')
  const fromAnotherThread = structuredClone(new Uint8Array())
  const values = [null, 1, -1.5, 2 ** 53 - 1, 'text ✓', new Uint8Array([0, 255]), new Uint8Array(), fromAnotherThread]
  const ids = values.map((value) => insert.run(value).lastInsertRowid)
  expect(ids.map(Number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  const rows = db.prepare('SELECT v FROM t ORDER BY id').all() as { v: unknown }[]
  expect(rows.map(({ v }) => (v instanceof Uint8Array ? new Uint8Array(v) : v))).toEqual(values)
  expect([...db.prepare('SELECT id FROM t WHERE id > ?').iterate(6)].map((row) => ({ ...(row as object) }))).toEqual([
    { id: 7 },
    { id: 8 },
  ])
  expect(db.prepare('SELECT v FROM t WHERE id = 9').get()).toBeUndefined()
  expect(db.prepare('UPDATE t SET v = 0 WHERE id < ?').run(3).changes).toBe(2)
})

it('names errors as SQLite does', () => {
  const db = open()
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, v UNIQUE); INSERT INTO t VALUES (1, 1)')
  expect(failure(() => db.exec('nonsense'))).toBe('SQLITE_ERROR')
  expect(failure(() => db.prepare('INSERT INTO t (v) VALUES (?)').run(1))).toBe('SQLITE_CONSTRAINT_UNIQUE')
  expect(failure(() => open(join(tempDir(), 'none'), { mustExist: true }))).toBe('SQLITE_CANTOPEN')
  expect(failure(() => open(join(tempDir(), 'none'), { readOnly: true }))).toBe('SQLITE_CANTOPEN')
  const list = join(tempDir(), 'list')
  writeFileSync(list, 'This is a shopping list, not a database. '.repeat(100))
  expect(failure(() => open(list).exec('SELECT * FROM sqlite_schema'))).toBe('SQLITE_NOTADB')
})

it('the driver tells a locked file, a file that may not be changed, and the end of a transaction on a full disk', () => {
  const path = join(tempDir(), 'file')
  const [one, other] = [open(path), open(path)]
  one.exec('CREATE TABLE t (v); BEGIN EXCLUSIVE')
  expect(failure(() => other.exec('BEGIN EXCLUSIVE'))).toBe('SQLITE_BUSY')
  one.exec('COMMIT')
  expect(failure(() => open(path, { readOnly: true }).exec('INSERT INTO t VALUES (1)'))).toBe('SQLITE_READONLY')

  one.exec('PRAGMA max_page_count = 3; BEGIN')
  expect(one.inTransaction).toBe(true)
  expect(failure(() => one.prepare('INSERT INTO t VALUES (?)').run('x'.repeat(100_000)))).toBe('SQLITE_FULL')
  expect(one.inTransaction).toBe(false)
  one.close()
  one.close()
  expect(one.isOpen).toBe(false)
})

it.each([
  [5, 'SQLITE_BUSY'],
  [11, 'SQLITE_CORRUPT'],
  [13, 'SQLITE_FULL'],
  [14, 'SQLITE_CANTOPEN'],
  [26, 'SQLITE_NOTADB'],
  [266, 'SQLITE_IOERR_READ'],
  [778, 'SQLITE_IOERR_WRITE'],
  [1034, 'SQLITE_IOERR_FSYNC'],
  [4874, 'SQLITE_IOERR_SHMSIZE'],
  [8714, 'SQLITE_IOERR_IN_PAGE'],
  [779, 'SQLITE_CORRUPT_INDEX'],
  [2067, 'SQLITE_CONSTRAINT_UNIQUE'],
  [(200 << 8) | 10, 'SQLITE_IOERR'],
])('the driver knows the result code %i as %s', (code, name) => {
  expect(nameOfSqliteError(code)).toBe(name)
})
