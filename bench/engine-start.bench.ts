/**
 * The time in which the fleet starts a new database, compared with the floor: one bare engine from spawn to PONG. The
 * two alternate, so that a busy moment of the machine affects both.
 *
 *   npm run bench engine-start
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/base/index.js'
import { createFleet, type EngineSpec, probeEngine } from '../src/fleet/index.js'
import { silentLogger } from '../src/telemetry/index.js'
import { bareSpawnToPong } from './support/engine-floor.js'
import { percentile } from './support/figures.js'

const ROUNDS = 40
const WARM_UP_ROUNDS = 5
const REPLICA_REGIONS = ['eu-west-1', 'ap-south-1', 'sa-east-1']

function specOf(databaseId: string, replicas: number): EngineSpec {
  const regions = REPLICA_REGIONS.slice(0, replicas)
  return {
    databaseId,
    members: [
      { region: 'us-east-1', role: 'primary' },
      ...regions.map((region) => ({ region, role: 'replica' }) as const),
    ],
    users: [{ name: 'default', password: 'secret', rules: '~* &* +@all -@dangerous' }],
    maxMemoryBytes: 256 * 1024 * 1024,
    eviction: false,
    persistence: 'append-only',
    state: 'running',
  }
}

const engine = await probeEngine()
const dataDir = mkdtempSync(join(tmpdir(), 'bench-'))
const fleet = createFleet({ dataDir, engine, clock: systemClock, logger: silentLogger })

async function timed(work: Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work
  return performance.now() - start
}

const figures: Record<'floor' | 'one' | 'two' | 'four' | 'wake' | 'remove', number[]> = {
  floor: [],
  one: [],
  two: [],
  four: [],
  wake: [],
  remove: [],
}

async function round(number: number): Promise<void> {
  figures.floor.push(await bareSpawnToPong(engine.binary))
  const id = `db_${number}`
  figures.one.push(await timed(fleet.ensure(specOf(id, 0))))
  await fleet.ensure({ ...specOf(id, 0), state: 'stopped' })
  figures.wake.push(await timed(fleet.ensure(specOf(id, 0))))
  figures.remove.push(await timed(fleet.remove(id)))
  figures.two.push(await timed(fleet.ensure(specOf(`${id}_two`, 1))))
  figures.four.push(await timed(fleet.ensure(specOf(`${id}_four`, 3))))
  await Promise.all([fleet.remove(`${id}_two`), fleet.remove(`${id}_four`)])
}

const LABELS: Readonly<Record<keyof typeof figures, string>> = {
  floor: 'bare engine, spawn to PONG',
  one: 'ensure: a primary',
  two: 'ensure: a primary and 1 linked replica',
  four: 'ensure: a primary and 3 linked replicas',
  wake: 'ensure: a stopped primary again',
  remove: 'remove: a primary',
}

await fleet.start()
for (let number = 0; number < WARM_UP_ROUNDS + ROUNDS; number++) {
  if (number === WARM_UP_ROUNDS) for (const values of Object.values(figures)) values.length = 0
  await round(number)
}
await fleet.stop()
rmSync(dataDir, { recursive: true, force: true })

const floorMs = percentile(figures.floor, 0.5)
for (const [name, values] of Object.entries(figures)) {
  const p50Ms = percentile(values, 0.5)
  const label = LABELS[name as keyof typeof figures].padEnd(42)
  console.log(
    `${label} p50 ${p50Ms.toFixed(1)} ms, p99 ${percentile(values, 0.99).toFixed(1)} ms, ${(p50Ms / floorMs).toFixed(2)} x floor`,
  )
}
