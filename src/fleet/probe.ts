/** Finds the engine program of this machine, and learns by running it what it is and can do. */
import { execFile } from 'node:child_process'
import { access, constants, readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { HomeportError } from '../contract/errors/errors.js'
import { type Abilities, abilitiesOf, capabilitiesOf } from './capabilities.js'
import { HOLE, isTooOld, problemsOf } from './safety.js'
import type { EngineInfo } from './types.js'

const run = promisify(execFile)
const unzip = promisify(gunzip)

const NAMES = ['valkey-server', 'redis-server'] as const
/** Where package managers put programs that the short PATH of a service does not name. */
const MORE_DIRECTORIES = ['/usr/local/bin', '/usr/bin', '/opt/homebrew/bin', '/opt/local/bin']
const RUN_TIMEOUT_MS = 10_000
const VERSION = /^(Redis|Valkey) server v=(\d+\.\d+\.\d+)/

/** The standard output of a command, or undefined when it fails or is not there. */
async function outputOf(command: string, args: readonly string[]): Promise<string | undefined> {
  return run(command, args, { timeout: RUN_TIMEOUT_MS }).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  )
}

async function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}

/** The absolute path of a program: given as a path, or by a name that the shell finds. */
async function locate(nameOrPath: string): Promise<string | undefined> {
  const found = await outputOf('/bin/sh', ['-c', 'command -v -- "$1"', 'sh', nameOrPath])
  const candidates = [found, ...MORE_DIRECTORIES.map((directory) => join(directory, nameOrPath))]
  for (const path of candidates) if (path?.startsWith('/') && (await isProgram(path))) return path
  return nameOrPath.includes('/') && (await isProgram(nameOrPath)) ? realpath(nameOrPath) : undefined
}

async function findBinary(desired: string | undefined): Promise<string> {
  const names = desired === undefined ? NAMES : [desired]
  for (const name of names) {
    const path = await locate(name)
    if (path) return path
  }
  throw new HomeportError('engine_missing', { looked: names.join(' and ') })
}

/** The operating system's package that owns a program, where dpkg knows one. */
async function packageOf(binary: string): Promise<{ name: string; version: string } | undefined> {
  const owner = await outputOf('dpkg-query', ['-S', binary])
  const name = owner?.split(':')[0]
  const version = name && (await outputOf('dpkg-query', ['-W', `--showformat=$\{Version}`, name]))
  return name && version ? { name, version } : undefined
}

async function changeLogNamesFix(packageName: string): Promise<boolean> {
  const compressed = await readFile(`/usr/share/doc/${packageName}/changelog.Debian.gz`).catch(() => undefined)
  const text = compressed && (await unzip(compressed).catch(() => undefined))
  return text?.includes(HOLE) ?? false
}

/** What the operating system knows of a program. */
async function originOf(binary: string): Promise<{ packageVersion?: string; changeLogNamesFix: boolean }> {
  const owner = await packageOf(binary)
  if (!owner) return { changeLogNamesFix: false }
  return { packageVersion: owner.version, changeLogNamesFix: await changeLogNamesFix(owner.name) }
}

/** What an engine knows; nothing of one that is refused for its age, and cannot be asked for that reason. */
async function abilitiesOrMissing(binary: string, version: string): Promise<Abilities> {
  if (isTooOld(version)) return { commands: new Set(), settings: new Map() }
  return abilitiesOf(binary).catch((error: unknown) => {
    throw new HomeportError('engine_missing', { looked: `${binary}, which does not run` }, { cause: error })
  })
}

/**
 * Learns what the engine of this machine is, by running it for a moment.
 * @param binary a path or a name to use; without one, `valkey-server` and then `redis-server` is looked for.
 * Rejects with `engine_missing` when there is none, or when what was named is not an engine or does not run.
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
