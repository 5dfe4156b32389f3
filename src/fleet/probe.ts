/** Finds the engine program of this machine, and learns its version, commands and settings by running it. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { access, mkdtemp, open, readFile, realpath, rm } from 'node:fs/promises'
import { basename, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { Redis } from 'iovalkey'
import { codeOf } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { OWN_DEFAULTS, quoted } from './engine-config.js'
import { findProgram, isProgram } from './programs.js'
import { CVE, isTooOld, problemsOf } from './safety.js'
import { firstUsableFolder, TEMPORARY_FOLDERS } from './socket-folders.js'
import type { EngineCapability, EngineInfo } from './types.js'

const run = promisify(execFile)
const unzip = promisify(gunzip)

const NAMES = ['valkey-server', 'redis-server'] as const
/** Directories of package managers that the short PATH of a service lacks. */
const MORE_DIRECTORIES = ['/usr/local/bin', '/usr/bin', '/opt/homebrew/bin', '/opt/local/bin']
const RUN_TIMEOUT_MS = 30_000
/** Maximum characters of a program's output that an error quotes. */
const MAX_LINE_LENGTH = 200
const VERSION = /^(Redis|Valkey) server v=(\d+\.\d+\.\d+)/

/** The system cannot start another process now. */
const SHORTAGES = new Set(['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE'])

const unusable = (binary: string, problem: string, cause?: unknown): HomeportError =>
  new HomeportError('engine_unusable', { binary, problem }, { cause })

/**
 * Runs `dpkg-query` about a program; undefined when that fails or is not installed. Rejects when the system cannot start
 * another process.
 */
async function fromPackages(binary: string, args: readonly string[]): Promise<string | undefined> {
  try {
    return (await run('dpkg-query', args, { timeout: RUN_TIMEOUT_MS })).stdout.trim()
  } catch (error) {
    const code = codeOf(error)
    if (SHORTAGES.has(code))
      throw unusable(binary, `the system could not start dpkg-query to find its version (${code})`, error)
    return undefined
  }
}

const notStarted = (code: string): string => `the system could not start it (${code})`

/** The output of `--version` of an engine. */
async function versionLineOf(binary: string): Promise<string> {
  try {
    return (await run(binary, ['--version'], { timeout: RUN_TIMEOUT_MS })).stdout.trim()
  } catch (error) {
    throw unusable(binary, failureOf(error), error)
  }
}

/** Why running a program failed, in words. */
function failureOf(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error)) return String(error)
  if (typeof error.code === 'string') return notStarted(error.code)
  if ('killed' in error && error.killed === true)
    return `it does not answer --version within ${RUN_TIMEOUT_MS / 1_000} s`
  const said = 'stderr' in error ? lastLineOf(String(error.stderr)) : ''
  const ended =
    'signal' in error && error.signal ? `it ended with ${error.signal}` : `it exited with code ${error.code}`
  return said === '' ? ended : `${ended} and says "${said}"`
}

const lastLineOf = (text: string): string => text.trimEnd().split('\n').at(-1)?.slice(0, MAX_LINE_LENGTH) ?? ''

/** The absolute path of a program, given as a path or as a name in the `PATH`. */
async function locate(nameOrPath: string): Promise<string | undefined> {
  if (!nameOrPath.includes('/')) return findProgram(nameOrPath, MORE_DIRECTORIES)
  if (!(await isProgram(nameOrPath))) return undefined
  return isAbsolute(nameOrPath) ? nameOrPath : realpath(nameOrPath)
}

