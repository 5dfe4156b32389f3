import { beforeAll, beforeEach, expect, it } from 'vitest'
import * as accounts from '../accounts/transactions/accounts.js'
import { describeOnEveryStore } from './testing/index.js'
import { add, addSingle, increase, install, list, PROBE_MODULE, sumTwice, uncloneable } from './testing/probe.js'
import type { Store } from './types.js'

const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `row ${index}`)

describeOnEveryStore(
  'a transaction',
  (openStore, on) => {
    let store: Store
    const names = async (of = store): Promise<string[]> => (await of.run(list, {})).map(({ name }) => name)

    beforeAll(async () => {
      store = await openStore()
    })
    beforeEach(() => store.run(install, {}))

    it('is visible to the next reader, and after the store is reopened', async () => {
      const place = await on.newPlace()
      const first = await openStore(place)
      await first.run(install, {})
      await first.run(add, { rows: [{ name: 'kept' }] })
      expect(await names(first)).toEqual(['kept'])
      await first.close()
      expect(await names(await openStore(place))).toEqual(['kept'])
    })

    it('changes nothing if it is refused, and passes the error to the caller', async () => {
      const refused = store.run(add, { rows: [{ name: 'refused' }], refuseWith: 'Not today.' })
      await expect(refused).rejects.toMatchObject({ code: 'invalid_request', message: 'Not today.', status: 400 })
      expect(await names()).toEqual([])
    })

    it('changes nothing if a statement fails, and names the operation', async () => {
      const rows = [{ name: 'first' }, { name: 'twice' }, { name: 'twice' }]
      await expect(store.run(add, { rows })).rejects.toThrow(/^store operation probe\.add failed: .*unique/i)
      expect(await names()).toEqual([])
    })

    it('does not affect others of the same tick if it is refused', async () => {
      const work = numbered(300).map((name, index) =>
        store.run(add, { rows: [{ name }], ...(index % 3 === 0 ? { refuseWith: 'Every third.' } : {}) }),
      )
      const outcomes = await Promise.allSettled(work)
      expect(outcomes.map(({ status }) => status)).toEqual(
        numbered(300).map((_, index) => (index % 3 === 0 ? 'rejected' : 'fulfilled')),
      )
      expect(new Set(await names())).toEqual(new Set(numbered(300).filter((_, index) => index % 3 !== 0)))
    })

    it('does not affect others if its arguments or result cannot be cloned', async () => {
      const good = (name: string) => store.run(add, { rows: [{ name }] })
      const outcomes = await Promise.allSettled([
        good('a'),
        store.run(add, { rows: [{ name: 'b', note: (() => undefined) as never }] }),
        good('c'),
      ])
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      await Promise.allSettled([store.run(uncloneable, { rows: [{ name: 'd' }] }), good('e')])
      expect(await names()).toEqual(expect.arrayContaining(['a', 'c', 'e']))
      expect(await names()).not.toContain('b')
    })

    it('does not overwrite a concurrent change of the same row', async () => {
      await store.run(add, { rows: [{ name: 'shared', amount: 0 }] })
      const work = Array.from({ length: 200 }, () => store.run(increase, { names: ['shared'], by: 1 }))
      expect(new Set(await Promise.all(work)).size).toBe(200)
      expect((await store.run(list, {}))[0]?.amount).toBe(200)
    })

    it('is retried after a deadlock', async () => {
      await store.run(add, { rows: ['a', 'b', 'c'].map((name) => ({ name, amount: 0 })) })
      const orders = [
        ['a', 'b', 'c'],
        ['c', 'b', 'a'],
        ['b', 'c', 'a'],
      ]
      const work = Array.from({ length: 6 }, (_, index) =>
        store.run(increase, { names: orders[index % orders.length] ?? [], by: 1 }),
      )
      await Promise.all(work)
      expect((await store.run(list, {})).map(({ amount }) => amount)).toEqual([6, 6, 6])
    })

    it('that reads sees one snapshot during concurrent writes', async () => {
      await store.run(add, { rows: numbered(50).map((name) => ({ name, amount: 1 })) })
      let writing = true
      const writer = (async () => {
        for (let i = 0; writing; i++) await store.run(add, { rows: [{ name: `extra ${i}`, amount: 1 }] })
      })()
      for (let i = 0; i < 10; i++) {
        const { before, after } = await store.run(sumTwice, {})
        expect(after).toEqual(before)
        expect(before.total).toBe(before.many)
      }
      writing = false
      await writer
    })

    it('inserts more rows at once than a statement can have parameters', async () => {
      const rows = numbered(20_000).map((name, amount) => ({ name, amount, note: 'many', data: null }))
      expect(await store.run(add, { rows })).toBe(20_000)
      expect(await names()).toEqual(rows.map(({ name }) => name))
    })

    it('of one statement changes nothing if one of its rows is refused, however many bytes they have', async () => {
      const data = new Uint8Array(6_000_000).fill(1)
      const rows = ['a', 'b', 'c', 'd'].map((name) => ({ name, data }))
      await expect(store.run(addSingle, { rows: [...rows, { name: 'a', data }] })).rejects.toThrow(/unique/i)
      expect(await names()).toEqual([])
      await store.run(addSingle, { rows })
      expect((await store.run(list, {})).map((row) => row.data?.byteLength)).toEqual(rows.map(() => data.byteLength))
    })

    it('inserts rows with columns in another order', async () => {
      await store.run(add, {
        rows: [
          { name: 'a', amount: 1, note: 'x' },
          { note: 'y', amount: 2, name: 'b' },
        ],
      })
      expect(await store.run(list, {})).toMatchObject([
        { name: 'a', amount: 1, note: 'x' },
        { name: 'b', amount: 2, note: 'y' },
      ])
      const different = [{ name: 'c', amount: 1 }, { name: 'd' }]
      await expect(store.run(add, { rows: different })).rejects.toThrow('differ in their columns')
    })

    it('finishes before the store closes, and is refused afterwards', async () => {
      const own = await on.newPlace()
      const closing = await openStore(own)
      await closing.run(install, {})
      const work = numbered(500).map((name) => closing.run(add, { rows: [{ name }] }))
      const reads = Array.from({ length: 20 }, () => closing.run(list, {}))
      await Promise.all([closing.close(), closing.close()])
      expect((await Promise.allSettled([...work, ...reads])).filter(({ status }) => status === 'rejected')).toEqual([])
      await expect(closing.run(list, {})).rejects.toMatchObject({ code: 'starting' })
      expect(await names(await openStore(own))).toHaveLength(500)
    })

    it('that inserts changes nothing if a foreign key fails', async () => {
      const account_id = 'acc_1'
      const account = { account_id, email: 'a@example.com', type: 'paid', created_at: 1 } as const
      const rest = { queue_user_id: 'u', queue_token_hash: 'h', signing_current: 'c', signing_next: 'n' }
      const key = {
        key_id: 'k',
        account_id: 'somebody else',
        name: 'n',
        key_hash: 'h',
        read_only: 0,
        created_at: 1,
      } as const
      await expect(store.run(accounts.create, { account: { ...account, ...rest }, key })).rejects.toThrow(
        /foreign key/i,
      )
      expect(await store.run(accounts.load, {})).toMatchObject({ accounts: [], keys: [] })
    })
  },
  [PROBE_MODULE],
)
