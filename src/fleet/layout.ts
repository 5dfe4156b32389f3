/**
 * Where the fleet keeps its files.
 *
 * ```
 * <dataDir>/databases/<databaseId>/<region>/engine.conf   configuration, written before every start
 *                                           engine.acl    users, likewise
 *                                           ...           files of the engine itself
 * <dataDir>/reserve                                       disk space reserved for deletions (`disk-space.ts`)
 * <dataDir>/run/<16 hex digits>.sock                      Unix sockets, deleted when the fleet stops
 * ```
 *
 * The path of a Unix socket is limited to about 100 bytes. If `<dataDir>/run` is too long, a directory in a temporary
 * directory of the machine replaces it.
 */
import { lstat, mkdir, realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { codeOf, makeFolder, sha256Hex, userId } from '../base/index.js'
import type { EnginePaths } from './engine-config.js'
import { firstUsableFolder, SOCKET_PATH_LIMIT_BYTES, TEMPORARY_FOLDERS } from './socket-folders.js'

/** File name of every configuration file. */
export const CONFIG_FILE = 'engine.conf'

const SOCKET_NAME_DIGITS = 16
const LONGEST_NAME = `${'0'.repeat(SOCKET_NAME_DIGITS)}.sock`

/** The directories of the fleet, created and checked. */
export interface Layout {
  /** One directory for each database. */
  readonly databasesDir: string
  /** Sockets; mode 0700 and owned by us. */
  readonly socketDir: string
  /** Quarantine, created when needed. */
  readonly quarantineDir: string
}

/** The socket directory of a data directory; undefined when its sockets would have too long paths. Pure. */
export function nearSocketDir(dataDir: string): string | undefined {
  const near = join(dataDir, 'run')
  return Buffer.byteLength(join(near, LONGEST_NAME)) <= SOCKET_PATH_LIMIT_BYTES ? near : undefined
}

/** The socket directory in a temporary directory, always the same for one data directory and user. */
function farSocketDir(dataDir: string): Promise<string> {
  const name = `homeport-${userId()}-${sha256Hex(dataDir).slice(0, 12)}`
  return firstUsableFolder(TEMPORARY_FOLDERS(), join(name, LONGEST_NAME), (folder) => privateDir(join(folder, name)))
}

/** Creates a private directory, or refuses one that is not ours: anybody may create names in `/tmp`. */
async function privateDir(path: string): Promise<string> {
  await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error
  })
  const found = await lstat(path)
  const isOurs = found.isDirectory() && found.uid === userId() && (found.mode & 0o077) === 0
  if (!isOurs) throw new Error(`${path} must be a directory of this user with mode 0700. Remove it and start again.`)
  return path
}

/** Creates the directories of the fleet. Resolves symbolic links, so that one directory always has one name. */
export async function prepareLayout(dataDir: string): Promise<Layout> {
  const databasesDir = join(resolve(dataDir), 'databases')
  await makeFolder(databasesDir)
  const realRoot = await realpath(resolve(dataDir))
  const near = nearSocketDir(realRoot)
  const socketDir = near === undefined ? await farSocketDir(realRoot) : await privateDir(near)
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
