import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Redis } from 'iovalkey'
import { atCleanup, freePort } from '../../../../test/support/index.js'
import { localEngine } from '../../../fleet/testing/test-fleet.js'
import { startBareEngine } from '../../testing/bare-engine.js'

/** Answers a command; `undefined` sends nothing. May write to the socket itself. */
export type Answer = (words: readonly string[], socket: Socket) => string | Buffer | undefined

/** A fake Redis server. It answers as the test says, and other commands like a server with one key, `k`, that is gone. */
export interface ForeignServer {
  readonly url: string
  /** Commands received so far, by name. */
  readonly asked: Map<string, number>
}

const USUAL: Readonly<Record<string, string>> = {
  PING: '+PONG\r\n',
  AUTH: '+OK\r\n',
  DBSIZE: ':1\r\n',
  SCAN: '*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n',
  PTTL: ':-1\r\n',
  DUMP: '$-1\r\n',
}

/** A bulk string as bytes. */
export function bulk(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')])
}

/** A reply to SCAN. */
export function page(cursor: string, keys: readonly string[]): string {
  const words = keys.map((key) => `$${key.length}\r\n${key}\r\n`).join('')
  return `*2\r\n$${cursor.length}\r\n${cursor}\r\n*${keys.length}\r\n${words}`
}

/** Starts a foreign server, which is stopped after the test file. */
export async function startForeignServer(answers: Readonly<Record<string, Answer>>): Promise<ForeignServer> {
  const asked = new Map<string, number>()
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      for (let end = wholeCommand(text); end > 0; end = wholeCommand(text)) {
        const words = wordsOf(text.slice(0, end))
        text = text.slice(end)
        const name = (words[0] ?? '').toUpperCase()
        asked.set(name, (asked.get(name) ?? 0) + 1)
        const answer = answers[name] ? answers[name](words, socket) : (USUAL[name] ?? '-ERR unknown command\r\n')
        if (answer !== undefined) socket.write(answer)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atCleanup(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

/** The end of the first command; 0 while it is incomplete. Assumes arguments without line breaks. */
function wholeCommand(text: string): number {
  const count = Number(/^\*(\d+)\r\n/.exec(text)?.[1] ?? 0)
  let at = 0
  for (let line = 0; line < 1 + 2 * count; line++) {
    const end = text.indexOf('\r\n', at)
    if (end < 0) return 0
    at = end + 2
  }
  return count === 0 ? 0 : at
}

function wordsOf(command: string): string[] {
  return command.split('\r\n').filter((_line, index) => index > 0 && index % 2 === 0)
}

/** A real engine on a loopback port that requires a password. */
export interface PasswordEngine {
  readonly url: string
  readonly client: Redis
  kill(): Promise<void>
}

/** Starts an engine with a password. */
export async function startPasswordEngine(password: string): Promise<PasswordEngine> {
  const port = await freePort()
  const { binary } = await localEngine()
  const engine = await startBareEngine(binary, ['--port', `${port}`, '--bind', '127.0.0.1', '--requirepass', password])
  const client = new Redis({ path: engine.socketPath, password })
  return {
    url: `redis://default:${encodeURIComponent(password)}@127.0.0.1:${port}/0`,
    client,
    kill: async () => {
      client.disconnect()
      await engine.kill()
    },
  }
}
