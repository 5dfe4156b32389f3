import { createConnection, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { usedBytes } from '../../base/testing/memory.js'
import { DatabaseMeter } from '../../telemetry/index.js'
import { RawClient, startRig } from '../testing/rig.js'

const ATTEMPTS = 3_200
const AT_ONCE = 400
const MAX_CLIENTS = 200
const WORDS = ['PING\r\n', 'GET a\r\n', '\0\xff\r\n', '*99999999999\r\n', '$5\r\n', 'AUTH\r\n', '\x16\x03\x01']
const MIB = 2 ** 20

/** Connects, and resolves when the server has answered or closed the connection. */
async function talk(socket: Socket, word: string): Promise<void> {
  socket.write(word)
  await new Promise<void>((resolve) => {
    socket.once('data', () => resolve())
    socket.once('close', () => resolve())
  })
  socket.resetAndDestroy()
}

/** Open sockets of this process: those of the gateway and of its clients. */
const openSockets = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length

it('thousands of connections in bursts: other clients are served, the limit holds, nothing leaks', async () => {
  const meter = new DatabaseMeter()
  const usage = { usageOf: () => ({ meter, admission: { kind: 'open' as const } }) }
  const rig = await startRig({ maxClients: MAX_CLIENTS }, undefined, usage)
  const client = await new RawClient(rig.port).login()
  await client.send('PING\r\n').expect('+PONG\r\n')
  const before = { sockets: openSockets(), bytes: usedBytes() }
  let refused = 0
  const connect = (): Socket => {
    const socket = createConnection({ port: rig.port, host: '127.0.0.1' }).on('error', () => {})
    return socket.on('data', (text: Buffer) => (refused += text.includes('max concurrent connections') ? 1 : 0))
  }
  for (let begun = 0; begun < ATTEMPTS; begun += AT_ONCE) {
    const sockets = Array.from({ length: AT_ONCE }, connect)
    const holdsOn = begun % (2 * AT_ONCE) === 0
    const talks = sockets.map((socket, index) => holdsOn || talk(socket, WORDS[index % WORDS.length] ?? ''))
    await client.send('PING\r\n').expect('+PONG\r\n')
    const sentAway = (): number => sockets.filter(({ closed }) => closed).length
    if (holdsOn) await waitFor(() => sentAway() === AT_ONCE + 1 - MAX_CLIENTS, { what: 'the limit to be reached' })
    expect(meter.connections).toBeLessThanOrEqual(MAX_CLIENTS)
    await Promise.all(talks)
    for (const socket of sockets) socket.destroy()
    await waitFor(() => meter.connections === 1, { what: 'the other connections to be uncounted' })
  }
  await waitFor(() => openSockets() <= before.sockets, { what: 'every socket to be closed' })
  // Those of one address are evicted for each other.
  expect(meter.connectionsTotal).toBeLessThanOrEqual(ATTEMPTS + 1)
  expect(meter.connectionsTotal).toBeGreaterThan(ATTEMPTS / 4)
  expect(refused).toBeGreaterThan(ATTEMPTS / 4)
  expect(usedBytes() - before.bytes).toBeLessThan(3 * MIB)
  await client.send('PING\r\n').expect('+PONG\r\n')
  expect(rig.complaints).toEqual([])
})
