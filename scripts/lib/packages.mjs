/** Installs the npm packages that package-lock.json names, when they are missing or others. */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { aptInstall, canUseApt } from './apt.mjs'
import { inProject, ROOT } from './paths.mjs'
import { findProgram, run } from './processes.mjs'
import { SetupError, say } from './say.mjs'

const NATIVE_ADDON = inProject('node_modules/better-sqlite3/build/Release/better_sqlite3.node')
const BUILD_TOOLS = { python3: 'python3', make: 'make', 'g++': 'g++' }

const readLock = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : undefined)

/**
 * Whether `node_modules` holds what the lock file names. npm writes its own record there as the last act of an
 * installation, so an interrupted one does not count. Optional packages may be missing: they are for other platforms.
 */
export function packagesAreCurrent(root = ROOT) {
  const wanted = readLock(join(root, 'package-lock.json')) ?? {}
  const found = readLock(join(root, 'node_modules/.package-lock.json'))
  if (found === undefined) return false
  const same = ([path, entry]) =>
    found[path] === undefined ? entry.optional === true : found[path].version === entry.version
  return Object.entries(wanted)
    .filter(([path]) => path !== '')
    .every(same)
}

/** Brings `node_modules` up to date. Does nothing when it is. */
export async function ensurePackages() {
  if (packagesAreCurrent() && existsSync(NATIVE_ADDON)) return
  say('installing the npm packages; the SQLite driver may be compiled, which takes a minute or two')
  let result = await installPackages()
  if (result.code !== 0 && (await addBuildTools())) result = await installPackages()
  if (result.code !== 0) {
    process.stderr.write(result.output)
    throw new SetupError('npm could not install the packages; its output above says why. Then run the command again.')
  }
  say('npm packages are installed')
}

async function installPackages() {
  const env = { npm_config_nodedir: headersOfNode(), npm_config_fund: 'false', npm_config_audit: 'false' }
  const options = { cwd: ROOT, env: Object.fromEntries(Object.entries(env).filter(([, value]) => value)), quiet: true }
  // Takes the versions of the lock file and leaves that file alone. `npm ci` would insist that the lock file names the
  // optional packages of every platform, even of those that the registry in use does not carry.
  const install = ['install', '--no-save']
  const installed = packagesAreCurrent() ? { code: 0, output: '' } : await run('npm', install, options)
  if (installed.code !== 0 || existsSync(NATIVE_ADDON)) return installed
  const rebuilt = await run('npm', ['rebuild', 'better-sqlite3'], options)
  return existsSync(NATIVE_ADDON) ? rebuilt : { code: 1, output: installed.output + rebuilt.output }
}

/** The headers that came with this Node, so that the compiler need not download them. */
function headersOfNode() {
  const prefix = resolve(process.execPath, '../..')
  return existsSync(join(prefix, 'include/node/node.h')) ? prefix : undefined
}

async function addBuildTools() {
  const missing = Object.keys(BUILD_TOOLS).filter((tool) => !findProgram(tool))
  if (missing.length === 0 || !canUseApt()) return false
  say(`the SQLite driver has to be compiled: installing ${missing.join(', ')}`)
  await aptInstall(missing.map((tool) => BUILD_TOOLS[tool]))
  return true
}
