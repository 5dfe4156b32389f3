import { beforeAll, expect, it } from 'vitest'
import { describeOnEveryStore } from './testing/index.js'
import { add, install, list, type NewProbe, PROBE_MODULE, search, sumTwice, touch } from './testing/probe.js'
import type { Store } from './types.js'

/** Chooses from lists, the same each time. */
function randomChoice(seed: number): <Item>(list: readonly Item[]) => Item {
  let state = seed
  return <Item>(list: readonly Item[]) => {
    state = (state * 48_271) % 2_147_483_647
    return list[state % list.length] as Item
  }
}

describeOnEveryStore(
  'a value',
  (openStore) => {
    let store: Store
    beforeAll(async () => {
      store = await openStore()
      await store.run(install, {})
    })

    const kept = async (row: NewProbe) => {
      await store.run(add, { rows: [row] })
      const [found] = (await store.run(list, {})).filter(({ name }) => name === row.name)
      return found
    }

    it.each([0, -1, 2 ** 31, -(2 ** 31) - 1, 1_700_000_000_000, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])(
      'is stored exactly: the integer %d',
      async (amount) => {
        expect(await kept({ name: `integer ${amount}`, amount })).toMatchObject({ amount })
        expect(await store.run(touch, { name: `integer ${amount}`, amount })).toBe(1)
      },
    )

    it.each([
      '',
      ' ',
      'O\'Brien \\ "quoted"',
      'Zürich 東京 🏠 e\u0301',
      '{"json":[1,null]}',
      '%_*?$1 :name @x',
      '\t\r\n\u0001\u007f',
      'x'.repeat(1_000_000),
    ])('is stored exactly: the text %#', async (note) => {
      expect(await kept({ name: `text ${note.slice(0, 20)}`, note })).toMatchObject({ note })
    })

    it('is stored exactly: bytes of every value, none, and many', async () => {
      const every = Uint8Array.from({ length: 256 }, (_, index) => index)
      const row = await kept({ name: 'bytes', data: every })
      expect(row?.data?.constructor.name).toMatch(/^(Uint8Array|Buffer)$/)
      expect([...(row?.data ?? [])]).toEqual([...every])
      expect((await kept({ name: 'no bytes', data: new Uint8Array() }))?.data?.byteLength).toBe(0)
      expect((await kept({ name: 'many bytes', data: new Uint8Array(5_000_000).fill(7) }))?.data?.byteLength).toBe(
        5_000_000,
      )
    })

    it.each([1, 2, 3])(
      'is stored in each of many rows, of which most are the same in some columns: seed %d',
      async (seed) => {
        const oneOf = randomChoice(seed)
        const rows = Array.from({ length: 500 }, (_, index) => ({
          name: `row ${seed} ${String(index).padStart(3, '0')}`,
          amount: oneOf([null, 0, -1, 2 ** 40]),
          note: oneOf([null, '', 'a', 'ä'.repeat(index), '🏠'.repeat(3)]),
          data: oneOf([null, new Uint8Array(), new Uint8Array(index * 3).fill(index)]),
        }))
        await store.run(add, { rows })
        const found = (await store.run(list, {})).filter(({ name }) => name.startsWith(`row ${seed} `))
        const shown = ({ name, amount, note, data }: NewProbe) => [name, amount, note, data && [...data].join()]
        expect(found.map(shown)).toEqual(rows.map(shown))
      },
    )

    it('stores only the viewed range of a larger buffer', async () => {
      const view = Buffer.from('....kept....').subarray(4, 8)
      expect(Buffer.from((await kept({ name: 'view', data: view }))?.data ?? []).toString()).toBe('kept')
    })

    it('is NULL if it is null, undefined or missing', async () => {
      const nothing = { amount: null, note: null, data: null }
      expect(await kept({ name: 'null', ...nothing })).toMatchObject(nothing)
      expect(await kept({ name: 'undefined', amount: undefined as never })).toMatchObject(nothing)
      expect(await kept({ name: 'left out' })).toMatchObject(nothing)
    })

    it.each([1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, true, 1n, { a: 1 }, new Date(0), [[{}]]])(
      'is refused if the databases would store it differently: %s',
      async (amount) => {
        const rows = [{ name: 'refused', amount: amount as number }]
        await expect(store.run(add, { rows })).rejects.toThrow('the store does not keep')
        expect(await store.run(search, { how: 'startsWith', text: 'refused' })).toEqual([])
      },
    )

    it('is refused with invalid_request if a text contains U+0000', async () => {
      await expect(store.run(add, { rows: [{ name: 'a\0b' }] })).rejects.toMatchObject({ code: 'invalid_request' })
      const refused = store.run(search, { how: 'inTexts', texts: ['fine', 'a\0b'] })
      await expect(refused).rejects.toMatchObject({ code: 'invalid_request' })
    })

    it('is a number in sums, counts and comparisons', async () => {
      const own = await openStore()
      await own.run(install, {})
      await own.run(add, {
        rows: [
          { name: 'a', amount: 2 ** 40 },
          { name: 'b', amount: 2 },
        ],
      })
      const expected = { total: 2 ** 40 + 2, many: 2, high: 2 ** 40, odd: 1 }
      expect(await own.run(sumTwice, {})).toEqual({ before: expected, after: expected })
    })
  },
  [PROBE_MODULE],
)
