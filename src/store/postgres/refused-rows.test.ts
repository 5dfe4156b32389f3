import { expect, it, vi } from 'vitest'
import { newId } from '../../base/index.js'
import { openStore as openPlace } from '../open.js'
import { read, write } from '../operation.js'
import { query } from '../query.js'
import { all, askChange, askInsert, askNumbers, atOnce, type InsertRow, type Transaction } from '../statement.js'
import { describeOnStore } from '../testing/index.js'
import { raw } from '../testing/inspect.js'

const message = (url: string): InsertRow<'messages'> => ({
  message_id: newId('msg_', 1),
  account_id: 'acc',
  kind: 'http',
  state: 'pending',
  url,
  method: 'POST',
  headers: '{}',
  config: '{}',
  max_retries: 0,
  retried: 0,
  next_at: 1,
  created_at: 1,
  partition: 0,
  labels: '',
  host: 'x.test',
  path: '/',
})
const key = (name: string): InsertRow<'message_keys'> => ({
  account_id: 'acc',
  dedup_key: name,
  message_id: 'msg',
  expires_at: 1,
})

const keyed = write('refusedRowsTest.keyed', function* (url: string): Transaction<number[]> {
  const [, numbers] = yield* atOnce(
    [
      askInsert('message_keys', [key(url.slice(0, 4))]),
      askNumbers('messages', [message('ok'), message(url)], 'message_id'),
    ],
    'last',
  )
  return numbers
})

const pair = write('refusedRowsTest.pair', function* (names: readonly [string, string]): Transaction<void> {
  yield* atOnce(
    [askInsert('message_keys', [key(names[0])]), askChange(rename, { from: names[0], to: names[1] })],
    'last',
  )
})
const rename = query<{ from: string; to: string }>(({ db, p }) =>
  db.updateTable('message_keys').set({ dedup_key: p.to }).where('dedup_key', '=', p.from),
)

const keys = query<object, { dedup_key: string }>(({ db }) => db.selectFrom('message_keys').select('dedup_key'))
const stored = read('refusedRowsTest.stored', () => all(keys, {}))

describeOnStore('postgres', 'a transaction that ends with rows', (openStore, on) => {
  it('stores nothing if one of them cannot be sent', async () => {
    const store = await openStore()
    expect(await store.run(keyed, 'url1')).toHaveLength(2)
    await expect(store.run(keyed, 'url2\0')).rejects.toMatchObject({ code: 'invalid_request' })
    expect(await store.run(stored, {})).toEqual([{ dedup_key: 'url1' }])
  })

  it('stores nothing if PostgreSQL refuses one, at first and when all are sent in one packet', async () => {
    const store = await openStore()
    const names = async () => (await store.run(stored, {})).map((row) => row.dedup_key).sort()
    await store.run(pair, ['a', 'taken'])
    await expect(store.run(pair, ['b', 'taken'])).rejects.toThrow(/duplicate key/)
    expect(await names()).toEqual(['taken'])
    await store.run(pair, ['c', 'd'])
    await expect(store.run(pair, ['e', 'd'])).rejects.toThrow(/duplicate key/)
    expect(await names()).toEqual(['d', 'taken'])
  })

  it('says that the disk of PostgreSQL is full', async () => {
    const place = await on.newPlace()
    const onFull = vi.fn()
    const store = await openPlace({ ...place, onFailure: () => undefined, onFull })
    await store.run(pair, ['a', 'b'])
    const full = "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'"
    await raw(
      place,
    ).execute(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN ${full.replaceAll("'", "''")}; END';
      CREATE TRIGGER full_disk BEFORE INSERT ON message_keys EXECUTE FUNCTION full_disk()`)
    await expect(store.run(pair, ['c', 'd'])).rejects.toMatchObject({ code: 'store_full' })
    expect(onFull).toHaveBeenCalledTimes(1)
    await store.close()
  })
})
