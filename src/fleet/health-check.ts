/**
 * Watches one engine that has answered, and says when it hangs: its process is stopped, or it neither answers nor works.
 *
 * A large command or a script keeps an engine from answering for as long as it takes, and is no reason to end it: its
 * process uses the processor meanwhile. An engine that waits for a disk is left alone as well, because ending it helps
 * nothing. Looks are counted rather than seconds, so that time in which this process itself did not run (a suspended
 * machine) is held against no engine.
 */
import { readFile } from 'node:fs/promises'
import { createConnection, type Socket } from 'node:net'
import { type Clock, codeOf, type Timer } from '../base/index.js'
import { type ControlAddress, encode } from './ask.js'
import { CONTROL_USER } from './spec.js'

/** How often an engine is looked at. */
const LOOK_EVERY_MS = 2_000
/** An engine is asked at every second look: a connection costs it more than a look at its process. */
const LOOKS_PER_QUESTION = 2
/** So many looks in a row without an answer and without work, and it hangs: 8 seconds. */
const MOST_SILENT_LOOKS = 4
/** The same where the system does not tell what a process does: a minute, above any command that should be. */
const MOST_SILENT_LOOKS_UNSEEN = 30
/** So many looks in a row at which its process is stopped. */
const MOST_STOPPED_LOOKS = 3

/** What the system tells of a process. */
export interface ProcessSample {
  /** `stopped`: by a signal; `waiting`: for a disk. */
  readonly state: 'stopped' | 'waiting' | 'other'
  /** Time of the processor that it has used, in ticks of the system. */
  readonly ticks: number
}

/** Reads `/proc/<pid>/stat`. Pure; undefined for a text that is none. */
export function parseProcessStat(text: string): ProcessSample | undefined {
  // The name of the program stands in brackets and may hold anything.
  const [state, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[10]) + Number(fields[11])
  if (state === undefined || !Number.isFinite(ticks)) return undefined
  if (state === 'T' || state === 't') return { state: 'stopped', ticks }
  return { state: state === 'D' ? 'waiting' : 'other', ticks }
}

async function lookAtProcess(pid: number): Promise<ProcessSample | undefined> {
  return parseProcessStat(await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => ''))
}

/** Which engine to watch, and what to do. */
export interface HealthCheckOptions {
  readonly pid: number
  readonly address: ControlAddress
  readonly clock: Clock
  /** Called once, when the engine hangs, with what it does instead of answering. */
  readonly onHung: (how: string) => void
  /** Called every few seconds, as long as the engine is watched. */
  readonly onLook: () => void
}

/** The last question: open, answered, or one that could not even be asked. */
type Question = { readonly kind: 'answered' | 'refused' } | { readonly kind: 'open'; readonly socket: Socket }

/** Codes of errors that are this process's own. */
const OUR_OWN = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])

/** See the top of this file. */
export class HealthCheck {
  readonly #options: HealthCheckOptions
  #timer: Timer | undefined
  #isOver = false
  #looks = 0
  #stoppedLooks = 0
  #silentLooks = 0
  #ticks = -1
  #question: Question = { kind: 'answered' }

  constructor(options: HealthCheckOptions) {
    this.#options = options
    this.#lookLater()
  }

  /** Watches no longer. */
  stop(): void {
    this.#isOver = true
    this.#timer?.cancel()
    if (this.#question.kind === 'open') this.#question.socket.destroy()
  }

  #lookLater(): void {
    this.#timer = this.#options.clock.after(LOOK_EVERY_MS, () => void this.#look())
  }

  /** Never rejects: what it calls handles its own errors. */
  async #look(): Promise<void> {
    const look = await lookAtProcess(this.#options.pid)
    if (this.#isOver) return
    this.#judge(look)
    if (this.#isOver) return
    if (this.#looks++ % LOOKS_PER_QUESTION === 0) {
      if (this.#question.kind !== 'open') this.#ask()
      this.#options.onLook()
    }
    this.#lookLater()
  }

  #judge(look: ProcessSample | undefined): void {
    this.#stoppedLooks = look?.state === 'stopped' ? this.#stoppedLooks + 1 : 0
    const works = look !== undefined && (look.ticks !== this.#ticks || look.state === 'waiting')
    this.#ticks = look?.ticks ?? -1
    this.#silentLooks = this.#question.kind !== 'answered' && !works ? this.#silentLooks + 1 : 0
    const mostSilent = look ? MOST_SILENT_LOOKS : MOST_SILENT_LOOKS_UNSEEN
    if (this.#stoppedLooks >= MOST_STOPPED_LOOKS) this.#end('its process was stopped')
    else if (this.#silentLooks >= mostSilent) this.#end('it neither answered nor worked')
  }

  #end(how: string): void {
    this.stop()
    this.#options.onHung(how)
  }

  /** Any byte is an answer, be it that the engine is busy. */
  #ask(): void {
    const { socketPath, secrets } = this.#options.address
    const socket = createConnection(socketPath)
    this.#question = { kind: 'open', socket }
    const settle = (kind: 'answered' | 'refused'): void => {
      if (this.#question.kind !== 'open' || this.#question.socket !== socket) return
      this.#question = { kind }
      socket.destroy()
    }
    socket.on('error', (error) => settle(OUR_OWN.has(codeOf(error)) ? 'answered' : 'refused'))
    socket.on('close', () => settle('refused'))
    socket.on('data', () => settle('answered'))
    socket.write(encode(['AUTH', CONTROL_USER, secrets.control]) + encode(['PING']))
  }
}
