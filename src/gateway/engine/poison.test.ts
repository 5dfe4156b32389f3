import { createConnection, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { atCleanup, tempDir, waitFor } from '../../../test/support/index.js'
import { systemClock } from '../../base/index.js'
import type { DataUser } from '../deps.js'
import { askOver } from '../limits/engine-questions.js'
import { encodeCommand } from '../resp/encode.js'
import { startEngine, type TestEngine } from '../testing/engine.js'
import { TestDirectory } from '../testing/rig.js'
import { Lanes } from './lanes.js'
import { NO_REPLY_LIMITS } from './reply-gate.js'
import type { ReplySink } from './reply-sink.js'

/** A proxy in front of a real engine that can inject bytes into each connection. */
class Wiretap {
  readonly socketPath = join(tempDir('hp-tap-'), 'tap.sock')
  readonly clients: Socket[] = []
  readonly #server = createServer((client) => {
    this.clients.push(client)
    const engine = createConnection({ path: this.engine.socketPath })
    client.pipe(engine).pipe(client)
    for (const end of [client, engine]) end.on('error', () => {})
    client.on('close', () => engine.destroy())
  })

  readonly engine: TestEngine

  constructor(engine: TestEngine) {
    this.engine = engine
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(this.socketPath, resolve))
    atCleanup(() => {
      for (const client of this.clients) client.destroy()
      return new Promise<void>((resolve) => this.#server.close(() => resolve()))
    })
    return this
  }
}

/** The shared lane and the ready dedicated ones. */
const CONNECTIONS_OF_A_USER = 3

const DATABASE = { databaseId: 'db', port: 1, tls: false }
const OWNER = { databaseId: 'db', user: 'default', protocol: 2 } as const

let tap: Wiretap
let directory: TestDirectory
let lanes: Lanes

beforeEach(async () => {
  tap = await new Wiretap(await startEngine()).listen()
  const silent = (): void => {}
  directory = new TestDirectory()
  directory.put(DATABASE)
  lanes = new Lanes({
    directory,
    fleet: { endpoints: async () => [{ role: 'primary', region: 'us-east-1', socketPath: tap.socketPath }] },
    settings: {},
    replyLimits: () => NO_REPLY_LIMITS,
    clock: systemClock,
    logger: { debug: silent, info: silent, warn: silent, error: silent },
  })
  atCleanup(() => lanes.close())
})

const ask = async (user: DataUser, ...command: string[]): Promise<string> => {
  const link = lanes.shared({ databaseId: 'db', user, protocol: 2 })
  return (await askOver(link)(encodeCommand(command))).toString()
}

it.each([
  ['a byte that begins no reply', '\u0001nonsense\r\n'],
  ['a length that is no number', '$12x\r\n'],
  ['an unexpected reply', '+OK\r\n'],
])('%s closes only that connection, and the next command makes a new one', async (_what, poison) => {
  expect(await ask('default', 'SET', 'a', '1')).toBe('+OK\r\n')
  expect(await ask('default_ro', 'GET', 'a')).toBe('$1\r\n1\r\n')
  const [ofOwner] = tap.clients
  await waitFor(() => tap.clients.length === 2 * CONNECTIONS_OF_A_USER, { what: 'the ready connections' })
  ofOwner?.write(poison)
  await waitFor(() => ofOwner?.destroyed === true, { what: 'the poisoned connection to be closed' })
  expect(tap.clients.filter(({ destroyed }) => destroyed)).toEqual([ofOwner])
  expect(await ask('default', 'GET', 'a')).toBe('$1\r\n1\r\n')
  expect(await ask('default_ro', 'GET', 'a')).toBe('$1\r\n1\r\n')
  expect(tap.clients).toHaveLength(2 * CONNECTIONS_OF_A_USER + 1)
})

it('a sink that throws closes only its connection, and the next command makes a new one', async () => {
  const link = lanes.shared({ databaseId: 'db', user: 'default', protocol: 2 })
  const failed: string[] = []
  const broken: ReplySink = {
    deliver: () => {
      throw new RangeError('Maximum call stack size exceeded')
    },
    fail: () => failed.push('broken'),
  }
  const other: ReplySink = { deliver: () => undefined, fail: () => failed.push('other') }
  const command = encodeCommand(['GET', 'a'])
  for (const sink of [broken, other]) link.send(sink, command, 0, command.length, 1)
  await waitFor(() => failed.includes('other'), { what: 'the loss of the connection' })
  expect(await ask('default', 'SET', 'a', '2')).toBe('+OK\r\n')
})

it('a removed database gets no connection, and lanes that are still requested for it are closed', async () => {
  await ask('default', 'SET', 'a', '1')
  await waitFor(() => tap.clients.length === CONNECTIONS_OF_A_USER, { what: 'the ready connections' })
  directory.remove('db')
  lanes.forget('db')
  await expect(ask('default', 'GET', 'a')).rejects.toMatchObject({ code: 'home_not_ready' })
  expect([lanes.shared(OWNER).isClosed, lanes.lend(OWNER).isClosed]).toEqual([true, true])
  directory.put(DATABASE)
  expect(await ask('default', 'GET', 'a')).toBe('$1\r\n1\r\n')
  await waitFor(() => tap.clients.length === 2 * CONNECTIONS_OF_A_USER, { what: 'the new connections' })
})

it('pending questions on a poisoned connection fail, and none of the replies reaches another client', async () => {
  await ask('default', 'SET', 'a', '1')
  tap.engine.signal('SIGSTOP')
  const pending = [ask('default', 'GET', 'a'), ask('default', 'GET', 'b')]
  const settled = Promise.allSettled(pending)
  tap.clients[0]?.write('?')
  expect(await settled).toMatchObject([
    { status: 'rejected', reason: { code: 'engine_unavailable' } },
    { status: 'rejected', reason: { code: 'engine_unavailable' } },
  ])
  tap.engine.signal('SIGCONT')
  expect(await ask('default', 'GET', 'a')).toBe('$1\r\n1\r\n')
})

it('a command that was not yet sent when the connection was lost is sent on the next one', async () => {
  await ask('default', 'SET', 'n', '1')
  const answer = await new Promise<string>((resolve, reject) => {
    // The lane sends a command of this phase of the event loop in the next turn, when it has noticed the loss.
    setImmediate(() => {
      tap.clients[0]?.destroy()
      ask('default', 'INCR', 'n').then(resolve, reject)
    })
  })
  expect(answer).toBe(':2\r\n')
})
