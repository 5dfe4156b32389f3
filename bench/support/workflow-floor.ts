/**
 * The floor of running workflows: the same HTTP requests in both directions over a bare node:http server and undici,
 * with lists in memory, without signatures, checks, storage or retries. With a database in `POSTGRES_URL`, or with
 * `FLOOR_STORE=sqlite`, it commits one row for each request before it answers and delivers: the least number of commits
 * with which each step is durable. Sends `{port, token}` on its IPC channel.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { Agent, request } from 'undici'
import { openFloorRows } from './floor-rows.js'

interface Item {
  readonly destination: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

const lists = new Map<string, string[]>()
const dispatcher = new Agent({ connections: 50 })

const rows = process.env.FLOOR_STORE === 'sqlite' ? openFloorRows() : undefined
const database = process.env.POSTGRES_URL === undefined ? undefined : await openDatabase(process.env.POSTGRES_URL)

async function openDatabase(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('CREATE TABLE floor (seq bigserial PRIMARY KEY, content text NOT NULL)')
  return client
}

async function commit(content: string): Promise<void> {
  await rows?.add(content)
  await database?.query({
    name: 'floor',
    text: 'INSERT INTO floor (content) VALUES ($1) RETURNING seq',
    values: [content],
  })
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  let text = ''
  incoming.setEncoding('utf8')
  for await (const chunk of incoming) text += chunk
  return text
}

async function deliver(runId: string, { destination, body = '' }: Item): Promise<void> {
  const list = lists.get(runId) ?? []
  lists.set(runId, list)
  const encoded = Buffer.from(body).toString('base64')
  list.push(`{"messageId":"msg_${list.length}","body":"${encoded}","callType":"step"}`)
  const headers = { 'content-type': 'application/json', 'upstash-workflow-runid': runId }
  const answer = await request(destination, { dispatcher, method: 'POST', headers, body: `[${list.join(',')}]` })
  await answer.body.dump()
}

const server = createServer(async (incoming, outgoing) => {
  const text = await bodyOf(incoming)
  let answer = '{}'
  await commit(text)
  if (incoming.method === 'DELETE') lists.delete(incoming.url?.split('/').at(-1)?.split('?')[0] ?? '')
  else {
    const items = JSON.parse(text) as Item[]
    for (const item of items) void deliver(item.headers['upstash-workflow-runid'] ?? '', item)
    answer = JSON.stringify(items.map(() => ({ messageId: 'msg_1' })))
  }
  outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
  outgoing.end(answer)
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port, token: '' }))
process.once('disconnect', () => process.exit(0))
