import { Agent, buildConnector, type Dispatcher } from 'undici'
import { type Clock, codeOf, TargetGate, type TargetPolicy, TargetRefused } from '../../base/index.js'
import { toHeaderMap } from '../headers.js'
import { remembering } from '../remember.js'
import type { AttemptOutcome, HeaderMap } from '../types.js'
import { Order, reusableConnections } from './connection.js'
import { KeptBody, LARGE_ANSWERS_BYTES, SharedBytes } from './kept-body.js'

/** A host that takes no connection within this time is counted as not there, long before the whole attempt times out. */
const CONNECT_TIMEOUT_MS = 10_000
/** So much more than is kept of an answer is read, so that its connection can be used again; then it is cut off. */
const MOST_DISCARDED_BYTES = 64 * 2 ** 20

/** A request ready to be sent. */
export interface SendRequest {
  readonly url: string
  readonly method: string
  /** Names and values in turn. */
  readonly headers: string[]
  readonly body: Uint8Array | undefined
  readonly timeoutMs: number
  /** Wins over the sender's own limit. */
  readonly keepBytes?: number
  /** Of a failing answer this much is kept, as long as there is memory for large ones. */
  readonly keepFailingBytes?: number
}

/** A request under way. */
export interface Sending {
  /** `undefined` when the request was aborted. Rejects only for want of file descriptors, see `isOutOfDescriptors`. */
  readonly outcome: Promise<AttemptOutcome | undefined>
  abort(): void
  /** The outcome is not used any more: gives back the memory that a large answer takes. */
  release(): void
}

/** How requests are sent. */
export interface SenderSettings {
  readonly clock: Clock
  readonly connectionsPerHost: number
  /** Of the body of an answer this much is kept; the rest is read and thrown away. */
  readonly keepBytes: number
  /** Default `everything`. */
  readonly targets?: TargetPolicy
}

interface Address {
  readonly origin: string
  readonly path: string
}

/**
 * Sends requests over kept-alive connections. Follows no redirect: a 3xx is an answer like any other.
 *
 * A destination may close a kept-alive connection at the very moment at which the next request is on its way. Such a
 * request fails although nobody has looked at it, so it is sent once more at once on a new connection, as part of the
 * same attempt.
 */
export class Sender {
  readonly #agent: Agent
  /** Makes a connection for each request, and never keeps one. */
  readonly #freshAgent: Agent
  readonly #settings: SenderSettings
  readonly #gate: TargetGate
  readonly #largeAnswers = new SharedBytes(LARGE_ANSWERS_BYTES)

  constructor(settings: SenderSettings) {
    this.#settings = settings
    this.#gate = new TargetGate(settings.targets ?? 'everything')
    const common = {
      // One deadline covers the whole attempt; a destination may think for as long as that allows.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup: this.#gate.lookup }),
    }
    const [connections, factory] = [settings.connectionsPerHost, reusableConnections(common.connect)]
    this.#agent = new Agent({ ...common, connections, pipelining: 1, factory })
    this.#freshAgent = new Agent({ ...common, pipelining: 0 })
  }

