import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** As long as a patient balancer waits for an answer. */
const TIMEOUT_MS = 10_000

/** An HTTP load balancer before several nodes. */
export interface Balancer {
  readonly url: string
  close(): Promise<void>
}

/**
 * Passes each request to the next of the ready nodes, on a connection of its own. A node that cannot be reached answers
 * nothing; then the next one is tried. Without an answer, what happened is unknown: 504.
 * @param readyUrls the nodes that take requests now.
 */
export async function startBalancer(readyUrls: () => readonly string[]): Promise<Balancer> {
  let turn = 0
  const server = createServer((incoming, outgoing) => {
    const urls = readyUrls()
    const order = urls.map((_, index) => urls[(turn + index) % urls.length] ?? '')
    turn++
    void pass(incoming, outgoing, order).catch(() => outgoing.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function pass(incoming: IncomingMessage, outgoing: ServerResponse, urls: readonly string[]): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  for (const url of urls) {
    try {
      await forward(incoming, body, url, outgoing)
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') break
    }
  }
  if (!outgoing.headersSent) outgoing.writeHead(urls.length === 0 ? 503 : 504).end('no answer')
  else outgoing.destroy()
}

function forward(incoming: IncomingMessage, body: Buffer, base: string, outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve, reject) => {
    const { method, headers } = incoming
    const options = { method, headers: { ...headers, connection: 'close' }, agent: false, timeout: TIMEOUT_MS }
    const passed = request(base + incoming.url, options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
      answer.once('end', resolve)
      answer.once('error', reject)
    })
    passed.once('timeout', () => passed.destroy(new Error('no answer in time')))
    passed.once('error', reject)
    passed.end(body)
  })
}
