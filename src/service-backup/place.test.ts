import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, it, onTestFinished } from 'vitest'
import { BackupKeys, ObjectStorage } from '../objects/index.js'
import { ObjectServer } from '../objects/testing/object-server.js'
import { backupName } from './manifest.js'
import { folderPlace, StoredPlace } from './place.js'

const HOUR_MS = 3_600_000

it('a backup removes the partial backup of a server that was killed long ago, and nothing else', async () => {
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

it('a backup removes partial backups in object storage, and no complete ones', async () => {
  const now = Date.now()
  const server = await ObjectServer.start()
  const storage = new ObjectStorage(server.options())
  const dir = await mkdtemp(join(tmpdir(), 'homeport-place-'))
  onTestFinished(async () => {
    await storage.close()
    await server.stop()
    await rm(dir, { recursive: true })
  })
  const uploaded = async (folder: string, ...files: readonly string[]) => {
    for (const file of files) await storage.put(`service/${folder}/${file}`, Readable.from([Buffer.from('x')]), 1)
  }
  const [left, complete, recent] = [30, 29, 2].map((hours) => backupName(now - hours * HOUR_MS))
  await uploaded(left ?? '', 'databases/db_1.rdb', 'homeport.sqlite')
  await uploaded(complete ?? '', 'homeport.sqlite', 'manifest.json')
  await uploaded(recent ?? '', 'homeport.sqlite')
  await uploaded('somebody-else', 'homeport.sqlite')
  const place = new StoredPlace({ storage, keys: () => BackupKeys.open(dir), workDir: join(dir, 'work') })
  await place.begin(backupName(now), now)
  const keys: string[] = []
  for await (const { key } of storage.list('service/')) keys.push(key)
  expect(keys.sort()).toEqual(
    [
      `service/${complete}/homeport.sqlite`,
      `service/${complete}/manifest.json`,
      `service/${recent}/homeport.sqlite`,
      'service/somebody-else/homeport.sqlite',
    ].sort(),
  )
})
