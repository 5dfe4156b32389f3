import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/support/temp-dir.js'
import { waitFor } from '../../test/support/wait-for.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { BackupState } from './make.js'
import { backupName, FORMAT, MANIFEST_FILE, type Manifest } from './manifest.js'
import { folderPlace } from './place.js'
import { BackupSchedule } from './schedule.js'

const QUARTER_MS = 15 * 60_000
const DAY_MS = 24 * 60 * 60_000
const T = 1_760_000_000_000

const manifestAt = (startedAt: number, failed = 0, installation = 'own'): Manifest => ({
  installation,
  format: FORMAT,
  version: '1',
  schema: 1,
  startedAt,
  endedAt: startedAt,
  files: [],
  databases: Array.from({ length: failed }, (_, n) => ({
    databaseId: `0000000${n}-0000-4000-8000-000000000000`,
    name: 'lost',
    region: 'us-east-1',
    persistence: 'snapshot' as const,
    state: 'failed' as const,
    problem: 'its engine does not answer',
  })),
})

function put(folder: string, manifest: Manifest): string {
  const name = backupName(manifest.startedAt)
  mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, name, MANIFEST_FILE), JSON.stringify(manifest))
  return name
}

/** A schedule over a folder whose backups have no content. */
async function schedule({ failed = 0, keep = 7, existing = [] as readonly number[], of = 'own' }) {
  const clock = new ManualClock(T)
  const folder = tempDir()
  for (const at of existing) put(folder, manifestAt(at, 0, of))
  const place = folderPlace(folder)
  const made: number[] = []
  let problem: string | undefined
  let looks = 0
  let state: BackupState = { kind: 'none' }
  const begin = async () => {
    const manifest = manifestAt(clock.now(), failed)
    made.push(clock.now())
    const name = put(folder, manifest)
    await place?.keepNewest(keep, name, manifest)
    state = { kind: 'completed', path: join(folder, name), manifest }
  }
  let making = Promise.resolve()
  const backups = new BackupSchedule({
    to: folder,
    everyMs: DAY_MS,
    keep,
    clock,
    placeAt: () => place,
    installation: async () => 'own',
    backups: {
      begin: () => {
        making = begin()
      },
      ended: async () => {
        await making
        return state
      },
    },
    problems: {
      report: ({ title }) => {
        looks++
        problem = title
      },
      resolve: () => {
        looks++
        problem = undefined
      },
    },
  })
  await backups.start()
  const lookAfter = async (ms: number) => {
    const before = looks
    clock.advance(ms)
    await waitFor(() => looks > before && clock.pendingTimers > 0, { what: 'a look' })
  }
  await lookAfter(0)
  return { made, lookAfter, problem: () => problem, names: () => readdirSync(folder).sort() }
}

it('the schedule makes one backup a day although one exists from when the clock was ahead', async () => {
  const ahead = T + 300 * DAY_MS
  const { made, lookAfter, names } = await schedule({ keep: 1, existing: [T - 2 * DAY_MS, ahead] })
  for (let look = 0; look < 3; look++) await lookAfter(QUARTER_MS)
  expect(made).toEqual([T])
  expect(names()).toEqual([backupName(T)])
})

it('the schedule makes its own backup beside a new one of another server', async () => {
  expect((await schedule({ existing: [T - 1] })).made).toEqual([])
  expect((await schedule({ existing: [T - 1], of: 'other' })).made).toEqual([T])
})

it('the schedule reports data that is missing in the newest backup until a complete one follows', async () => {
  const { made, lookAfter, problem } = await schedule({ failed: 1 })
  const missing = expect.stringContaining('The data of 1 of its databases is missing')
  expect(problem()).toEqual(missing)
  await lookAfter(QUARTER_MS)
  expect([made, problem()]).toEqual([[T], missing])
})
