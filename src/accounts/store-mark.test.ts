import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/support/temp-dir.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { describeOnEveryStore } from '../store/testing/index.js'
import { Problems, silentLogger } from '../telemetry/index.js'
import { StoreMark } from './store-mark.js'
import * as accounts from './transactions/accounts.js'

describeOnEveryStore('the mark of a store', (openStore, on) => {
  const entry = { account_id: 'a', actor: '', source: '', action: 'x', entity: '', details: '{}', ip: '', at: 1 }

  it('reports a store that has lost commits, and no other', async () => {
    const dataDir = tempDir()
    const clock = new ManualClock(1_000)
    const live = async (store: Awaited<ReturnType<typeof openStore>>, acts: readonly string[]) => {
      const problems = new Problems(clock, silentLogger)
      const mark = new StoreMark({ store, dataDir, clock, logger: silentLogger, problems })
      await store.run(accounts.identify, { freshId: 'id', at: 1 })
      await mark.start()
      for (const log_id of acts) await store.run(accounts.audit, { ...entry, log_id })
      await mark.stop()
      await store.close()
      return problems.visibleTo('')
    }
    const place = await on.newPlace()
    expect(await live(await openStore(place), ['one', 'two', 'three'])).toEqual([])
    expect(await live(await openStore(place), [])).toEqual([])
    const older = await on.newPlace()
    const reported = [
      { kind: 'store_damaged', title: expect.stringContaining('3 entries of the audit log are missing') },
    ]
    expect(await live(await openStore(older), [])).toMatchObject(reported)
    expect(await live(await openStore(older), [])).toMatchObject(reported)
    rmSync(join(dataDir, 'store-mark'))
    expect(await live(await openStore(older), [])).toEqual([])
  })
})
