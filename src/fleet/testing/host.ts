/**
 * A process with a fleet, for tests that kill it: `node host.js <dataDir>`, bundled with the launcher, starts one database with a
 * replica, writes a key, prints the process ids of its engines as JSON, and keeps running.
 */
import { systemClock } from '../../base/index.js'
import { silentLogger } from '../../telemetry/index.js'
import { createFleet, probeEngine } from '../index.js'
import { clientOf, specOf } from './test-fleet.js'

const [dataDir = ''] = process.argv.slice(2)
const fleet = createFleet({ dataDir, engine: await probeEngine(), clock: systemClock, logger: silentLogger })
await fleet.start()
await fleet.ensure(specOf('db_host', ['eu-west-1']))
const client = clientOf((await fleet.endpoints('db_host'))[0])
await client.set('key', 'value')
client.disconnect()
process.stdout.write(`${JSON.stringify(fleet.observe('db_host').map((member) => member.pid))}\n`)
