import Type from 'typebox'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { endpoint } from '../contract/endpoint.js'
import { route } from './index.js'
import { chunksOfLarge, chunksOfList, isLarge, isLongList } from './send.js'
import { listener } from './testing/listener.js'

const listOf = (length: number): unknown[] => Array.from({ length }, (_, index) => ({ index, name: `größe ${index}` }))
const joined = async (list: readonly unknown[]): Promise<string> => Buffer.concat(await chunksOfList(list)).toString()

it.each([501, 1_000, 1_001])(
  'the server serializes a list of %i items in chunks that join to its JSON',
  async (length) => {
    const list = listOf(length)
    expect(isLongList(list)).toBe(true)
    expect(await joined(list)).toBe(JSON.stringify(list))
  },
)

it('the server serializes few items with much text in chunks that are short as well', async () => {
  const list = Array.from({ length: 400 }, (_, index) => ({ index, ips: Array(10).fill('é'.repeat(1_000)) }))
  expect(isLongList(list)).toBe(true)
  const chunks = await chunksOfList(list)
  expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan(1_000_000)
  expect(Buffer.concat(chunks).toString()).toBe(JSON.stringify(list))
})

it('the server serializes short lists, and objects with lists, in one go', () => {
  expect(isLongList(listOf(500))).toBe(false)
  expect(isLongList({ items: listOf(5_000) })).toBe(false)
})

it.each([
  [
    {
      items: [{ text: 'é"'.repeat(600_000) }, { text: null, list: [] }, null],
      cursor: 'a',
      none: undefined,
      empty: [],
    },
  ],
  [{ none: undefined, items: [{ text: 'x'.repeat(2_000_000) }] }],
  [{ items: [{ headers: { name: ['x'.repeat(2_000_000)] } }] }],
  [{ body: `x${'\ud83d\ude00'.repeat(600_000)}\ud83d`, labels: ['a'] }],
  [{ body: '\ud83d'.repeat(1_200_000) }],
])('the server writes an object with much text in pieces as if in one', async (object) => {
  expect(isLarge(object)).toBe(true)
  expect(Buffer.concat(await chunksOfLarge(object)).toString()).toBe(JSON.stringify(object))
})

it('the server yields to the event loop within a long text', async () => {
  let turns = 0
  let isDone = false
  const look = (): unknown => !isDone && ++turns && setImmediate(look)
  setImmediate(look)
  await chunksOfLarge({ body: '\x01'.repeat(8_000_000) })
  isDone = true
  expect(turns).toBeGreaterThan(3)
})

it.each([{ items: listOf(5_000) }, { text: 'x'.repeat(1_000_000) }, {}, [], null, 'x'])(
  'serializes other responses in one go',
  (answer) => expect(isLarge(answer)).toBe(false),
)

it('the server yields to the event loop between the chunks of a list', async () => {
  let written = 0
  const list = Array.from({ length: 5_000 }, () => ({ toJSON: () => ++written }))
  const seen: number[] = []
  const pieces = chunksOfList(list)
  const look = (): unknown => written < list.length && seen.push(written) && setImmediate(look)
  look()
  await pieces
  expect(seen).toEqual([500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500])
})

describe('a long list as a response', () => {
  const items = endpoint({
    id: 'items',
    service: 'queue',
    topic: 'Server',
    method: 'GET',
    path: '/v2/items/{last}',
    auth: 'none',
    access: 'read',
    summary: 'items',
    description: 'items',
    params: Type.Object({ last: Type.String() }),
    body: { kind: 'none' },
    errors: [],
    success: { status: 200, description: 'items', body: Type.Any() },
  })
  const internalErrors: unknown[] = []
  const server = listener({
    onInternalError: (error) => internalErrors.push(error),
    routes: [route(items, async ({ params }) => [...listOf(2_000), params.last === 'broken' ? 1n : params.last])],
  })
  beforeAll(() => server.start())
  afterAll(() => server.stop())
  const ask = (last: string): Promise<Response> => fetch(`http://127.0.0.1:${server.port}/v2/items/${last}`)

  it('is sent completely, as JSON with its length', async () => {
    const answer = await ask('z')
    const text = await answer.text()
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(answer.headers.get('content-length')).toBe(String(Buffer.byteLength(text)))
    expect(text).toBe(JSON.stringify([...listOf(2_000), 'z']))
  })

  it('is an internal error without partial output if an item cannot be serialized', async () => {
    expect((await ask('broken')).status).toBe(500)
    expect(String(internalErrors)).toContain('BigInt')
  })
})
