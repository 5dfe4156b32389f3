import { once } from 'node:events'
import { openSqlite, syncPath } from '../base/index.js'
import { MIGRATIONS } from './migrations/index.js'
import { sqliteFileIn } from './open.js'
import { startScript } from './sqlite/start-thread.js'

/** A database in a copy of the store. */
export interface CopiedDatabase {
  readonly databaseId: string
  readonly name: string
  readonly region: string
  readonly persistence: 'append-only' | 'snapshot'
  /** The change that was in progress at the time of the copy; empty for none. */
  readonly modifyingState: string
}

/** What is in a copy of the store. */
export interface CopyContents {
  /** Number of its last migration. */
  readonly schema: number
  readonly databases: readonly CopiedDatabase[]
}

/** The number of the last migration that this version knows. */
export const newestSchema = (): number => Math.max(...MIGRATIONS.map(({ number }) => number))

/**
 * Copies the SQLite store of a running server into another directory: one snapshot of all tables. It runs on its own
 * thread and blocks neither readers nor the writer. The copy is durable when the promise resolves.
 */
export async function copyRunning(dataDir: string, intoDir: string): Promise<void> {
  const into = sqliteFileIn(intoDir)
  const script = new URL(
    import.meta.url.endsWith('.ts') ? './sqlite/vacuum-thread.ts' : './vacuum-thread.js',
    import.meta.url,
  )
  const worker = startScript(script, { path: sqliteFileIn(dataDir), into })
  const [code] = (await once(worker, 'exit')) as [number]
  if (code !== 0) throw new Error(`the thread that copies the store ended with ${code}`)
  await syncPath(into)
  await syncPath(intoDir)
}

/** Reads what a copy of the store contains. */
export function contentsOfCopy(dir: string): CopyContents {
  const db = openSqlite(sqliteFileIn(dir), { readOnly: true })
  try {
    const { schema } = db.prepare('SELECT max(number) AS schema FROM schema_migrations').get() as { schema: number }
    const text = `SELECT database_id AS databaseId, name, primary_region AS region, persistence,
      modifying_state AS modifyingState FROM databases ORDER BY database_id`
    return { schema, databases: db.prepare(text).all() as CopiedDatabase[] }
  } finally {
    db.close()
  }
}
