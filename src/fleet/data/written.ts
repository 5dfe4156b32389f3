import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { LOG_DIRECTORY, SNAPSHOT_FILE } from '../engine-files.js'
import { MANIFEST_FILE } from './log-files.js'
import { namesIn } from './quarantine-files.js'

/** A base file or snapshot without keys is shorter. */
const EMPTY_BYTES = 512

/** Whether a client may have written to a database whose files are in a directory. Reads no manifest: it may be damaged. */
export async function wasWritten(databaseDir: string): Promise<boolean> {
  for (const region of await namesIn(databaseDir)) {
    const memberDir = join(databaseDir, region)
    if (await isLonger(join(memberDir, SNAPSHOT_FILE), EMPTY_BYTES)) return true
    for (const name of await namesIn(join(memberDir, LOG_DIRECTORY))) {
      // A file to which nothing was appended is empty.
      const most = name.includes('.incr.') ? 0 : EMPTY_BYTES
      if (name !== MANIFEST_FILE && (await isLonger(join(memberDir, LOG_DIRECTORY, name), most))) return true
    }
  }
  return false
}

async function isLonger(path: string, bytes: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  return found !== undefined && found.size > bytes
}
