import { expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import { read, write } from '../operation.js'
import { query } from '../query.js'
import { all, type InsertRow, insertNumbered, type Transaction } from '../statement.js'
import { describeOnStore } from '../testing/index.js'

const encoder = new TextEncoder()

const message = (url: string, body: string | null, crc: number | null): InsertRow<'messages'> => ({
  message_id: newId('msg_', 1),
  account_id: 'acc',
  kind: 'http',
  group_key: null,
  state: 'pending',
  url,
  method: 'POST',
  headers: '{}',
  body: body === null ? null : encoder.encode(body),
  body_crc: crc,
  config: '{}',
  max_retries: 0,
  retried: 0,
  next_at: 2 ** 41,
  created_at: 1,
  labels: '',
  host: 'x.test',
  path: '/',
  partition: 0,
})

/** `count` messages that differ in id and body only; every third has neither body nor checksum. */
const alike = (url: string, count: number) =>
  Array.from({ length: count }, (_, index) => {
    return index % 3 === 2 ? message(url, null, null) : message(url, `${url} ü ${index}`, index + 2 ** 31)
  })

const insert = write(
  'sharedRowsTest.insert',
  (rows: readonly InsertRow<'messages'>[]): Transaction<number[]> =>
    insertNumbered('messages', rows, 'message_id', ['message_id', 'body', 'body_crc']),
)
const inOrder = query<object, { seq: number } & InsertRow<'messages'>>(({ db }) =>
  db.selectFrom('messages').selectAll().orderBy('seq'),
)
const stored = read('sharedRowsTest.stored', () => all(inOrder, {}))

describeOnStore('postgres', 'rows that share most values', (openStore) => {
  const shapes = {
    'one run': () => alike('a', 30),
    'several runs': () => [...alike('a', 40), ...alike('b', 1), ...alike('a', 25)],
    'too few to share anything': () => alike('a', 3),
    'all different': () => Array.from({ length: 30 }, (_, index) => message(`url${index}`, 'body', index)),
  }
  for (const [shape, make] of Object.entries(shapes)) {
    it(`are stored and numbered in their order: ${shape}`, async () => {
      const store = await openStore()
      const rows = make()
      const numbers = await store.run(insert, rows)
      const found = await store.run(stored, {})
      expect(found.map(({ seq }) => seq)).toEqual(numbers)
      const columns = Object.keys(rows[0] ?? {})
      const plain = (row: object) =>
        columns.map((name) => {
          const value: unknown = Reflect.get(row, name)
          return value instanceof Uint8Array ? [...value] : value
        })
      expect(found.map(plain)).toEqual(rows.map(plain))
    })
  }

  it('are refused as a whole when one of them cannot be stored', async () => {
    const store = await openStore()
    const rows = alike('a', 40)
    const [first] = rows
    await expect(
      store.run(insert, [...rows.slice(1), { ...message('a', 'x', 1), message_id: 'msg\0' }]),
    ).rejects.toMatchObject({
      code: 'invalid_request',
    })
    await expect(store.run(insert, first ? [...rows, first] : [])).rejects.toThrow()
    expect(await store.run(stored, {})).toEqual([])
  })
})
