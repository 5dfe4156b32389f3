import { readFileSync, writeFileSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { beforeAll, expect, it } from 'vitest'
import { atCleanup, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'

const MIB = 2 ** 20
const VALUE_BYTES = 64 * MIB

let homeport: RunningHomeport
let socket: Socket
let received = 0

/** The peak memory of the server process. */
function peakBytes(): number {
  const status = readFileSync(`/proc/${homeport.pid}/status`, 'utf8')
  return 1024 * Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1])
}

/** Resets the peak memory. */
function forgetPeak(): void {
  writeFileSync(`/proc/${homeport.pid}/clear_refs`, '5')
}

async function receive(bytes: number, what: string): Promise<void> {
  await waitFor(() => received >= bytes, { what })
  expect(received).toBe(bytes)
  received = 0
}

beforeAll(async () => {
  homeport = await startHomeport()
  const body = { database_name: 'large', platform: 'aws', primary_region: 'us-east-1', plan: 'fixed_500gb' }
  const { port, password } = (await homeport.api('POST', '/v2/redis/database', body)).body as {
    port: number
    password: string
  }
  socket = createConnection({ port, host: '127.0.0.1' })
  atCleanup(() => void socket.destroy())
  socket.on('data', (chunk: Buffer) => (received += chunk.length))
  socket.write(`AUTH ${password}\r\nSET small 1\r\n`)
  await receive('+OK\r\n+OK\r\n'.length, 'the login')
})

it('a value of 64 MiB is written while the server holds only a fraction of it', async () => {
  const before = peakBytes()
  socket.write(`*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$${VALUE_BYTES}\r\n`)
  socket.write(Buffer.alloc(VALUE_BYTES, 'v'))
  socket.write('\r\n')
  await receive('+OK\r\n'.length, 'the value to be taken')
  expect(peakBytes() - before).toBeLessThan(VALUE_BYTES)
})

it('a value of 64 MiB is read repeatedly while the server holds only bytes in flight', async () => {
  forgetPeak()
  const before = peakBytes()
  for (let count = 0; count < 3; count++) {
    socket.write('GET big\r\n')
    await receive(`$${VALUE_BYTES}\r\n\r\n`.length + VALUE_BYTES, 'the value to come out')
  }
  // A shared lane does not wait for one slow reader, and freed replies stay in memory until the next collection.
  expect(peakBytes() - before).toBeLessThan(2 * VALUE_BYTES)
})
