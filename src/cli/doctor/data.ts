import { relative } from 'node:path'
import { unreachable } from '../../base/index.js'
import { type Config, type DataDirState, pathsOpenToOthers } from '../../config/index.js'
import { type Finding, fail, ok, warn } from './finding.js'

const OTHERS = 0o077

/** Checks whether a server could start on the data directory. */
export function checkDataDir({ dataDir }: Config, found: DataDirState): Finding {
  const name = 'data directory'
  switch (found.state) {
    case 'missing':
      return ok(name, `${dataDir} is created at the first start`)
    case 'unusable':
      return fail(name, `${dataDir} cannot be used: ${found.reason}`, 'Correct this, or choose another --data-dir.')
    case 'locked':
      return checkMode(`${dataDir} is in use by process ${found.pid ?? 'unknown'}`, found.mode)
    case 'free':
      return checkMode(`${dataDir} exists and is not in use`, found.mode)
    default:
      return unreachable(found)
  }
}

function checkMode(found: string, mode: number): Finding {
  if ((mode & OTHERS) === 0) return ok('data directory', found)
  const text = `${found}; other users have access to it (mode 0${mode.toString(8)})`
  return warn('data directory', text, 'Restrict it: chmod 700.')
}

/** Checks the modes of the files in the data directory: they protect the data if the mode of the directory is opened. */
export async function checkModes({ dataDir }: Config): Promise<Finding> {
  const open = await pathsOpenToOthers(dataDir)
  if (open.length === 0) return ok('file modes', 'no file in the data directory is open to other users')
  const names = open.slice(0, 3).map((path) => relative(dataDir, path) || '.')
  const found = `${open.length} open to other users: ${names.join(', ')}${open.length > 3 ? ', ...' : ''}`
  return warn('file modes', found, 'The next start restricts them; or run chmod -R go= on the data directory now.')
}
