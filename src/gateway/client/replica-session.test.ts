import { duplexPair } from 'node:stream'
import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { encodeCommand } from '../resp/encode.js'
import { ReplicaSession, type ReplicaSessionDeps } from './replica-session.js'

/** A node whose replica answers nothing. */
const NO_READS: ReplicaSessionDeps['reads'] = {
  lane: () => undefined,
  mayRead: () => false,
  take: () => false,
  note: () => {},
  passed: () => {},
  sawPrimary: () => {},
}

it('passes nothing on that arrives after bytes that are no command', async () => {
  const [client, near] = duplexPair()
  const [home, far] = duplexPair()
  const received = { client: '', home: '' }
  client.on('data', (chunk) => (received.client += String(chunk)))
  home.on('data', (chunk) => (received.home += String(chunk)))
  const memory = { grow: () => {}, remove: () => {} }
  new ReplicaSession(near, far, { databaseId: 'db', reads: NO_READS, memory, nowMs: () => 0 })
  client.write('PING\r\n*x\r\n')
  const ping = encodeCommand(['PING']).toString()
  await waitFor(() => received.home === ping, { what: 'the command at the home' })
  client.write('FLUSHALL\r\n')
  await waitFor(() => near.readableLength === 0 && client.writableLength === 0, { what: 'the bytes to be taken' })
  home.write('+PONG\r\n')
  await waitFor(() => received.client === '+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n', {
    what: 'the reply and the error',
    deadlineMs: 5_000,
  })
  expect(received.home).toBe(ping)
})
