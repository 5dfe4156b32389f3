import type { Io } from '../io.js'
import { figure } from '../terminal/figures.js'
import { type Column, renderFacts, renderTable } from '../terminal/table.js'
import { type Loaded, quantile } from './load.js'
import { COSTS, type Machine, type Prediction, predict, type Workload } from './model.js'

/** The result of a bench. `--json` prints it unchanged. */
export interface Report {
  /** The machine of the prediction. Absent: the model does not cover this server or these options. */
  readonly machine?: Machine
  readonly workloads: readonly WorkloadReport[]
}

/** The measurements of one workload, and the prediction for it. */
export interface WorkloadReport {
  readonly workload: Workload
  /** Operations at a time. */
  readonly callers: number
  readonly perSecond: number
  /** How long an operation takes, milliseconds. Absent where an operation is a part of a larger request. */
  readonly latency?: { readonly p50Ms: number; readonly p99Ms: number; readonly mostMs: number }
  /** All operations, also those of the warm-up. */
  readonly operations: number
  /** Processor time of the bench itself for an operation, microseconds. */
  readonly callerUs: number
  readonly prediction?: Prediction
}

/** The measurements of one workload, with its settings. */
export interface Measured {
  readonly workload: Workload
  readonly callers: number
  readonly loaded: Loaded
  readonly callerUs: number
}

/** The report of one workload. */
export function reportOf(measured: Measured, machine: Machine | undefined): WorkloadReport {
  const { workload, callers, loaded, callerUs } = measured
  const { perSecond, operations, latenciesMs } = loaded
  const [p50Ms, p99Ms, mostMs] = [0.5, 0.99, 1].map((share) => round(quantile(latenciesMs, share)))
  return {
    workload,
    callers,
    perSecond: Math.round(perSecond),
    ...(workload !== 'cancel' && { latency: { p50Ms, p99Ms, mostMs } as Required<WorkloadReport>['latency'] }),
    operations,
    callerUs: round(callerUs),
    ...(machine !== undefined && { prediction: predictionOf(measured, machine) }),
  }
}

function predictionOf({ workload, callers, loaded }: Measured, machine: Machine): Prediction {
  const { bound, perSecond } = predict(COSTS[workload], machine, callers, loaded.limitPerSecond)
  return { bound, perSecond: Math.round(perSecond) }
}

const round = (value: number): number => Math.round(value * 100) / 100

/** The words for the operations of each workload. */
export const UNITS: Readonly<Record<Workload, string>> = {
  publish: 'publishes, acknowledged',
  deliver: 'messages, published and delivered',
  steps: 'runs of 5 steps, to the end',
  cancel: 'runs cancelled by one bulk action',
  commands: 'commands over the Redis protocol',
  rest: 'commands over REST',
}

const COLUMNS: readonly Column<WorkloadReport>[] = [
  { title: 'WORKLOAD', value: ({ workload }) => workload },
  { title: 'WHAT', cuts: true, value: ({ workload }) => UNITS[workload] },
  { title: 'CALLERS', align: 'right', value: ({ callers }) => callers },
  { title: 'PER SECOND', align: 'right', value: ({ perSecond }) => figure(perSecond) },
  { title: 'P50', align: 'right', value: ({ latency }) => latency && milliseconds(latency.p50Ms) },
  { title: 'P99', align: 'right', value: ({ latency }) => latency && milliseconds(latency.p99Ms) },
  { title: 'MAX', align: 'right', value: ({ latency }) => latency && milliseconds(latency.mostMs) },
  { title: 'PREDICTED', align: 'right', value: ({ prediction }) => prediction && figure(prediction.perSecond) },
  { title: 'BOUND BY', value: ({ prediction }) => prediction?.bound },
]

const milliseconds = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`

/** The report for people. */
export function renderReport(io: Io, { machine, workloads }: Report): string {
  const table = renderTable(io, COLUMNS, workloads)
  if (machine === undefined) return `${table}\n${NO_PREDICTION}\n`
  const { cores, speed, syncUs } = machine
  const facts = renderFacts(io, [
    ['cores', cores],
    ['speed of a core', `${speed.toFixed(2)} of the reference machine`],
    ['durable write', `${figure(Math.round(syncUs))} µs`],
  ])
  return `${table}\n${facts}`
}

const NO_PREDICTION =
  'No prediction: the cost model knows servers on this machine with SQLite, without pipelines, up to 1,000 bytes.'
