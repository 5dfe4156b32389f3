import { expect, it } from 'vitest'
import type { Store } from '../../store/index.js'
import type { SelectPageArgs } from '../transactions/bulk-select.js'
import { idsInBatches, packAbsent } from './fixed-set.js'
import { selectRuns } from './select-runs.js'

/** How many runs a page of a filter reads. */
async function scanOf(filter: SelectPageArgs['filter']): Promise<number> {
  const scans: number[] = []
  const store = {
    describe: () => ({ kind: 'sqlite' }),
    run: async (_operation: unknown, { scan }: SelectPageArgs) => {
      scans.push(scan)
      return { seqs: [], next: undefined }
    },
  } as unknown as Store
  const bounds = { accountId: 'a', bound: 1, most: undefined, sample: 0 }
  await selectRuns(store, { ...bounds, target: { kind: 'matching', filter } })
  return scans[0] ?? 0
}

const texts = (count: number, characters: number) => Array.from({ length: count }, () => 'x'.repeat(characters))

it('a selection reads fewer runs at a time where each is compared with long labels or prefixes', async () => {
  expect(await scanOf({})).toBe(5_000)
  expect(await scanOf({ label: texts(100, 60), urlPrefix: texts(100, 60) })).toBe(5_000)
  expect(await scanOf({ label: texts(100, 8_000) })).toBe(125)
  expect(await scanOf({ label: texts(50, 8_000), urlPrefix: texts(50, 8_000) })).toBe(125)
  expect(await scanOf({ url: texts(100, 8_000) })).toBe(5_000)
})

it('a selection looks up long ids in small batches, and stores unknown ones in batches of the same size', async () => {
  const ids = Array.from({ length: 100 }, (_, index) => `${'x'.repeat(8_000)}${index}`)
  const batches = [...idsInBatches(ids, 5_000)]
  expect(batches.map(({ length }) => length)).toEqual([32, 32, 32, 4])
  expect(batches.flat()).toEqual(ids)
  const short = ids.map((id) => id.slice(-2))
  expect([...idsInBatches(short, 40)].map(({ length }) => length)).toEqual([40, 40, 20])
  expect([...idsInBatches(['x'.repeat(300_000), 'y'], 9)]).toHaveLength(2)
  expect([...idsInBatches([], 9)]).toEqual([])
  const stored = await packAbsent(new Set(ids))
  expect(stored.map(({ items }) => items)).toEqual([32, 32, 32, 4])
  expect(stored.flatMap((some) => JSON.parse(some.ids))).toEqual(ids)
})
