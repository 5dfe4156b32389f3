/** Writes and deletes the files of members. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type EnginePaths, type InternalSecrets, renderConfig, renderUsers } from './engine-config.js'
import type { Failure } from './member.js'
import type { EngineInfo, EngineSpec, MemberSpec } from './types.js'

/** A snapshot as the engine writes it by itself, and reads it at its start when it keeps no log. */
export const SNAPSHOT_FILE = 'dump.rdb'
/** Holds the append-only log. */
export const LOG_DIRECTORY = 'appendonlydir'

/** What an engine, or we for it, was writing at the moment of a kill, and nobody will read or delete. */
const LEFT_BY_A_KILL = /^temp-|\.next$/

/** An engine would start empty, and in time overwrite, what it does not read; so it is not started. */
function refuseOtherPersistence(spec: EngineSpec, names: readonly string[]): void {
  const [own, other] =
    spec.persistence === 'append-only' ? [LOG_DIRECTORY, SNAPSHOT_FILE] : [SNAPSHOT_FILE, LOG_DIRECTORY]
  if (names.includes(other) && !names.includes(own)) {
    throw new Error(`the files of the database were not written with ${spec.persistence} persistence`)
  }
}

/**
 * Writes what an engine with these commands and settings starts from. Rejects when its data on disk is of the other kind of
 * persistence.
 */
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
  const left = names.filter((name) => LEFT_BY_A_KILL.test(name) || name === unread)
  await Promise.all([
    ...left.map((name) => rm(join(paths.dir, name), { recursive: true, force: true })),
    writeFile(paths.configFile, renderConfig(spec, member, paths, engine.settings), { mode: 0o600 }),
    writeFile(paths.userFile, renderUsers(spec, secrets, engine.commands), { mode: 0o600 }),
  ])
}

/** Deletes a member's directory and socket; what is not there is no error. */
export async function deleteEngineFiles(paths: EnginePaths): Promise<void> {
  await rm(paths.dir, { recursive: true, force: true })
  await rm(paths.socket, { force: true })
}

/**
 * What an engine says of data that it cannot read because of what wrote it, and how Homeport words that. An engine
 * reads what older ones have written; Valkey marks its files from 9.0 on, so that no Redis takes them for its own.
 */
const UNREADABLE: readonly (readonly [said: RegExp, ofData: string, ofSnapshot: string])[] = [
  [
    /Can't handle RDB format version/,
    'its data was written by a newer engine, or one of another kind, than is installed',
    'it was written by a newer engine, or one of another kind, than is installed',
  ],
  [
    /Wrong signature trying to load DB/,
    'its data was written by an engine of another kind than is installed',
    'the engine cannot load it, as no engine of its kind has written it',
  ],
]

/** Why a snapshot cannot be loaded, given why an engine that had it as its data did not start. */
export function unloadableReason(reason: string): string {
  return UNREADABLE.find(([, ofData]) => ofData === reason)?.[2] ?? 'the engine cannot load it'
}

const NO_ROOM = /ENOSPC|EDQUOT|No space left on device|Disk quota exceeded/

/** Words an error for callers: the kind is found in it, the reason is ours, so that no path can reach a caller. */
export function failureOf(detail: string, reason: string): Failure {
  if (NO_ROOM.test(detail)) return { kind: 'disk-full', reason: 'the disk is full' }
  return { kind: 'engine', reason: UNREADABLE.find(([said]) => said.test(detail))?.[1] ?? reason }
}
