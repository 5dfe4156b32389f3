/**
 * Where the fleet keeps its files.
 *
 * ```
 * <dataDir>/databases/<databaseId>/<region>/engine.conf   configuration, written before every start
 *                                           engine.acl    users, likewise
 *                                           ...           what the engine itself writes
 * <dataDir>/reserve                                       room on the disk that is kept for deletions (`room.ts`)
 * <dataDir>/run/<16 hex digits>.sock                      Unix sockets, gone when the fleet stops
 * ```
 *
 * A Unix socket's path may have about 100 bytes. Where `<dataDir>/run` is too long for that, a directory beneath the
 * machine's temporary one takes its place, always the same one for the same data directory and user.
 */
import { lstat, mkdir, realpath } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join, resolve } from 'node:path'
import { sha256Hex } from '../base/index.js'
import type { EnginePaths } from './engine-config.js'

/** The name that ends the path of every engine's configuration file. */
export const CONFIG_FILE = 'engine.conf'

/** The smallest limit of the systems we run on (macOS: 104 with the closing zero) with some room. */
const SOCKET_PATH_LIMIT_BYTES = 100
const SOCKET_NAME_DIGITS = 16

/** The fleet's directories, made and checked. */
export interface Layout {
  /** Holds one directory for each database. */
  readonly databasesDir: string
  /** Holds the sockets; mode 0700 and ours. */
  readonly socketDir: string
  /** Keeps data that left a database although nobody has deleted it; made when needed. */
  readonly quarantineDir: string
}

/** The directory for sockets that belongs to a data directory. Pure. */
export function socketDirFor(dataDir: string, temporaryDir: string, userId: number): string {
  const near = join(dataDir, 'run')
  const longest = Buffer.byteLength(join(near, `${'0'.repeat(SOCKET_NAME_DIGITS)}.sock`))
  if (longest <= SOCKET_PATH_LIMIT_BYTES) return near
  return join(temporaryDir, `homeport-${userId}-${sha256Hex(dataDir).slice(0, 12)}`)
}

/** Makes a directory that is closed to others, or refuses one that is not: anybody may make names in `/tmp`. */
async function privateDir(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 })
  const found = await lstat(path)
  const isOurs = found.isDirectory() && found.uid === userInfo().uid && (found.mode & 0o077) === 0
  if (!isOurs) throw new Error(`${path} must be a directory of this user with mode 0700. Remove it and start again.`)
}

/** Makes the fleet's directories. Symbolic links are resolved, so that one directory has one name in every life. */
export async function prepareLayout(dataDir: string): Promise<Layout> {
  const databasesDir = join(resolve(dataDir), 'databases')
  await mkdir(databasesDir, { recursive: true, mode: 0o700 })
  const realRoot = await realpath(resolve(dataDir))
  const socketDir = socketDirFor(realRoot, tmpdir(), userInfo().uid)
  await privateDir(socketDir)
  return { databasesDir: join(realRoot, 'databases'), socketDir, quarantineDir: join(realRoot, 'quarantine') }
}

/** The directory of one database. */
export function databaseDir(layout: Layout, databaseId: string): string {
  return join(layout.databasesDir, databaseId)
}

/** The paths of one member. */
export function memberPaths(layout: Layout, databaseId: string, region: string): EnginePaths {
  const dir = join(databaseDir(layout, databaseId), region)
  const socketName = sha256Hex(`${databaseId}/${region}`).slice(0, SOCKET_NAME_DIGITS)
  return {
    dir,
    configFile: join(dir, CONFIG_FILE),
    userFile: join(dir, 'engine.acl'),
    socket: join(layout.socketDir, `${socketName}.sock`),
  }
}