  /** Where a URL leads, judged by the gate as it stands. */
  readonly #addressOf = remembering(
    (text): Address => {
      const url = new URL(text)
      this.#gate.check(url)
      return { origin: url.origin, path: url.pathname + url.search }
    },
    { most: 1_000, longest: 500 },
  )

  /** Starts a request. */
  send(request: SendRequest): Sending {
    const attempt = new Attempt(request, this.#settings, this.#largeAnswers)
    try {
      const { origin, path } = this.#addressOf(request.url)
      const order = new Order(origin, path, request)
      attempt.begin(this.#agent, order, this.#freshAgent)
    } catch (error) {
      attempt.fail(error)
    }
    return attempt
  }

  /** Closes all connections; requests under way fail. */
  async close(): Promise<void> {
    await Promise.all([this.#agent.destroy(), this.#freshAgent.destroy()])
  }
}

const NO_DESCRIPTOR_LEFT = new Set(['EMFILE', 'ENFILE'])

/**
 * Whether a request could not begin because this process or this machine has no file descriptor left. It says nothing
 * about the destination, so it is no attempt.
 */
export function isOutOfDescriptors(error: unknown): boolean {
  return NO_DESCRIPTOR_LEFT.has(codeOf(rootOf(error)))
}

/** One request: collects the beginning of its answer and ends exactly once. */
class Attempt implements Dispatcher.DispatchHandler, Sending {
  readonly outcome: Promise<AttemptOutcome | undefined>
  readonly #clock: Clock
  readonly #kept: KeptBody
  readonly #startedAt: number
  readonly #deadline: { cancel(): void }
  #resolve: (outcome: AttemptOutcome | undefined) => void = () => undefined
  #reject: (error: unknown) => void = () => undefined
  #controller: Dispatcher.DispatchController | undefined
  #order: Order | undefined
  /** Where the request goes when the connection that it was on turns out to be closed; taken at the first use. */
  #freshAgent: Dispatcher | undefined
  #status = 0
  #headers: HeaderMap = {}
  #over = false

  constructor(request: SendRequest, settings: SenderSettings, largeAnswers: SharedBytes) {
    this.#clock = settings.clock
    const { keepBytes = settings.keepBytes, keepFailingBytes } = request
    this.#kept = new KeptBody({ keepBytes, keepFailingBytes }, largeAnswers)
    this.#startedAt = settings.clock.now()
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#deadline = settings.clock.after(request.timeoutMs, () => {
      this.#unanswered(`no complete answer within ${request.timeoutMs} ms`)
      this.#controller?.abort(new Error('timeout'))
    })
  }

  /** Sends the request, and once more through `freshAgent` if it never reached the destination. */
  begin(agent: Dispatcher, order: Order, freshAgent: Dispatcher): void {
    this.#order = order
    this.#freshAgent = freshAgent
    agent.dispatch(order, this)
  }

  abort(): void {
    this.#end(undefined)
    this.#controller?.abort(new Error('aborted'))
  }

  release(): void {
    this.#kept.release()
  }

  fail(error: unknown): void {
    // What comes after the end is not listened to.
    if (isOutOfDescriptors(error)) this.#reject(error)
    this.#unanswered(describe(error), error instanceof TargetRefused)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#order?.connection?.beginRequest()
    if (this.#over) controller.abort(new Error('over before it began'))
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHeaders): void {
    if (status < 200) return
    this.#status = status
    this.#headers = toHeaderMap(headers)
    this.#kept.begin(status)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return
    this.#kept.add(chunk)
    if (this.#kept.discardedBytes < MOST_DISCARDED_BYTES) return
    // The status stands, and a destination that sends forever must not be listened to until the time is over.
    this.onResponseEnd()
    controller.abort(new Error('the answer is too long'))
  }

  onResponseEnd(): void {
    const response = { status: this.#status, headers: this.#headers, ...this.#kept.finish() }
    this.#end({ kind: 'answered', startedAt: this.#startedAt, finishedAt: this.#clock.now(), response })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (!this.#isSentAgain(error)) this.fail(error)
  }

  #isSentAgain(error: Error): boolean {
    const [order, agent] = [this.#order, this.#freshAgent]
    if (this.#over || !agent || !order?.connection?.wasClosedWhileKept(error, this.#controller !== undefined))
      return false
    this.#freshAgent = undefined
    order.connection = undefined
    agent.dispatch(order, this)
    return true
  }

  #unanswered(error: string, isRefused = false): void {
    const outcome = { kind: 'unanswered', startedAt: this.#startedAt, finishedAt: this.#clock.now(), error } as const
    this.#end(isRefused ? { ...outcome, isRefused: true } : outcome)
  }

  #end(outcome: AttemptOutcome | undefined): void {
    if (this.#over) return
    this.#over = true
    this.#deadline.cancel()
    if (outcome?.kind !== 'answered') this.#kept.release()
    this.#resolve(outcome)
  }
}

type IncomingHeaders = Readonly<Record<string, string | string[] | undefined>>

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name could not be looked up',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'the connection timed out',
  EPIPE: 'the connection was closed while the request was sent',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the host speaks no TLS on this port, so the URL has to begin with http://',
  UND_ERR_CONNECT_TIMEOUT: 'no connection could be made in time',
  UND_ERR_SOCKET: 'the connection was closed before the answer was complete',
}

/** Of a host with several addresses the first says why none could be reached. */
function rootOf(error: unknown): unknown {
  return error instanceof AggregateError ? error.errors[0] : error
}

/** The library that speaks TLS words its errors for those who build it. */
const NO_TLS = 'no TLS connection could be made'

/** Says in words why there was no answer. */
function describe(error: unknown): string {
  const root = rootOf(error)
  const code = codeOf(root)
  const known = REASONS[code] ?? (code.startsWith('ERR_SSL_') ? NO_TLS : undefined)
  const reason = known ?? (root instanceof Error ? root.message : String(root))
  return code === '' ? reason : `${reason} (${code})`
}
