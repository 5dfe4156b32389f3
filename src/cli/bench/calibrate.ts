import { createHash } from 'node:crypto'
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { randomSecret } from '../../base/index.js'
import { quantile } from './load.js'
import type { Machine } from './model.js'

/** Processor time of the work unit on the reference machine, milliseconds. */
const REFERENCE_UNIT_MS = 0.97

/** The first rounds compile the work unit and do not count. */
const UNIT_ROUNDS = 500
const COUNTED_ROUNDS = 100
const SYNCS = 200
const PAGE_BYTES = 4_096

/**
 * Measures this machine for the cost model of a server that runs here with its data in `dataDir`. Takes about a second, in
 * which the server should have no other load.
 */
export const measureMachine = (dataDir: string): Machine => ({
  cores: availableParallelism(),
  speed: REFERENCE_UNIT_MS / unitMs(),
  syncUs: syncUs(dataDir),
  sharesCores: true,
})

/**
 * Processor time of a unit of work like the server's, milliseconds: it parses, hashes and writes JSON. Returns the lower
 * quartile, because other load can only add time.
 */
function unitMs(): number {
  const rounds = Array.from({ length: UNIT_ROUNDS }, () => {
    const before = process.cpuUsage()
    workUnit()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  })
  return quantile(Float64Array.from(rounds.slice(-COUNTED_ROUNDS)).sort(), 0.25)
}

const UNIT_STEPS = 400

function workUnit(): void {
  let message = { id: 'msg_0', url: 'http://127.0.0.1/hook', headers: { a: ['b'], c: ['d'] }, body: 'x'.repeat(64) }
  for (let step = 0; step < UNIT_STEPS; step++) {
    const text = JSON.stringify(message)
    const id = createHash('sha256').update(text).digest('base64url')
    message = { ...(JSON.parse(text) as typeof message), id }
  }
}

/** Median time of a page written durably, microseconds. The file is removed afterwards. */
function syncUs(directory: string): number {
  const path = join(directory, `bench-${randomSecret(8)}.tmp`)
  const file = openSync(path, 'wx', 0o600)
  try {
    const page = Buffer.alloc(PAGE_BYTES, 1)
    const times = Array.from({ length: SYNCS }, (_, index) => {
      const before = performance.now()
      writeSync(file, page, 0, PAGE_BYTES, index * PAGE_BYTES)
      fdatasyncSync(file)
      return (performance.now() - before) * 1_000
    })
    return quantile(Float64Array.from(times).sort(), 0.5)
  } finally {
    closeSync(file)
    rmSync(path, { force: true })
  }
}
