import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A message to put into a queue: where it is to be delivered, and its body. */
export interface FrontJob {
  readonly target: string
  readonly body: string
}

/** How a queue takes messages; both resolve when they are on disk. */
export interface FrontQueue {
  /** Answers the id. */
  add(job: FrontJob): Promise<string>
  addMany(jobs: readonly FrontJob[]): Promise<unknown>
}

const targetOf = (headers: IncomingHttpHeaders): string => String(headers['x-target'] ?? '')

/**
 * What stands before a queue that is a library: a bare node:http server on 127.0.0.1. `POST /` puts the body into the
 * queue, `POST /batch` each member of a JSON array. Answers its port.
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
