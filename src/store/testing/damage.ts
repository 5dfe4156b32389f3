import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { neverCollected } from '../../base/index.js'

/** A page of a table or an index. */
export interface DamagedPage {
  /** Of the table or index. */
  readonly tree: string
  readonly type: 'leaf' | 'internal' | 'overflow'
  /** Which of them, from 0; counted from the last one when negative. */
  readonly index: number
}

/** Opens the file of a store that is closed, without the store. */
function onFile<Result>(dataDir: string, work: (db: Database.Database) => Result): Result {
  const db = neverCollected(new Database(join(dataDir, 'homeport.sqlite')))
  try {
    return work(db)
  } finally {
    db.close()
  }
}

/** Overwrites a page of a store that is closed, as a bad block would. */
export function damagePage(dataDir: string, { tree, type, index }: DamagedPage): void {
  const offset = onFile(dataDir, (db) => {
    db.pragma('wal_checkpoint(TRUNCATE)')
    const pages = 'SELECT pgoffset FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY path'
    return neverCollected(db.prepare(pages)).pluck().all(tree, type).at(index)
  })
  if (typeof offset !== 'number') throw new Error(`${tree} has no ${type} page ${index}`)
  const file = openSync(join(dataDir, 'homeport.sqlite'), 'r+')
  writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, offset)
  closeSync(file)
}

/** Runs a statement on a store that is closed, as a flipped bit would change it: nothing else is told. */
export function changeBehind(dataDir: string, statement: string): number {
  return onFile(dataDir, (db) => neverCollected(db.prepare(statement)).run().changes)
}
