import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectToPostgres } from '../crash/queue-ledger-store.js'
import {
  enginesIn,
  type Place,
  processesMarked,
  type RunningHomeport,
  startHomeport,
  waitFor,
} from '../support/index.js'

/** What can be killed, with SIGKILL; `stop` is a SIGTERM. */
export type FaultKind =
  | 'server'
  | 'launcher'
  | 'engine'
  | 'engines'
  | 'everything'
  | 'start'
  | 'stop'
  | 'backend'
  | 'backends'

/** Whether the server is gone after a fault and has to be started again. */
export type AfterFault = 'down' | 'up'

/** Options of a server under soak. */
export interface SoakServerOptions {
  readonly place: Place
  /** URL of the PostgreSQL database; absent: SQLite in the data directory. */
  readonly store?: string | undefined
  /** Whether backends are killed: then answers to commits are lost, and a sweep finds messages missing in memory. */
  readonly losesCommits: boolean
}

/** Whether clients are active when a server is asked to stop. */
type Load = 'under load' | 'idle'

const START_DEADLINE_MS = 120_000
const CUT_OFF = 'The server did not stop within'
const NEVER = 'uncaughtException|unhandledRejection|\\[object Object\\]|Maximum call stack|heap out of memory'

/** A value that many callers wait for. */
class Gate<Value> {
  readonly opened: Promise<Value>
  #open: (value: Value) => void = () => undefined

  constructor() {
    this.opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  open(value: Value): void {
    this.#open(value)
  }
}

/** One Homeport that is killed and restarted many times, and what was observed of its lives. */
export class SoakServer {
  readonly #options: SoakServerOptions
  #homeport: RunningHomeport | undefined
  /** Resolves when the server serves; a new one for each life. */
  #up = new Gate<RunningHomeport>()
  readonly faults = new Map<FaultKind, number>()
  /** When engines were killed, Unix milliseconds. */
  readonly engineKills: number[] = []
  readonly violations: string[] = []
  /** How often each text was logged at level error. */
  readonly errors = new Map<string, number>()
  slowestStartMs = 0
  #lives = 0

  constructor(options: SoakServerOptions) {
    this.#options = options
  }

  /** The number of lives. */
  get lives(): number {
    return this.#lives
  }

  get place(): Place & { readonly store?: string | undefined } {
    return { ...this.#options.place, store: this.#options.store }
  }

  /** The running server. Waits while it is down. */
  whenUp(): Promise<RunningHomeport> {
    return this.#up.opened
  }

  async start(): Promise<RunningHomeport> {
    // A start during the recovery of PostgreSQL is refused with that reason, and a supervisor tries again.
    if (this.#options.store !== undefined) await (await connectToPostgres(this.#options.store)).end()
    const begun = performance.now()
    this.#homeport = await this.#startOnce()
    this.#lives++
    this.slowestStartMs = Math.max(this.slowestStartMs, performance.now() - begun)
    this.#up.open(this.#homeport)
    return this.#homeport
  }

  #startOnce(): Promise<RunningHomeport> {
    const { place, store, losesCommits } = this.#options
    const env: Record<string, string> = store === undefined ? {} : { HOMEPORT_STORE: store }
    const strays = losesCommits ? { mayHaveStrays: true as const } : {}
    return startHomeport({ ...place, ...strays, env, deadlineMs: START_DEADLINE_MS })
  }

  /** Causes a fault. After `down` the server has to be restarted. */
  async fault(kind: FaultKind, random: () => number): Promise<AfterFault> {
    this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1)
    switch (kind) {
      case 'server':
        return await this.#end('SIGKILL')
      case 'stop':
        return await this.#end('SIGTERM')
      case 'start':
        await this.#end('SIGKILL')
        return await this.#killWhileStarting(random)
      case 'everything':
        return await this.#killEverything()
      case 'launcher':
        // Engines may die with the launcher in the middle of a write, just as when they are killed.
        this.engineKills.push(Date.now())
        return this.#kill(this.#processes('launcher'))
      case 'engine':
        return this.#killEngines((found) => [found[Math.floor(random() * found.length)]])
      case 'engines':
        return this.#killEngines((found) => found)
      case 'backend':
        return await this.#killBackends((pids) => [pids[Math.floor(random() * pids.length)]])
      case 'backends':
        return await this.#killBackends((pids) => pids)
    }
  }

