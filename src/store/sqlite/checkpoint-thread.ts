import { parentPort, workerData } from 'node:worker_threads'
import { openSqlite } from '../../base/index.js'
import { type CheckpointLink, setDone } from './paced-checkpoints.js'

/**
 * The thread of a `Checkpointer`: copies the write-ahead log into the database file on request and reports when it is done.
 * In between, the writer thread requests small checkpoints through its link.
 */

/** Each pass leaves less, namely what the writer added meanwhile. SQLite restarts the log once nothing is left. */
const MAX_PASSES = 3

const port = parentPort
if (!port) throw new Error('the checkpoint thread must be started by the store')
const { path, link } = workerData as { readonly path: string; readonly link: CheckpointLink }
const db = openSqlite(path, { mustExist: true })
db.exec('PRAGMA synchronous = FULL')
const pass = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')

/** Result of a checkpoint, in pages. */
interface Progress {
  readonly log: number
  readonly checkpointed: number
}

/** `undefined` on an error, such as a full disk, which the writer also meets and reports. */
function checkpoint(): Progress | undefined {
  try {
    const [progress] = pass.all() as Progress[]
    return progress
  } catch {
    return undefined
  }
}

function catchUp(): void {
  for (let pass = 0; pass < MAX_PASSES; pass++) {
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
