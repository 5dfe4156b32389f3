import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Credentials, newCredentials, writeCredentials } from '../accounts/index.js'
import { codeOf, pause, systemClock } from '../base/index.js'
import { clientEnvironment, clientVariables } from '../cli/index.js'
import { type Config, configOfProcess, loadConfig, type OptionName } from '../config/index.js'
import { HomeportError, isError } from '../contract/errors/errors.js'
import { type EngineInfo, probeEngine } from '../fleet/index.js'
import { type App, createApp } from '../server/index.js'
import { AdjustableClock } from './adjustable-clock.js'
import { AttemptLog } from './attempt-log.js'
import { createTestDatabase } from './create-database.js'
import { findPortBlock, type PortBlock } from './port-block.js'
import type { DeliveryRecord } from './protocol.js'
import type { AdvanceOptions, DeliveriesOptions, Environment, StartOptions, TestDatabase } from './testing.cjs'

const EMAIL = 'test@localhost'
/** Attempts to start, because another program may take a port between the check and the start. */
const MAX_TRIES = 5
/** Interval of the checks whether a delivery is still pending. */
const LOOK_EVERY_MS = 2

/** Most attempts that an error lists. */
const MAX_SHOWN = 20

const DEFAULTS: Readonly<Partial<Record<OptionName, string>>> = { logLevel: 'silent', shutdownGraceMs: '0' }

interface RunningApp {
  readonly app: App
  readonly clock: AdjustableClock
  readonly attempts: AttemptLog
}

/** One server in the host process, with a clock that tests turn. */
export class TestServer {
  readonly #config: Config
  readonly #credentials: Credentials
  #running: RunningApp
  #databases = 0

  private constructor(config: Config, credentials: Credentials, running: RunningApp) {
    this.#config = config
    this.#credentials = credentials
    this.#running = running
  }

  /** Starts an empty server in a temporary directory, on free ports. */
  static async start({ options = {} }: StartOptions): Promise<TestServer> {
    const dataDir = await mkdtemp(join(tmpdir(), 'homeport-test-'))
    try {
      const credentials = newCredentials(EMAIL)
      for (let tries = 1; ; tries++) {
        const config = configOf(options, dataDir, await findPortBlock())
        try {
          return new TestServer(config, credentials, await startApp(config, credentials))
        } catch (error) {
          if (!isPortTaken(error) || tries === MAX_TRIES) throw error
        }
      }
    } catch (error) {
      await rm(dataDir, { recursive: true, force: true })
      throw error
    }
  }

  get dataDir(): string {
    return this.#config.dataDir
  }