  /** Ends the server for good with SIGTERM; an unclean end is a violation. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM', 'idle')
  }

  #processes(which: 'launcher' | 'all'): number[] {
    return processesMarked(this.#options.place.dataDir)
      .filter(({ command }) => which === 'all' || command.startsWith('homeport-launcher'))
      .map(({ pid }) => pid)
  }

  #kill(pids: readonly (number | undefined)[]): AfterFault {
    for (const pid of pids) if (pid !== undefined) killIfThere(pid)
    return 'up'
  }

  #killEngines(choose: (pids: readonly number[]) => readonly (number | undefined)[]): AfterFault {
    const found = enginesIn(join(this.#options.place.dataDir, 'databases')).map(({ pid }) => pid)
    this.engineKills.push(Date.now())
    return this.#kill(choose(found))
  }

  async #killEverything(): Promise<AfterFault> {
    this.engineKills.push(Date.now())
    const pids = this.#processes('all')
    this.#close()
    this.#kill(pids)
    await this.#ended('SIGKILL', 'under load')
    this.engineKills.push(Date.now())
    return 'down'
  }

  /** PostgreSQL restarts all its backends when one of them is killed. */
  async #killBackends(choose: (pids: readonly number[]) => readonly (number | undefined)[]): Promise<AfterFault> {
    const { store } = this.#options
    if (store === undefined) throw new Error('only PostgreSQL has backends')
    const client = await connectToPostgres(store)
    try {
      const sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
      const { rows } = await client.query<{ pid: number }>(sql)
      this.#kill(choose(rows.map(({ pid }) => pid)))
    } finally {
      await client.end().catch(() => undefined)
    }
    return 'up'
  }

  async #killWhileStarting(random: () => number): Promise<AfterFault> {
    const starting = this.#startOnce().then(
      (homeport) => homeport.kill('SIGKILL'),
      () => undefined,
    )
    const isMain = ({ command }: { command: string }) => command.includes('main.js start')
    const find = () => processesMarked(this.#options.place.dataDir).find(isMain)?.pid
    const pid = await waitFor(find, { what: 'the server to start', everyMs: 1 })
    const killAt = performance.now() + random() * 900
    await waitFor(() => performance.now() >= killAt, { what: 'the moment of the kill', everyMs: 1 })
    killIfThere(pid)
    await starting
    return 'down'
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM', load: Load = 'under load'): Promise<AfterFault> {
    this.#close()
    await this.#ended(signal, load)
    return 'down'
  }

  async #ended(signal: 'SIGKILL' | 'SIGTERM', load: Load): Promise<void> {
    const exit = await this.#homeport?.kill(signal)
    const log = this.#homeport?.logs() ?? ''
    this.#readLogs(log)
    if (signal !== 'SIGTERM' || exit?.code === 0) return
    // On a busy machine a server under load may reach the end of its grace period, and says so.
    if (load === 'under load' && log.includes(CUT_OFF)) this.#count(this.errors, 'a stop under load was cut off')
    else this.violations.push(`SIGTERM ended with ${JSON.stringify(exit)}: ${log.slice(-300)}`)
  }

  /** From now on callers that need the server wait for its next life. */
  #close(): void {
    this.#up = new Gate<RunningHomeport>()
  }

  #readLogs(text: string): void {
    appendFileSync(join(this.#options.place.dataDir, '..', 'server.log'), `--- life ${this.#lives}\n${text}`)
    const found = new RegExp(`^.*(?:${NEVER}).*$`, 'm').exec(text)
    if (found) this.violations.push(`the log says: ${found[0].slice(0, 500)}`)
    for (const [, message] of text.matchAll(/^\{"level":"(?:error|fatal)".*"msg":"((?:[^"\\]|\\.)*)"/gm)) {
      this.#count(this.errors, (message ?? '').slice(0, 120))
    }
  }

  #count(counts: Map<string, number>, key: string): void {
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }

  /** Throws if the server has ended without being killed. */
  async checkAlive(): Promise<void> {
    const homeport = await this.whenUp()
    if (processesMarked(this.#options.place.dataDir).some(({ pid }) => pid === homeport.pid)) return
    this.#readLogs(homeport.logs())
    const tail = homeport.logs().split('\n').slice(-8).join('\n')
    throw new Error(`the server has ended without being killed; its last lines:\n${tail}`)
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has ended meanwhile.
  }
}
