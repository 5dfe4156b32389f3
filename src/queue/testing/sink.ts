import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request that a sink has received. */
export interface Received {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** The response of a sink. */
export interface SinkAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Never responds; the connection stays open. */
  readonly silent?: true
  /** Resets the connection instead of responding. */
  readonly hangsUp?: true
}

/** A destination for tests: records requests and responds as configured. */
export interface Sink {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly received: Received[]
  /** Requests whose connection the sender closed before the response. */
  readonly aborted: number
  /** Chooses the next responses. Default: 200 with an empty body. */
  answer: (request: Received) => SinkAnswer
  close(): Promise<void>
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('latin1')
}

/** Starts a sink on a free port of 127.0.0.1. */
export async function startSink(): Promise<Sink> {
  const state = { aborted: 0 }
  const sink = {
    url: '',
    received: [] as Received[],
    answer: (): SinkAnswer => ({}),
    get aborted(): number {
      return state.aborted
    },
    close: async (): Promise<void> => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  } satisfies Sink as Sink
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request)
    const { method = '', url: target = '', headers } = request
    const received: Received = { method, target, headers, body }
    sink.received.push(received)
    response.once('close', () => {
      if (!response.writableFinished) state.aborted++
    })
    const answer = sink.answer(received)
    if (answer.silent) return
    if (answer.hangsUp) return void request.socket.resetAndDestroy()
    response.writeHead(answer.status ?? 200, answer.headers ?? {})
    response.end(answer.body ?? '')
  }
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(sink, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
}
