/**
 * Detects an engine that hangs: its process is stopped, or it neither answers nor uses the processor.
 *
 * A large command or a script keeps an engine from answering for as long as it takes, and is no reason to kill it: its
 * process uses the processor meanwhile. An engine that waits for a disk is left alone too, because killing it does not
 * help. Checks are counted instead of seconds, so time in which Homeport itself did not run (a suspended machine) does
 * not count.
 */
import { readFile } from 'node:fs/promises'
import { createConnection, type Socket } from 'node:net'
import { type Clock, codeOf, type Timer } from '../base/index.js'
import { type ControlAddress, encode } from './ask.js'
import { CONTROL_USER } from './spec.js'

/** Interval of checks. */
const CHECK_INTERVAL_MS = 2_000
/** The engine is pinged at every second check: a connection costs it more than reading its process state. */
const CHECKS_PER_PING = 2
/** Maximum time to prepare a ping: a disk that hangs must not stop the checks of the engine. */
const PREPARATION_MS = 1_000
/** Consecutive checks without an answer and without processor use until an engine counts as hung: 8 seconds. */
const MAX_SILENT_CHECKS = 4
/** The same where the system does not show processor use: a minute, longer than any reasonable command. */
const MAX_SILENT_CHECKS_WITHOUT_PROC = 30
/** Consecutive checks with a stopped process until an engine counts as hung. */
const MAX_STOPPED_CHECKS = 3

/** State of a process as the system reports it. */
export interface ProcessSample {
  /** `stopped`: by a signal; `waiting`: for a disk. */
  readonly state: 'stopped' | 'waiting' | 'other'
  /** Processor time used, in ticks. */
  readonly ticks: number
}

/** Parses `/proc/<pid>/stat`. Pure; undefined if it is invalid. */
export function parseProcessStat(text: string): ProcessSample | undefined {
  // The program name is in parentheses and may contain anything.
  const [state, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[10]) + Number(fields[11])
  if (state === undefined || !Number.isFinite(ticks)) return undefined
  if (state === 'T' || state === 't') return { state: 'stopped', ticks }
  return { state: state === 'D' ? 'waiting' : 'other', ticks }
}

async function sampleProcess(pid: number): Promise<ProcessSample | undefined> {
  return parseProcessStat(await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => ''))
}

/** Called when the engine has answered a ping. */
export type OnPong = (() => void) | undefined

/** The engine to check, and the callbacks. */
export interface HealthCheckOptions {
  readonly pid: number
  readonly address: ControlAddress
  readonly clock: Clock
  /** Called once when the engine hangs, with what was observed. */
  readonly onHung: (observation: string) => void
  /** Called before each ping. Resolves to the callback for its answer; never rejects. */
  readonly beforePing: () => Promise<OnPong>
}

/** The last ping: open, answered, or refused a connection. */
type Ping = { readonly kind: 'answered' | 'refused' } | { readonly kind: 'open'; readonly socket: Socket }

/** Errors of this process, not of the engine. */
const LOCAL_ERRORS = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])

/** See the top of this file. */
export class HealthCheck {
  readonly #options: HealthCheckOptions
  #timer: Timer | undefined
  #isOver = false
  #checks = 0
  #stoppedChecks = 0
  #silentChecks = 0
  #ticks = -1
  #ping: Ping = { kind: 'answered' }

  constructor(options: HealthCheckOptions) {
    this.#options = options
    this.#scheduleCheck()
  }

  /** Stops checking. */
  stop(): void {
    this.#isOver = true
    this.#timer?.cancel()
    if (this.#ping.kind === 'open') this.#ping.socket.destroy()
  }

  #scheduleCheck(): void {
    this.#timer = this.#options.clock.after(CHECK_INTERVAL_MS, () => void this.#check())
  }

  /** Never rejects: callees handle their errors. */
  async #check(): Promise<void> {
    const sample = await sampleProcess(this.#options.pid)
    if (this.#isOver) return
    this.#evaluate(sample)
    if (this.#isOver) return
    if (this.#checks++ % CHECKS_PER_PING === 0 && this.#ping.kind !== 'open') {
      const onPong = await this.#prepared()
      if (this.#isOver) return
      this.#sendPing(onPong)
    }
    this.#scheduleCheck()
  }

  /** The result of `beforePing`. A late result is dropped, because the engine may answer the ping before it arrives. */
  #prepared(): Promise<OnPong> {
    return new Promise((resolve) => {
      const late = this.#options.clock.after(PREPARATION_MS, () => resolve(undefined))
      void this.#options.beforePing().then((onPong) => {
        late.cancel()
        resolve(onPong)
      })
    })
  }

  #evaluate(sample: ProcessSample | undefined): void {
    this.#stoppedChecks = sample?.state === 'stopped' ? this.#stoppedChecks + 1 : 0
    const isWorking = sample !== undefined && (sample.ticks !== this.#ticks || sample.state === 'waiting')
    this.#ticks = sample?.ticks ?? -1
    this.#silentChecks = this.#ping.kind !== 'answered' && !isWorking ? this.#silentChecks + 1 : 0
    const maxSilent = sample ? MAX_SILENT_CHECKS : MAX_SILENT_CHECKS_WITHOUT_PROC
    if (this.#stoppedChecks >= MAX_STOPPED_CHECKS) this.#reportHung('its process was stopped')
    else if (this.#silentChecks >= maxSilent) this.#reportHung('it neither answered nor used the processor')
  }

  #reportHung(observation: string): void {
    this.stop()
    this.#options.onHung(observation)
  }

  /** Any byte is an answer, even an error that it is busy. */
  #sendPing(onPong: OnPong): void {
    const { socketPath, secrets } = this.#options.address
    const socket = createConnection(socketPath)
    this.#ping = { kind: 'open', socket }
    const settle = (kind: 'answered' | 'refused'): boolean => {
      if (this.#ping.kind !== 'open' || this.#ping.socket !== socket) return false
      this.#ping = { kind }
      socket.destroy()
      return true
    }
    socket.on('error', (error) => settle(LOCAL_ERRORS.has(codeOf(error)) ? 'answered' : 'refused'))
    socket.on('close', () => settle('refused'))
    socket.on('data', () => {
      if (settle('answered')) onPong?.()
    })
    socket.write(encode(['AUTH', CONTROL_USER, secrets.control]) + encode(['PING']))
  }
}
