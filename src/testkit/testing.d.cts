/** A Homeport for the tests of an application: `import { startHomeport } from 'homeport/testing'`. */

/** What a test may choose about its server. */
export interface StartOptions {
  /**
   * Options of the server by their names in docs/configuration.md, such as `{ retentionMs: '1h', logLevel: 'info' }`.
   * The data directory, the address, the ports and the store are chosen for you.
   */
  readonly options?: Readonly<Record<string, string | number | boolean>>
}

/** What `homeport env` prints: the variables that the client packages read. */
export interface Environment {
  readonly HOMEPORT_API_URL: string
  readonly HOMEPORT_EMAIL: string
  readonly HOMEPORT_API_KEY: string
  readonly QSTASH_URL: string
  readonly QSTASH_TOKEN: string
  readonly QSTASH_CURRENT_SIGNING_KEY: string
  readonly QSTASH_NEXT_SIGNING_KEY: string
}

/** What `homeport env --database` adds. */
export interface DatabaseEnvironment {
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
  readonly REDIS_URL: string
}

/** A database of the test server. */
export interface TestDatabase {
  readonly id: string
  readonly name: string
  /** For `new Redis({ url, token })` of `@upstash/redis`. */
  readonly url: string
  readonly token: string
  /** For clients of the Redis protocol. */
  readonly redisUrl: string
  readonly env: DatabaseEnvironment
}

/** One attempt to deliver a message or a step of a workflow. Its outcome is stored. */
export interface Delivery {
  readonly messageId: string
  /** `http` for a published message or a callback, `workflow` for everything that a workflow run sends. */
  readonly kind: 'http' | 'workflow'
  /** `delivered`: answered with 2xx. `retry`: failed, and tried again at `retryAt`. `failed`: failed for good. */
  readonly state: 'delivered' | 'retry' | 'failed'
  readonly url: string
  readonly method: string
  /** The headers of the request, without those of every delivery. Names in Title-Case. */
  readonly headers: Readonly<Record<string, string>>
  /** The body that was sent, as text. */
  readonly body: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** The status of the response; absent when there was none. */
  readonly status?: number
  readonly responseBody?: string
  /** Why there was no response. */
  readonly error?: string
  readonly scheduleId?: string
  readonly queue?: string
  readonly urlGroup?: string
  readonly labels: readonly string[]
  /** In the time of the test server. */
  readonly at: Date
  readonly retryAt?: Date
}

/** Which deliveries to await. */
export interface DeliveriesOptions {
  /** Wait until there are at least this many. Without it, wait until nothing that is due now is left to send. */
  readonly count?: number
  /** Only deliveries to URLs that contain this text. */
  readonly url?: string
  /** Also attempts that failed. */
  readonly attempts?: boolean
  /** Give up after this time. Default 5,000. */
  readonly timeoutMs?: number
}

/** How to turn the clock. */
export interface AdvanceOptions {
  /**
   * After this time without an answer, in real time, a delivery no longer holds the clock, and may reach its timeout.
   * Make it short to test timeouts. Default 10,000.
   */
  readonly holdMs?: number
  /** Give up when the deliveries on the way take longer than this, in real time. Default 30,000. */
  readonly timeoutMs?: number
}

/** A running test server. */
export interface Homeport {
  /** Stays the same after `reset`. */
  readonly env: Environment
  /** Creates a database with a name of its own. */
  createDatabase(name?: string): Promise<TestDatabase>
  /**
   * Turns the clock of the queue forward: delays, sleeps, schedules, retries, timeouts and retention. Deliveries that
   * become due meanwhile are sent in the order of their times, and the clock waits for them. Databases keep the time of
   * the machine.
   */
  advanceTime(ms: number, options?: AdvanceOptions): Promise<void>
  /** The current time of the queue: that of the machine, plus the time that `advanceTime` has added. */
  now(): Promise<Date>
  /** The deliveries since the start or the last reset, oldest first. After the timeout, rejects with those that it found. */
  deliveries(options?: DeliveriesOptions): Promise<Delivery[]>
  /** Restarts an empty server with the clock of the machine, at the same addresses and with the same credentials. */
  reset(): Promise<void>
  /** Ends the server and deletes its data. */
  stop(): Promise<void>
}

/** Starts an empty server on free ports of this machine. It ends with `stop`, or with the process that started it. */
export declare function startHomeport(options?: StartOptions): Promise<Homeport>
