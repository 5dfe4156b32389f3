import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { sha256Hex, tryParseJson, userId } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { inspectDataDir } from './data-dir.js'
import type { Config } from './derive.js'

/**
 * The servers that this user runs on this machine. Each server writes a file while it serves, so that commands in any
 * folder find it. A file that a killed server left behind is recognized by the lock of its data directory, which the
 * kernel has released.
 */

const NoteSchema = Type.Object({
  dataDir: Type.String({ minLength: 1 }),
  pid: Type.Integer(),
  apiUrl: Type.String(),
  restUrl: Type.String(),
  queueUrl: Type.String(),
})

/** A server that runs on this machine. */
export type RunningServer = Static<typeof NoteSchema>

const ENDING = '.json'

const folderIn = (stateHome: string): string => join(stateHome, 'homeport', 'servers')

/**
 * Notes that this process serves. A failure is ignored: commands then need the data directory.
 * @returns removes the note.
 */
export function recordServer(config: Config, stateHome: () => string): () => void {
  const { publicApiUrl: apiUrl, publicRestUrl: restUrl, publicQueueUrl: queueUrl } = config
  try {
    const folder = folderIn(stateHome())
    const dataDir = realpathSync(config.dataDir)
    const path = join(folder, sha256Hex(dataDir).slice(0, 16) + ENDING)
    const note: RunningServer = { dataDir, pid: process.pid, apiUrl, restUrl, queueUrl }
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(path, `${JSON.stringify(note, null, 2)}\n`, { mode: 0o600 })
    return () => rmSync(path, { force: true })
  } catch {
    return () => undefined
  }
}

/**
 * The servers that run now. Files of other users are ignored. Notes of data directories that no longer exist are deleted;
 * other stale notes are kept, because a server that starts at this moment may replace one.
 */
export function runningServers(stateHome: string): RunningServer[] {
  const folder = folderIn(stateHome)
  return pathsIn(folder).flatMap((path) => {
    const note = readNote(path)
    if (!note) return []
    const { state } = inspectDataDir(note.dataDir)
    if (state === 'missing') rmSync(path, { force: true })
    return state === 'locked' ? [note] : []
  })
}

/**
 * The data directory of the only running server; undefined when none runs.
 * @throws HomeportError `cli_misused` when several run.
 */
export function onlyRunningDataDir(stateHome: string): string | undefined {
  const running = runningServers(stateHome)
  if (running.length < 2) return running[0]?.dataDir
  const servers = running.map(({ dataDir, apiUrl }) => `${dataDir} (${apiUrl})`).join(', ')
  const problem = `Several servers run on this machine: ${servers}. Choose one with --data-dir.`
  throw new HomeportError('cli_misused', { problem })
}

function pathsIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith(ENDING))
      .sort()
      .map((name) => join(folder, name))
  } catch {
    return []
  }
}

function readNote(path: string): RunningServer | undefined {
  try {
    if (lstatSync(path).uid !== userId()) return undefined
    const note = tryParseJson(readFileSync(path, 'utf8'))
    return Value.Check(NoteSchema, note) ? note : undefined
  } catch {
    // The server removes its note when it stops.
    return undefined
  }
}
