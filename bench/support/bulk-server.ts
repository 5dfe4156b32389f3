/**
 * The queue, workflows and bulk actions over the data directory `DATA_DIR` or the database `BENCH_STORE`, behind the real
 * listener, as a separate process. Sends `{url, token, memoryBytes}` on its IPC channel, and answers any message with
 * `{memoryBytes}`: the most resident memory so far.
 */
import { startBulkServer } from '../../src/bulk/testing/harness.js'
import { openStore } from '../../src/store/index.js'

const onFailure = (error: Error): void => {
  throw error
}
const { BENCH_STORE: location = 'sqlite', DATA_DIR: dataDir = '' } = process.env
const store = await openStore({ location, dataDir, onFailure })
const house = await startBulkServer(store)
const memoryBytes = (): number => process.resourceUsage().maxRSS * 1_024
process.on('message', () => process.send?.({ memoryBytes: memoryBytes() }))
process.send?.({ url: house.url, token: house.token, memoryBytes: memoryBytes() })
process.once('disconnect', async () => {
  await house.stop()
  await store.close()
  process.exit(0)
})
