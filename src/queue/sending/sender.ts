import { Agent, buildConnector, type Dispatcher } from 'undici'
import { type Clock, codeOf, TargetGate, type TargetPolicy, TargetRefused } from '../../base/index.js'
import { toHeaderMap } from '../headers.js'
import { memoized } from '../memoized.js'
import type { AttemptOutcome, HeaderMap } from '../types.js'
import { KeptBody, LARGE_RESPONSES_BYTES, SharedBytes } from './kept-body.js'
import {
  type IncomingHeaders,
  OutgoingRequest,
  type RequestController,
  type ResponseHandler,
} from './outgoing-request.js'
import { PlainClient } from './plain-client.js'
import { rootOf, shortageOf } from './shortage.js'
import { reusableConnections } from './undici-connection.js'
import { CONNECT_TIMEOUT_MS } from './wire.js'

/** Bytes read and discarded beyond the kept ones, so that the connection can be reused. A longer response is cut off. */
const MAX_DISCARDED_BYTES = 64 * 2 ** 20

/** A request ready to be sent. */
export interface SendRequest {
  readonly url: string
  readonly method: string
  /** Names and values alternate. */
  readonly headers: string[]
  readonly body: Uint8Array | undefined
  readonly timeoutMs: number
  /** Overrides the sender's limit. */
  readonly keepBytes?: number | undefined
  /** Bytes kept of a failing response while memory for large ones is free. */
  readonly keepFailingBytes?: number | undefined
}

/** A request in flight. */
export interface Sending {
  /** `undefined` if the request was aborted. Rejects only when this machine is short of a resource; see `shortageOf`. */
  readonly outcome: Promise<AttemptOutcome | undefined>
  abort(): void
  /** The outcome is no longer used: frees the memory of a large response. */
  release(): void
}

/** Makes the requests of a dispatcher. */
export interface RequestSender {
  /** Starts a request. */
  send(request: SendRequest): Sending
  /** Ends connections without a request, so that others can be opened. */
  endWaiting(): void
  /** Requests in flight fail. */
  close(): Promise<void>
}

/** What a sender is built from. */
export interface SenderSettings {
  readonly clock: Clock
  readonly connectionsPerHost: number
  /** Bytes kept of each response body. The rest is read and discarded. */
  readonly keepBytes: number
  /** Default `everything`. */
  readonly targets?: TargetPolicy
}

interface Address {
  readonly origin: string
  readonly path: string
}

/**
 * Sends requests over keep-alive connections. Follows no redirect: a 3xx is a response like any other.
 *
 * A destination may close a keep-alive connection while the next request is on its way. That request fails although the
 * destination has not seen it. So the sender repeats it at once on a new connection, within the same attempt.
 */
export class Sender implements RequestSender {
  readonly #plain: PlainClient
  /** For requests that are not plain. */
  readonly #agent: Agent
  /** Opens a connection for each request and keeps none. */
  readonly #freshAgent: Agent
  readonly #settings: SenderSettings
  readonly #gate: TargetGate
  readonly #largeResponses = new SharedBytes(LARGE_RESPONSES_BYTES)

  constructor(settings: SenderSettings) {
    this.#settings = settings
    this.#gate = new TargetGate(settings.targets ?? 'everything')
    this.#plain = new PlainClient({ ...settings, gate: this.#gate })
    const common = {
      // One deadline covers the whole attempt, so undici needs no timeouts.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup: this.#gate.lookup }),
    }
    const [connections, factory] = [settings.connectionsPerHost, reusableConnections(common.connect)]
    this.#agent = new Agent({ ...common, connections, pipelining: 1, factory })
    this.#freshAgent = new Agent({ ...common, pipelining: 0 })
  }

