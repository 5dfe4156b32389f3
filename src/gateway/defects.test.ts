import { createServer, type Socket } from 'node:net'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { atCleanup, freePort, waitFor } from '../../test/support/index.js'
import { ClientMemoryBudget, type MemoryConsumer, systemClock } from '../base/index.js'
import { recordedLog } from '../telemetry/testing/recorded-log.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from './testing/rig.js'
import { awaitOpening } from './tls/opening.js'

/** Throws an error while the gateway handles the bytes of a client. If nothing catches it, the vitest run fails. */
class FaultyMemory extends ClientMemoryBudget {
  isFaulty = false

  override grow(holder: MemoryConsumer, bytes: number): void {
    if (this.isFaulty) throw new RangeError('a defect')
    super.grow(holder, bytes)
  }
}

const memory = new FaultyMemory()
let rig: Rig
beforeAll(async () => {
  rig = await startRig({}, undefined, undefined, [], { memory })
})
afterEach(() => {
  memory.isFaulty = false
})

it('a defect in handling the input of a client closes only its connection', async () => {
  const [first, second] = await Promise.all([new RawClient(rig.port).login(), new RawClient(rig.port).login()])
  memory.isFaulty = true
  first.send(`*2\r\n$3\r\nGET\r\n$400000\r\n${'x'.repeat(300_000)}`)
  await first.expectClosed()
  second.send('PING\r\n')
  await second.expect('+PONG\r\n')
  expect(rig.complaints).toContain('a client was disconnected: its command caused an internal error')
})

it('a defect in handling the body of a REST request is answered to that request only', async () => {
  const client = new RawClient(Number(new URL(rig.restUrl).port))
  const head = `POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${CREDENTIALS.token}\r\nContent-Length: 400000\r\n\r\n`
  memory.isFaulty = true
  client.send(`${head}["SET","k","${'x'.repeat(300_000)}`)
  await waitFor(() => client.received.startsWith('HTTP/1.1 500'), { what: 'the answer' })
  expect(rig.complaints).toContain('a REST request failed')
})

it('a defect in handling the opening of a connection closes it', async () => {
  const { logger, lines } = recordedLog()
  const options = { clock: systemClock, logger }
  const defect = new TypeError('a defect')
  const server = createServer((connection: Socket) =>
    awaitOpening(connection, options, () => {
      throw defect
    }),
  )
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  atCleanup(() => void server.close())
  await new RawClient(port).send('PING\r\n').expectClosed()
  expect(lines.map(({ fields }) => fields.error)).toEqual([defect])
})
