/**
 * Telemetry: logging, problems, crash reports and metrics. Nothing that the server does depends on it.
 *
 * - `createLogger` makes the logger of the process. It writes one JSON object per line to stderr, or readable lines on a
 *   terminal. Every line is an event of `contract/logs/`. Log an error where it is handled, not where it is rethrown, under
 *   the key `error`. The level `error` means that a person must look.
 * - Never log a secret. A line has only the fields that its event declares: texts, numbers and errors. The logger writes
 *   only the type, message, code and stack of an error and of its causes.
 * - `RecentLines` keeps the newest lines for `homeport logs`.
 * - `Problems` lists what only a person can put right: a damaged page, unknown files, an engine that hangs.
 * - `describeCrash` and `writeCrashReport` record why a server crashed, without any user data; the next start shows it
 *   (`lastCrash`).
 * - `ServerMeters` are plain counters that modules increment. `renderMetrics` writes them and other values in the format of
 *   Prometheus, by the declarations in `contract/metrics/`. Values are read at each scrape.
 * - Modules report spans to a `Tracer`, which `opentelemetry` implements. While traces are off there is no tracer.
 * - `ActivityMeter` counts what accounts do, by minute; `activity` stores it.
 * - `DatabaseMeter` holds the counters of one database: the gateway writes them, the usage statistics read them.
 */
export { ActivityMeter, BLOCK_MINUTES, BLOCK_MS, type BlockCounts, MINUTE_MS } from './activity-meter.js'
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
export {
  ATTEMPTS,
  Histogram,
  type HistogramFigure,
  REQUEST_SECONDS,
  TRANSACTION_SECONDS,
} from './histogram.js'
export { createLogger, humanLine, type Logger, type LoggerOptions, type LogLevel, silentLogger } from './logger.js'
export { MeterTotals } from './meter-totals.js'
export {
  BULK_OUTCOMES,
  BulkMeter,
  ClusterMeter,
  DatabasesMeter,
  type DeliveryOutcome,
  QueueMeter,
  ServerMeters,
  StoreMeter,
  TransactionMeter,
  WorkflowMeter,
} from './meters.js'
export { byLabel, type Figures, METRICS_CONTENT_TYPE, type MetricValue, renderMetrics, valuesOf } from './metrics.js'
export { type Problem, type ProblemKind, type ProblemReport, Problems } from './problems.js'
export { ProcessMetrics } from './process-metrics.js'
export { RecentLines } from './recent-lines.js'
export { SlicedCount } from './sliced-count.js'
export type * from './tracer.js'
