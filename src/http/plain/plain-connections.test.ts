import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createConnection, type Socket } from 'node:net'
import { beforeEach, describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { PlainConnections } from './plain-connections.js'
import { KEEP_ALIVE_SECONDS, PlainRequest, PlainResponse } from './plain-messages.js'

const SWEEP_MS = 1_000
const PLAIN = 'GET /a HTTP/1.1\r\nHost: x\r\n\r\n'
const NODES = PLAIN.replace('GET', 'PUT')
const POST = 'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody'

let clock: ManualClock
let plain: PlainConnections
let server: Server
/** The connections at the server. */
let accepted: Socket[]
const arrivals = new EventEmitter()
/** The requests, which the tests answer. */
let requests: { readonly request: IncomingMessage; readonly response: ServerResponse }[]

beforeEach(async () => {
  clock = new ManualClock()
  requests = []
  accepted = []
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    requests.push({ request, response })
    arrivals.emit('request')
  }
  plain = new PlainConnections({ clock, sweepMs: SWEEP_MS, onOpen: (socket) => void accepted.push(socket), serve })
  server = createServer(serve)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  plain.take(server)
  atCleanup(() => {
    for (const socket of accepted) socket.destroy()
    server.closeAllConnections()
    server.close()
  })
})

interface Client {
  readonly socket: Socket
  /** What it has received. */
  text: string
}

async function connect(): Promise<Client> {
  const socket = createConnection((server.address() as AddressInfo).port, '127.0.0.1')
  atCleanup(() => void socket.destroy())
  const client = { socket, text: '' }
  socket.setEncoding('latin1').on('data', (text: string) => (client.text += text))
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return client
}

/** Sends each piece once the one before has been read. */
async function sendInPieces({ socket }: Client, pieces: readonly string[]): Promise<void> {
  for (const piece of pieces) {
    socket.write(piece)
    const { bytesWritten } = socket
    await waitFor(() => accepted[0]?.bytesRead === bytesWritten, { what: 'the read' })
  }
}

/** Waits for the request with this number, from 1 on. */
async function request(number: number): Promise<{ request: IncomingMessage; response: ServerResponse }> {
  while (requests.length < number) await once(arrivals, 'request')
  const found = requests[number - 1]
  if (!found || requests.length > number) throw new Error(`${requests.length} requests have come`)
  return found
}

const headersFor = (text: string): string[] => ['Content-Length', String(text.length)]

/** Answers in one call where that is possible. */
function answer({ response }: { readonly response: ServerResponse }, text: string): void {
  if (
    response instanceof PlainResponse &&
    response.sendWhole({ status: 200, headers: headersFor(text), text, encoding: 'latin1' })
  )
    return
  response.writeHead(200, headersFor(text)).end(text)
}

const bodies = ({ text }: Client): string[] => text.split(/HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)+\r\n/).slice(1)

const isOpen = ({ socket }: Client): boolean => !socket.readableEnded && !socket.destroyed

