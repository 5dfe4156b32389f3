import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { expect } from 'vitest'
import { atCleanup, waitFor } from '../../../../test/support/index.js'
import { TargetGate } from '../../../base/index.js'
import { ManualClock } from '../../../base/testing/manual-clock.js'
import { OutgoingRequest, type RequestController } from '../outgoing-request.js'
import { PlainClient } from '../plain-client.js'

/** What a destination has received on one connection. */
export interface Arrival {
  readonly socket: Socket
  text: string
}

/** A destination under test. */
export interface Destination {
  readonly origin: string
  readonly arrivals: Arrival[]
}

/** Complete responses; the second allows its connection to wait for eight seconds. */
export const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
export const KEPT = 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=8\r\nContent-Length: 2\r\n\r\nok'

/** Starts a server and records what it receives. */
export async function listening(server: Server, protocol: string): Promise<Destination> {
  const arrivals: Arrival[] = []
  server.on(protocol === 'https' ? 'secureConnection' : 'connection', (socket: Socket) => {
    const arrival = { socket, text: '' }
    arrivals.push(arrival)
    socket.on('error', () => undefined)
    socket.setEncoding('latin1').on('data', (text: string) => (arrival.text += text))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atCleanup(() => {
    for (const { socket } of arrivals) socket.destroy()
    server.close()
  })
  return { origin: `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}`, arrivals }
}

/** A destination that answers nothing by itself. */
export const startDestination = (): Promise<Destination> => listening(createServer(), 'http')

/** A client whose clock stands still. */
export function newClient(connectionsPerHost = 10) {
  const clock = new ManualClock()
  const client = new PlainClient({ clock, gate: new TargetGate('everything'), connectionsPerHost })
  atCleanup(() => client.close())
  return { client, clock }
}

/** A request that is sent, and the events that its handler has received. */
export class Sent {
  readonly request: OutgoingRequest
  readonly heard: string[] = []
  controller: RequestController | undefined
  body = ''

  constructor(
    client: PlainClient,
    origin: string,
    { body = 'hello', headers = ['X-A', 'b'], path = '/hook?a=b' } = {},
  ) {
    this.request = new OutgoingRequest(origin, path, { method: 'POST', headers, body: Buffer.from(body) })
    expect(client.takes(this.request)).toBe(true)
    client.send(this.request, this)
  }

  onRequestStart(controller: RequestController): void {
    this.controller = controller
    this.request.connection?.beginRequest()
    this.heard.push('start')
  }

  onResponseStart(_controller: RequestController, status: number): void {
    this.heard.push(String(status))
  }

  onResponseData(_controller: RequestController, chunk: Buffer): void {
    this.body += chunk.toString('latin1')
  }

  onResponseEnd(): void {
    this.heard.push('end')
  }

  onResponseError(_controller: RequestController, error: Error): void {
    this.heard.push(error.message)
  }

  get hasEnded(): boolean {
    return this.heard.length > 0 && !/^(?:start|\d+)$/.test(this.heard.at(-1) ?? '')
  }

  /** Waits for the end of the request, and until its connection has rested. */
  async ended(): Promise<readonly string[]> {
    await waitFor(() => this.hasEnded, { what: 'the end of the request' })
    await someTurns()
    return this.heard
  }
}

/** Waits until a destination has this many connections, and the last one this many requests. */
export async function received({ arrivals }: Destination, connections: number, requests = 1): Promise<Arrival> {
  const hasCome = () =>
    arrivals.length >= connections && (arrivals.at(-1)?.text.match(/hello/g) ?? []).length >= requests
  await waitFor(hasCome, { what: `request ${requests} on connection ${connections}` })
  const last = arrivals.at(-1)
  if (!last || arrivals.length > connections) throw new Error(`${arrivals.length} connections have come`)
  return last
}

/** Sends pieces one by one, so that the client, in this process, has time to read each before the next. */
export async function writePieces(socket: Socket, pieces: readonly string[]): Promise<void> {
  for (const piece of pieces) {
    await new Promise((resolve) => socket.write(piece, resolve))
    await someTurns()
  }
}

/** Waits for a few turns of the event loop, in which it polls for bytes. */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
}
