import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A message for a queue: its destination and body. */
export interface FrontJob {
  readonly target: string
  readonly body: string
}

/** The publish functions of a queue; both resolve when the messages are on disk. */
export interface FrontQueue {
  /** Returns the id. */
  add(job: FrontJob): Promise<string>
  addMany(jobs: readonly FrontJob[]): Promise<unknown>
}

const targetOf = (headers: IncomingHttpHeaders): string => String(headers['x-target'] ?? '')

/**
 * The HTTP front of a queue that is a library: a bare node:http server on 127.0.0.1. `POST /` publishes the body,
 * `POST /batch` each element of a JSON array. Returns its port.
 */
export async function startFront(queue: FrontQueue): Promise<number> {
  const take = async (url: string, headers: IncomingHttpHeaders, body: string): Promise<object> => {
    const target = targetOf(headers)
    if (url !== '/batch') return { messageId: await queue.add({ target, body }) }
    await queue.addMany((JSON.parse(body) as string[]).map((one) => ({ target, body: one })))
    return {}
  }
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', async () => {
      const answer = JSON.stringify(await take(request.url ?? '/', request.headers, body))
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
      response.end(answer)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
