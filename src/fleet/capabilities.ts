/** Learns which commands an engine program has, by asking one that runs for a moment with nothing in it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { systemClock } from '../base/index.js'
import { OWN_DEFAULTS, quoted } from './engine-config.js'
import type { EngineCapability, EngineInfo } from './types.js'

/** The commands of an engine program and its settings. */
export type Abilities = Pick<EngineInfo, 'commands' | 'settings'>

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
  child.stdin?.end(
    `port 0\nunixsocket ${quoted(socketPath)}\nsave ""\nappendonly no\ndaemonize no\n${OWN_DEFAULTS.join('\n')}\n`,
  )
  return child
}

async function askAbilities(socketPath: string, child: ChildProcess): Promise<Abilities> {
  const retryUntilMs = systemClock.now() + DEADLINE_MS
  const mayCome = (): boolean =>
    child.exitCode === null && child.signalCode === null && systemClock.now() < retryUntilMs
  const retryStrategy = (): number | null => (mayCome() ? RETRY_MS : null)
  const engine = new Redis({ path: socketPath, retryStrategy, maxRetriesPerRequest: null, enableReadyCheck: false })
  engine.on('error', () => {})
  try {
    const names = textsIn(await engine.call('COMMAND', 'LIST'))
    const pairs = textsIn(await engine.call('CONFIG', 'GET', '*'))
    const settings = pairs.flatMap((name, at): [string, string][] =>
      // Where it listens is another place each time.
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
 * What an engine program knows, learnt by running it. Rejects when it cannot be started or does not answer.
 * @param binary absolute path.
 */
export async function abilitiesOf(binary: string): Promise<Abilities> {
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
