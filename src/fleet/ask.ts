/**
 * Asks an engine a few questions and hangs up. Statistics ask every engine in use every few seconds, and a client
 * library made for long connections takes several times as much for that as this.
 */
import { createConnection } from 'node:net'
import { type Clock, pause } from '../base/index.js'
import type { InternalSecrets } from './engine-config.js'
import { CONTROL_USER } from './spec.js'

/** How to reach one engine as its control user. */
export interface ControlAddress {
  readonly socketPath: string
  readonly secrets: InternalSecrets
}

/** An engine that sends nothing for this long is given up. */
const SILENCE_MS = 10_000

/** A command as it goes to the engine. */
export function encode(command: readonly string[]): string {
  return `*${command.length}\r\n${command.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join('')}`
}

/** Answers with the texts of the replies, one to each command. Rejects when one of them is none, or an error. */
export function askEngine(
  address: ControlAddress,
  commands: readonly (readonly string[])[],
): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path: address.socketPath, timeout: SILENCE_MS })
    let received = ''
    const end = (error?: Error): void => {
      socket.destroy()
      if (error) reject(error)
    }
    socket.setEncoding('latin1')
    socket.on('timeout', () => end(new Error('the engine does not answer')))
    socket.on('error', end)
    socket.on('close', () => reject(new Error('the engine has hung up')))
    socket.on('data', (part: string) => {
      received += part
      const replies = repliesIn(received)
      if (replies instanceof Error) return end(replies)
      if (replies.length <= commands.length) return
      resolve(replies.slice(1))
      end()
    })
    const login = ['AUTH', CONTROL_USER, address.secrets.control]
    socket.write([login, ...commands].map(encode).join(''))
  })
}

/** The replies that are there wholly; an error where one of them is. */
function repliesIn(received: string): readonly string[] | Error {
  const replies: string[] = []
  for (let at = 0; ; ) {
    const lineEnd = received.indexOf('\r\n', at)
    if (lineEnd === -1) return replies
    const line = received.slice(at + 1, lineEnd)
    if (received[at] === '-') return new Error(line)
    const isBulk = received[at] === '$' || received[at] === '='
    const end = isBulk ? lineEnd + 2 + Number(line) + 2 : lineEnd + 2
    if (end > received.length) return replies
    replies.push(isBulk ? received.slice(lineEnd + 2, end - 2) : line)
    at = end
  }
}

/** A whole number in an engine's reply to INFO, such as `used_memory`; 0 when the field is absent. */
export function numberIn(info: string, field: string): number {
  return Number(new RegExp(`^${field}:(-?\\d+)`, 'm').exec(info)?.[1] ?? 0)
}

/** How much of its memory bound an engine uses, bytes: what it holds without the buffers that do not count. */
export function usedBytesIn(info: string): number {
  return numberIn(info, 'used_memory') - numberIn(info, 'mem_not_counted_for_evict')
}

/** The first looks follow each other closely, because a small engine is there within some ten milliseconds. */
const FIRST_PAUSE_MS = 2
const LONGEST_PAUSE_MS = 50
const PAUSE_GROWTH = 1.07

/** Which engine to wait for. */
export interface StartingEngine {
  readonly socketPath: string
  /** Password of the control user. */
  readonly password: string
  readonly clock: Clock
  /** How long the socket may stay silent. Reading a large data set takes as long as it takes. */
  readonly readyDeadlineMs: number
}

/** What one look found: the engine answers, is reading its data, is not there yet, or refuses us. */
type Look = 'answers' | 'loading' | 'absent' | 'refused'

function judge(replies: string): Look {
  if (replies.includes('+PONG\r\n')) return 'answers'
  return replies.includes('-LOADING') ? 'loading' : 'refused'
}

/** Logs in and pings once. Never rejects; a socket that nobody serves, or that stays silent, is `absent`. */
function look(engine: StartingEngine, signal: AbortSignal): Promise<Look> {
  return new Promise((resolve) => {
    let replies = ''
    const socket = createConnection(engine.socketPath)
    const finish = (found: Look): void => {
      silence.cancel()
      signal.removeEventListener('abort', giveUp)
      socket.destroy()
      resolve(found)
    }
    const giveUp = (): void => finish('absent')
    const silence = engine.clock.after(engine.readyDeadlineMs, giveUp)
    signal.addEventListener('abort', giveUp)
    socket.setEncoding('latin1')
    socket.once('connect', () => socket.write(encode(['AUTH', CONTROL_USER, engine.password]) + encode(['PING'])))
    socket.on('data', (chunk: string) => {
      replies += chunk
      if (replies.split('\r\n').length > 2) finish(judge(replies))
    })
    socket.once('error', giveUp)
    socket.once('close', giveUp)
  })
}

/**
 * Resolves when the engine answers its control user.
 * Rejects when the signal aborts, with its reason, when the engine refuses the control user, and when it stays silent
 * beyond the deadline; the messages name no path.
 */
export async function waitUntilReady(engine: StartingEngine, signal: AbortSignal): Promise<void> {
  const { clock, readyDeadlineMs } = engine
  let heardAtMs = clock.now()
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * PAUSE_GROWTH, LONGEST_PAUSE_MS)) {
    const found = await look(engine, signal)
    signal.throwIfAborted()
    if (found === 'answers') return
    if (found === 'refused') throw new Error('it refuses its control user')
    if (found === 'loading') heardAtMs = clock.now()
    if (clock.now() - heardAtMs >= readyDeadlineMs) throw new Error(`it was silent for ${readyDeadlineMs} ms`)
    await pause(clock, pauseMs)
  }
}
