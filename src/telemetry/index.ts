/**
 * Telemetry listens and never steers: nothing that the server does depends on whether it is logged.
 *
 * `createLogger` makes the one logger of a process; the composition root hands it to the rooms, which narrow it with
 * `child`. Lines are JSON, one a line, on stderr; on a terminal they are written for people. Log where an error is
 * handled, not where it is passed on, under the key `error`. ERROR means that a person must look.
 *
 * Fields that hold credentials are replaced by `[secret]` by name, wherever they stand within three levels. That is a
 * net below the rule, not the rule: secrets are not handed to the logger in the first place. Of an error only its kind,
 * words, code and stack are written, and those of its causes.
 *
 * `Problems` keeps what only a person can put right: a damaged page, files that nobody knows, an engine that hangs.
 *
 * `describeCrash` and `writeCrashReport` keep why a server ended by a defect, without words of anybody; `lastCrash` tells
 * the next one.
 *
 * `renderMetrics` writes metrics the way Prometheus reads them; the rooms that have figures are asked for them when it
 * is scraped.
 *
 * `DatabaseMeter` holds the counters of one database: the data plane writes them, what keeps the time series reads
 * them.
 */
export { type CrashKind, describeCrash, lastCrash, writeCrashReport } from './crash-reports.js'
export {
  COMMAND_INDEX,
  type CommandTotals,
  countedAs,
  DatabaseMeter,
  isScript,
  LatencyHistogram,
  type MonthCount,
  monthIndex,
  nextMonthMs,
  percentileOfSteps,
} from './database-meter.js'
export { createLogger, type LogFields, type Logger, type LoggerOptions, type LogLevel, silentLogger } from './logger.js'
export { METRICS_CONTENT_TYPE, type Metric, type MetricValue, processMetrics, renderMetrics } from './metrics.js'
export { type Problem, type ProblemKind, type ProblemReport, Problems } from './problems.js'