  get env(): Environment {
    return clientVariables(clientEnvironment(this.#config, this.#credentials))
  }

  now(): number {
    return this.#running.clock.now()
  }

  async createDatabase(name = `test-${++this.#databases}`): Promise<TestDatabase> {
    return await createTestDatabase(this.env, name)
  }

  /** Turns the clock forward from one due time to the next, and waits for the deliveries of each. */
  async advanceTime(ms: number, { timeoutMs = 30_000, holdMs = 10_000 }: AdvanceOptions = {}): Promise<void> {
    if (!Number.isFinite(ms) || ms < 0) throw new Error(`advanceTime got ${ms}; it takes milliseconds, 0 or more.`)
    const { clock } = this.#running
    const endMs = clock.now() + ms
    const deadlineMs = systemClock.now() + timeoutMs
    for (;;) {
      const nextAt = await untilIdle(this.#running, deadlineMs, holdMs)
      if (systemClock.now() >= deadlineMs) throw lateAdvance(timeoutMs, endMs - clock.now())
      if (nextAt > endMs) break
      clock.advanceTo(nextAt)
    }
    clock.advanceTo(endMs)
    await untilIdle(this.#running, deadlineMs, holdMs)
  }

  /** Waits for deliveries; see `Homeport.deliveries`. */
  async deliveries(options: DeliveriesOptions): Promise<DeliveryRecord[]> {
    const { count, timeoutMs = 5_000 } = options
    const { attempts } = this.#running
    if (count === undefined) {
      await untilIdle(this.#running, systemClock.now() + timeoutMs)
      return attempts.matching(options)
    }
    const isLate = pause(systemClock, timeoutMs).then(() => true)
    for (;;) {
      const found = attempts.matching(options)
      if (found.length >= count) return found
      if (await Promise.race([isLate, attempts.next().then(() => false)])) throw await this.#missing(options, found)
    }
  }

  async #missing(options: DeliveriesOptions, found: readonly DeliveryRecord[]): Promise<Error> {
    const { app, attempts, clock } = this.#running
    const seen = attempts.matching({ ...options, attempts: true })
    const { nextAt } = await app.queueRest()
    const waitsMs = nextAt - clock.now()
    const lines = [
      `After ${options.timeoutMs ?? 5_000} ms there were ${found.length} of ${options.count} deliveries.`,
      ...seen.slice(-MAX_SHOWN).map(describe),
      ...(Number.isFinite(waitsMs)
        ? [`The next message is due in ${waitsMs} ms: advanceTime(${waitsMs}) sends it.`]
        : []),
    ]
    return new Error(lines.join('\n'))
  }

  /** Restarts the server without data, at the same addresses. */
  async reset(): Promise<void> {
    await this.stop()
    this.#databases = 0
    await mkdir(this.dataDir, { mode: 0o700 })
    this.#running = await startApp(this.#config, this.#credentials)
  }

  async stop(): Promise<void> {
    await this.#running.app.stop()
    await rm(this.dataDir, { recursive: true, force: true, maxRetries: 3 })
  }
}

const CHOSEN: readonly string[] = ['dataDir', 'host', 'apiPort', 'restPort', 'queuePort', 'redisPorts', 'store']

function configOf(options: NonNullable<StartOptions['options']>, dataDir: string, ports: PortBlock): Config {
  const problems = Object.keys(options)
    .filter((name) => CHOSEN.includes(name))
    .map((name) => `${name} is chosen by startHomeport itself, leave it out`)
  if (problems.length > 0) throw new HomeportError('invalid_config', { problems })
  const content = { ...DEFAULTS, ...engineOfEnvironment(), ...options, dataDir, ...ports }
  return loadConfig({ file: { path: 'the options of startHomeport', content }, workingDir: dataDir })
}

/** On a build machine, only the environment may say where the engine is. */
function engineOfEnvironment() {
  const { engineBinary, engineAllowUnsafeVersion } = configOfProcess()
  return { engineAllowUnsafeVersion, ...(engineBinary !== undefined && { engineBinary }) }
}

/** Each engine program is probed once for all servers of this process: a probe takes as long as the rest of a start. */
const engines = new Map<string | undefined, Promise<EngineInfo>>()

function engineOf({ engineBinary }: Config): Promise<EngineInfo> {
  const known = engines.get(engineBinary) ?? probeEngine(engineBinary)
  known.catch(() => engines.delete(engineBinary))
  engines.set(engineBinary, known)
  return known
}

async function startApp(config: Config, credentials: Credentials): Promise<RunningApp> {
  await writeCredentials(config.dataDir, credentials)
  const clock = new AdjustableClock()
  const attempts = new AttemptLog()
  const app = await createApp(config, {
    engine: await engineOf(config),
    onFailure: (error) => {
      throw error
    },
    queueClock: clock,
    onAttempt: (attempt) => attempts.add(attempt),
  })
  try {
    await app.start()
    return { app, clock, attempts }
  } catch (error) {
    await app.stop()
    throw error
  }
}

const isPortTaken = (error: unknown): boolean => isError(error, 'port_taken') || codeOf(error) === 'EADDRINUSE'

/**
 * Waits until no due delivery is pending, until the deadline, or until no attempt has ended for `holdMs`; both in real
 * time. Returns when the next message is due.
 */
async function untilIdle(
  { app, attempts }: RunningApp,
  deadlineMs: number,
  holdMs = Number.POSITIVE_INFINITY,
): Promise<number> {
  let [ended, heldSince] = [attempts.ended, systemClock.now()]
  for (;;) {
    const { isIdle, nextAt } = await app.queueRest()
    const now = systemClock.now()
    if (attempts.ended !== ended) [ended, heldSince] = [attempts.ended, now]
    if (isIdle || now >= deadlineMs || now - heldSince >= holdMs) return nextAt
    await pause(systemClock, LOOK_EVERY_MS)
  }
}

const lateAdvance = (timeoutMs: number, leftMs: number): Error =>
  new Error(
    `advanceTime has sent messages for ${timeoutMs} ms, and ${leftMs} ms of the way are left. Advance by less, or give it a longer timeoutMs.`,
  )

function describe({ state, url, attempt, status, error, retryAt, at }: DeliveryRecord): string {
  const outcome = status === undefined ? error : `status ${status}`
  const again = retryAt === undefined ? '' : `, tried again ${retryAt - at} ms later`
  return `- ${url}: attempt ${attempt} ${state} (${outcome})${again}`
}
