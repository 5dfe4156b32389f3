/**
 * Workflows with the real listener, as a separate process. The store is that of `BENCH_STORE`, `sqlite` or a URL. Sends
 * `{port, token}` on its IPC channel.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../../src/store/index.js'
import { startWorkflows } from '../../src/workflow/testing/harness.js'

const dataDir = mkdtempSync(join(tmpdir(), 'workflow-bench-'))
const onFailure = (error: Error): void => {
  throw error
}
const store = await openStore({ location: process.env.BENCH_STORE ?? 'sqlite', dataDir, onFailure })
const service = await startWorkflows({ store })
process.send?.({ port: Number(new URL(service.url).port), token: service.token })
process.once('disconnect', async () => {
  await service.stop()
  await store.close()
  rmSync(dataDir, { recursive: true, force: true })
  process.exit(0)
})
