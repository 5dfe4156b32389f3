import { type Clock, randomSecret, systemClock, type Timer } from '../../base/index.js'
import { type Authenticator, type Caller, HttpServer, type HttpSettings, type Route } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import { QueueMeter } from '../../telemetry/index.js'
import { type RecordedLine, type RecordedLog, recordedLog } from '../../telemetry/testing/recorded-log.js'
import type { SigningKeyring } from '../api/deps.js'
import { createQueue, type QueueDeps } from '../queue.js'
import type { Queue } from '../types.js'

/**
 * A queue for tests: a real store, the real dispatcher and a real HTTP listener in this process, with one account.
 *
 *   const service = await startQueue({ store, clock })
 *   await fetch(`${service.url}/v2/publish/${sink.url}`, { method: 'POST', headers: service.auth })
 *   await service.stop()
 */

/** Options of a queue under test. */
export interface QueueUnderTestOptions extends Partial<Omit<QueueDeps, 'store'>> {
  readonly store: Store
  readonly accountId?: string
  /** Daily message limit of its account. */
  readonly dailyMessages?: number
  /** Larger requests are refused. */
  readonly queueBodyLimitBytes?: number
  /** Default: a stray makes `stop` fail, because only lost commits cause strays. */
  readonly mayHaveStrays?: true
  /** Registers kinds and intakes as other modules would. Returns the routes of these modules. */
  readonly extend?: (queue: Queue) => readonly Route[]
}

/** A running queue under test. */
export interface QueueUnderTest {
  readonly queue: Queue
  /** Base URL of the listener. */
  readonly url: string
  readonly token: string
  /** Headers that authenticate a request. */
  readonly auth: Readonly<Record<string, string>>
  readonly accountId: string
  signingKeys(): { current: string; next: string }
  stop(): Promise<void>
}

function keyring(): SigningKeyring & { keys: { current: string; next: string } } {
  const newKey = (): string => `sig_${randomSecret(18)}`
  return {
    keys: { current: newKey(), next: newKey() },
    signingKeys() {
      return this.keys
    },
    async rotateSigningKeys() {
      this.keys = { current: this.keys.next, next: newKey() }
      return this.keys
    },
  }
}

function authenticator(token: string, accountId: string, dailyMessages: number | undefined): Authenticator {
  const caller = (ip: string): Caller => ({
    accountId,
    email: 'test@example.com',
    accountType: 'paid',
    source: 'QUEUE_TOKEN',
    access: 'write',
    ip,
    ...(dailyMessages === undefined ? {} : { dailyMessages }),
  })
  return { basic: () => undefined, bearer: (given, ip) => (given === token ? caller(ip) : undefined) }
}

/** Limits of the queue and the modules above it, too high for any test to reach. */
export const HIGH_LIMITS = {
  deliveryTimeoutMs: 900_000,
  retentionMs: 7 * 86_400_000,
  retentionBytes: 4 * 2 ** 30,
  queueBodyLimitBytes: 16 * 2 ** 20,
  responseKeepBytes: 2 ** 20,
} as const

function refuseStrays({ strays }: QueueMeter, { lines }: RecordedLog): void {
  if (strays > 0) throw new Error(`${strays} messages were missing in memory`)
  const isFailure = ({ event }: RecordedLine) => event === 'queue_sweep_failed' || event === 'lost_commit_not_compared'
  if (lines.some(isFailure)) throw new Error('the due sweep failed')
}

/** Starts a queue with its listener on a free port of 127.0.0.1. */
export async function startQueue(options: QueueUnderTestOptions): Promise<QueueUnderTest> {
  const { extend, accountId = 'acc_test', dailyMessages, ...others } = options
  const { mayHaveStrays = false, meter = new QueueMeter(), ...deps } = others
  const keys = keyring()
  const log = recordedLog(['warn'])
  const clock: Clock = options.clock ?? systemClock
  const queue = createQueue({
    logger: log.logger,
    keys,
    deliveryConcurrency: 100,
    ...HIGH_LIMITS,
    shutdownGraceMs: 2_000,
    dailyMessagesOf: () => dailyMessages,
    ...deps,
    meter,
    clock,
  })
  const more = extend?.(queue) ?? []
  const token = Buffer.from(JSON.stringify({ UserID: 'user', Password: randomSecret(18) })).toString('base64')
  const server = listenerOf({
    bodyLimitBytes: options.queueBodyLimitBytes ?? HIGH_LIMITS.queueBodyLimitBytes,
    routes: [...queue.routes(), ...more],
    authenticator: authenticator(token, accountId, dailyMessages),
  })
  await queue.start()
  await server.start()
  return {
    queue,
    url: `http://127.0.0.1:${server.port}`,
    token,
    auth: { authorization: `Bearer ${token}` },
    accountId,
    signingKeys: () => keys.keys,
    stop: async () => {
      await server.stop()
      await queue.stop()
      if (!mayHaveStrays) refuseStrays(meter, log)
    },
  }
}

function listenerOf(settings: Pick<HttpSettings, 'bodyLimitBytes' | 'routes' | 'authenticator'>): HttpServer {
  return new HttpServer({
    ...settings,
    service: 'queue',
    host: '127.0.0.1',
    port: 0,
    version: '0.0.0',
    publicUrl: 'http://127.0.0.1',
    onInternalError: (error) => {
      throw error
    },
  })
}

/**
 * A clock whose time of day can be set while its timers run on, like that of a machine: a timer waits for its duration,
 * regardless of changes to the time of day.
 */
export class JumpingClock implements Clock {
  readonly #steady: Clock
  #offsetMs = 0

  /** @param steady the clock for timers. */
  constructor(steady: Clock) {
    this.#steady = steady
  }

  now(): number {
    return this.#steady.now() + this.#offsetMs
  }

  after(delayMs: number, callback: () => void): Timer {
    return this.#steady.after(delayMs, callback)
  }

  /** Moves the time of day ahead, or back when `byMs` is negative. */
  jump(byMs: number): void {
    this.#offsetMs += byMs
  }
}
