/** Writes and deletes the files of members, and classifies the failures of engines by their output. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type EnginePaths, type InternalSecrets, renderConfig, renderUsers } from './engine-config.js'
import type { Failure } from './member.js'
import type { EngineInfo, EngineSpec, MemberSpec } from './types.js'

/** The snapshot that the engine writes itself, and loads at its start if it has no log. */
export const SNAPSHOT_FILE = 'dump.rdb'
/** Directory of the append-only log. */
export const LOG_DIRECTORY = 'appendonlydir'

/** Temporary files that a killed engine left. No engine reads or deletes them. */
const TEMPORARY = /^temp-|\.next$/

/** Refuses data of the other persistence: the engine would not read it, start empty and eventually overwrite it. */
function refuseOtherPersistence(spec: EngineSpec, names: readonly string[]): void {
  const [own, other] =
    spec.persistence === 'append-only' ? [LOG_DIRECTORY, SNAPSHOT_FILE] : [SNAPSHOT_FILE, LOG_DIRECTORY]
  if (names.includes(other) && !names.includes(own)) {
    throw new Error(`the files of the database were not written with ${spec.persistence} persistence`)
  }
}

/** Writes the files that an engine starts from. Rejects when the data on disk has the other kind of persistence. */
export async function writeEngineFiles(
  spec: EngineSpec,
  member: MemberSpec,
  paths: EnginePaths,
  secrets: InternalSecrets,
  engine: Pick<EngineInfo, 'commands' | 'settings'>,
): Promise<void> {
  const firstMade = await mkdir(paths.dir, { recursive: true, mode: 0o700 })
  const names = firstMade === undefined ? await readdir(paths.dir) : []
  if (member.role === 'primary') refuseOtherPersistence(spec, names)
  const unread = spec.persistence === 'append-only' ? SNAPSHOT_FILE : undefined
  const left = names.filter((name) => TEMPORARY.test(name) || name === unread)
  await Promise.all([
    ...left.map((name) => rm(join(paths.dir, name), { recursive: true, force: true })),
    writeFile(paths.configFile, renderConfig(spec, member, paths, engine.settings), { mode: 0o600 }),
    writeFile(paths.userFile, renderUsers(spec, secrets, engine.commands), { mode: 0o600 }),
  ])
}

/** Deletes the directory and socket of a member; missing ones are fine. */
export async function deleteEngineFiles(paths: EnginePaths): Promise<void> {
  await rm(paths.dir, { recursive: true, force: true })
  await rm(paths.socket, { force: true })
}

/**
 * Messages of an engine that cannot read data although it is not damaged, and our wording for data and for snapshots. An
 * engine reads what older ones wrote; Valkey marks its files since 9.0, so that no Redis mistakes them for its own.
 */
const UNREADABLE: readonly (readonly [message: RegExp, ofData: string, ofSnapshot: string])[] = [
  [
    /Can't handle RDB format version/,
    'its data was written by a newer engine than is installed, or by one of another kind',
    'it was written by a newer engine than is installed, or by one of another kind',
  ],
  [
    /Wrong signature trying to load DB/,
    'its data was written by an engine of another kind than is installed',
    'the engine cannot load it, because an engine of another kind wrote it',
  ],
  [
    /Out Of Memory allocating/,
    'its data needs more memory than the system gives it',
    'it needs more memory than the engine may use while it loads',
  ],
  [
    /configured to handle more than 1 databases/,
    'its data has keys in databases other than 0',
    'it has keys in databases other than 0, the only one that Homeport has',
  ],
  [
    /Permission denied|\bEACCES\b|\bEPERM\b/i,
    'the user that runs Homeport may not read or write its files',
    'the user that runs Homeport may not read its file',
  ],
  // An error of our own reads. When an engine meets it, its file counts as damaged instead, so that the owner can decide.
  [/\bEIO\b/, 'the disk reports errors when its files are read', 'the disk reports errors when its file is read'],
]

/** Why a snapshot cannot be loaded, from the failure of an engine that had it as its data. */
export function unloadableReason(reason: string): string {
  if (reason.includes('SIGKILL')) return 'the system ended the engine that loads it, perhaps for lack of memory'
  return UNREADABLE.find(([, ofData]) => ofData === reason)?.[2] ?? 'the engine cannot load it'
}

const UNWRITABLE = /ENOSPC|EDQUOT|EROFS|No space left on device|Disk quota exceeded|Read-only file system/

/** Classifies the output of an engine for callers. Our own wording, so no path can reach them. */
export function failureOf(detail: string, reason: string): Failure {
  if (UNWRITABLE.test(detail)) return { kind: 'disk-full', reason: 'the disk is full or read-only' }
  return { kind: 'engine', reason: UNREADABLE.find(([message]) => message.test(detail))?.[1] ?? reason }
}
