/**
 * The floor of the TCP data plane: the simplest possible relay in Node. It sends the bytes of all clients to the engine
 * over one connection, once per turn of the event loop, splits the engine's output into replies and returns them. It
 * does not parse commands: it counts asterisks, which `redis-benchmark` sends only at the start of a command. Commands must
 * arrive whole. It has no limits, counters or backpressure, and uses the documented API of sockets.
 *
 * Reads the engine's socket from its environment; sends its port on its IPC channel.
 */
import { createConnection, createServer } from 'node:net'
import { PendingReplies } from '../../src/gateway/engine/pending-replies.js'
import { NO_REPLY_LIMITS, ReplyGate } from '../../src/gateway/engine/reply-gate.js'
import type { ReplySink } from '../../src/gateway/engine/reply-sink.js'

const STAR = 42

const pending = new PendingReplies({ error: () => undefined })
const gate = new ReplyGate(pending, NO_REPLY_LIMITS)
const engine = createConnection({ path: process.env.BENCH_ENGINE_SOCKET ?? '' })
engine.on('data', (chunk) => gate.push(chunk))
let gathered: Buffer[] = []

function send(): void {
  engine.write(Buffer.concat(gathered))
  gathered = []
}

function commandsIn(chunk: Buffer): number {
  let count = 0
  for (let at = chunk.indexOf(STAR); at >= 0; at = chunk.indexOf(STAR, at + 1)) count++
  return count
}

const server = createServer({ noDelay: true }, (client) => {
  const sink: ReplySink = {
    deliver: (chunk, start, end) => void client.write(chunk.subarray(start, end)),
    fail: () => {},
  }
  client.on('data', (chunk) => {
    if (gathered.length === 0) setImmediate(send)
    gathered.push(chunk)
    const commands = commandsIn(chunk)
    if (commands > 0) pending.expect(sink, commands)
  })
  client.on('error', () => {})
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' && address ? address.port : 0 })
})
process.once('disconnect', () => process.exit(0))
