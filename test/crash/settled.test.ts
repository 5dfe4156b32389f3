import { execFileSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { atCleanup } from '../support/index.js'
import { requestsAreRead } from './settled.js'

const CLIENTS = 50
/** A program that opens `CLIENTS` connections, sends one request on each, and ends. */
const SENDER = `
  const [port, clients] = process.argv.slice(1).map(Number)
  let sent = 0
  for (let client = 0; client < clients; client++) {
    const socket = require('node:net').connect(port, '127.0.0.1')
    socket.write('GET /counted HTTP/1.1\\r\\nHost: sender\\r\\n\\r\\n', () => ++sent === clients && process.exit())
  }`

it('`requestsAreRead` waits for requests whose connections nobody has accepted yet', async () => {
  let counted = 0
  const server = createServer(({ url }, response) => {
    if (url === '/counted') counted++
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atCleanup(() => void server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  // `fetch` keeps its connection open from here on.
  for (let trip = 0; trip < 2; trip++) await (await fetch(url)).text()
  // This process is blocked meanwhile, so it accepts no connection.
  execFileSync(process.execPath, ['-e', SENDER, String(port), String(CLIENTS)])
  await requestsAreRead(url)
  expect(counted).toBe(CLIENTS)
})
