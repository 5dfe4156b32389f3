import { runInThisContext } from 'node:vm'
import { Command } from 'commander'
import { systemClock } from '../base/index.js'
import {
  argumentsOfProcess,
  type Config,
  closeDataDir,
  describeStore,
  hasServed,
  isFirstProcess,
  keepFilesPrivate,
  lockDataDir,
  type OptionName,
  recordAddresses,
  recordServer,
  stateHomeOfProcess,
  storageVariablesOfProcess,
  telemetryVariablesOfProcess,
} from '../config/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { clientEnvironment, clientExports } from './client-environment.js'
import { describeError } from './errors.js'
import { type ExitCode, FAILED } from './exit-codes.js'
import { addConfigFlags, configOf } from './flags.js'
import type { Io } from './io.js'
import { notifyParent } from './nodes/parent.js'
import { addExamples } from './remote/remote.js'
import { serve, stopSignals } from './serve.js'
import { ServiceManager } from './service-manager.js'

/** Time after the grace period for stopping the engines and closing files. */
const STOP_MARGIN_MS = 5_000

/** The options that the help of `start` shows. */
const SHOWN: readonly OptionName[] = [
  ...(['dataDir', 'store', 'host', 'apiPort', 'restPort', 'queuePort', 'redisPorts'] as const),
  ...(['publicApiUrl', 'publicRestUrl', 'publicQueueUrl', 'publicRedisHost', 'trustedProxies'] as const),
  ...(['node', 'processes', 'backups', 'backupTo', 'logLevel'] as const),
]

/** `homeport start`: runs the server until it is stopped. */
export function startCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('start').description('run the server until SIGTERM or Ctrl-C')
  addExamples(command, ['homeport start', 'homeport start --data-dir /var/lib/homeport --log-level warn'])
  return addConfigFlags(command, SHOWN).action(async () => {
    const config = configOf(command)
    const run = async (): Promise<ExitCode> => {
      if (config.processes === 1) return runServer(config, io)
      const { runAsProcesses } = await import('./nodes/cluster.js')
      return runAsProcesses(config, argumentsOfProcess(), io)
    }
    end(await run().catch((error: unknown) => explain(error, config, io)))
  })
}

/**
 * Runs the server and resolves with the exit code.
 * @param prepare called when the data directory is locked, before anything in it is read.
 */
export async function runServer(config: Config, io: Io, prepare?: () => Promise<void>): Promise<ExitCode> {
  keepFilesPrivate()
  const stopRequests = stopSignals(systemClock)
  const manager = new ServiceManager(io)
  const lock = lockDataDir(config.dataDir)
  let ignoreDefects = (): void => undefined
  let removeNote = (): void => undefined
  try {
    await prepare?.()
    requireWebAssembly()
    // Imported here, so that other commands do not load the server. The engine is probed while the rest is loaded.
    const { probeEngine } = await import('../fleet/index.js')
    const probing = probeEngine(config.engineBinary)
    probing.catch(() => undefined)
    const [{ createApp }, { endOnDefects }] = await Promise.all([import('../server/index.js'), import('./crash.js')])
    ignoreDefects = endOnDefects(config)
    const app = await createApp(config, {
      engine: await probing,
      onFailure: (error) => giveUp(error, config, io),
      telemetry: telemetryVariablesOfProcess(),
      storageVariables: storageVariablesOfProcess(),
    })
    return await serve({
      app: {
        start: () => app.start(),
        stop: async () => {
          // Waits for both: when this process ends, the service manager kills the remaining processes.
          await Promise.all([manager.notify('STOPPING=1'), app.stop()])
        },
      },
      stopRequests,
      clock: systemClock,
      stopDeadlineMs: config.shutdownGraceMs + STOP_MARGIN_MS,
      onServing: () => {
        void closeDataDir(config.dataDir).catch(() => undefined)
        const own = hasServed(config.dataDir) ? undefined : app.ownCredentials
        recordAddresses(config)
        if (isFirstProcess()) removeNote = recordServer(config, stateHomeOfProcess)
        if (isFirstProcess()) io.out(welcome(config) + (own ? firstStart(config, own, manager) : ''))
        void manager.notify('READY=1')
        notifyParent()
      },
    })
  } finally {
    ignoreDefects()
    removeNote()
    lock.release()
  }
}

/**
 * The HTTP client runs on WebAssembly, whose memory reserves gigabytes of addresses. Without it, the client ends the
 * process.
 */
function requireWebAssembly(): void {
  try {
    // The types of Node do not know it.
    runInThisContext('new WebAssembly.Memory({ initial: 1 })')
  } catch (cause) {
    throw new HomeportError('no_web_assembly', { reason: String(cause) }, { cause })
  }
}

/** Ends the process when durability cannot be guaranteed any more. Acknowledged writes are on disk; a restart continues. */
function giveUp(error: Error, config: Config, io: Io): never {
  process.exit(explain(error, config, io))
}

/** Prints an error and returns its exit code. */
export function explain(error: unknown, config: Config, io: Io): ExitCode {
  io.err(`error: ${describeError(error, config)}\n`)
  const isVerbose = config.logLevel === 'debug' || config.logLevel === 'trace'
  if (isVerbose && error instanceof Error) io.err(`${error.stack ?? ''}\n`)
  return FAILED
}

function welcome(config: Config): string {
  return `Homeport serves.
  console             ${config.publicApiUrl}/
  management API      ${config.publicApiUrl} (documentation: ${config.publicApiUrl}/docs)
  REST data plane     ${config.publicRestUrl}
  queue and workflow  ${config.publicQueueUrl} (documentation: ${config.publicQueueUrl}/docs)
  databases           ${config.publicRedisHost}, ports ${config.redisPorts.from} to ${config.redisPorts.to}
  data                ${config.dataDir} (store: ${describeStore(config.store)})
`
}

function firstStart(
  config: Config,
  credentials: Parameters<typeof clientEnvironment>[1],
  { isPresent }: ServiceManager,
): string {
  // The credentials must not be in the journal of the service manager.
  if (isPresent)
    return `
This is the first start. The first account was created; print its credentials with
HOMEPORT_DATA_DIR=${config.dataDir} homeport env
`
  return `
This is the first start. The first account was created; paste these lines into a shell to use it.
They are shown once; \`homeport env\` prints them again from the data directory.

${clientExports(clientEnvironment(config, credentials))}
`
}
