/** Learns what an engine program can do, by asking one that runs for a moment with nothing in it. */
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
]

/** An engine that takes its configuration from its input keeps nothing and listens on one socket only. */
function spawnBare(binary: string, socketPath: string): ChildProcess {
  const child = spawn(binary, ['-'], { env: {}, cwd: '/', stdio: ['pipe', 'ignore', 'ignore'] })
  child.stdin?.on('error', () => {})
  child.stdin?.end(`port 0\nunixsocket ${quoted(socketPath)}\nsave ""\nappendonly no\ndaemonize no\n`)
  return child
}

async function askCommands(socketPath: string, child: ChildProcess): Promise<readonly unknown[]> {
  const retryUntilMs = systemClock.now() + DEADLINE_MS
  const mayCome = (): boolean =>
    child.exitCode === null && child.signalCode === null && systemClock.now() < retryUntilMs
  const retryStrategy = (): number | null => (mayCome() ? RETRY_MS : null)
  const engine = new Redis({ path: socketPath, retryStrategy, maxRetriesPerRequest: null, enableReadyCheck: false })
  engine.on('error', () => {})
  try {
    return (await engine.call('COMMAND', 'INFO', ...SHOWN_BY.map(([, command]) => command))) as readonly unknown[]
  } finally {
    engine.disconnect()
  }
}

/**
 * The capabilities of an engine program. Rejects when it cannot be started or does not answer.
 * @param binary absolute path.
 */
export async function capabilitiesOf(binary: string): Promise<readonly EngineCapability[]> {
  const directory = await mkdtemp(join(tmpdir(), 'homeport-probe-'))
  const child = spawnBare(binary, join(directory, 's'))
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
    child.once('error', () => resolve())
  })
  try {
    const found = await askCommands(join(directory, 's'), child)
    return SHOWN_BY.flatMap(([capability], index) => (found[index] ? [capability] : []))
  } finally {
    child.kill('SIGKILL')
    await ended
    await rm(directory, { recursive: true, force: true })
  }
}
