import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { atCleanup, freePort } from '../../../test/support/index.js'
import { systemClock, TargetGate } from '../../base/index.js'
import { probeEngine } from '../../fleet/index.js'
import { startBareEngine } from '../testing/bare-engine.js'
import { connectToEngine, connectToSource, copyAll } from './copy.js'
import { parseSource } from './source.js'

/** A string `v`, then a version that no engine has reached, then no checksum, which is not looked at. */
const FROM_THE_FUTURE = Buffer.from('000176ffff0000000000000000', 'hex')

const bulk = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')])

/** A server with one key, as an engine of years to come would show it. */
async function startFutureServer(): Promise<string> {
  const replies = new Map([
    ['PING', Buffer.from('+PONG\r\n')],
    ['SCAN', Buffer.from('*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n')],
    ['DUMP', bulk(FROM_THE_FUTURE)],
    ['PTTL', Buffer.from(':-1\r\n')],
  ])
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      for (const [name] of chunk
        .toString()
        .toUpperCase()
        .matchAll(/PING|SCAN|DUMP|PTTL/g)) {
        socket.write(replies.get(name) ?? '')
      }
    })
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  atCleanup(() => void server.close())
  return `redis://127.0.0.1:${port}`
}

test('a copy of a newer engine fails with that as its reason', async () => {
  const engine = await startBareEngine((await probeEngine()).binary, ['--requirepass', 'p'])
  const source = await connectToSource(parseSource(await startFutureServer()), new TargetGate('everything'))
  const target = await connectToEngine(engine.socketPath, 'p')
  const copy = { source, target, clock: systemClock, signal: new AbortController().signal, onCopied: () => {} }
  const failure = await copyAll(copy).catch((error: unknown) => error)
  for (const client of [source, target]) client.disconnect()
  await engine.kill()
  expect(failure).toMatchObject({ code: 'import_failed' })
  expect(String(failure)).toContain('the source is a newer engine than is installed here')
})
