import { Command } from 'commander'
import { systemClock } from '../base/index.js'
import {
  type Config,
  closeDataDir,
  describeStore,
  hasServed,
  keepFilesPrivate,
  lockDataDir,
  noteAddresses,
} from '../config/index.js'
import { clientEnvironment, clientExports } from './client-environment.js'
import { describeError } from './errors.js'
import { type ExitCode, FAILED } from './exit-codes.js'
import { addConfigFlags, configOf } from './flags.js'
import type { Io } from './io.js'
import { serve } from './serve.js'
import { stopSignals } from './signals.js'

/** What the parts get on top of their grace to end their engines and close their files. */
const STOP_MARGIN_MS = 5_000

/** `homeport start`: runs the server until it is asked to stop. */
export function startCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('start').description('run the server until SIGTERM or Ctrl-C')
  return addConfigFlags(command).action(async () => {
    const config = configOf(command)
    end(await runServer(config, io).catch((error: unknown) => explain(error, config, io)))
  })
}

/**
 * Runs the server and resolves with the exit code.
 * @param prepare called when the data directory is locked and nothing of it has been read.
 */
export async function runServer(config: Config, io: Io, prepare?: () => Promise<void>): Promise<ExitCode> {
  keepFilesPrivate()
  const stopRequests = stopSignals(systemClock)
  const lock = lockDataDir(config.dataDir)
  let ignoreDefects = (): void => undefined
  try {
    await prepare?.()
    // Loaded late, so that the other commands answer without loading the whole server.
    const [{ createApp }, { endOnDefects }] = await Promise.all([import('../app.js'), import('./crash.js')])
    ignoreDefects = endOnDefects(config)
    const app = await createApp(config, { onFailure: (error) => giveUp(error, config, io) })
    return await serve({
      app,
      stopRequests,
      clock: systemClock,
      stopDeadlineMs: config.shutdownGraceMs + STOP_MARGIN_MS,
      onServing: () => {
        void closeDataDir(config.dataDir).catch(() => undefined)
        const own = hasServed(config.dataDir) ? undefined : app.ownCredentials
        noteAddresses(config)
        io.out(welcome(config) + (own ? firstStart(config, own) : ''))
      },
    })
  } finally {
    ignoreDefects()
    lock.release()
  }
}

/** The promises cannot be kept any more: what was acknowledged is on disk, and a new start goes on from there. */
function giveUp(error: Error, config: Config, io: Io): never {
  process.exit(explain(error, config, io))
}

/** Prints an error and answers the exit code for it. */
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

function firstStart(config: Config, credentials: Parameters<typeof clientEnvironment>[1]): string {
  return `
This is the first start. An account was made; paste these lines into a shell to use it.
They are shown only now; \`homeport env\` prints them again from the data directory.

${clientExports(clientEnvironment(config, credentials))}
`
}
