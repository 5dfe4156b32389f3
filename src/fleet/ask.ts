/**
 * Asks an engine a few questions and hangs up. Statistics ask every engine in use every few seconds, and a client
 * library made for long connections takes several times as much for that as this.
 */
import { createConnection } from 'node:net'
import type { ControlAddress } from './control.js'
import { CONTROL_USER } from './spec.js'

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
