import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'

/** The thread of a `Checkpointer`: folds the log when it is told to, and says when it is done. */

/** What the writer adds meanwhile is little, and less each time; SQLite begins the log anew once nothing is left. */
const MOST_PASSES = 3

const port = parentPort
if (!port) throw new Error('the checkpoint thread must be started by the store')
const { path } = workerData as { readonly path: string }
const db = new Database(path, { fileMustExist: true })
db.pragma('synchronous = FULL')

function checkpoint(): void {
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    const [result] = db.pragma('wal_checkpoint(PASSIVE)') as { log: number; checkpointed: number }[]
    if (!result || result.log === result.checkpointed) return
  }
}

port.on('message', (message: 'checkpoint' | 'close') => {
  if (message === 'close') {
    db.close()
    port.close()
    return
  }
  try {
    checkpoint()
  } catch {
    // A full disk, say: the writer meets it as well, and tells.
  }
  port.postMessage('done')
})
