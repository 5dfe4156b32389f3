/**
 * The floor of the REST data plane: a bare `node:http` server that sends one fixed GET for each request over one
 * pipelined connection to the engine and answers with its reply as JSON. It has no tokens, no limits and no other command.
 * Reads the engine's socket and password from its environment; sends its port on its IPC channel.
 */
import { createServer, type ServerResponse } from 'node:http'
import { createConnection } from 'node:net'

const { BENCH_ENGINE_SOCKET: path = '', BENCH_ENGINE_PASSWORD: password = '' } = process.env
const GET = '*2\r\n$3\r\nGET\r\n$5\r\nbench\r\n'

const waiting: ServerResponse[] = []
const engine = createConnection({ path })
let queued = ''
let received = ''

function send(): void {
  engine.write(queued)
  queued = ''
}

function answer(value: string): void {
  const body = `{"result":${JSON.stringify(value)}}`
  const response = waiting.shift()
  response?.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response?.end(body)
}

engine.setEncoding('latin1')
engine.write(`AUTH ${password}\r\n`)
engine.once('data', () => engine.on('data', onReplies))

function onReplies(text: string): void {
  received += text
  for (;;) {
    const head = received.indexOf('\r\n')
    const end = head + 2 + Number(received.slice(1, head))
    if (head < 0 || received.length < end + 2) return
    answer(received.slice(head + 2, end))
    received = received.slice(end + 2)
  }
}

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    waiting.push(response)
    if (queued === '') setImmediate(send)
    queued += GET
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' && address ? address.port : 0 })
})
process.once('disconnect', () => process.exit(0))
