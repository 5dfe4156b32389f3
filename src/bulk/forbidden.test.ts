import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOnStore } from '../store/testing/index.js'
import { type House, startHouse } from './testing/harness.js'

const ALLOWED = 'https://192.0.9.9/hook'

describeOnStore('sqlite', 'callbacks that a bulk action would set, where this server may not go', (openStore) => {
  let house: House
  beforeAll(async () => {
    house = await startHouse(await openStore(), { deliveryTargets: 'public' })
  })
  afterAll(() => house.stop())

  const start = (kind: string, headers: Record<string, string>, dryRun = false) =>
    house.ask('POST', '/v2/workflows/bulkActions', { kind, selector: {}, dryRun }, headers)

  it.each(['resumeRuns', 'restartRuns', 'retryDeadLetters'])('are refused with %s', async (kind) => {
    const refusal = { status: 403, body: { error: expect.stringContaining('public addresses only') } }
    for (const name of ['Callback', 'Failure-Callback', 'Failure-Callback-Callback']) {
      const headers = { 'Upstash-Failure-Callback': ALLOWED, [`Upstash-${name}`]: 'http://169.254.169.254/latest' }
      expect(await start(kind, headers)).toMatchObject(refusal)
      expect(await start(kind, headers, true)).toMatchObject(refusal)
    }
    expect((await house.ask('GET', '/v2/workflows/bulkActions')).body).toEqual({ bulkActions: [] })
    expect((await start(kind, { 'Upstash-Failure-Callback': ALLOWED }, true)).status).toBe(200)
  })
})
