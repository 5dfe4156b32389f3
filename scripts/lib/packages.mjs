/** Installs the npm packages that package-lock.json names, when they are missing or others. */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { aptInstall, canUseApt } from './apt.mjs'
import { inProject, ROOT } from './paths.mjs'
import { findProgram, run, together } from './processes.mjs'
import { SetupError, say } from './say.mjs'

const NATIVE_ADDON = inProject('node_modules/better-sqlite3/build/Release/better_sqlite3.node')
/** What npm says about an installation, once it is complete. */
const RECORD = 'node_modules/.package-lock.json'
const BUILD_TOOLS = { python3: 'python3', make: 'make', 'g++': 'g++' }

/** The driver is among these few, so that its compilation can begin before the many packages for developing are there. */
const THOSE_OF_THE_SERVER = ['--omit=dev', '--ignore-scripts']

const readLock = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : undefined)

/**
 * Whether `node_modules` holds what the lock file names. npm writes its own record there as the last act of an
 * installation, so an interrupted one does not count. Optional packages may be missing: they are for other platforms.
 */
export function packagesAreCurrent(root = ROOT) {
  const wanted = readLock(join(root, 'package-lock.json')) ?? {}
  const found = readLock(join(root, RECORD))
  if (found === undefined) return false
  const same = ([path, entry]) =>
    found[path] === undefined ? entry.optional === true : found[path].version === entry.version
  return Object.entries(wanted)
    .filter(([path]) => path !== '')
    .every(same)
}

/** Whether the SQLite driver was compiled for this Node: the name of the function that Node calls in it says for which. */
const driverIsCurrent = () =>
  existsSync(NATIVE_ADDON) && readFileSync(NATIVE_ADDON).includes(`node_register_module_v${process.versions.modules}`)

/**
 * Brings `node_modules` up to date, and runs `meanwhile` as soon as all packages can be loaded. Compiling the SQLite
 * driver keeps one core busy for a minute; unpacking the rest, and whatever needs no database, goes on beside it.
 */
export async function ensurePackages(meanwhile = async () => {}) {
  if (packagesAreCurrent() && driverIsCurrent()) return await meanwhile()
  say('installing the npm packages; the SQLite driver may be compiled, which takes a minute or two')
  if (!packagesAreCurrent()) succeed(await npm('install', '--no-save', ...(isEmpty() ? THOSE_OF_THE_SERVER : [])))
  await together(ensureDriver, async () => {
    if (!packagesAreCurrent()) succeed(await npm('install', '--no-save'))
    say('the npm packages are installed')
    await meanwhile()
  })
}

const isEmpty = () => !existsSync(inProject(RECORD))

async function ensureDriver() {
  if (driverIsCurrent()) return
  const compile = () => npm('rebuild', 'better-sqlite3')
  let result = await compile()
  if (!driverIsCurrent() && (await addBuildTools())) result = await compile()
  succeed(driverIsCurrent() ? result : { ...result, code: 1 })
  say('the SQLite driver is ready')
}

function succeed({ code, output }) {
  if (code === 0) return
  process.stderr.write(output)
  throw new SetupError('npm could not install the packages; its output above says why. Then run the command again.')
}

/**
 * `npm install --no-save` takes the versions of the lock file and leaves that file alone. `npm ci` would insist that the
 * lock file names the optional packages of every platform, even of those that the registry in use does not carry.
 */
function npm(...args) {
  const env = { npm_config_nodedir: headersOfNode(), npm_config_fund: 'false', npm_config_audit: 'false' }
  return run('npm', args, {
    cwd: ROOT,
    env: Object.fromEntries(Object.entries(env).filter(([, value]) => value)),
    quiet: true,
  })
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
