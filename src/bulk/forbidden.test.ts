import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOnStore } from '../store/testing/index.js'
import { type BulkServer, startBulkServer } from './testing/harness.js'

const ALLOWED = 'https://192.0.9.9/hook'

describeOnStore('sqlite', 'callbacks of a bulk action to forbidden destinations', (openStore) => {
  let server: BulkServer
  beforeAll(async () => {
    server = await startBulkServer(await openStore(), { deliveryTargets: 'public' })
  })
  afterAll(() => server.stop())

  const start = (kind: string, headers: Record<string, string>, dryRun = false) =>
    server.ask('POST', '/v2/workflows/bulkActions', { kind, selector: {}, dryRun }, headers)

  it.each(['resumeRuns', 'restartRuns', 'retryDeadLetters'])('are refused with %s', async (kind) => {
    const refusal = { status: 403, body: { error: expect.stringContaining('public addresses only') } }
    for (const name of ['Callback', 'Failure-Callback', 'Failure-Callback-Callback']) {
      const headers = { 'Upstash-Failure-Callback': ALLOWED, [`Upstash-${name}`]: 'http://169.254.169.254/latest' }
      expect(await start(kind, headers)).toMatchObject(refusal)
      expect(await start(kind, headers, true)).toMatchObject(refusal)
    }
    expect((await server.ask('GET', '/v2/workflows/bulkActions')).body).toEqual({ bulkActions: [] })
    expect((await start(kind, { 'Upstash-Failure-Callback': ALLOWED }, true)).status).toBe(200)
  })
})
