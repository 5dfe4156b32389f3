import { createConnection, type Socket } from 'node:net'
import { pause } from '../../base/index.js'
import { connectLent, type LentBytes } from '../resp/lent-memory.js'
import { ReplyFormatError } from '../resp/reply-framer.js'
import { type Greeting, GreetingReader, greetingCommand, type LinkIdentity } from './greeting.js'
import type { LinkOptions } from './link-options.js'

/**
 * Pause between dials. When an engine has just ended, the link notices before the fleet does, and the old socket refuses the
 * connection. So the link looks the engine up and dials `MAX_DIALS` times before it gives up.
 */
const DIAL_PAUSE_MS = 25
const MAX_DIALS = 40

/** A connection to an engine that has answered the greeting. */
export interface EngineConnection {
  readonly socket: Socket
  readonly greeting: Greeting
}

/** One attempt to connect. */
export interface Attempt {
  /** An abort ends the attempt, in any state. */
  readonly signal: AbortSignal
  /** The identity of the connection; called for each dial. */
  readonly identity: () => LinkIdentity
  /** Called when the engine is looked up, and when the greeting is sent. */
  readonly onPhase: (phase: 'dialling' | 'greeting') => void
  /** Gets all bytes that the engine sends after the greeting. */
  readonly onData: (socket: Socket, chunk: LentBytes) => void
}

/**
 * Looks up an engine, connects to it and greets it. An engine that refuses is looked up and dialled again, which repeats no
 * command, because only the greeting was sent. Rejects with the error of `locate` or of the last dial.
 */
export async function connectEngine(options: LinkOptions, attempt: Attempt): Promise<EngineConnection> {
  const { signal } = attempt
  for (let dials = 1; ; dials++) {
    attempt.onPhase('dialling')
    const path = await options.locate(signal)
    signal.throwIfAborted()
    attempt.onPhase('greeting')
    const outcome = await greet(path, options, attempt)
    signal.throwIfAborted()
    if (!(outcome instanceof Error)) return outcome
    if (outcome instanceof ReplyFormatError || dials >= (options.maxDials ?? MAX_DIALS)) throw outcome
    attempt.onPhase('dialling')
    await pause(options.clock, DIAL_PAUSE_MS)
    signal.throwIfAborted()
  }
}

/** Connects and sends HELLO. The engine answers with one reply and sends nothing before the next command. */
function greet(
  path: string,
  { replies }: LinkOptions,
  { signal, identity, onData }: Attempt,
): Promise<EngineConnection | Error> {
  return new Promise((resolve) => {
    const reader = new GreetingReader()
    let isGreeted = false
    const socket = open(path, replies, (chunk) => (isGreeted ? onData(socket, chunk) : read(chunk)))
    const end = (): void => void socket.destroy()
    const fail = (error = new Error('the engine closed the connection')): void => {
      if (isGreeted) return
      signal.removeEventListener('abort', end)
      socket.destroy()
      resolve(error)
    }
    const read = (chunk: LentBytes): void => {
      const greeting = readOrError(reader, chunk)
      if (greeting === 'incomplete') return
      if (greeting instanceof Error) {
        fail(greeting)
        return
      }
      isGreeted = true
      resolve({ socket, greeting })
    }
    signal.addEventListener('abort', end)
    socket
      .on('error', fail)
      .on('end', fail)
      .on('close', () => fail())
    socket.write(greetingCommand(identity()))
  })
}

function readOrError(reader: GreetingReader, chunk: LentBytes): Greeting | 'incomplete' | Error {
  try {
    return reader.push(chunk) ?? new ReplyFormatError('it did not accept our greeting')
  } catch (error) {
    return error instanceof Error ? error : new ReplyFormatError('its greeting cannot be read')
  }
}

function open(path: string, replies: LinkOptions['replies'], take: (chunk: LentBytes) => void): Socket {
  if (replies === 'lent') return connectLent(path, (_, chunk) => take(chunk))
  return createConnection({ path }).on('data', take)
}
