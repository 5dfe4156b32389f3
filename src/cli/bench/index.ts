/**
 * `homeport bench`: a load generator for the user's own server. It measures publishes, deliveries, runs, cancels and
 * commands, and compares them with the cost model of `docs/scale.md`.
 *
 * - `bench.ts`: one bench from its start to the removal of everything that it created. `load.ts`: the closed loop.
 * - `queue-loads.ts`, `database-loads.ts`: the workloads. `requests.ts`, `connections.ts`, `receiver.ts`: what they use.
 * - `model.ts`: the cost model. `calibrate.ts`: how fast this machine is. `report.ts`: the result.
 *
 * Guarantees: the load touches only objects that the bench created, and one key of a named database. Everything is removed
 * at the end, also after a failure and after Ctrl-C. A workload begins with a warm-up that does not count.
 */
import { getOverview } from '../../contract/console/console.js'
import { remote, type Session } from '../remote/remote.js'
import { list, oneOf, wholeNumber } from '../remote/values.js'
import { type Bench, type BenchOptions, type Load, withBench } from './bench.js'
import { measureMachine } from './calibrate.js'
import { commandsLoad, restLoad } from './database-loads.js'
import { type Machine, WORKLOADS, type Workload } from './model.js'
import { cancelLoad, deliverLoad, publishLoad, stepsLoad } from './queue-loads.js'
import { type Report, renderReport, reportOf, type WorkloadReport } from './report.js'

interface Flags extends BenchOptions {
  readonly only?: readonly Workload[]
}

/** The workloads. */
export const LOADS: Readonly<Record<Workload, Load>> = {
  publish: publishLoad,
  deliver: deliverLoad,
  steps: stepsLoad,
  cancel: cancelLoad,
  commands: commandsLoad,
  rest: restLoad,
}

const workloadsOf = (text: string): Workload[] => list(text).map(oneOf(WORKLOADS))

/** `homeport bench`. */
export const benchCommand = remote<Flags>({
  name: 'bench',
  summary: 'measure the server under load and compare it with the cost model; other work on it gets slower meanwhile',
  flags: (command) =>
    command
      .option('--only <workloads>', `some of ${WORKLOADS.join(', ')}, separated by commas (default: all)`, workloadsOf)
      .option('--seconds <number>', 'how long each workload is measured', wholeNumber(1, 3_600), 5)
      .option('--callers <number>', 'operations at a time', wholeNumber(1, 1_000), 50)
      .option('--size <bytes>', 'bytes of a message and of a value', wholeNumber(64, 100_000), 64)
      .option('--pipeline <number>', 'commands that a caller sends at once', wholeNumber(1, 1_000), 1)
      .option('--runs <number>', 'runs that the workload cancel cancels', wholeNumber(1, 1_000_000), 10_000)
      .option('--receiver <address>', 'address of this machine at which the server reaches it', '127.0.0.1')
      .option('--database <database>', 'id or name of an existing database (default: a new one, deleted at the end)'),
  examples: [
    'homeport bench',
    'homeport bench --only publish,steps --callers 200 --seconds 30',
    'homeport bench --only commands --pipeline 16 --database shop',
    'homeport bench --profile prod --receiver 192.168.1.20 --json',
  ],
  run: async (session, { only, ...options }) => {
    const workloads = only ?? WORKLOADS
    const machine = isUsual(options) ? await machineOf(session) : undefined
    const report = await withBench(session, options, (bench) => measureAll(bench, workloads, machine))
    session.show(report, () => renderReport(session.io, report))
  },
})

async function measureAll(bench: Bench, workloads: readonly Workload[], machine?: Machine): Promise<Report> {
  const reports: WorkloadReport[] = []
  for (const workload of workloads) reports.push(await measure(bench, workload, machine))
  return { ...(machine !== undefined && { machine }), workloads: reports }
}

async function measure(bench: Bench, workload: Workload, machine?: Machine): Promise<WorkloadReport> {
  bench.session.say(`measuring ${workload} ...`)
  let callerUs = 0
  const loaded = await LOADS[workload](bench, async (part) => {
    const before = process.cpuUsage()
    const { operations, ...rest } = await part()
    const { user, system } = process.cpuUsage(before)
    callerUs = (user + system) / operations
    return { operations, ...rest }
  })
  const callers = workload === 'cancel' ? 1 : bench.options.callers
  return reportOf({ workload, callers, loaded, callerUs }, machine)
}

/** The largest values, bytes, for which the costs of the model are valid. */
const MAX_MODELLED_BYTES = 1_000

const isUsual = ({ pipeline, size }: BenchOptions): boolean => pipeline === 1 && size <= MAX_MODELLED_BYTES

/** This machine, if the model covers the server: it must run here, on SQLite. */
async function machineOf({ api }: Session): Promise<Machine | undefined> {
  if (api.dataDir === undefined) return undefined
  const { store } = await api.call(getOverview)
  return store.kind === 'sqlite' ? measureMachine(api.dataDir) : undefined
}
