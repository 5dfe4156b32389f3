import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { openSqlite, type SqliteDatabase } from '../../base/index.js'
import { openStore } from '../open.js'
import { describeOnStore } from '../testing/index.js'
import { tablesToCopy } from './catalog.js'
import { copyStore } from './copy-store.js'
import { fillRandomly } from './testing/random-rows.js'

async function filled(rows: number): Promise<string> {
  const dataDir = tempDir()
  await (await openStore({ location: 'sqlite', dataDir, onFailure: () => undefined })).close()
  const db = openSqlite(join(dataDir, 'homeport.sqlite'))
  fillRandomly(db, rows, (below) => randomInt(below))
  db.close()
  return dataDir
}

function dump(dataDir: string): Record<string, unknown[]> {
  const db: SqliteDatabase = openSqlite(join(dataDir, 'homeport.sqlite'), { readOnly: true })
  const all = tablesToCopy().map(({ name, columns, key }) => {
    const values = columns.map((column) => `quote("${column.name}")`).join(" || ',' || ")
    const order = key.map((column) => `"${column}"`).join(', ')
    return [name, db.prepare(`SELECT ${values} AS row FROM ${name} ORDER BY ${order}`).all()]
  })
  const numbers = db.prepare('SELECT name, seq FROM sqlite_sequence WHERE seq > 0 ORDER BY name').all()
  db.close()
  return { ...Object.fromEntries(all), numbers }
}

describeOnStore('postgres', 'a copy of a store', (_openStore, on) => {
  it('takes all tables to PostgreSQL and back, with every value as it was', async () => {
    const dataDir = await filled(30)
    const before = dump(dataDir)
    const { location } = await on.newPlace()
    const there = await copyStore({ from: 'sqlite', to: location, dataDir, isDryRun: false })
    expect(there).toMatchObject({ isCopied: true, target: 'empty' })
    const other = tempDir()
    const back = await copyStore({ from: location, to: 'sqlite', dataDir: other, isDryRun: false })
    expect(back.tables).toEqual(there.tables)
    expect(dump(other)).toEqual(before)
    expect(dump(dataDir)).toEqual(before)
  })
})
