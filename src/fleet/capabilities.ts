/** Learns which commands an engine program has, by asking one that runs for a moment with nothing in it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { systemClock } from '../base/index.js'
import { quoted } from './engine-config.js'
import type { EngineCapability } from './types.js'

const DEADLINE_MS = 5_000
const RETRY_MS = 5

/** The command whose presence shows a capability. */
const SHOWN_BY: readonly (readonly [EngineCapability, string])[] = [
  ['hash-field-ttl', 'HEXPIRE'],
  ['json', 'JSON.SET'],
  ['search', 'FT.SEARCH'],
  ['waitaof', 'WAITAOF'],
  ['string-compare-and-set', 'DELEX'],
  ['vector-sets', 'VSIM'],
]

/** What an engine with these commands can do beyond the oldest supported one. */
export function capabilitiesOf(commands: ReadonlySet<string>): readonly EngineCapability[] {
  return SHOWN_BY.flatMap(([capability, command]) => (commands.has(command) ? [capability] : []))
}

/** An engine that takes its configuration from its input keeps nothing and listens on one socket only. */
function spawnBare(binary: string, socketPath: string): ChildProcess {
  const child = spawn(binary, ['-'], { env: {}, cwd: '/', stdio: ['pipe', 'ignore', 'ignore'] })
  child.stdin?.on('error', () => {})
  child.stdin?.end(`port 0\nunixsocket ${quoted(socketPath)}\nsave ""\nappendonly no\ndaemonize no\n`)
  return child
}

async function askCommands(socketPath: string, child: ChildProcess): Promise<ReadonlySet<string>> {
  const retryUntilMs = systemClock.now() + DEADLINE_MS
  const mayCome = (): boolean =>
    child.exitCode === null && child.signalCode === null && systemClock.now() < retryUntilMs
  const retryStrategy = (): number | null => (mayCome() ? RETRY_MS : null)
  const engine = new Redis({ path: socketPath, retryStrategy, maxRetriesPerRequest: null, enableReadyCheck: false })
  engine.on('error', () => {})
  try {
    const names = await engine.call('COMMAND', 'LIST')
    return new Set(Array.isArray(names) ? names.map((name) => String(name).toUpperCase()) : [])
  } finally {
    engine.disconnect()
  }
}

/**
 * The names of the commands of an engine program, in upper case, those of subcommands as `CLIENT|KILL`. Rejects when it
 * cannot be started or does not answer.
 * @param binary absolute path.
 */
export async function commandsOf(binary: string): Promise<ReadonlySet<string>> {
  const directory = await mkdtemp(join(tmpdir(), 'homeport-probe-'))
  const child = spawnBare(binary, join(directory, 's'))
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
    child.once('error', () => resolve())
  })
  try {
    return await askCommands(join(directory, 's'), child)
  } finally {
    child.kill('SIGKILL')
    await ended
    await rm(directory, { recursive: true, force: true })
  }
}
