import type { Clock, Service } from '../../../base/index.js'
import { Clustered } from '../../../cluster/index.js'
import type { Endpoint } from '../../../contract/endpoint.js'
import { HomeportError } from '../../../contract/errors/errors.js'
import type { Call, Caller, Route } from '../../../http/index.js'
import type { Store } from '../../../store/index.js'
import type { MemoryStore } from '../../../store/testing/memory-store.js'
import { ClusterMeter, QueueMeter, silentLogger } from '../../../telemetry/index.js'
import { createQueue } from '../../queue.js'
import type { RequestSender, Sending, SendRequest } from '../../sending/sender.js'
import type { AttemptOutcome, Queue } from '../../types.js'
import type { Effects } from './effects.js'
import { ACCOUNT, type Ledger } from './ledger.js'
import type { Network } from './network.js'
import type { SimulatedLinks } from './simulated-links.js'
import { type Replace, SimulatedStore } from './simulated-store.js'
import { Process, type Timeline } from './timeline.js'

const CALLER: Caller = {
  accountId: ACCOUNT,
  email: 'sim@example.com',
  accountType: 'paid',
  source: 'QUEUE_TOKEN',
  access: 'write',
  ip: '127.0.0.1',
}

/** Grace period of a drain, longer than any request takes. */
const DRAIN_MS = 10_000
const NO_SIGNAL = new AbortController().signal

/** Headers of responses: destinations identify themselves as programs with the workflow SDK. */
const HEADERS = { 'Upstash-Workflow-Sdk-Version': ['1'] }

/** What a module above the queue is built from. */
export interface AttachmentDeps {
  readonly store: Store
  readonly clock: Clock
  readonly cluster: Clustered
  readonly queue: Queue
}

/** A module above the queue, on one node. It starts after the queue and stops before it. */
export interface Attachment {
  readonly services: readonly Service[]
  readonly routes: readonly Route[]
}

/** A request of a node at its destination. */
export interface Incoming extends SendRequest {
  readonly node: SimulatedNode
}

/** The side of a simulation's part (`Part`) that belongs to one node. */
export interface NodeExtension {
  /** Builds the module of a node. */
  attach(deps: AttachmentDeps): Attachment
  /** Handles a request. The returned function resolves with the status; `undefined`: the part has no such destination. */
  receive(request: Incoming): (() => Promise<number>) | undefined
}

/** What a simulated node is built from. */
export interface SimulatedNodeDeps {
  readonly timeline: Timeline
  readonly memory: MemoryStore
  readonly network: Network
  readonly links: SimulatedLinks
  readonly ledger: Ledger
  readonly effects: Effects
  /** Replaces operations of a node. Default: none. */
  readonly replace?: ((node: SimulatedNode) => Replace) | undefined
  readonly extensions?: readonly NodeExtension[]
  /** How long a destination takes. Default: mostly short, at random. */
  readonly answersAfterMs?: () => number
  /** Called when the process of the node has ended. */
  readonly onEnd: (node: SimulatedNode) => void
}

/** One incarnation of a node: the real cluster and the real queue on a simulated store, network and destinations. */
export class SimulatedNode {
  readonly process: Process
  readonly cluster: Clustered
  readonly meter = new QueueMeter()
  readonly #deps: SimulatedNodeDeps
  readonly #queue: Queue
  readonly #attached: readonly Attachment[]
  readonly #routes: readonly Route[]
  phase: 'starting' | 'open' | 'draining' | 'stopping' | 'over' = 'starting'
  /** The store says that this incarnation is over. */
  isDeclaredDead = false

