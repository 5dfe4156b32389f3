/**
 * Makes a store in `DATA_DIR`, or in the database `BENCH_STORE`, with `RUNS` runs to cancel, and writes the requests that
 * select them into `REQUESTS_DIR`. It is a separate process, so that the garbage of a million ids is not collected during a
 * measurement.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { makeRuns } from './bulk-data.js'
import { makeRunsOnPostgres } from './bulk-data-postgres.js'
import { requestsOf, SELECTORS, type SelectorName } from './bulk-requests.js'

const { DATA_DIR: dataDir = '', REQUESTS_DIR: requestsDir = '', RUNS: count = '', BENCH_STORE: url } = process.env
const ids = await (url ? makeRunsOnPostgres(url, Number(count)) : makeRuns(dataDir, Number(count)))
mkdirSync(requestsDir)
for (const [name, bodies] of Object.entries(SELECTORS)) {
  const files = requestsOf(requestsDir, name as SelectorName, ids.length)
  for (const [index, body] of bodies(ids).entries()) writeFileSync(files[index] ?? '', JSON.stringify(body))
}
process.send?.('ready')
process.once('disconnect', () => process.exit(0))
