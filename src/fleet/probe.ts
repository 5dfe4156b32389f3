/** Finds the engine program of this machine, and learns its version, commands and settings by running it. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { Redis } from 'iovalkey'
import { systemClock } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { OWN_DEFAULTS, quoted } from './engine-config.js'
import { findProgram, isProgram } from './programs.js'
import { CVE, isTooOld, problemsOf } from './safety.js'
import type { EngineCapability, EngineInfo } from './types.js'

const run = promisify(execFile)
const unzip = promisify(gunzip)

const NAMES = ['valkey-server', 'redis-server'] as const
/** Directories of package managers that the short PATH of a service lacks. */
const MORE_DIRECTORIES = ['/usr/local/bin', '/usr/bin', '/opt/homebrew/bin', '/opt/local/bin']
const RUN_TIMEOUT_MS = 30_000
const VERSION = /^(Redis|Valkey) server v=(\d+\.\d+\.\d+)/

/** The standard output of a command, or undefined when it fails or is not there. */
async function outputOf(command: string, args: readonly string[]): Promise<string | undefined> {
  return run(command, args, { timeout: RUN_TIMEOUT_MS }).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  )
}

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
  throw new HomeportError('engine_missing', { looked: names.join(' and ') })
}

/** Whether a package lists a file as its own. */
async function hasFile(packageName: string, path: string): Promise<boolean> {
  const list = await readFile(`/var/lib/dpkg/info/${packageName}.list`, 'utf8').catch(() => '')
  return list.split('\n').includes(path)
}

/** The dpkg package that owns a program, if any. It is often named like the program; to search all is slow. */
async function packageOf(binary: string): Promise<{ name: string; version: string } | undefined> {
  const likely = basename(binary)
  const isLikely = await hasFile(likely, binary)
  const name = isLikely ? likely : (await outputOf('dpkg-query', ['-S', binary]))?.split(':')[0]
  const version = name && (await outputOf('dpkg-query', ['-W', `--showformat=$\{Version}`, name]))
  return name && version ? { name, version } : undefined
}

async function changeLogNamesFix(packageName: string): Promise<boolean> {
  const compressed = await readFile(`/usr/share/doc/${packageName}/changelog.Debian.gz`).catch(() => undefined)
  const text = compressed && (await unzip(compressed).catch(() => undefined))
  return text?.includes(CVE) ?? false
}

/** What the package system knows of a program. */
async function originOf(binary: string): Promise<{ packageVersion?: string; changeLogNamesFix: boolean }> {
  const owner = await packageOf(binary)
  if (!owner) return { changeLogNamesFix: false }
  return { packageVersion: owner.version, changeLogNamesFix: await changeLogNamesFix(owner.name) }
}

/** The abilities of an engine; empty for a version that is refused for its age and would not understand the queries. */
async function abilitiesOrMissing(binary: string, version: string): Promise<Abilities> {
  if (isTooOld(version)) return { commands: new Set(), settings: new Map() }
  return abilitiesOf(binary).catch((error: unknown) => {
    throw new HomeportError('engine_missing', { looked: `${binary}, which does not run` }, { cause: error })
  })
}

/**
 * Learns about the engine of this machine by running it for a moment.
 * @param binary a path or name; by default `valkey-server`, then `redis-server`.
 * Rejects with `engine_missing` when there is none, or when the program is not an engine or does not run.
 */
export async function probeEngine(binary?: string): Promise<EngineInfo> {
  const path = await findBinary(binary)
  const [, maker, version] = VERSION.exec((await outputOf(path, ['--version'])) ?? '') ?? []
  if (!maker || !version) throw new HomeportError('engine_missing', { looked: `${path}, which is not an engine` })
  const kind = maker === 'Valkey' ? 'valkey' : 'redis'
  const [origin, known] = await Promise.all([originOf(path), abilitiesOrMissing(path, version)])
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

const DEADLINE_MS = 5_000
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

/** Starts an engine that reads its configuration from stdin, keeps nothing and listens on one socket. */
function spawnBare(binary: string, socketPath: string): ChildProcess {
  const child = spawn(binary, ['-'], { env: {}, cwd: '/', stdio: ['pipe', 'ignore', 'ignore'] })
  child.stdin?.on('error', () => {})
  child.stdin?.end(
    `port 0\nunixsocket ${quoted(socketPath)}\nsave ""\nappendonly no\ndaemonize no\n${OWN_DEFAULTS.join('\n')}\n`,
  )
  return child
}

async function askAbilities(socketPath: string, child: ChildProcess): Promise<Abilities> {
  const retryUntilMs = systemClock.now() + DEADLINE_MS
  const mayStillStart = (): boolean =>
    child.exitCode === null && child.signalCode === null && systemClock.now() < retryUntilMs
  const retryStrategy = (): number | null => (mayStillStart() ? RETRY_MS : null)
  const engine = new Redis({ path: socketPath, retryStrategy, maxRetriesPerRequest: null, enableReadyCheck: false })
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
 * Reads the commands and settings of an engine program by running it. Rejects when it does not start or answer.
 * @param binary absolute path.
 */
async function abilitiesOf(binary: string): Promise<Abilities> {
  const directory = await mkdtemp(join(tmpdir(), 'homeport-probe-'))
  const child = spawnBare(binary, join(directory, 's'))
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
    child.once('error', () => resolve())
  })
  try {
    return await askAbilities(join(directory, 's'), child)
  } finally {
    child.kill('SIGKILL')
    await ended
    await rm(directory, { recursive: true, force: true })
  }
}