  /** Parses a URL and checks it with the gate, as far as possible without a DNS lookup. */
  readonly #addressOf = memoized(
    (text): Address => {
      const url = new URL(text)
      this.#gate.check(url)
      return { origin: url.origin, path: url.pathname + url.search }
    },
    { most: 1_000, longest: 500 },
  )

  /** Starts a request. */
  send(request: SendRequest): Sending {
    const attempt = new Attempt(request, this.#settings, this.#largeResponses)
    try {
      const { origin, path } = this.#addressOf(request.url)
      const outgoing = new OutgoingRequest(origin, path, request)
      attempt.begin(outgoing, this.#freshAgent)
      if (this.#plain.takes(outgoing)) attempt.waitFor(this.#plain.send(outgoing, attempt))
      else this.#agent.dispatch(outgoing, attempt)
    } catch (error) {
      attempt.fail(error)
    }
    return attempt
  }

  endWaiting(): void {
    this.#plain.endWaiting()
  }

  /** Closes all connections. Requests in flight fail. */
  async close(): Promise<void> {
    this.#plain.close()
    await Promise.all([this.#agent.destroy(), this.#freshAgent.destroy()])
  }
}

/** One request. Collects the beginning of its response and ends exactly once. */
class Attempt implements ResponseHandler, Sending {
  readonly outcome: Promise<AttemptOutcome | undefined>
  readonly #clock: Clock
  readonly #kept: KeptBody
  readonly #startedAt: number
  readonly #deadline: { cancel(): void }
  #resolve: (outcome: AttemptOutcome | undefined) => void = () => undefined
  #reject: (error: unknown) => void = () => undefined
  #controller: RequestController | undefined
  #outgoing: OutgoingRequest | undefined
  /** Agent for the repetition on a new connection; cleared when used. */
  #freshAgent: Dispatcher | undefined
  #status = 0
  #headers: HeaderMap = {}
  #ended = false

  constructor(request: SendRequest, settings: SenderSettings, largeResponses: SharedBytes) {
    this.#clock = settings.clock
    const { keepBytes = settings.keepBytes, keepFailingBytes } = request
    this.#kept = new KeptBody({ keepBytes, keepFailingBytes }, largeResponses)
    this.#startedAt = settings.clock.now()
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#deadline = settings.clock.after(request.timeoutMs, () => {
      this.#unanswered(`no complete response within ${request.timeoutMs} ms`)
      this.#controller?.abort(new Error('timeout'))
    })
  }

  /** Call it before the request is sent. If it never reaches the destination, it is repeated once through `freshAgent`. */
  begin(outgoing: OutgoingRequest, freshAgent: Dispatcher): void {
    this.#outgoing = outgoing
    this.#freshAgent = freshAgent
  }

  /** The request waits for a connection. If the request ends first, the connection is given up. */
  waitFor(opening: RequestController | undefined): void {
    if (opening) this.#controller = opening
  }

  abort(): void {
    this.#end(undefined)
    this.#controller?.abort(new Error('aborted'))
  }

  release(): void {
    this.#kept.release()
  }

  fail(error: unknown): void {
    // Errors after the end are ignored.
    if (shortageOf(error)) this.#reject(error)
    this.#unanswered(describe(error), error instanceof TargetRefused)
  }

  onRequestStart(controller: RequestController): void {
    this.#controller = controller
    this.#outgoing?.connection?.beginRequest()
    if (this.#ended) controller.abort(new Error('ended before it began'))
  }

  onResponseStart(_controller: RequestController, status: number, headers: IncomingHeaders): void {
    if (status < 200) return
    this.#status = status
    this.#headers = toHeaderMap(headers)
    this.#kept.begin(status)
  }

  onResponseData(controller: RequestController, chunk: Buffer): void {
    if (this.#ended) return
    this.#kept.add(chunk)
    if (this.#kept.discardedBytes < MAX_DISCARDED_BYTES) return
    // The status is known. Reading on would let a destination that sends forever use up the whole timeout.
    this.onResponseEnd()
    controller.abort(new Error('the response is too long'))
  }

  onResponseEnd(): void {
    const response = { status: this.#status, headers: this.#headers, ...this.#kept.finish() }
    this.#end({ kind: 'answered', startedAt: this.#startedAt, finishedAt: this.#clock.now(), response })
  }

  onResponseError(_controller: RequestController, error: Error): void {
    if (!this.#repeatOnFreshConnection(error)) this.fail(error)
  }

  #repeatOnFreshConnection(error: Error): boolean {
    const [outgoing, agent] = [this.#outgoing, this.#freshAgent]
    if (this.#ended || !agent || !outgoing?.connection?.wasClosedWhileReused(error, this.#controller !== undefined))
      return false
    this.#freshAgent = undefined
    outgoing.connection = undefined
    agent.dispatch(outgoing, this)
    return true
  }

  #unanswered(error: string, isRefused = false): void {
    const outcome = { kind: 'unanswered', startedAt: this.#startedAt, finishedAt: this.#clock.now(), error } as const
    this.#end(isRefused ? { ...outcome, isRefused: true } : outcome)
  }

  #end(outcome: AttemptOutcome | undefined): void {
    if (this.#ended) return
    this.#ended = true
    this.#deadline.cancel()
    if (outcome?.kind !== 'answered') this.#kept.release()
    this.#resolve(outcome)
  }
}

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
  UND_ERR_SOCKET: 'the connection was closed before the response was complete',
}

/** OpenSSL's messages are written for developers, so they are replaced. */
const NO_TLS = 'no TLS connection could be made'

/** Why there was no response, in words. */
function describe(error: unknown): string {
  const root = rootOf(error)
  const code = codeOf(root)
  const known = REASONS[code] ?? (code.startsWith('ERR_SSL_') ? NO_TLS : undefined)
  const reason = known ?? (root instanceof Error ? root.message : String(root))
  return code === '' ? reason : `${reason} (${code})`
}
