/**
 * A queue with its real listener, as a separate process. Its store is that of `BENCH_STORE`, `sqlite` or a URL. Sends
 * `{port, token}` on its IPC channel. It exports traces if its environment names an endpoint for them.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { telemetryVariablesOfProcess } from '../../src/config/index.js'
import { openTelemetry } from '../../src/opentelemetry/index.js'
import { startQueue } from '../../src/queue/testing/harness.js'
import { openStore } from '../../src/store/index.js'
import { silentLogger } from '../../src/telemetry/index.js'

const dataDir = mkdtempSync(join(tmpdir(), 'queue-bench-'))
const onFailure = (error: Error): void => {
  throw error
}
const store = await openStore({ location: process.env.BENCH_STORE ?? 'sqlite', dataDir, onFailure })
const deliveryConcurrency = Number(process.env.BENCH_CONCURRENCY ?? 100)
const exporting = await openTelemetry(telemetryVariablesOfProcess(), silentLogger)
const service = await startQueue({ store, deliveryConcurrency, tracer: exporting?.tracer })
process.send?.({ port: Number(new URL(service.url).port), token: service.token })
process.once('disconnect', async () => {
  await service.stop()
  await exporting?.stop()
  await store.close()
  rmSync(dataDir, { recursive: true, force: true })
  process.exit(0)
})
