import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, vi } from 'vitest'
import { atCleanup } from '../../../test/support/index.js'
import { commandClock } from '../../base/index.js'
import { runCli } from '../index.js'

it('`nodes drain` waits while something moves, and then says which databases stay', async () => {
  const node = {
    name: 'b',
    state: 'draining',
    address: 'h:1',
    version: '1',
    start_time: 1,
    leader: false,
    answering: true,
  }
  const looks = [1, 0, 0, 0, 0, 0, 0, 0].map((partitions) => ({ ...node, partitions, databases: 2 }))
  const server = createServer((request, response) => {
    const isList = request.method === 'GET' && request.url === '/v2/nodes'
    const isMoves = request.method === 'GET' && request.url === '/v2/node-moves'
    response.end(JSON.stringify(isList ? [looks.shift()] : isMoves ? [] : 'OK'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atCleanup(() => void server.close())
  vi.stubEnv('HOMEPORT_API_URL', `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  vi.stubEnv('HOMEPORT_EMAIL', 'a@example.com')
  vi.stubEnv('HOMEPORT_API_KEY', 'key')
  let now = 0
  const clock = vi.spyOn(commandClock, 'now').mockImplementation(() => (now += 20_000))
  let err = ''
  const code = await runCli(['nodes', 'drain', 'b', '--wait'], { out: () => undefined, err: (text) => (err += text) })
  clock.mockRestore()
  vi.unstubAllEnvs()
  expect([code, looks.length < 4]).toEqual([1, true])
  expect(err).toContain('0 partitions and 2 databases stay at b, which continues to drain')
})
