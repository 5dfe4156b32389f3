import { expect, it } from 'vitest'
import * as storeProbe from '../accounts/transactions/store-probe.js'
import * as messagesCensus from '../queue/transactions/messages-census.js'
import * as messagesSettle from '../queue/transactions/messages-settle.js'
import { StoreMeter } from '../telemetry/index.js'
import { openStore } from './open.js'
import { describeOnEveryStore } from './testing/index.js'

describeOnEveryStore('the meter of a store', (_openStore, { newPlace }) => {
  it('counts each transaction once, also those that share a call, and those that fail', async () => {
    const meter = new StoreMeter()
    const store = await openStore({ ...(await newPlace()), onFailure: () => undefined, meter })
    const attempt = { startedAt: 1, status: 200, headers: '{}', body: null, error: null }
    // Started in one tick, these become one call.
    const deliveries = [1, 2, 3].map((seq) => store.run(messagesSettle.deliver, { seq, retried: 0, at: 2, attempt }))
    expect(meter.write.pending).toBe(3)
    await Promise.all([...deliveries, store.run(messagesCensus.earliest, { except: [] })])
    await store.run(storeProbe.probe, {})
    const unstorable = { seq: Symbol('no number') as never, retried: 0, at: 2, attempt }
    await expect(store.run(messagesSettle.deliver, unstorable)).rejects.toThrow()
    const counts = [meter.write, meter.read].map(({ duration }) => duration.counts.reduce((sum, count) => sum + count))
    expect([meter.write.pending, meter.read.pending]).toEqual([0, 0])
    expect(counts[1]).toBe(1)
    expect(counts[0]).toBeGreaterThanOrEqual(4)
    expect(meter.write.duration.sum).toBeGreaterThan(0)
    await store.close()
  })
})
