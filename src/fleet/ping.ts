/**
 * Learns when an engine that was just started answers. This is on the path of every create and wake, so it speaks the
 * few bytes itself instead of setting up a client for each look.
 */
import { createConnection } from 'node:net'
import { type Clock, pause } from '../base/index.js'
import { encode } from './ask.js'
import { CONTROL_USER } from './spec.js'

/** The first looks follow each other closely, because a small engine is there within some ten milliseconds. */
const FIRST_PAUSE_MS = 2
const LONGEST_PAUSE_MS = 50
const PAUSE_GROWTH = 1.07

/** Which engine to wait for. */
export interface AwaitedEngine {
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
function look(engine: AwaitedEngine, signal: AbortSignal): Promise<Look> {
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
export async function untilAnswering(engine: AwaitedEngine, signal: AbortSignal): Promise<void> {
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
