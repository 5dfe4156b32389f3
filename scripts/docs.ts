/** `npm run docs`: writes the pages that are generated from the sources, and the schema that the migrations make. */
import { writeFileSync } from 'node:fs'
import { scalePage } from '../src/cli/bench/scale-page.js'
import { configurationPage } from '../src/config/index.js'
import { MIGRATIONS } from '../src/store/migrations/index.js'
import { describeNewStore } from '../src/store/testing/new-store.js'
import { logsPage } from '../src/telemetry/logs-page.js'
import { metricsPage } from '../src/telemetry/metrics-page.js'

const write = (name: string, page: string): void => writeFileSync(new URL(`../docs/${name}`, import.meta.url), page)

write('configuration.md', configurationPage())
write('metrics.md', metricsPage())
write('logs.md', logsPage())
write('scale.md', scalePage())

const newStore = JSON.stringify(describeNewStore(MIGRATIONS), undefined, 2)
writeFileSync(new URL('../src/store/sqlite/new-store.json', import.meta.url), `${newStore}\n`)
