import { systemClock } from '../base/index.js'
import type { Config } from '../config/index.js'
import { type CrashKind, createLogger, describeCrash, writeCrashReport } from '../telemetry/index.js'
import { FAILED } from './exit-codes.js'

/**
 * Ends the process on an uncaught error: the state in memory may be inconsistent, and all acknowledged writes are on
 * disk. The log line and the crash report are written synchronously.
 * @returns removes the handlers.
 */
export function endOnDefects(config: Pick<Config, 'dataDir' | 'logLevel'>): () => void {
  const logger = createLogger({ level: config.logLevel })
  let isEnding = false
  const end = (kind: CrashKind, error: unknown): void => {
    // The following lines may fail, too, and end here.
    if (isEnding) process.exit(FAILED)
    isEnding = true
    const report = describeCrash(kind, error, systemClock.now())
    const file = writeCrashReport(config.dataDir, report)
    const { module } = report
    logger.error('server_crashed', { error, kind, module, file })
    process.exit(FAILED)
  }
  const onException = (error: unknown): void => end('uncaughtException', error)
  const onRejection = (error: unknown): void => end('unhandledRejection', error)
  process.on('uncaughtException', onException).on('unhandledRejection', onRejection)
  return () => void process.off('uncaughtException', onException).off('unhandledRejection', onRejection)
}