async function findBinary(desired: string | undefined): Promise<string> {
  const names = desired === undefined ? NAMES : [desired]
  for (const name of names) {
    const path = await locate(name)
    if (path) return path
  }
  if (desired?.includes('/') && (await isThere(desired)))
    throw unusable(desired, 'it is not a file that this user may run')
  throw new HomeportError('engine_missing', { looked: names.join(' and ') })
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** Whether a package lists a file as its own. */
async function hasFile(packageName: string, path: string): Promise<boolean> {
  const list = await readFile(`/var/lib/dpkg/info/${packageName}.list`, 'utf8').catch(() => '')
  return list.split('\n').includes(path)
}

/**
 * The dpkg package that owns a program, if any. The package often has the name of the program; searching all packages is
 * slow.
 */
async function packageOf(binary: string): Promise<{ name: string; version: string } | undefined> {
  const likely = basename(binary)
  const isLikely = await hasFile(likely, binary)
  const name = isLikely ? likely : (await fromPackages(binary, ['-S', binary]))?.split(':')[0]
  const version = name && (await fromPackages(binary, ['-W', `--showformat=$\{Version}`, name]))
  return name && version ? { name, version } : undefined
}

async function changeLogNamesFix(packageName: string): Promise<boolean> {
  const compressed = await readFile(`/usr/share/doc/${packageName}/changelog.Debian.gz`).catch(() => undefined)
  const text = compressed && (await unzip(compressed).catch(() => undefined))
  return text?.includes(CVE) ?? false
}

/** The package of a program and whether its change log names the fix. */
async function originOf(binary: string): Promise<{ packageVersion?: string; changeLogNamesFix: boolean }> {
  const owner = await packageOf(binary)
  if (!owner) return { changeLogNamesFix: false }
  return { packageVersion: owner.version, changeLogNamesFix: await changeLogNamesFix(owner.name) }
}

/** The abilities of an engine; empty for a version that is refused for its age and would not understand the queries. */
async function abilitiesOrNone(binary: string, version: string): Promise<Abilities> {
  if (isTooOld(version)) return { commands: new Set(), settings: new Map() }
  return abilitiesOf(binary)
}

/**
 * Learns about the engine of this machine by running it for a moment.
 * @param binary a path or name; by default `valkey-server`, then `redis-server`. Rejects with `engine_missing` when there
 * is none, with `engine_unusable` when the program is not an engine or does not run, and with `no_temporary_folder`.
 */
export async function probeEngine(binary?: string): Promise<EngineInfo> {
  const path = await findBinary(binary)
  const [, maker, version] = VERSION.exec(await versionLineOf(path)) ?? []
  if (!maker || !version) throw unusable(path, 'it is not Redis or Valkey')
  const kind = maker === 'Valkey' ? 'valkey' : 'redis'
  const [origin, known] = await Promise.all([originOf(path), abilitiesOrNone(path, version)])
  const problems = problemsOf({ kind, version, ...origin })
  const { packageVersion } = origin
  const abilities = { ...known, capabilities: capabilitiesOf(known.commands) }
  return { binary: path, kind, version, ...abilities, problems, ...(packageVersion ? { packageVersion } : {}) }
}

/** Throws `engine_unsafe_version` when an engine has a problem, unless `allowUnsafe`. */
export function requireUsableEngine(engine: EngineInfo, allowUnsafe: boolean): void {
  const problem = engine.problems[0]
  if (problem !== undefined && !allowUnsafe) throw new HomeportError('engine_unsafe_version', { problem })
}

/** Commands and settings of an engine program. */
type Abilities = Pick<EngineInfo, 'commands' | 'settings'>

const RETRY_MS = 5

/** Commands whose presence shows a capability. */
const SHOWN_BY: readonly (readonly [EngineCapability, string])[] = [
  ['hash-field-ttl', 'HEXPIRE'],
  ['json', 'JSON.SET'],
  ['search', 'FT.SEARCH'],
  ['waitaof', 'WAITAOF'],
  ['string-compare-and-set', 'DELEX'],
  ['vector-sets', 'VSIM'],
]

/** The capabilities of an engine with these commands. */
function capabilitiesOf(commands: ReadonlySet<string>): readonly EngineCapability[] {
  return SHOWN_BY.flatMap(([capability, command]) => (commands.has(command) ? [capability] : []))
}

/** An engine that runs for a moment, and why it has ended or did not start, once it has. */
interface BareEngine {
  readonly child: ChildProcess
  readonly ended: Promise<string>
}

/**
 * Starts an engine that reads its configuration from stdin, keeps no data, listens on one socket, and writes its log to a
 * file.
 */
async function spawnBare(binary: string, socketPath: string, logPath: string): Promise<BareEngine> {
  const log = await open(logPath, 'w')
  try {
    const child = spawn(binary, ['-'], { env: {}, cwd: '/', stdio: ['pipe', log.fd, log.fd] })
    // Before anything is awaited: the engine may have ended by then.
    const ended = new Promise<string>((resolve) => {
      child.once('exit', () => resolve('it does not start'))
      child.once('error', (error) => resolve(notStarted(codeOf(error))))
    })
    child.stdin?.on('error', () => {})
    child.stdin?.end(
      `port 0\nunixsocket ${quoted(socketPath)}\nsave ""\nappendonly no\ndaemonize no\n${OWN_DEFAULTS.join('\n')}\n`,
    )
    return { child, ended }
  } finally {
    await log.close()
  }
}

async function askAbilities(socketPath: string, child: ChildProcess): Promise<Abilities> {
  const retryStrategy = (): number | null => (child.exitCode === null && child.signalCode === null ? RETRY_MS : null)
  const patience = { retryStrategy, maxRetriesPerRequest: null, commandTimeout: RUN_TIMEOUT_MS } as const
  const engine = new Redis({ path: socketPath, enableReadyCheck: false, ...patience })
  engine.on('error', () => {})
  try {
    const names = textsIn(await engine.call('COMMAND', 'LIST'))
    const pairs = textsIn(await engine.call('CONFIG', 'GET', '*'))
    const settings = pairs.flatMap((name, at): [string, string][] =>
      // The socket path differs each time.
      at % 2 === 0 && name !== 'unixsocket' ? [[name, pairs[at + 1] ?? '']] : [],
    )
    return { commands: new Set(names.map((name) => name.toUpperCase())), settings: new Map(settings) }
  } finally {
    engine.disconnect()
  }
}

function textsIn(reply: unknown): readonly string[] {
  return Array.isArray(reply) ? reply.map(String) : []
}

/**
 * Reads the commands and settings of an engine program by running it. Rejects with `engine_unusable` when it does not start
 * or answer.
 * @param binary absolute path.
 */
async function abilitiesOf(binary: string): Promise<Abilities> {
  const directory = await firstUsableFolder(TEMPORARY_FOLDERS(), 'homeport-probe-000000/s', (folder) =>
    mkdtemp(join(folder, 'homeport-probe-')),
  )
  try {
    return await abilitiesBySocket(binary, directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function abilitiesBySocket(binary: string, directory: string): Promise<Abilities> {
  const [socketPath, logPath] = [join(directory, 's'), join(directory, 'log')]
  const { child, ended } = await spawnBare(binary, socketPath, logPath)
  try {
    return await askAbilities(socketPath, child)
  } catch (error) {
    child.kill('SIGKILL')
    const problem = await ended
    const said = lastLineOf(await readFile(logPath, 'utf8'))
    throw unusable(binary, said === '' ? problem : `${problem} and says "${said}"`, error)
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}
