/** BullMQ behind a bare node:http server, as a process of its own. Says `{port}` on its IPC channel. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Queue } from 'bullmq'

const connection = { host: '127.0.0.1', port: Number(process.env.BENCH_REDIS_PORT) }
const queue = new Queue('bench', { connection })
const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => {
    body += chunk
  })
  request.on('end', async () => {
    const job = await queue.add('message', { target: request.headers['x-target'], body }, { attempts: 4 })
    const answer = JSON.stringify({ messageId: job.id })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
    response.end(answer)
  })
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.once('disconnect', async () => {
  await queue.close()
  process.exit(0)
})
