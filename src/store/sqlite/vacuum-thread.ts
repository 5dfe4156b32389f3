/** The thread of `copyRunning`: writes a consistent copy of a SQLite file while others write to it, and ends. */
import { workerData } from 'node:worker_threads'
import { codeOf, openSqlite } from '../../base/index.js'

const { path, into } = workerData as { readonly path: string; readonly into: string }

function copy(): void {
  const db = openSqlite(path, { readOnly: true })
  try {
    // One read transaction: writers continue, but the write-ahead log cannot restart meanwhile.
    db.prepare('VACUUM INTO ?').run(into)
  } finally {
    db.close()
  }
}

try {
  copy()
} catch (error) {
  // An error of the driver would arrive at the other thread without its message.
  throw error instanceof Error ? Object.assign(new Error(error.message), { code: codeOf(error) }) : error
}
