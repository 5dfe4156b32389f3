import { beforeAll, expect, it } from 'vitest'
import { unitMs, workMs } from '../../test/support/processor-time.js'
import { openSqlite } from '../base/index.js'
import { postgresDialect, sqliteDialect } from './dialect.js'
import { declaredQueries, queriesByShape, query } from './query.js'
import { describeOnEveryStore } from './testing/index.js'
import { add, countEach, install, list, PROBE_MODULE, search } from './testing/probe.js'
import type { Store } from './types.js'

/** Sorted by their UTF-8 bytes, as the store does. */
const NAMES = ['%', '100%', '100% sure', '100x sure', 'A', 'B', '_', 'a', 'a_b', 'axb', 'b', 'é', '東京', '🏠']

describeOnEveryStore(
  'a query',
  (openStore) => {
    let store: Store
    const found = (args: Parameters<(typeof search)['body']>[0]) => store.run(search, args)

    beforeAll(async () => {
      store = await openStore()
      await store.run(install, {})
      const shuffled = NAMES.map((name, index) => ({ name, amount: index })).sort(
        (a, b) => ((a.amount * 5) % 14) - ((b.amount * 5) % 14),
      )
      await store.run(add, { rows: shuffled })
    })

    it('sorts texts by their bytes, regardless of the locale', async () => {
      expect(await found({ how: 'all' })).toEqual(NAMES)
    })

    it('returns rows in the order of insertion if requested', async () => {
      const ids = (await store.run(list, {})).map(({ id }) => id)
      expect(ids).toEqual([...ids].sort((a, b) => a - b))
    })

    it.each([
      ['100%', ['100%', '100% sure']],
      ['100', ['100%', '100% sure', '100x sure']],
      ['_', ['_']],
      ['a', ['a', 'a_b', 'axb']],
      ['é', ['é']],
      ['nothing', []],
      ['', NAMES],
    ])('finds by the start %j without wildcards and with regard to case', async (text, expected) => {
      expect(await found({ how: 'startsWith', text })).toEqual(expected)
    })

    it.each([
      ['%', ['%', '100%', '100% sure']],
      ['_', ['_', 'a_b']],
      ['b', ['a_b', 'axb', 'b']],
      ['B', ['B']],
      ['京', ['東京']],
      ['', NAMES],
    ])('finds by the part %j without wildcards and with regard to case', async (text, expected) => {
      expect(await found({ how: 'contains', text })).toEqual(expected)
    })

    it('takes each list of numbers that statements share, also after a refusal and beside other calls', async () => {
      const [one = 0, two = 0, three = 0] = (await store.run(list, {})).map(({ id }) => id)
      const pair = [one, two]
      const lists = [pair, pair, [three, three, -1], [], pair]
      const counted = [2, 2, 1, 0, 2]
      await expect(store.run(countEach, { lists, refuseWith: 'no' })).rejects.toThrow('no')
      const calls = [store.run(countEach, { lists }), store.run(countEach, { lists: [[three]], refuseWith: 'no' })]
      const [first, second, third] = await Promise.allSettled([...calls, store.run(countEach, { lists: [pair] })])
      expect([first, second?.status, third]).toMatchObject([{ value: counted }, 'rejected', { value: [2] }])
    })

    it('finds by a list of texts', async () => {
      expect(
        await found({ how: 'inTexts', texts: ['🏠', 'a_b', 'not there', "'", '"', '{a,b}', '\\', 'NULL', ''] }),
      ).toEqual(['a_b', '🏠'])
      expect(await found({ how: 'inTexts', texts: [] })).toEqual([])
    })

    it('finds by a list of integers', async () => {
      expect(await found({ how: 'inNumbers', numbers: [13, 0, 99, Number.MAX_SAFE_INTEGER] })).toEqual(['%', '🏠'])
      expect(await found({ how: 'inNumbers', numbers: [] })).toEqual([])
    })

    it('finds by a list of 100,000', async () => {
      const numbers = Array.from({ length: 100_000 }, (_, index) => index)
      expect(await found({ how: 'inNumbers', numbers })).toEqual(NAMES)
      expect(await found({ how: 'inTexts', texts: numbers.map(String).concat('a') })).toEqual(['a'])
    })

    it('finds texts that start with one of a list', async () => {
      expect(await found({ how: 'someStart', texts: ['100%', 'a_'] })).toEqual(['100%', '100% sure', 'a_b'])
      expect(await found({ how: 'someStart', texts: [] })).toEqual([])
    })

    it('treats a quotation mark as an ordinary character', async () => {
      for (const text of ["'; DROP TABLE probe; --", '"', '$1', '?', '\\'])
        expect(await found({ how: 'contains', text })).toEqual([])
      expect(await found({ how: 'all' })).toHaveLength(NAMES.length)
    })
  },
  [PROBE_MODULE],
)

it('the store writes constant numbers into the SQL, so that SQLite plans the statement once', () => {
  const oldest = query<{ kind: string }>(({ db, p }) =>
    db.selectFrom('messages').select('seq').where('retried', '>', 0).where('kind', '=', p.kind).orderBy('seq').limit(1),
  )
  const { sql, slots } = oldest.compile(sqliteDialect)
  expect(sql).toMatch(/"retried" > 0 and "kind" = \? order by "seq" limit 1$/)
  expect(slots).toEqual([{ parameter: 'kind' }])
})

/** Rows of a page of a search, and the longest list that a filter may have. */
const SEARCHED_ROWS = 4_000
const LONG_TEXTS = Array.from({ length: 100 }, (_, index) => `https://example.com/${'x'.repeat(8_000)}${index}`)

it.each(['startsWith', 'contains'] as const)(
  'the store tests rows with a list of long texts in little time: %s',
  (test) => {
    const { sql } = query<{ texts: readonly string[] }>(({ db, p, d }) =>
      db
        .selectFrom('url_groups')
        .select('name')
        .where(d.someText(p.texts, (item) => d[test]('name', item))),
    ).compile(sqliteDialect)
    const db = openSqlite(':memory:', { readOnly: false, busyTimeoutMs: 0 })
    db.exec('CREATE TABLE url_groups (name TEXT)')
    const add = db.prepare('INSERT INTO url_groups VALUES (?)')
    for (let row = 0; row < SEARCHED_ROWS; row++) add.run(`https://example.com/${row}`)
    const search = db.prepare(sql)
    const texts = JSON.stringify([...LONG_TEXTS, 'https://example.com/3999'])
    expect(search.all(texts)).toHaveLength(1)
    const spentMs = Math.min(...[1, 2, 3].map(() => workMs(() => search.all(texts))))
    db.close()
    expect(spentMs / unitMs()).toBeLessThan(15)
  },
)

it('the store keeps the first shapes of a list, and a bounded number of later ones that connections forget', () => {
  const byLimit = queriesByShape<[number], { kind: string }, { seq: number }>(({ db, p }, limit) =>
    db.selectFrom('messages').select('seq').where('kind', '=', p.kind).limit(limit),
  )
  const before = declaredQueries().length
  const first = byLimit(1)
  const all = Array.from({ length: 1_000 }, (_, index) => byLimit(index + 1))
  for (const limit of [1, 64, 1_000]) expect(byLimit(limit)).toBe(all[limit - 1])
  expect(byLimit(65)).not.toBe(all[64])
  expect(declaredQueries().length - before).toBe(64)
  expect(first.compile(postgresDialect).name).toMatch(/^q\d+$/)
  const { name, sql } = byLimit(65).compile(postgresDialect)
  expect([name, sql]).toEqual([undefined, expect.stringContaining('limit')])
})
