import { afterEach, expect, it, vi } from 'vitest'
import { systemClock } from '../../base/index.js'
import { openStore as open } from '../open.js'
import { describeOnStore } from '../testing/index.js'

describeOnStore('postgres', 'the clock of the server', (_openStore, on) => {
  afterEach(() => {
    vi.restoreAllMocks()
  })
  const ours = (aheadMs: number) => vi.spyOn(systemClock, 'now').mockImplementation(() => Date.now() + aheadMs)

  it.each([
    [60_000, 'behind'],
    [-60_000, 'ahead of'],
  ])('must not differ at the start (ours is %d ms ahead)', async (aheadMs, how) => {
    const { location } = await on.newPlace()
    ours(aheadMs)
    const opening = open({ location, dataDir: '', onFailure: () => undefined })
    await expect(opening).rejects.toMatchObject({ code: 'store_clock_differs' })
    await expect(opening).rejects.toThrow(
      new RegExp(`The clock of PostgreSQL is (60\\.\\d|59\\.\\d) s ${how} the clock`),
    )
  })

  it('is watched while the store is open', async () => {
    const { location } = await on.newPlace()
    const onClock = vi.fn()
    const store = await open({ location, dataDir: '', onFailure: () => undefined, onClock })
    expect(onClock).toHaveBeenLastCalledWith(expect.any(Number), false)
    await store.close()
  })
})
