import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import { type AddressInfo, createConnection } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../test/support/index.js'
import { yieldToEventLoop } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { type Random, seeded } from '../base/testing/random.js'
import { paceRequests } from './paced-requests.js'
import { PlainConnections } from './plain/plain-connections.js'

type Serve = (request: IncomingMessage, response: ServerResponse) => void

const MAX_UNANSWERED = 32
const get = (target: string | number): string => `GET /${target} HTTP/1.1\r\nHost: x\r\n\r\n`
const gets = (count: number): string => Array.from({ length: count }, (_none, index) => get(index)).join('')

async function listening(serve: Serve, options: ServerOptions = {}): Promise<Server> {
  const server = createServer(options, serve)
  paceRequests(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atCleanup(() => {
    server.closeAllConnections()
    server.close()
  })
  return server
}

interface Client {
  readonly socket: Duplex
  /** What it has received. */
  text: string
}

function client(socket: Duplex): Client {
  atCleanup(() => void socket.destroy())
  const made = { socket, text: '' }
  socket.setEncoding('latin1').on('data', (text: string) => (made.text += text))
  socket.on('error', () => undefined)
  return made
}

const connect = (server: Server): Client =>
  client(createConnection((server.address() as AddressInfo).port, '127.0.0.1'))

const statusesOf = ({ text }: Client): readonly string[] => text.match(/(?<=HTTP\/1\.1 )\d+/g) ?? []
const bodiesOf = ({ text }: Client): readonly string[] => text.match(/(?<=\r\n\r\n)answer [^H]+/g) ?? []
const answersTo = (count: number): readonly string[] => Array.from({ length: count }, (_none, n) => `answer /${n}`)

function answer(request: IncomingMessage, response: ServerResponse): void {
  const text = `answer ${request.url}`
  response.writeHead(200, { 'Content-Length': text.length }).end(text)
}

/** A server whose requests wait until the test answers them. */
async function patient(options: ServerOptions = {}) {
  const begun: { readonly request: IncomingMessage; readonly response: ServerResponse }[] = []
  let answered = 0
  const server = await listening((request, response) => void begun.push({ request, response }), options)
  const answerNext = (): void => {
    const next = begun[answered++]
    if (next) answer(next.request, next.response)
  }
  return { server, begun, answerNext }
}

/** A server that works for a millisecond on each request, and records the most requests of one turn of the event loop. */
async function busy() {
  let [inTurn, most] = [0, 0]
  const server = await listening((request, response) => {
    if (inTurn++ === 0) setImmediate(() => (inTurn = 0))
    most = Math.max(most, inTurn)
    const begunAt = performance.now()
    while (performance.now() - begunAt < 1);
    answer(request, response)
  })
  return { server, most: () => most }
}

/** What has arrived at this machine is read within a few turns of the event loop. */
async function someTurns(): Promise<void> {
  for (let turns = 0; turns < 50; turns++) await yieldToEventLoop()
}

describe('requests that arrive at once', () => {
  it('begin only while few are unanswered', async () => {
    const { server, begun, answerNext } = await patient()
    connect(server).socket.write(gets(200))
    await waitFor(() => begun.length > 0, { what: 'the first request' })
    await someTurns()
    expect(begun).toHaveLength(MAX_UNANSWERED)
    let most = 0
    for (let answers = 0; answers < 200; answers++) {
      await waitFor(() => begun.length > answers, { what: 'the next request' })
      answerNext()
      await yieldToEventLoop()
      most = Math.max(most, begun.length - answers - 1)
    }
    expect([begun.length, most <= MAX_UNANSWERED]).toEqual([200, true])
  })

  it('leave time for others if each is answered at once', async () => {
    const { server, most } = await busy()
    const receiver = connect(server)
    receiver.socket.write(gets(300))
    await waitFor(() => bodiesOf(receiver).length === 300, { what: 'the answers' })
    expect(bodiesOf(receiver)).toEqual(answersTo(300))
    expect(most()).toBeLessThan(100)
  })

  it('leave time for others if they arrive over many connections', async () => {
    const { server, most } = await busy()
    let accepted = 0
    server.on('connection', () => accepted++)
    const clients = Array.from({ length: 40 }, () => connect(server))
    await waitFor(() => accepted === 40, { what: 'the connections' })
    for (const { socket } of clients) socket.write(gets(15))
    const isAnswered = (client: Client): boolean => bodiesOf(client).length === 15
    await waitFor(() => clients.every(isAnswered), { what: 'the answers' })
    expect(most()).toBeLessThan(200)
  })

  it('are forgotten when their client leaves', async () => {
    const { server, begun, answerNext } = await patient()
    const { socket } = connect(server)
    socket.write(gets(200))
    await waitFor(() => begun.length === MAX_UNANSWERED, { what: 'the first requests' })
    socket.destroy()
    while (!begun[0]?.response.destroyed) {
      answerNext()
      await yieldToEventLoop()
    }
    await someTurns()
    expect(begun.length).toBeLessThan(200)
  })

  it('begin no more while their client reads no answers', async () => {
    let begun = 0
    const server = await listening((_request, response) => {
      begun++
      response.end('x'.repeat(100_000))
    })
    const { socket } = connect(server)
    socket.pause()
    socket.write(gets(5_000))
    await waitFor(() => begun >= MAX_UNANSWERED, { what: 'the first requests' })
    await someTurns()
    expect(begun).toBeLessThan(1_000)
  })

  it('do not time out in Node while they wait', async () => {
    const timed = { headersTimeout: 1_000, requestTimeout: 1_000, connectionsCheckingInterval: 20 }
    const { server, begun, answerNext } = await patient(timed)
    const waiting = connect(server)
    waiting.socket.write(gets(200))
    await waitFor(() => begun.length === MAX_UNANSWERED, { what: 'the first requests' })
    const late = connect(server)
    late.socket.write('GET /')
    await waitFor(() => statusesOf(late).length > 0, { what: 'the end of a slow client' })
    expect(statusesOf(late)).toEqual(['408'])
    for (let answers = 0; answers < 200; answers++) {
      await waitFor(() => begun.length > answers, { what: 'the next request' })
      answerNext()
    }
    await waitFor(() => bodiesOf(waiting).length === 200, { what: 'the answers' })
    expect(bodiesOf(waiting)).toEqual(answersTo(200))
  })
})

/** The ways in which Node's HTTP server gets a connection. */
const WAYS: Readonly<Record<string, (server: Server, serve: Serve) => Client>> = {
  'that Node has accepted': (server) => connect(server),
  'that had only plain requests': (server, serve) => {
    const clock = new ManualClock()
    new PlainConnections({ clock, sweepMs: 1_000, onOpen: () => undefined, serve }).take(server)
    return connect(server)
  },
  'of another node': (server) => {
    const [near, far] = duplexPair()
    server.emit('connection', far)
    return client(near)
  },
}

/** Answers with the body, some turns of the event loop after it has come. */
const echo: Serve = (request, response) => {
  let body = ''
  request.setEncoding('latin1').on('data', (text: string) => (body += text))
  request.on('end', async () => {
    for (let turns = Number(request.headers['x-turns']); turns > 0; turns--) await yieldToEventLoop()
    const text = `answer ${request.url} ${body.length} ${body.replaceAll('H', 'h')}`
    response.writeHead(200, { 'Content-Length': text.length }).end(text)
  })
}

/** A request of any kind, with the answer of `echo` to it. */
function anyRequest(index: number, random: Random): { readonly bytes: string; readonly answer: string } {
  const body = random.pick(['', 'x', '\r\n\r\n'.repeat(20), get(1).repeat(3), 'y'.repeat(random.below(40_000))]) ?? ''
  const answered = `answer /${index} ${body.length} ${body.replaceAll('H', 'h')}`
  const head = `POST /${index} HTTP/1.1\r\nHost: x\r\nX-Turns: ${random.below(3)}\r\n`
  const chunks = body.match(/[\s\S]{1,1000}/g) ?? []
  const chunked = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')
  const expecting = `${head}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const bytes = [
    `${head}Content-Length: ${body.length}\r\n\r\n${body}`,
    `${head}Transfer-Encoding: chunked\r\n\r\n${chunked}0\r\n\r\n`,
    expecting,
  ]
  return { bytes: random.pick(bytes) ?? '', answer: answered }
}

describe.each(Object.entries(WAYS))('a connection %s', (_way, open) => {
  it('sends requests of all kinds in pieces of any length, and gets the answers in order', async () => {
    const server = await listening(echo)
    const sender = open(server, echo)
    const seed = Math.floor(Math.random() * 2 ** 32)
    const random = seeded(seed)
    const requests = Array.from({ length: 200 }, (_none, index) => anyRequest(index, random))
    const bytes = Buffer.from(requests.map((each) => each.bytes).join(''), 'latin1')
    for (let at = 0; at < bytes.length; ) {
      const end = at + 1 + random.below(random.pick([10, 1_000, 100_000]) ?? 1)
      sender.socket.write(bytes.subarray(at, end))
      at = end
      if (random.chance(0.2)) await yieldToEventLoop()
    }
    const all = requests.map((each) => each.answer).join('')
    const received = (): string => sender.text.replaceAll(/HTTP\/1\.1 (?:[^\r]+\r\n)+\r\n/g, '')
    await waitFor(() => received().length >= all.length, { what: 'the answers' })
    expect(received() === all, `with the seed ${seed}`).toBe(true)
  })
})
