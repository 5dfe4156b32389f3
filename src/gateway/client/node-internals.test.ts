import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import {
  DirectWriter,
  findStreamBinding,
  interceptConnections,
  isTestedVersion,
  switchNodeInternals,
  usesNodeInternals,
} from '../../base/node-internals.js'
import { CREDENTIALS, RawClient, startRig } from '../testing/rig.js'
import { type Inlet, takeInlets } from './inlet.js'

const refuse = (): never => {
  throw new Error('Access to this API has been restricted')
}

function switchOff(): void {
  switchNodeInternals('off')
  onTestFinished(() => switchNodeInternals('on'))
}

async function listen(): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  atCleanup(() => void server.close())
  await once(server, 'listening')
  return server
}

interface Connection {
  readonly client: Socket
  readonly inlet: Inlet
  readonly received: string[]
}

async function connect(server: Server): Promise<Connection> {
  const accepted = new Promise<Inlet>((resolve) => takeInlets(server, resolve))
  const client = createConnection((server.address() as AddressInfo).port, '127.0.0.1')
  const inlet = await accepted
  for (const end of [client, inlet.socket]) {
    end.on('error', () => {})
    atCleanup(() => void end.destroy())
  }
  const received: string[] = []
  inlet.receive = (memory, length) => received.push(memory.toString('latin1', 0, length))
  return { client, inlet, received }
}

describe('the internals of Node', () => {
  it('are used in the installed Node', () => {
    expect(usesNodeInternals()).toBe(true)
  })

  it('are used in tested major versions only', () => {
    expect(['20.20.2', '22.0.0', '24.11.0'].map(isTestedVersion)).toEqual([true, true, true])
    expect(['19.9.0', '21.1.0', '26.0.0', ''].map(isTestedVersion)).toEqual([false, false, false, false])
  })

  it.each([
    ['has no such members', {}],
    ['refuses to show them', { binding: refuse }],
    ['shows something else', { binding: () => ({ WriteWrap: class {}, streamBaseState: new Int32Array(5) }) }],
    ['shows nothing', { binding: () => undefined }],
  ])('are not used where a process %s', (_what, host) => {
    expect(findStreamBinding(host)).toBeUndefined()
  })

  it('do not touch connections while they are switched off', async () => {
    switchOff()
    const server = await listen()
    interceptConnections(server, () => expect.unreachable('a connection was intercepted'))
    const { inlet } = await connect(server)
    expect(inlet.handle).toBeUndefined()
    expect(DirectWriter.of(inlet.handle, { settled: () => {} })).toBeUndefined()
  })
})

/** Whether the system keeps a local connection alive: its timer is the one of keep-alive (proc_net_tcp of Linux). */
function isKeptAlive({ localPort = 0, remotePort = 0 }: Inlet['socket']): boolean {
  const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0')
  const row = new RegExp(`:${hex(localPort)} [0-9A-F]{8}:${hex(remotePort)} .. \\S+ (..):`)
  return row.exec(readFileSync('/proc/net/tcp', 'latin1'))?.[1] === '02'
}

it.runIf(process.platform === 'linux')('accepted connections have the options of the listening socket', async () => {
  const { inlet } = await connect(await listen())
  await waitFor(() => isKeptAlive(inlet.socket), { what: 'the timer of keep-alive' })
})

describe.each(['on', 'off'] as const)('with internals of Node %s', (to) => {
  it('bytes arrive in order, then the end of the connection', async () => {
    if (to === 'off') switchOff()
    const { client, inlet, received } = await connect(await listen())
    const ended = once(inlet.socket, 'end')
    client.write('one')
    await waitFor(() => received.length === 1, { what: 'the first bytes' })
    client.end('two')
    await ended
    expect(received).toEqual(['one', 'two'])
  })

  it('a reset connection reports an error', async () => {
    if (to === 'off') switchOff()
    const { client, inlet } = await connect(await listen())
    const lost = once(inlet.socket, 'error')
    client.resetAndDestroy()
    await expect(lost).resolves.toMatchObject([{ code: 'ECONNRESET' }])
  })

  it('the gateway serves pipelines, transactions, subscriptions and large values', async () => {
    if (to === 'off') switchOff()
    const rig = await startRig()
    const client = await new RawClient(rig.port).login()
    await client.send('SET a 1\r\nINCR a\r\nGET a\r\n').expect('+OK\r\n:2\r\n$1\r\n2\r\n')
    await client.send('MULTI\r\nINCR a\r\nEXEC\r\n').expect('+OK\r\n+QUEUED\r\n*1\r\n:3\r\n')
    const value = 'v'.repeat(2 ** 21)
    await client.send(`*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$${value.length}\r\n${value}\r\n`).expect('+OK\r\n')
    await client.send('GET b\r\n').expect(`$${value.length}\r\n${value}\r\n`)
    const subscriber = await new RawClient(rig.port).login()
    await subscriber.send('SUBSCRIBE c\r\n').expect('*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n')
    await client.send('PUBLISH c hi\r\n').expect(':1\r\n')
    await subscriber.expect('*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n')
    const stranger = new RawClient(rig.port)
    await stranger.send(`AUTH ${CREDENTIALS.password}\r\nQUIT\r\n`).expect('+OK\r\n+OK\r\n')
  })
})
