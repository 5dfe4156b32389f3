import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { credentialsPath, newCredentials, readCredentials, writeCredentials } from '../accounts/credentials.js'
import { type Config, type Defaults, isLoopback, type OptionName } from '../config/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { failedWith, misused } from './errors.js'
import type { ExitCode } from './exit-codes.js'
import { addConfigFlags, configOf } from './flags.js'
import type { Io } from './io.js'
import { addExamples } from './remote/remote.js'
import { wholeNumber } from './remote/values.js'
import { explain, runServer } from './start.js'

/** The fixed credentials of clients in development mode, `QSTASH_DEV=true` (reference queue 1.6). */
const FIXED = {
  queueToken: 'eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=',
  currentSigningKey: 'sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r',
  nextSigningKey: 'sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs',
} as const

const EMAIL = 'dev@localhost'
/** Most nodes of a cluster for development. */
const MAX_NODES = 16

/** Defaults of `dev` that differ from those of `start`. */
const DEFAULTS: Defaults = { queuePort: '8080', dataDir: './homeport-dev' }

/**
 * `homeport dev`: runs the server with the queue port, the token and the signing keys that clients in development mode
 * expect. These credentials are public, so it listens on loopback only.
 */
export function devCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('dev').description(
    'run the server for development: queue on port 8080 with the fixed token that QSTASH_DEV=true uses, loopback only',
  )
  command.option('--ephemeral', 'use a data directory that is deleted at the end')
  command.option(
    '--nodes <count>',
    'run a cluster of this many nodes with a PostgreSQL of its own; all data is deleted at the end',
    wholeNumber(1, MAX_NODES),
  )
  addExamples(command, ['homeport dev', 'homeport dev --ephemeral', 'homeport dev --nodes 3'])
  return addConfigFlags(
    command,
    ['dataDir', 'apiPort', 'restPort', 'queuePort', 'redisPorts', 'logLevel'],
    DEFAULTS,
  ).action(async () => {
    const { ephemeral: isEphemeral, nodes } = command.opts<{ ephemeral?: true; nodes?: number }>()
    if (nodes !== undefined) return end(await runNodes(command, nodes, io))
    end(await (isEphemeral ? runEphemeral(command, io) : runDev(devConfig(command), io)))
  })
}

/** The configuration with the defaults of `dev`; `fixed` options override flags. */
function devConfig(command: Command, fixed: Partial<Record<OptionName, string>> = {}): Config {
  for (const [name, value] of Object.entries(fixed)) command.setOptionValue(name, value)
  const config = configOf(command, DEFAULTS)
  if (isLoopback(config.host)) return config
  const problem = `host is ${config.host}, but the credentials of dev are public, so it listens on loopback only; use homeport start`
  throw new HomeportError('invalid_config', { problems: [problem] })
}

/** Refuses flags for the location of data together with a flag that deletes the data at the end. */
function refusePlaces(command: Command, flag: '--nodes' | '--ephemeral'): void {
  const isPlace = (name: string) => name === 'dataDir' || name === 'store'
  const given = command.options
    .map((option) => ({ name: option.attributeName(), long: option.long }))
    .find(({ name }) => isPlace(name) && command.getOptionValueSource(name) === 'cli')
  if (given === undefined) return
  const problem = `${flag} deletes all data at the end, so it cannot be combined with ${given.long}. Leave one of them out.`
  throw misused(problem)
}

/** Runs a cluster. Each node gets the flags of this command, and flags that distinguish the nodes. */
async function runNodes(command: Command, nodes: number, io: Io): Promise<ExitCode> {
  refusePlaces(command, '--nodes')
  const config = devConfig(command)
  const { runDevCluster } = await import('./nodes/cluster.js')
  return runDevCluster(nodes, config, passedOn(command), io).catch((error: unknown) => explain(error, config, io))
}

/** Flags that differ from node to node, or that only this command has. */
const OWN_FLAGS = new Set(['nodes', 'ephemeral', 'dataDir', 'store', 'node', 'advertise', 'peerPort', 'queuePort'])

function passedOn(command: Command): string[] {
  return command.options.flatMap((option) => {
    const name = option.attributeName()
    if (OWN_FLAGS.has(name) || command.getOptionValueSource(name) !== 'cli' || option.long === undefined) return []
    const value: unknown = command.getOptionValue(name)
    return [value === true ? option.long : `${option.long}=${String(value)}`]
  })
}

async function runEphemeral(command: Command, io: Io): Promise<ExitCode> {
  refusePlaces(command, '--ephemeral')
  const dataDir = await mkdtemp(join(tmpdir(), 'homeport-dev-'))
  try {
    return await runDev(devConfig(command, { dataDir, store: 'sqlite' }), io)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function runDev(config: Config, io: Io): Promise<ExitCode> {
  return runServer(config, io, () => useFixedCredentials(config.dataDir)).catch((error: unknown) =>
    explain(error, config, io),
  )
}

/** Writes the fixed credentials before the first start, because the server creates the first account from this file. */
async function useFixedCredentials(dataDir: string): Promise<void> {
  const found = await readCredentials(dataDir)
  if (!found) return writeCredentials(dataDir, { ...newCredentials(EMAIL), ...FIXED })
  if (found.queueToken === FIXED.queueToken) return
  throw failedWith(
    `${credentialsPath(dataDir)} belongs to a server that dev did not create. Choose another directory with --data-dir.`,
  )
}
