import { once } from 'node:events'
import { createServer, request } from 'node:http'
import http2, { connect as connectHttp2 } from 'node:http2'
import { syncBuiltinESMExports } from 'node:module'
import { connect as connectTcp, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { startSlowWire } from '../../../test/support/slow-wire.js'
import { ClientMemoryBudget, type Clock, type MemoryConsumer, systemClock } from '../../base/index.js'
import { makeAuthority, makePeerCertificate } from '../../certificates/index.js'
import type { Store } from '../../store/index.js'
import { cuttableProxy } from '../../store/testing/cuttable-proxy.js'
import { describeOnStore } from '../../store/testing/index.js'
import type { OnTunnel } from '../peer-link.js'
import { addressOf, startLink } from '../testing/peer-links.js'
import { MAX_BODY_BYTES, PEER_NAME } from './protocol.js'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** Makes every connection end just before its owner is notified that it is open. */
function endConnectionsEarly(): void {
  const { connect } = http2
  const put = (how: unknown): void => {
    Object.assign(http2, { connect: how })
    syncBuiltinESMExports()
  }
  closing.push(() => put(connect))
  put((...args: Parameters<typeof connect>) => {
    const session = connect(...args)
    return session.once('connect', () => session.destroy())
  })
}

const PROTOCOL_VERSION = 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'

/** How a connection to a listener ends for a client with this certificate. */
async function refusalOf(
  port: number,
  papers: { readonly key?: string; readonly cert?: string; readonly maxVersion?: 'TLSv1.2' } = {},
): Promise<string> {
  const socket = connectTls({
    host: '127.0.0.1',
    port,
    ALPNProtocols: ['h2'],
    rejectUnauthorized: false,
    ...papers,
  })
  closing.push(() => socket.destroy())
  return await new Promise((resolve) => {
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    socket.once('close', () => resolve('closed'))
    socket.once('data', () => resolve('answered'))
    socket.once('secureConnect', () => {
      const session = connectHttp2('https://127.0.0.1', { createConnection: () => socket })
      session.on('error', () => undefined)
      const stream = session.request({ ':method': 'POST', ':path': '/peer/anything' })
      stream.on('error', () => undefined)
      stream.once('response', () => resolve('answered'))
      stream.end('{}')
    })
  })
}

describeOnStore('sqlite', 'the link between nodes', (openStore) => {
  let store: Store
  beforeAll(async () => {
    store = await openStore()
  })

  it('carries messages and answers both ways, in parallel', async () => {
    const [one, other] = [
      await startLink(store, 1),
      await startLink(store, 2, { onRequest: async ({ topic, payload, from }) => ({ topic, payload, from }) }),
    ]
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        one.request(addressOf(other, 2), 'greet', { index, text: 'ü\n' }, 5_000),
      ),
    )
    expect(answers).toHaveLength(100)
    expect(answers[7]).toEqual({ topic: 'greet', payload: { index: 7, text: 'ü\n' }, from: 1 })
    expect(await other.request(addressOf(one, 1), 'back', undefined, 5_000)).toBe(null)
  })

  it('fails a message whose connection is given up as soon as it is there', async () => {
    const [one, other] = [await startLink(store, 1), await startLink(store, 2)]
    endConnectionsEarly()
    await expect(one.request(addressOf(other, 2), 'greet', {}, 5_000)).rejects.toThrow('canceled')
  })

  it('carries HTTP/1 over a stream of bytes, with the address of the client', async () => {
    const server = createServer((request, response) => {
      response.writeHead(200, { ip: request.socket.remoteAddress })
      request.pipe(response)
    })
    const one = await startLink(store, 1)
    const other = await startLink(store, 2, {
      onTunnel: ({ service, ip }) => {
        const accept = (stream: Duplex): void => {
          Object.defineProperty(stream, 'remoteAddress', { value: ip })
          server.emit('connection', stream)
        }
        return service === 'echo' ? accept : undefined
      },
    })
    const stream = await one.tunnel(addressOf(other, 2), { service: 'echo', ip: '192.0.2.7' })
    const sent = request({ createConnection: () => stream, method: 'POST', headers: { host: 'ü' } })
    const sentBytes = Buffer.alloc(3_000_000, 'a')
    sent.end(sentBytes)
    const [answer] = await once(sent, 'response')
    expect(answer.headers.ip).toBe('192.0.2.7')
    expect((await buffer(answer)).equals(sentBytes)).toBe(true)
    await expect(one.tunnel(addressOf(other, 3), { service: 'echo', ip: '' })).rejects.toThrow('the node answered 421')
    await expect(other.tunnel(addressOf(one, 1), { service: 'echo', ip: '' })).rejects.toThrow('the node answered 503')
    await expect(one.tunnel(addressOf(other, 2), { service: 'none', ip: '' })).rejects.toThrow('the node answered 503')
  })

  it('ends a stream at both nodes when either gives it up, although nobody reads what is on its way', async () => {
    const accepted: Duplex[] = []
    const one = await startLink(store, 1)
    const accept = (stream: Duplex) => void accepted.push(stream.on('error', () => undefined))
    const other = await startLink(store, 2, { onTunnel: () => accept })
    for (const end of ['one', 'other'] as const) {
      const stream = await one.tunnel(addressOf(other, 2), { service: 'echo', ip: '192.0.2.7' })
      stream.on('error', () => undefined)
      const far = accepted.pop()
      if (!far) throw new Error('no stream')
      for (const each of [stream, far]) while (each.writableLength < MAX_BODY_BYTES) each.write(Buffer.alloc(65_536))
      await waitFor(() => stream.readableLength > 0 && far.readableLength > 0, { what: 'bytes at both ends' })
      const isClosed = new Promise((resolve) => (end === 'one' ? far : stream).once('close', resolve))
      if (end === 'one') stream.destroy()
      else far.destroy()
      await isClosed
    }
  })

  it('delivers what was sent before an orderly end, however late it is read', async () => {
    const one = await startLink(store, 1)
    const other = await startLink(store, 2, {
      onTunnel: () => (stream) => {
        stream.end(Buffer.alloc(500_000, 'a'), () => stream.destroy())
      },
    })
    const stream = await one.tunnel(addressOf(other, 2), { service: 'echo', ip: '192.0.2.7' })
    await waitFor(() => stream.readableLength > 0, { what: 'bytes' })
    await one.request(addressOf(other, 2), 'later', {}, 5_000)
    expect((await buffer(stream)).length).toBe(500_000)
  })

  it('ends streams of the database whose clients leave the most unread', async () => {
    const limitBytes = 4 * 2 ** 20
    const one = await startLink(store, 1, { memory: new ClientMemoryBudget(limitBytes) })
    const other = await startLink(store, 2, {
      onTunnel: () => (stream) => {
        const fill = (): void => void (stream.destroyed || (stream.write(Buffer.alloc(65_536)) && setImmediate(fill)))
        stream.on('drain', fill).on('error', () => undefined)
        fill()
      },
    })
    const open = async (detail: string) =>
      (await one.tunnel(addressOf(other, 2), { service: 'port', ip: '192.0.2.7', detail })).on('error', () => undefined)
    const [modest, between] = [
      await open('modest 1'),
      await one.tunnel(addressOf(other, 2), { service: 'move', ip: '' }),
    ]
    between.on('error', () => undefined)
    const greedy: Duplex[] = []
    const heldBytes = () => greedy.reduce((sum, stream) => sum + (stream as unknown as MemoryConsumer).heldBytes, 0)
    const isAnyEnded = () => greedy.some(({ destroyed }) => destroyed)
    for (let port = 1; port <= 12; port++) {
      greedy.push(await open(`greedy ${port}`))
      await waitFor(() => isAnyEnded() || heldBytes() > (port * limitBytes) / 12, { what: 'unread bytes' })
    }
    await waitFor(isAnyEnded, { what: 'a stream to be ended' })
    expect([modest.destroyed, between.destroyed]).toEqual([false, false])
    expect(heldBytes()).toBeLessThan(limitBytes * 1.5)
  })

  it('does not deliver a message for another incarnation', async () => {
    const heard: unknown[] = []
    const one = await startLink(store, 1)
    const other = await startLink(store, 3, { onRequest: async (request) => void heard.push(request) })
    await expect(one.request(addressOf(other, 2), 'late', {}, 5_000)).rejects.toThrow('the node answered 421')
    expect(heard).toEqual([])
  })

  it('says only that a handler failed', async () => {
    const one = await startLink(store, 1)
    const other = await startLink(store, 2, {
      onRequest: async () => Promise.reject(new Error('the password is hunter2')),
    })
    await expect(one.request(addressOf(other, 2), 'fail', {}, 5_000)).rejects.toThrow(/^the node answered 500$/)
  })

  it('refuses large messages and answers', async () => {
    const one = await startLink(store, 1)
    const other = await startLink(store, 2, { onRequest: async () => 'x'.repeat(MAX_BODY_BYTES + 1) })
    const large = 'x'.repeat(MAX_BODY_BYTES)
    await expect(one.request(addressOf(other, 2), 'large', large, 5_000)).rejects.toThrow('too large')
    await expect(one.request(addressOf(other, 2), 'small', 'x', 5_000)).rejects.toThrow('the node answered 413')
  })

  it('refuses clients without a certificate of the cluster', async () => {
    const heard: unknown[] = []
    const link = await startLink(store, 1, { onRequest: async (request) => void heard.push(request) })
    const foreign = await makePeerCertificate(
      await makeAuthority(Date.now(), 'Homeport cluster'),
      PEER_NAME,
      Date.now(),
      30,
    )
    for (const papers of [{}, { key: foreign.key, cert: foreign.certificate }]) {
      expect(await refusalOf(link.port, papers)).not.toBe('answered')
    }
    expect(heard).toEqual([])
  })

  it('refuses a certificate that has expired', async () => {
    const past = Date.now() - 60 * 86_400_000
    const old = await startLink(store, 2, { clock: { ...systemClock, now: () => past } })
    const link = await startLink(store, 1)
    await expect(old.request(addressOf(link, 1), 'late', {}, 5_000)).rejects.toThrow()
    await expect(link.request(addressOf(old, 2), 'late', {}, 5_000)).rejects.toThrow()
  })

  it('speaks TLS 1.3 only, also with its next certificate', async () => {
    const renewals: (() => void)[] = []
    const days = 86_400_000
    const after: Clock['after'] = (ms, renew) => {
      if (ms < days) return systemClock.after(ms, renew)
      renewals.push(renew)
      return { cancel: () => undefined }
    }
    const { port } = await startLink(store, 1, { clock: { ...systemClock, after } })
    const first = await refusalOf(port, { maxVersion: 'TLSv1.2' })
    renewals[0]?.()
    await waitFor(() => renewals.length === 2, { what: 'the next certificate' })
    expect([first, await refusalOf(port, { maxVersion: 'TLSv1.2' })]).toEqual([PROTOCOL_VERSION, PROTOCOL_VERSION])
  })

  it('agrees on one authority when several nodes start first', async () => {
    const fresh = await openStore()
    const links = await Promise.all([1, 2, 3].map((incarnation) => startLink(fresh, incarnation)))
    const [first, , third] = links
    if (!first || !third) throw new Error('no links')
    expect(await first.request(addressOf(third, 3), 'hello', 'you', 5_000)).toBe('you')
  })

  it('continues after a cut cable', async () => {
    const [one, other] = [await startLink(store, 1), await startLink(store, 2)]
    const proxy = await cuttableProxy(other.port)
    closing.push(() => proxy.close())
    const peer = { incarnation: 2, advertise: `127.0.0.1:${proxy.port}` }
    expect(await one.request(peer, 'before', 1, 5_000)).toBe(1)
    proxy.cut()
    await expect(one.request(peer, 'cut', 2, 5_000)).rejects.toThrow()
    proxy.mend()
    const again = () => one.request(peer, 'after', 3, 5_000)
    expect(await waitFor(again, { what: 'the link to be made again' })).toBe(3)
  })

  it('ends connections of a node that has vanished, and what they carry, and no others', async () => {
    const served: Duplex[] = []
    // The link checks its connections more often in this test.
    const hurried: Clock = { ...systemClock, after: (ms, look) => systemClock.after(ms === 10_000 ? 400 : ms, look) }
    const onTunnel: OnTunnel = () => (stream) => {
      served.push(stream)
      stream.on('error', () => undefined).resume()
    }
    const [one, two] = [await startLink(store, 1), await startLink(store, 2)]
    const other = await startLink(store, 3, { onTunnel, clock: hurried })
    const proxy = await cuttableProxy(other.port)
    closing.push(() => proxy.close())
    const lost = await one.tunnel({ incarnation: 3, advertise: `127.0.0.1:${proxy.port}` }, { service: 'x', ip: '' })
    lost.on('error', () => undefined)
    const kept = await two.tunnel(addressOf(other, 3), { service: 'x', ip: '' })
    proxy.abandon()
    await waitFor(() => served[0]?.destroyed === true, { what: 'the stream of the node that has vanished to end' })
    expect([served.length, kept.destroyed, served[1]?.destroyed]).toEqual([2, false, false])
  })

  it('keeps a connection on which much is on its way before the answer to a ping', async () => {
    const one = await startLink(store, 1)
    const other = await startLink(store, 2, {
      onTunnel: () => (stream) => {
        const fill = (): void => void (stream.destroyed || (stream.write(Buffer.alloc(4_096)) && setTimeout(fill, 20)))
        stream.on('drain', fill).on('error', () => undefined)
        fill()
      },
    })
    const wire = await startSlowWire(other.port)
    const peer = { incarnation: 2, advertise: `127.0.0.1:${wire.port}` }
    const stream = await one.tunnel(peer, { service: 'port', ip: '192.0.2.7' })
    let [isLost, lagMs, bytes] = [false, 0, 0]
    stream.on('error', () => (isLost = true))
    stream.on('data', (chunk) => {
      bytes += chunk.length
      lagMs = Math.min(2_500, lagMs + 50)
      wire.setLag(lagMs)
    })
    await waitFor(() => isLost || bytes > 200 * 4_096, { what: 'answers to pings that are 2.5 s late' })
    expect(isLost).toBe(false)
  })

  it('gives up a node that does not answer, in the time that the caller sets', async () => {
    const one = await startLink(store, 1)
    const silent = await startLink(store, 2, { onRequest: () => new Promise(() => undefined) })
    await expect(one.request(addressOf(silent, 2), 'hello', {}, 100)).rejects.toThrow('no answer within 100 ms')
  })

  it('lets strangers hold only a few unfinished handshakes, and nodes get through meanwhile', async () => {
    const [one, other] = [await startLink(store, 1), await startLink(store, 2)]
    const strangers: Socket[] = []
    closing.push(() => strangers.forEach((socket) => void socket.destroy()))
    let closed = 0
    for (let index = 0; index < 100; index++) {
      const socket = connectTcp(other.port, '127.0.0.1').on('error', () => undefined)
      socket.once('close', () => closed++)
      strangers.push(socket)
      await once(socket, 'connect')
    }
    await waitFor(() => closed >= 36, { what: 'the surplus to be closed' })
    expect(await one.request(addressOf(other, 2), 'hello', 'you', 5_000)).toBe('you')
  })
})
