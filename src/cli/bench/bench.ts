import { failedWith } from '../errors.js'
import type { Session } from '../remote/remote.js'
import { type Loaded, runLoop } from './load.js'
import { Receiver } from './receiver.js'
import { Requests } from './requests.js'

/** The flags of `homeport bench`. */
export interface BenchOptions {
  /** How long each workload is measured, seconds. */
  readonly seconds: number
  /** Operations at a time. */
  readonly callers: number
  /** Bytes of a message's body and of a value. */
  readonly size: number
  /** Commands that a caller sends before it waits for their replies. */
  readonly pipeline: number
  /** Runs to cancel at once. */
  readonly runs: number
  /** Address of this machine, at which the server can reach it. */
  readonly receiver: string
  /** An existing database, by id or name. Absent: one is created and deleted. */
  readonly database?: string
}

/** The objects that all workloads of one bench share. */
export interface Bench {
  readonly session: Session
  readonly options: BenchOptions
  /** Requests to the queue. */
  readonly queue: Requests
  readonly receiver: Receiver
  /** The label of all messages and runs of this bench. */
  readonly label: string
  readonly stop: AbortSignal
  /** Registers a function that removes something from the server. The functions run at the end, the last one first. */
  atEnd(remove: () => Promise<void>): void
}

/** How long a workload runs before it is measured, so that the code of both programs is compiled. */
const MAX_WARM_UP_MS = 2_000
/** The warm-up of short workloads, as a share of their time. */
const WARM_UP_SHARE = 0.4

/**
 * Opens a bench, calls `work`, and removes everything that the bench created on the server, also after a failure or Ctrl-C.
 * @throws what `work` throws.
 */
export async function withBench<Result>(
  session: Session,
  options: BenchOptions,
  work: (bench: Bench) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController()
  const queue = new Requests(session.api.access('queue'), options.callers)
  const receiver = await Receiver.start(options.receiver, queue)
  const removals: (() => Promise<void>)[] = []
  const interrupt = (): void => {
    stop.abort(failedWith('The bench was stopped.'))
    receiver.reject(stop.signal.reason)
  }
  process.once('SIGINT', interrupt)
  try {
    return await work({
      session,
      options,
      queue,
      receiver,
      label: `homeport-bench-${Date.now().toString(36)}`,
      stop: stop.signal,
      atEnd: (remove) => void removals.unshift(remove),
    })
  } finally {
    process.removeListener('SIGINT', interrupt)
    for (const remove of removals) await remove().catch((error: unknown) => complain(session, error))
    await receiver.close()
    await queue.close()
  }
}

/** Calls the measured part of a workload. The caller of the workload may read clocks before and after it. */
export type Timed = (part: () => Promise<Loaded>) => Promise<Loaded>

/** A workload: prepares, calls `timed` once, and registers functions that remove what it created. */
export type Load = (bench: Bench, timed: Timed) => Promise<Loaded>

/** Runs a closed loop as long as the options say. */
export function closedLoop(bench: Bench, operation: (caller: number) => Promise<void>, perCall = 1): Promise<Loaded> {
  const { callers, seconds } = bench.options
  const measureMs = seconds * 1_000
  const warmUpMs = Math.min(MAX_WARM_UP_MS, measureMs * WARM_UP_SHARE)
  return runLoop({ callers, measureMs, warmUpMs, perCall, stop: bench.stop }, operation)
}

/** Prints why something could not be removed. It does not throw, so that the error of the bench itself stays visible. */
function complain({ io }: Session, error: unknown): void {
  const why = error instanceof Error ? error.message : String(error)
  io.err(`warning: the bench could not remove everything that it created: ${why}\n`)
}
