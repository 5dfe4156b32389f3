import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite } from '../../src/base/index.js'

/** The simplest durable storage of rows on SQLite. */
export interface FloorRows {
  /** Resolves when the row is on disk, with its number. */
  add(content: string): Promise<number>
  /** Deletes a row with the next commit, or within 10 ms. */
  remove(seq: number): void
}

const REMOVE_AFTER_MS = 10

/**
 * Rows in a SQLite file like that of Homeport (write-ahead log, synchronous=FULL), without threads. All rows of a tick share
 * a commit, which blocks the process.
 */
export function openFloorRows(): FloorRows {
  const dir = mkdtempSync(join(tmpdir(), 'floor-'))
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
  const db = openSqlite(join(dir, 'floor.sqlite'))
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 2000')
  db.exec('CREATE TABLE rows (seq INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL)')
  const insert = db.prepare('INSERT INTO rows (content) VALUES (?)')
  const drop = db.prepare('DELETE FROM rows WHERE seq = ?')
  let added: { readonly content: string; readonly resolve: (seq: number) => void }[] = []
  let removed: number[] = []
  let timer: NodeJS.Timeout | undefined
  const commit = (): void => {
    const [adding, removing] = [added, removed]
    added = []
    removed = []
    clearTimeout(timer)
    timer = undefined
    db.exec('BEGIN IMMEDIATE')
    const seqs = adding.map(({ content }) => Number(insert.run(content).lastInsertRowid))
    for (const seq of removing) drop.run(seq)
    db.exec('COMMIT')
    adding.forEach(({ resolve }, index) => {
      resolve(seqs[index] ?? 0)
    })
  }
  return {
    add: (content) =>
      new Promise((resolve) => {
        if (added.push({ content, resolve }) === 1) setImmediate(commit)
      }),
    remove: (seq) => {
      removed.push(seq)
      timer ??= setTimeout(commit, REMOVE_AFTER_MS)
    },
  }
}
