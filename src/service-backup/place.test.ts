import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { backupName } from './manifest.js'
import { folderPlace } from './place.js'

const HOUR_MS = 3_600_000

it('removes what a server has left that was killed long ago, and nothing else', async () => {
  const now = Date.now()
  const folder = await mkdtemp(join(tmpdir(), 'homeport-place-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const partial = async (name: string, ageMs: number, contentAgeMs = ageMs) => {
    const path = join(folder, name)
    await mkdir(join(path, 'databases'), { recursive: true })
    await utimes(join(path, 'databases'), (now - contentAgeMs) / 1000, (now - contentAgeMs) / 1000)
    await utimes(path, (now - ageMs) / 1000, (now - ageMs) / 1000)
  }
  await partial('homeport-2026-01-01.partial', 25 * HOUR_MS)
  await partial('homeport-2026-01-02.partial', 25 * HOUR_MS, HOUR_MS)
  await partial('homeport-2026-01-03.partial', HOUR_MS)
  await partial('somebody-else.partial', 99 * HOUR_MS)
  await partial('homeport-2025-01-01', 99 * HOUR_MS)
  const name = backupName(now)
  await folderPlace(folder)?.begin(name, now)
  expect((await readdir(folder)).sort()).toEqual([
    'homeport-2025-01-01',
    'homeport-2026-01-02.partial',
    'homeport-2026-01-03.partial',
    `${name}.partial`,
    'somebody-else.partial',
  ])
})