describe('a connection', () => {
  it('is read and answered without Node while its requests are plain, and by Node from the first other one on', async () => {
    const client = await connect()
    const found: boolean[] = []
    for (const [index, text] of [PLAIN, PLAIN, NODES, PLAIN].entries()) {
      client.socket.write(text)
      const exchange = await request(index + 1)
      found.push(exchange.request instanceof PlainRequest)
      answer(exchange, `answer ${index}`)
      await waitFor(() => bodies(client).length > index && client.text.endsWith(String(index)), { what: 'the answer' })
    }
    expect(found).toEqual([true, true, false, false])
    expect(bodies(client)).toEqual(['answer 0', 'answer 1', 'answer 2', 'answer 3'])
  })

  it('is not read between a request and its answer, and Node gets the bytes that arrive meanwhile', async () => {
    const client = await connect()
    client.socket.write(PLAIN)
    const first = await request(1)
    await new Promise((resolve) => client.socket.write(PLAIN + NODES.slice(0, 10), resolve))
    await waitFor(() => first.request.socket.isPaused(), { what: 'the pause' })
    answer(first, 'first')
    const second = await request(2)
    expect(second.request).not.toBeInstanceOf(PlainRequest)
    client.socket.write(NODES.slice(10))
    const third = await request(3)
    answer(third, 'third')
    answer(second, 'second')
    await waitFor(() => client.text.endsWith('third'), { what: 'all answers' })
    expect(bodies(client)).toEqual(['first', 'second', 'third'])
  })

  it('gets the body of a request as a buffer or as a stream', async () => {
    const client = await connect()
    client.socket.write(POST)
    const first = await request(1)
    expect(first.request).toMatchObject({ method: 'POST', url: '/a', complete: true, body: Buffer.from('body') })
    expect(Buffer.concat(await first.request.toArray()).toString()).toBe('body')
  })

  it('may send a request in a few pieces', async () => {
    const client = await connect()
    await sendInPieces(client, [POST.slice(0, 20), POST.slice(20, -2), POST.slice(-2)])
    const { request: received } = await request(1)
    expect(received).toBeInstanceOf(PlainRequest)
    expect(received).toMatchObject({ complete: true, body: Buffer.from('body') })
  })

  it.each([
    ['in many pieces', ['GET /', ...'abcdefg', PLAIN.slice(5)]],
    ['and the beginning of the next one', [`${PLAIN}GET`]],
    ['with a long body that is not there yet', [POST.replace(': 4', ': 20000')]],
    ['that begins in another way', ['G', PLAIN.slice(1)]],
  ])('is given to Node with a request %s', async (_how, pieces) => {
    const client = await connect()
    await sendInPieces(client, pieces)
    expect((await request(1)).request).not.toBeInstanceOf(PlainRequest)
  })

  it('gets long answers, and answers without a length, from Node', async () => {
    const client = await connect()
    client.socket.write(PLAIN)
    answer(await request(1), 'x'.repeat(100_000))
    await waitFor(() => bodies(client)[0]?.length === 100_000, { what: 'the long answer' })
    client.socket.write(PLAIN)
    const { response } = await request(2)
    response.writeHead(200)
    response.write('piece')
    response.end()
    await waitFor(() => client.text.endsWith('\r\n5\r\npiece\r\n0\r\n\r\n'), { what: 'the answer in chunks' })
    client.socket.write(PLAIN)
    expect((await request(3)).request).toBeInstanceOf(PlainRequest)
  })

  it('gets all answers in the end when it does not read for a while', async () => {
    const client = await connect()
    client.socket.pause()
    const text = 'y'.repeat(15_000)
    let sent = 0
    /** Sends answers until the system takes no more, so that an answer is incomplete. */
    const isStuck = async (): Promise<boolean> => {
      client.socket.write(PLAIN)
      sent++
      const exchange = await request(sent)
      answer(exchange, text)
      return exchange.request.socket.writableLength > 0
    }
    while (!(await isStuck()));
    client.socket.resume()
    await waitFor(() => bodies(client).length === sent && client.text.endsWith(text), { what: 'all answers' })
    expect(bodies(client)).toEqual(new Array(sent).fill(text))
  })

  it('gets an answer in pieces as fast as it reads', async () => {
    const client = await connect()
    client.socket.pause()
    client.socket.write(PLAIN)
    const { response } = await request(1)
    const piece = 'z'.repeat(1_000_000)
    response.writeHead(200, { 'Content-Length': 20 * piece.length })
    let drains = 0
    for (let pieces = 0; pieces < 20; pieces++) {
      if (response.write(piece)) continue
      drains++
      expect(response.writableNeedDrain).toBe(true)
      client.socket.resume()
      await once(response, 'drain')
      expect(response.writableNeedDrain).toBe(false)
    }
    response.end()
    await waitFor(() => bodies(client)[0]?.length === 20 * piece.length, { what: 'the whole answer' })
    expect(drains).toBeGreaterThan(0)
  })

  it('ends the response when its client leaves', async () => {
    const client = await connect()
    client.socket.write(PLAIN)
    const { response } = await request(1)
    client.socket.destroy()
    await once(response, 'close')
    expect(response.destroyed).toBe(true)
  })
})

describe('a connection without a request', () => {
  it('ends after a while', async () => {
    const client = await connect()
    client.socket.write(PLAIN)
    answer(await request(1), 'answer')
    await waitFor(() => client.text.endsWith('answer'), { what: 'the answer' })
    clock.advance(1_000 * KEEP_ALIVE_SECONDS)
    client.socket.write(PLAIN)
    answer(await request(2), 'again')
    await waitFor(() => client.text.endsWith('again'), { what: 'the answer' })
    clock.advance(1_000 * KEEP_ALIVE_SECONDS + SWEEP_MS)
    await waitFor(() => !isOpen(client), { what: 'the end' })
  })

  it('gets its timeout from Node if it has never had one', async () => {
    const client = await connect()
    const given = once(server, 'connection')
    clock.advance(SWEEP_MS)
    await given
    client.socket.write(PLAIN)
    expect((await request(1)).request).not.toBeInstanceOf(PlainRequest)
  })

  it('gets its timeout from Node if its request begins and does not continue', async () => {
    const client = await connect()
    await sendInPieces(client, [POST.slice(0, -2)])
    const given = once(server, 'connection')
    clock.advance(SWEEP_MS)
    await given
    client.socket.write(POST.slice(-2))
    const { request: received } = await request(1)
    expect(received).not.toBeInstanceOf(PlainRequest)
    expect(Buffer.concat(await received.toArray()).toString()).toBe('body')
  })

  it('is given to Node in a later turn of the event loop, if others have spent this one', async () => {
    const clients = await Promise.all(Array.from({ length: 20 }, connect))
    await waitFor(() => accepted.length === clients.length, { what: 'the connections' })
    let given = 0
    server.on('connection', () => {
      given++
      const until = performance.now() + 4
      while (performance.now() < until) {
        // what Node does for it keeps the process busy
      }
    })
    clock.advance(SWEEP_MS)
    expect(given).toBeLessThan(clients.length / 4)
    await waitFor(() => given === clients.length, { what: 'the others' })
  })

  it('is none while its answer takes long', async () => {
    const client = await connect()
    client.socket.write(PLAIN)
    const exchange = await request(1)
    clock.advance(3_000 * KEEP_ALIVE_SECONDS)
    answer(exchange, 'late')
    await waitFor(() => client.text.endsWith('late'), { what: 'the answer' })
  })

  it('ends at once when the server stops, and a connection with a request ends after its answer', async () => {
    const [idle, busy] = [await connect(), await connect()]
    busy.socket.write(PLAIN)
    const exchange = await request(1)
    plain.end()
    await waitFor(() => !isOpen(idle), { what: 'the end of the idle connection' })
    answer(exchange, 'last')
    await waitFor(() => !isOpen(busy), { what: 'the end of the busy connection' })
    expect(busy.text).toMatch(/\r\nConnection: close\r\n(?:.+\r\n)*\r\nlast$/)
  })
})
