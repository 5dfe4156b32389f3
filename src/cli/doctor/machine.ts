import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from '../../config/index.js'
import { unknownVariablesOfProcess } from '../../config/index.js'
import { type Finding, fail, ok, warn } from './finding.js'

const OLDEST_NODE: readonly [number, number] = [20, 19]
const MIB = 2 ** 20
const SCARCE_DISK_BYTES = 1024 * MIB
const TOO_LITTLE_DISK_BYTES = 100 * MIB

/** File systems by the number that the kernel gives them, where they change what "on disk" means. */
const TMPFS = 0x01021994
const NFS = 0x6969

/** Whether this Node is one that Homeport runs on. */
export function checkNode(version: string = process.versions.node): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isRecent = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])
  if (isRecent) return ok('node', version)
  return fail('node', version, `Install Node ${OLDEST_NODE.join('.')} or later.`)
}

/** Whether the environment holds `HOMEPORT_` variables that mean nothing: most likely misspelt. */
export function checkEnvironment(unknown: readonly string[] = unknownVariablesOfProcess()): Finding {
  if (unknown.length === 0) return ok('environment', 'no unknown HOMEPORT_ variables')
  return warn('environment', `unknown: ${unknown.join(', ')}`, 'Correct or remove them; they have no effect.')
}

/** How much room the disk of the data directory has. */
export function checkDiskSpace({ dataDir }: Config): Finding {
  const { bavail, bsize } = fileSystemOf(dataDir)
  const freeBytes = bavail * bsize
  const found = `${Math.floor(freeBytes / MIB)} MiB free for ${dataDir}`
  if (freeBytes < TOO_LITTLE_DISK_BYTES) return fail('disk', found, 'Free space, or choose another --data-dir.')
  if (freeBytes < SCARCE_DISK_BYTES) return warn('disk', found, 'Free space soon: a full disk refuses every write.')
  return ok('disk', found)
}

/** Whether what is written to the data directory is still there after a power cut. */
export function checkFileSystem({ dataDir }: Config): Finding {
  const { type } = fileSystemOf(dataDir)
  if (type === TMPFS) {
    return warn('file system', 'tmpfs, which lives in memory', 'Data is lost at a restart of the machine; use a disk.')
  }
  if (type === NFS) {
    return warn('file system', 'NFS', 'SQLite and the lock need a local disk; use one, or --store postgres://...')
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
