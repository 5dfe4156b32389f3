import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../base/index.js'
import { LOG_DIRECTORY, SNAPSHOT_FILE } from '../engine-files.js'
import { MANIFEST_FILE } from './log-files.js'
import { namesIn } from './quarantine-files.js'

/** A base file or snapshot without keys is shorter. */
const EMPTY_BYTES = 512

/**
 * Whether a client may have written to the database whose files are in a directory. True also if the files cannot be read.
 * Reads no manifest, because that may be damaged.
 */
export async function wasWritten(databaseDir: string): Promise<boolean> {
  try {
    for (const region of await namesIn(databaseDir)) if (await hasData(join(databaseDir, region))) return true
    return false
  } catch {
    return true
  }
}

async function hasData(memberDir: string): Promise<boolean> {
  if (await isLonger(join(memberDir, SNAPSHOT_FILE), EMPTY_BYTES)) return true
  const logDir = join(memberDir, LOG_DIRECTORY)
  for (const name of await namesIn(logDir)) {
    // A file to which nothing was appended is empty.
    const most = name.includes('.incr.') ? 0 : EMPTY_BYTES
    if (name !== MANIFEST_FILE && (await isLonger(join(logDir, name), most))) return true
  }
  return false
}

async function isLonger(path: string, bytes: number): Promise<boolean> {
  const found = await stat(path).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error
  })
  return found !== undefined && found.size > bytes
}
