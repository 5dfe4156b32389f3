import { once } from 'node:events'
import { type ClientHttp2Stream, connect, constants } from 'node:http2'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { type Clock, systemClock } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import { describeOnStore } from '../../store/testing/index.js'
import { createLogger } from '../../telemetry/index.js'
import type { PeerRequest } from '../peer-link.js'
import { addressOf, startLink } from '../testing/peer-links.js'
import { openPeerCredentials } from './credentials.js'
import {
  FORMAT,
  HEADERS,
  MAX_BODY_BYTES,
  MAX_HELD_BYTES,
  MAX_MESSAGES,
  PATH,
  PEER_NAME,
  READ_WITHIN_MS,
} from './protocol.js'

const logger = createLogger({ level: 'silent' })
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** Messages that fit into what one connection may hold. */
const MAX_LARGE = MAX_HELD_BYTES / MAX_BODY_BYTES

/** A node with valid credentials whose program sends and reads as the test says. */
async function faultyNode(store: Store, port: number) {
  const { own, authority, stop } = await openPeerCredentials({ store, clock: systemClock, logger })
  const session = connect(`https://127.0.0.1:${port}`, {
    key: own.current.key,
    cert: own.current.certificate,
    ca: authority,
    servername: PEER_NAME,
    settings: { initialWindowSize: 0 },
  })
  session.on('error', () => undefined)
  closing.push(stop, () => session.destroy())
  await once(session, 'remoteSettings')
  /** How each message was answered; a reset counts as `ended`. */
  const outcomes: (number | 'ended')[] = []
  const headers = { [HEADERS.format]: FORMAT, [HEADERS.to]: '2', [HEADERS.from]: '1' }
  const begin = (): ClientHttp2Stream => {
    const stream = session.request({ ':method': 'POST', ':path': `${PATH}flood`, ...headers })
    let status: number | undefined
    stream.on('error', () => undefined)
    stream.once('response', (answer) => {
      status = Number(answer[':status'])
      outcomes.push(status)
    })
    return stream.once('close', () => status ?? outcomes.push('ended'))
  }
  const count = (outcome: number | 'ended') => outcomes.filter((one) => one === outcome).length
  return { begin, count }
}

describeOnStore('sqlite', 'a node with valid credentials', (openStore) => {
  let store: Store
  beforeAll(async () => {
    store = await openStore()
  })

  it('that sends much or reads nothing fills little memory, and the others are served', async () => {
    const large = Buffer.alloc(MAX_BODY_BYTES - 100, 'x')
    // Answers have less time than usual to be read, bodies more to arrive.
    const timed: Clock = {
      ...systemClock,
      after: (ms, work) => systemClock.after(ms === READ_WITHIN_MS ? 200 : 6 * ms, work),
    }
    const answer = async ({ topic, payload }: PeerRequest) => (topic === 'flood' ? large.toString() : payload)
    const [one, other] = [await startLink(store, 1), await startLink(store, 2, { onRequest: answer, clock: timed })]
    const works = async () => expect(await one.request(addressOf(other, 2), 'hello', 'you', 5_000)).toBe('you')

    // Answers that it does not read are kept for a while only.
    const reader = await faultyNode(store, other.port)
    for (let sent = 0; sent < MAX_LARGE + 3; sent++) reader.begin().end('1')
    await waitFor(() => reader.count(200) === MAX_LARGE && reader.count(503) === 3, {
      what: 'the surplus to be refused',
    })
    await works()
    const again = () =>
      reader.begin().end('1') && waitFor(() => reader.count(200) > MAX_LARGE, { what: '', deadlineMs: 1_000 })
    await waitFor(again, { what: 'the unread answers to be dropped' })

    // Of bodies that do not end, only some are kept.
    const sender = await faultyNode(store, other.port)
    for (let sent = 0; sent < MAX_LARGE + 3; sent++) sender.begin().write(large)
    await waitFor(() => sender.count('ended') === 3, { what: 'the surplus to be ended' })
    await works()
  })

  it('has a limited number of messages in work, also of those that it has given up', async () => {
    let [begun, finish] = [0, (): void => undefined]
    const finished = new Promise<void>((resolve) => (finish = resolve))
    const answer = async ({ topic, payload }: PeerRequest) => {
      if (topic !== 'flood') return payload
      begun++
      return finished
    }
    const [one, other] = [await startLink(store, 1), await startLink(store, 2, { onRequest: answer })]
    const node = await faultyNode(store, other.port)
    const given = Array.from({ length: MAX_MESSAGES }, () => node.begin().end('1'))
    await waitFor(() => begun === MAX_MESSAGES, { what: 'the messages' })
    for (const stream of given) stream.close(constants.NGHTTP2_CANCEL)
    await waitFor(() => node.count('ended') === MAX_MESSAGES, { what: 'the messages to be given up' })
    node.begin().end('1')
    await waitFor(() => node.count(503) === 1 || begun > MAX_MESSAGES, { what: 'one more to be refused' })
    expect(begun).toBe(MAX_MESSAGES)
    expect(await one.request(addressOf(other, 2), 'hello', 'you', 5_000)).toBe('you')
    finish()
    const again = () => node.begin().end('1') && waitFor(() => begun > MAX_MESSAGES, { what: '', deadlineMs: 1_000 })
    await waitFor(again, { what: 'messages to be accepted again' })
  })

  it('that does not answer fills little memory', async () => {
    const one = await startLink(store, 1)
    const silent = await startLink(store, 2, { onRequest: () => new Promise(() => undefined) })
    const large = 'x'.repeat(MAX_BODY_BYTES - 2)
    const asked = Array.from({ length: MAX_LARGE + 3 }, () => one.request(addressOf(silent, 2), 'hello', large, 100))
    const reasons = (await Promise.allSettled(asked)).map((one) => one.status === 'rejected' && String(one.reason))
    expect(reasons.filter((reason) => String(reason).includes('too many messages'))).toHaveLength(3)
  })
})
