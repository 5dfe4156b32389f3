/**
 * Small exchanges with an engine that speak the few bytes of the protocol themselves. Statistics query every engine
 * every few seconds, and every create and wake waits for the first reply: a client library made for long connections
 * costs several times as much.
 */
import { createConnection } from 'node:net'
import { type Clock, pause } from '../base/index.js'
import type { InternalSecrets } from './engine-config.js'
import { CONTROL_USER } from './spec.js'

/** Address and secrets of an engine, for its control user. */
export interface ControlAddress {
  readonly socketPath: string
  readonly secrets: InternalSecrets
}

/** Time without any byte after which an exchange fails. */
const SILENCE_MS = 10_000

/** Encodes a command in RESP. */
export function encode(command: readonly string[]): string {
  return `*${command.length}\r\n${command.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join('')}`
}

/** Logs in, sends commands, and resolves with one string per reply. Rejects on an error reply. */
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
    socket.on('close', () => reject(new Error('the engine closed the connection')))
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

/** The complete replies received so far; an error if one is an error reply. */
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

/** Memory that counts against the limit, bytes: used memory without the buffers that do not count. */
export function usedBytesIn(info: string): number {
  return numberIn(info, 'used_memory') - numberIn(info, 'mem_not_counted_for_evict')
}

/** First pause between probes: a small engine answers within about ten milliseconds. */
const FIRST_PAUSE_MS = 2
const MAX_PAUSE_MS = 50
const PAUSE_GROWTH = 1.07

/** The engine to wait for. */
export interface StartingEngine {
  readonly socketPath: string
  /** Password of the control user. */
  readonly password: string
  readonly clock: Clock
  /** Longest silence of the socket. While the engine reports that it is loading, there is no limit. */
  readonly readyDeadlineMs: number
}

/** Result of one probe: the engine answers, is loading, has no socket yet, or refuses our login. */
type ProbeResult = 'answers' | 'loading' | 'absent' | 'refused'

function probeResultOf(replies: string): ProbeResult {
  if (replies.includes('+PONG\r\n')) return 'answers'
  return replies.includes('-LOADING') ? 'loading' : 'refused'
}

/** Logs in and pings once. Never rejects; a socket that is missing or silent is `absent`. */
function probe(engine: StartingEngine, signal: AbortSignal): Promise<ProbeResult> {
  return new Promise((resolve) => {
    let replies = ''
    const socket = createConnection(engine.socketPath)
    const finish = (found: ProbeResult): void => {
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
      if (replies.split('\r\n').length > 2) finish(probeResultOf(replies))
    })
    socket.once('error', giveUp)
    socket.once('close', giveUp)
  })
}

/**
 * Resolves when the engine answers its control user.
 * Rejects with the reason of the signal when that aborts, when the engine refuses the login, and when it is silent
 * beyond the deadline. Messages contain no path.
 */
export async function waitUntilReady(engine: StartingEngine, signal: AbortSignal): Promise<void> {
  const { clock, readyDeadlineMs } = engine
  let lastReplyAtMs = clock.now()
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * PAUSE_GROWTH, MAX_PAUSE_MS)) {
    const found = await probe(engine, signal)
    signal.throwIfAborted()
    if (found === 'answers') return
    if (found === 'refused') throw new Error('it refuses its control user')
    if (found === 'loading') lastReplyAtMs = clock.now()
    if (clock.now() - lastReplyAtMs >= readyDeadlineMs) throw new Error(`it was silent for ${readyDeadlineMs} ms`)
    await pause(clock, pauseMs)
  }
}
