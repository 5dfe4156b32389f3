import { Clustered } from '../../../cluster/index.js'
import { HomeportError } from '../../../contract/errors/errors.js'
import { cancelMessage, enqueueMessage, publishMessage } from '../../../contract/queue/messages.js'
import { createSchedule } from '../../../contract/queue/schedules.js'
import type { Call, Caller, Route } from '../../../http/index.js'
import type { MemoryStore } from '../../../store/testing/memory-store.js'
import { ClusterMeter, QueueMeter, silentLogger } from '../../../telemetry/index.js'
import type { RequestSender, Sending } from '../../dispatcher/sender.js'
import { createQueue } from '../../queue.js'
import type { AttemptOutcome, Queue } from '../../types.js'
import { ACCOUNT, type Ledger } from './ledger.js'
import type { Network } from './network.js'
import type { SimulatedLinks } from './simulated-links.js'
import { SimulatedStore, type StoreWatch } from './simulated-store.js'
import { Process, type Timeline } from './timeline.js'

const CALLER: Caller = {
  accountId: ACCOUNT,
  email: 'sim@example.com',
  accountType: 'paid',
  source: 'QUEUE_TOKEN',
  access: 'write',
  ip: '127.0.0.1',
}

/** Longer than any request takes. */
const DRAIN_MS = 10_000
const NO_SIGNAL = new AbortController().signal

/** The operations that clients of a simulation call. */
const ENDPOINTS = { publish: publishMessage, enqueue: enqueueMessage, cancel: cancelMessage, schedule: createSchedule }

/** What a simulated node is built from. */
export interface SimulatedNodeDeps {
  readonly timeline: Timeline
  readonly memory: MemoryStore
  readonly network: Network
  readonly links: SimulatedLinks
  readonly ledger: Ledger
  readonly watch: (node: SimulatedNode) => StoreWatch
  /** How long a destination takes. Default: mostly short, at random. */
  readonly answersAfterMs?: () => number
  /** Its process has ended by itself. */
  readonly onEnd: (node: SimulatedNode) => void
}

/** One life of a node: the real cluster and the real queue on a simulated store, network and destinations. */
export class SimulatedNode {
  readonly process: Process
  readonly cluster: Clustered
  readonly meter = new QueueMeter()
  readonly #deps: SimulatedNodeDeps
  readonly #queue: Queue
  readonly #routes: readonly Route[]
  phase: 'starting' | 'open' | 'draining' | 'over' = 'starting'
  /** Its life is over in the store. */
  isDeclaredDead = false

  constructor(name: string, offsetMs: number, deps: SimulatedNodeDeps) {
    const { timeline, memory, network, links } = deps
    this.#deps = deps
    const process = new Process(timeline, name, offsetMs)
    this.process = process
    const open = () => new SimulatedStore({ timeline, process, memory, network, watch: deps.watch(this) })
    const [store, upkeep] = [open(), open()]
    const { clock, monotonicMs } = process
    this.cluster = new Clustered({
      ...{ store, upkeep, clock, monotonicMs, logger: silentLogger, meter: new ClusterMeter() },
      identity: { name, host: name, dir: name, version: '1', config: {} },
      link: links.for(process),
      onDead: () => this.end('declared dead'),
    })
    const keys = { current: 'sig_one', next: 'sig_two' }
    this.#queue = createQueue({
      ...{ store, clock, logger: silentLogger, meter: this.meter, cluster: this.cluster, sender: this.#sender() },
      keys: { signingKeys: () => keys, rotateSigningKeys: () => Promise.resolve(keys) },
      ...{ deliveryConcurrency: 60, deliveryTimeoutMs: 60_000, responseKeepBytes: 100, shutdownGraceMs: 5_000 },
      ...{ retentionMs: 86_400_000, retentionBytes: 2 ** 30 },
    })
    this.#routes = this.#queue.routes()
  }

  /** Whether nothing of it counts any more: the process is over, or others have declared it dead. */
  get isGone(): boolean {
    return this.process.isOver || this.isDeclaredDead
  }

  /** Whether it may start requests now. */
  get isActing(): boolean {
    return this.process.isRunning && this.cluster.mayAct()
  }

  start(): void {
    const begin = async (): Promise<void> => {
      await this.cluster.start()
      await this.#queue.start()
      this.cluster.open()
      if (this.phase === 'starting') this.phase = 'open'
    }
    this.#deps.timeline.after(0, () => void begin().catch((error: unknown) => this.#notStarted(error)), this.process)
  }

  /** The store may be away; another reason is a defect. */
  #notStarted(error: unknown): void {
    if (!(error instanceof HomeportError)) this.#deps.timeline.fail(`${this.process.name}: ${String(error)}`)
    this.end('did not start')
  }

  /** Gives everything up and ends, as after SIGTERM. */
  drain(): void {
    this.phase = 'draining'
    const leave = async (): Promise<void> => {
      await this.cluster.drain(DRAIN_MS)
      await this.#queue.stop()
      await this.cluster.stop()
    }
    this.#deps.timeline.after(
      0,
      () =>
        void leave().then(
          () => this.end('has left'),
          () => this.end('has left'),
        ),
      this.process,
    )
  }

  /** The process ends at once. */
  end(why: string): void {
    if (this.process.isOver) return
    this.#deps.timeline.note(`${this.process.name}: ${why}`)
    this.process.isOver = true
    this.phase = 'over'
    this.#deps.onEnd(this)
  }

  /** Calls an operation as its listener would. */
  call(what: keyof typeof ENDPOINTS, params: object, headers: Call['headers'] = {}): Promise<unknown> {
    const found = this.#routes.find(({ endpoint }) => Object.is(endpoint, ENDPOINTS[what]))
    if (!found) throw new Error(`no operation ${what}`)
    return found.handler({
      ...{ params, headers, caller: CALLER, query: {}, body: new Uint8Array(), ip: '127.0.0.1', requestId: '' },
      ...{ target: '', signal: NO_SIGNAL, isStillAllowed: () => Promise.resolve(true) },
    })
  }

  #sender(): RequestSender {
    return { send: ({ url }) => this.#send(url), close: () => Promise.resolve() }
  }

  #anyTime(): number {
    const { timeline } = this.#deps
    return timeline.random.chance(0.1) ? timeline.between(500, 2_500) : timeline.between(5, 200)
  }

  /** A request to a destination that answers after a while, mostly with success. */
  #send(url: string): Sending {
    const { timeline, ledger } = this.#deps
    const flight = ledger.begin(this, url)
    const startedAt = this.process.clock.now()
    const tookMs = this.#deps.answersAfterMs?.() ?? this.#anyTime()
    const status = !this.#deps.network.isQuiet && timeline.random.chance(0.15) ? 500 : 200
    let abort = (): void => undefined
    const outcome = new Promise<AttemptOutcome | undefined>((resolve) => {
      abort = () => resolve(undefined)
      timeline.after(tookMs, () => {
        const message = ledger.tracked.get(flight.label)
        if (message && status === 200) message.successes++
        ledger.end(flight)
      })
      timeline.after(
        tookMs,
        () => {
          const response = { status, headers: {}, body: new Uint8Array(), truncated: false }
          resolve({ kind: 'answered', startedAt, finishedAt: this.process.clock.now(), response })
        },
        this.process,
      )
    })
    return {
      outcome,
      abort: () => {
        ledger.end(flight)
        abort()
      },
      release: () => undefined,
    }
  }
}