  constructor(name: string, offsetMs: number, deps: SimulatedNodeDeps) {
    const { timeline, memory, network, links } = deps
    this.#deps = deps
    const process = new Process(timeline, name, offsetMs)
    this.process = process
    const { effects } = deps
    const replace = deps.replace?.(this)
    const isDeclaredDead = (): boolean => this.isDeclaredDead
    const open = () => new SimulatedStore({ timeline, process, memory, network, effects, replace, isDeclaredDead })
    const [store, upkeep] = [open(), open()]
    const { clock, monotonicMs } = process
    this.cluster = new Clustered({
      store,
      upkeep,
      clock,
      monotonicMs,
      logger: silentLogger,
      meter: new ClusterMeter(),
      identity: { name, host: name, dir: name, version: '1', config: {} },
      link: links.for(process),
      onDead: () => this.end('declared dead'),
    })
    const keys = { current: 'sig_one', next: 'sig_two' }
    this.#queue = createQueue({
      store,
      clock,
      logger: silentLogger,
      meter: this.meter,
      cluster: this.cluster,
      sender: this.#sender(),
      keys: { signingKeys: () => keys, rotateSigningKeys: () => Promise.resolve(keys) },
      deliveryConcurrency: 60,
      deliveryTimeoutMs: 60_000,
      responseKeepBytes: 100,
      shutdownGraceMs: 5_000,
      retentionMs: 86_400_000,
      retentionBytes: 2 ** 30,
    })
    const { cluster, queue } = { cluster: this.cluster, queue: this.#queue }
    this.#attached = (deps.extensions ?? []).map((extension) => extension.attach({ store, clock, cluster, queue }))
    this.#routes = [...this.#queue.routes(), ...this.#attached.flatMap(({ routes }) => routes)]
  }

  /** Whether the node no longer counts: its process is over, or others have declared it dead. */
  get isGone(): boolean {
    return this.process.isOver || this.isDeclaredDead
  }

  /** Whether it may start requests now. */
  get isActing(): boolean {
    return this.process.isRunning && this.cluster.mayAct()
  }

  get #services(): Service[] {
    return this.#attached.flatMap(({ services }) => services)
  }

  start(): void {
    const begin = async (): Promise<void> => {
      await this.cluster.start()
      await this.#queue.start()
      for (const service of this.#services) await service.start()
      this.cluster.open()
      if (this.phase === 'starting') this.phase = 'open'
    }
    this.#deps.timeline.after(0, () => void begin().catch((error: unknown) => this.#notStarted(error)), this.process)
  }

  /** The start has failed. The store may be unavailable; any other reason is a defect. */
  #notStarted(error: unknown): void {
    if (!(error instanceof HomeportError)) this.#deps.timeline.fail(`${this.process.name}: ${String(error)}`)
    this.end('did not start')
  }

  /** Gives everything up and ends, as after SIGTERM. */
  drain(): void {
    this.phase = 'draining'
    const leave = async (): Promise<void> => {
      await this.cluster.drain(DRAIN_MS)
      // The listeners stop before the node leaves, because a node that has left is
      // no longer notified, for example of pauses.
      this.phase = 'stopping'
      for (const service of this.#services.toReversed()) await service.stop()
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
  call(endpoint: Endpoint, request: Partial<Pick<Call, 'params' | 'query' | 'headers' | 'body'>>): Promise<unknown> {
    const found = this.#routes.find((route) => Object.is(route.endpoint, endpoint))
    if (!found) throw new Error(`no operation ${endpoint.method} ${endpoint.path}`)
    return found.handler({
      params: {},
      headers: {},
      caller: CALLER,
      query: {},
      body: new Uint8Array(),
      ip: '127.0.0.1',
      requestId: '',
      target: '',
      signal: NO_SIGNAL,
      isStillAllowed: () => Promise.resolve(true),
      ...request,
    })
  }

  #sender(): RequestSender {
    return { send: (request) => this.#send(request), endWaiting: () => undefined, close: () => Promise.resolve() }
  }

  #anyTime(): number {
    const { timeline } = this.#deps
    return timeline.random.chance(0.1) ? timeline.between(500, 2_500) : timeline.between(5, 200)
  }

  /** Sends a request to a destination that responds after a while, mostly with success. */
  #send(request: SendRequest): Sending {
    const { timeline, ledger, network } = this.#deps
    const flight = ledger.begin(this, request)
    const startedAt = this.process.clock.now()
    const tookMs = this.#deps.answersAfterMs?.() ?? this.#anyTime()
    const status = !network.isQuiet && timeline.random.chance(0.15) ? 500 : 200
    let abort = (): void => undefined
    const outcome = new Promise<AttemptOutcome | undefined>((resolve) => {
      abort = () => resolve(undefined)
      const hear = (given: number): void => {
        const response = { status: given, headers: HEADERS, body: new Uint8Array(), truncated: false }
        resolve({ kind: 'answered', startedAt, finishedAt: this.process.clock.now(), response })
      }
      const answer = this.#programOf(request)
      if (answer) {
        const arrive = async (): Promise<void> => {
          const given = await answer()
          ledger.end(flight)
          timeline.after(timeline.between(1, 12), () => hear(given), this.process)
        }
        timeline.after(tookMs, () => void arrive())
        return
      }
      timeline.after(tookMs, () => {
        const message = ledger.tracked.get(flight.label)
        if (message && status === 200) message.successes++
        ledger.end(flight)
      })
      timeline.after(tookMs, () => hear(status), this.process)
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

  #programOf(request: SendRequest): (() => Promise<number>) | undefined {
    for (const extension of this.#deps.extensions ?? []) {
      const answer = extension.receive({ ...request, node: this })
      if (answer) return answer
    }
    return undefined
  }
}
