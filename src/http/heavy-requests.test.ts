import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { connect, Socket } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import Type from 'typebox'
import { expect, it, onTestFinished } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { endpoint } from '../contract/endpoint.js'
import { HeavyRequests, type HttpServer, type Route, reply, route } from './index.js'
import { listener } from './testing/listener.js'

const exchange = () => {
  const request = new IncomingMessage(new Socket())
  return { request, response: new ServerResponse(request) }
}

it('heavy requests of one account take turns, and those of another are served beside them', async () => {
  const heavy = new HeavyRequests(3)
  const begun: { readonly name: string; readonly end: () => void }[] = []
  const serve = (name: string, given = exchange()): Promise<string> =>
    heavy.serve(name.slice(0, 1), given, () => new Promise((resolve) => begun.push({ name, end: () => resolve(name) })))
  const names = () => begun.map(({ name }) => name)
  const gone = exchange()
  const first = ['a1', 'a2'].map((name) => serve(name))
  const leaving = expect(serve('a3', gone)).rejects.toThrow()
  const last = ['a4', 'a5'].map((name) => serve(name))
  await expect(serve('a6')).rejects.toThrow('3 requests of this account')
  void serve('b1')
  await waitFor(() => begun.length === 3, { what: 'the other account', everyMs: 1 })
  expect(names()).toEqual(['a1', 'a2', 'b1'])
  gone.request.socket.emit('close')
  await leaving
  const added = serve('a7')
  begun[1]?.end()
  await first[1]
  await waitFor(() => begun.length === 4, { what: 'the next one', everyMs: 1 })
  expect(names().at(-1)).toBe('a4')
  const endAll = () => {
    for (const { end } of begun) end()
    return begun.length === 6
  }
  await waitFor(endAll, { what: 'the rest', everyMs: 1 })
  endAll()
  expect(await Promise.all([...first, ...last, added])).toEqual(['a1', 'a2', 'a4', 'a5', 'a7'])
})

/** More than the system takes for a client that does not read. */
const ANSWER_BYTES = 32 * 2 ** 20

const search = endpoint({
  id: 'search',
  service: 'queue',
  topic: 'Server',
  path: '/v2/search',
  errors: [],
  cost: 'heavy',
  summary: 'Search',
  description: 'Reads many rows.',
  scopes: [],
  method: 'GET',
  auth: 'bearer',
  access: 'read',
  body: { kind: 'none' },
  success: { status: 200, description: 'nothing', body: Type.Any() },
})

async function listen(handler: Route, heavy?: HeavyRequests): Promise<HttpServer> {
  const caller = { accountId: 'a', email: 'a@x.test', accountType: 'paid', source: 'QUEUE_TOKEN' } as const
  const server = listener({
    routes: [handler],
    ...(heavy && { heavy }),
    authenticator: { basic: () => undefined, bearer: () => ({ ...caller, access: 'read', ip: '' }) },
  })
  await server.start()
  return server
}

it('a listener has the requests of a heavy endpoint take turns', async () => {
  let active = 0
  const open: (() => void)[] = []
  const handler = route(search, async () => {
    active++
    await new Promise<void>((resolve) => open.push(resolve))
    return { active: active-- }
  })
  const server = await listen(handler)
  const answers = Array.from({ length: 4 }, async () =>
    (await fetch(`http://127.0.0.1:${server.port}/v2/search`)).json(),
  )
  await waitFor(() => open.length === 2, { what: 'the first two' })
  for (const end of open.splice(0)) end()
  await waitFor(() => open.length === 2, { what: 'the others' })
  for (const end of open) end()
  for (const answer of answers) expect(((await answer) as { active: number }).active).toBeLessThanOrEqual(2)
  await server.stop()
})

it('a streamed response keeps its turn until it is sent or its client has left', async () => {
  const bodies: PassThrough[] = []
  const server = await listen(
    route(search, async () => {
      const body = new PassThrough()
      body.write('[')
      bodies.push(body)
      return reply(200, body, { 'content-type': 'application/json' })
    }),
  )
  const ask = (signal?: AbortSignal) => fetch(`http://127.0.0.1:${server.port}/v2/search`, signal ? { signal } : {})
  const gone = new AbortController()
  const [first] = await Promise.all([ask(), ask(gone.signal)])
  const others = [ask(), ask()]
  bodies[0]?.end(']')
  expect(await first?.json()).toEqual([])
  await waitFor(() => bodies.length === 3, { what: 'the third' })
  gone.abort()
  await waitFor(() => bodies.length === 4, { what: 'the fourth' })
  for (const body of bodies.slice(2)) body.end(']')
  for (const other of others) expect(await (await other).json()).toEqual([])
  await server.stop()
})

it('a client that reads nothing of a streamed response loses its turn, even if the response is fully written', async () => {
  const clock = new ManualClock()
  let asked = 0
  const answer = route(search, async () => {
    asked++
    return reply(200, Readable.from(['x'.repeat(ANSWER_BYTES)]), { 'content-type': 'text/plain' })
  })
  const server = await listen(answer, new HeavyRequests(9, clock))
  onTestFinished(() => server.stop(0))
  const silent = [1, 2].map(() => connect(server.port, '127.0.0.1').pause())
  for (const socket of silent) {
    socket.on('error', () => undefined)
    socket.write('GET /v2/search HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n\r\n')
    await once(socket, 'readable')
  }
  const third = fetch(`http://127.0.0.1:${server.port}/v2/search`, { headers: { authorization: 'Bearer t' } })
  expect(asked).toBe(2)
  const isServed = (): boolean => {
    clock.advance(60_000)
    return asked === 3
  }
  await waitFor(isServed, { what: 'the turn of the third' })
  expect((await (await third).text()).length).toBe(ANSWER_BYTES)
  for (const socket of silent) socket.destroy()
})
