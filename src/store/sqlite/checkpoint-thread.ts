import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { neverCollected } from '../../base/index.js'
import { type CheckpointLink, setDone } from './paced-checkpoints.js'

/**
 * The thread of a `Checkpointer`: copies the log into the file when it is told to, and says when it is done. The writer, to
 * which it is lent, asks for small checkpoints in between.
 */

/** What the writer adds meanwhile is little, and less each time; SQLite begins the log anew once nothing is left. */
const MOST_PASSES = 3

const port = parentPort
if (!port) throw new Error('the checkpoint thread must be started by the store')
const { path, link } = workerData as { readonly path: string; readonly link: CheckpointLink }
const db = neverCollected(new Database(path, { fileMustExist: true }))
db.exec('PRAGMA synchronous = FULL')
const pass = neverCollected(db.prepare('PRAGMA wal_checkpoint(PASSIVE)'))

/** How far the file is behind the log, in pages. */
interface Progress {
  readonly log: number
  readonly checkpointed: number
}

/** `undefined` when it cannot: on a full disk, say, which the writer meets as well, and tells. */
function checkpoint(): Progress | undefined {
  try {
    const [progress] = pass.all() as Progress[]
    return progress
  } catch {
    return undefined
  }
}

function catchUp(): void {
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    const progress = checkpoint()
    if (!progress || progress.log === progress.checkpointed) return
  }
}

link.port.on('message', () => setDone(link.shared, checkpoint()?.log ?? 0))

port.on('message', (message: 'checkpoint' | 'close') => {
  if (message === 'close') {
    db.close()
    link.port.close()
    port.close()
    return
  }
  catchUp()
  port.postMessage('done')
})
