import { duplexPair } from 'node:stream'
import { expect, it, vi } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { encodeCommand } from '../resp/encode.js'
import { ReplicaSession, type ReplicaSessionDeps } from './replica-session.js'

/** A node whose replica answers nothing. */
const NO_READS: ReplicaSessionDeps['reads'] = {
  lane: () => undefined,
  mayRead: () => false,
  take: () => false,
  note: () => {},
  countForwarded: () => {},
  sawPrimary: () => {},
}

const DEPS: ReplicaSessionDeps = {
  databaseId: 'db',
  reads: NO_READS,
  memory: { grow: () => {}, remove: () => {} },
  fault: () => {},
  nowMs: () => 0,
}

it('a session passes nothing on that arrives after bytes that are no command', async () => {
  const [client, near] = duplexPair()
  const [home, far] = duplexPair()
  const received = { client: '', home: '' }
  client.on('data', (chunk) => (received.client += String(chunk)))
  home.on('data', (chunk) => (received.home += String(chunk)))
  new ReplicaSession(near, far, DEPS)
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

it.each([
  ['the client', 'PING\r\n', ''],
  ['the home', '', '+PONG\r\n'],
])('a defect in handling what %s sends ends this connection and no other', async (_, sent, answered) => {
  const fail = (): never => {
    throw new Error('planted')
  }
  const [client, near] = duplexPair()
  const [home, far] = duplexPair()
  const reads = { ...NO_READS, mayRead: fail, countForwarded: fail }
  const fault = vi.fn(() => near.destroy())
  new ReplicaSession(near, far, { ...DEPS, reads, fault })
  for (const end of [client, home]) end.on('error', () => undefined).resume()
  if (sent !== '') client.write(sent)
  else home.write(answered)
  await waitFor(() => near.destroyed && far.destroyed, { what: 'the end of the connection', deadlineMs: 5_000 })
  expect(fault).toHaveBeenCalledWith(new Error('planted'))
})

it.each([
  ['a stream', 'CLIENT REPLY ON\r\nAUTH bob secret\r\n'],
  ['a transaction', 'MULTI\r\nHELLO 3 AUTH bob secret\r\n'],
])(
  'what the home sends counts as seen by every user after a login behind %s, which may have changed the user',
  async (_, sent) => {
    const [client, near] = duplexPair()
    const [home, far] = duplexPair()
    const sawPrimary = vi.fn()
    new ReplicaSession(near, far, { ...DEPS, reads: { ...NO_READS, sawPrimary } })
    let received = ''
    home.on('data', (chunk) => (received += String(chunk)))
    client.resume().write(sent)
    await waitFor(() => received.endsWith('secret\r\n'), { what: 'the commands at the home', deadlineMs: 5_000 })
    home.write('+OK\r\n')
    await waitFor(() => sawPrimary.mock.calls.length > 0, { what: 'the note', deadlineMs: 5_000 })
    expect(sawPrimary).toHaveBeenCalledWith({ kind: 'port', databaseId: 'db' })
  },
)
