import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { missingSqliteDriver } from '../../base/index.js'
import { type Config, unknownVariablesOfProcess } from '../../config/index.js'
import type { EngineInfo } from '../../fleet/index.js'
import { describeError } from '../errors.js'
import { type Finding, fail, ok, warn } from './finding.js'

const OLDEST_NODE: readonly [number, number] = [20, 19]
const MIB = 2 ** 20
const SCARCE_DISK_BYTES = 1024 * MIB
const TOO_LITTLE_DISK_BYTES = 100 * MIB

/** Magic numbers of file systems on which durability differs. */
const TMPFS = 0x01021994
const NFS = 0x6969

/** Checks the version of Node, and that it has a driver for SQLite, which the lock of the data directory needs. */
export function checkNode(version: string = process.versions.node, missingDriver = missingSqliteDriver()): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isRecent = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])
  if (!isRecent) return fail('node', version, `Install Node ${OLDEST_NODE.join('.')} or later.`)
  if (missingDriver === undefined) return ok('node', version)
  return fail(
    'node',
    `${version}: ${missingDriver}`,
    `Use Node 22.16 or newer, or 24; or install without --omit=optional.`,
  )
}

/** Checks for unknown `HOMEPORT_` variables, which are most likely misspelt. */
export function checkEnvironment(unknown: readonly string[] = unknownVariablesOfProcess()): Finding {
  if (unknown.length === 0) return ok('environment', 'no unknown HOMEPORT_ variables')
  return warn('environment', `unknown: ${unknown.join(', ')}`, 'They have no effect. Correct or remove them.')
}

/** Checks the free space on the disk of the data directory. */
export function checkDiskSpace({ dataDir }: Config): Finding {
  const { bavail, bsize } = fileSystemOf(dataDir)
  const freeBytes = bavail * bsize
  const found = `${Math.floor(freeBytes / MIB)} MiB free for ${dataDir}`
  if (freeBytes < TOO_LITTLE_DISK_BYTES) return fail('disk', found, 'Free space, or choose another --data-dir.')
  if (freeBytes < SCARCE_DISK_BYTES) return warn('disk', found, 'Free space soon: a full disk refuses every write.')
  return ok('disk', found)
}

/** Checks whether the file system of the data directory keeps data after a power failure. */
export function checkFileSystem({ dataDir }: Config): Finding {
  const { type } = fileSystemOf(dataDir)
  if (type === TMPFS) {
    return warn('file system', 'tmpfs, which is in memory', 'All data is lost when the machine restarts. Use a disk.')
  }
  if (type === NFS) {
    return warn('file system', 'NFS', 'SQLite and the lock need a local disk. Use one, or --store postgres://...')
  }
  return ok('file system', 'local')
}

/** The file system of a path, or of the nearest folder above it that exists. */
function fileSystemOf(path: string): { readonly type: number; readonly bavail: number; readonly bsize: number } {
  try {
    return statfsSync(path)
  } catch (error) {
    if (dirname(path) === path) throw error
    return fileSystemOf(dirname(path))
  }
}

/** Checks the engine that databases would run on. */
export async function checkEngine(config: Config): Promise<Finding> {
  // Imported here, so that other commands do not load the fleet.
  const { probeEngine } = await import('../../fleet/index.js')
  try {
    return judge(await probeEngine(config.engineBinary), config.engineAllowUnsafeVersion)
  } catch (error) {
    return fail('engine', 'no working engine', describeError(error))
  }
}

function judge(engine: EngineInfo, isUnsafeAllowed: boolean): Finding {
  const packaged = engine.packageVersion === undefined ? '' : `, package ${engine.packageVersion}`
  const abilities = engine.capabilities.length === 0 ? '' : `; supports ${engine.capabilities.join(', ')}`
  const found = `${engine.kind} ${engine.version} (${engine.binary}${packaged})${abilities}`
  if (engine.problems.length === 0) return ok('engine', found)
  return (isUnsafeAllowed ? warn : fail)('engine', found, engine.problems.join(' '))
}
