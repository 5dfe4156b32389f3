import { chmodSync, lstatSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Redis } from 'iovalkey'
import { expect, it } from 'vitest'
import { startHomeport } from '../support/index.js'

const FIELDS = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1', read_regions: ['eu-west-1'] }

/** Paths with another mode than 0600, or than 0700 for directories and sockets. */
function openFiles(root: string, path = root): string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (!stats) return []
  const below = stats.isDirectory() ? readdirSync(path).flatMap((name) => openFiles(root, join(path, name))) : []
  const mode = stats.mode & 0o777
  const isPrivate = mode === 0o600 || (mode === 0o700 && !stats.isFile())
  return isPrivate ? below : [`${relative(root, path)} 0${mode.toString(8)}`, ...below]
}

it('the server makes every file private to its owner, whatever the umask, and corrects modes at the start', async () => {
  const before = process.umask(0)
  const homeport = await startHomeport().finally(() => process.umask(before))
  const { dataDir } = homeport.place
  const { body } = await homeport.api('POST', '/v2/redis/database', FIELDS)
  const { database_id: id, port, password } = body as { database_id: string; port: number; password: string }
  const client = new Redis({ host: '127.0.0.1', port, password })
  await client.set('k', 'v'.repeat(10_000))
  expect(await homeport.api('POST', `/v2/redis/create-backup/${id}`, { name: 'b' })).toMatchObject({ status: 200 })
  const [backup] = (await homeport.api('GET', `/v2/redis/list-backup/${id}`)).body as { backup_id: string }[]
  const restored = await homeport.api('POST', `/v2/redis/restore-backup/${id}`, { backup_id: backup?.backup_id })
  expect(restored).toMatchObject({ status: 200 })
  expect(await homeport.api('POST', `/v2/redis/enable-tls/${id}`)).toMatchObject({ status: 200 })
  client.disconnect()
  await homeport.queue('POST', '/v2/publish/http://127.0.0.1:9/', 'body')
  expect(openFiles(dataDir)).toEqual([])
  await homeport.kill('SIGTERM')
  expect(openFiles(dataDir)).toEqual([])

  chmodSync(join(dataDir, 'lock'), 0o644)
  chmodSync(join(dataDir, 'backups'), 0o755)
  await startHomeport({ ...homeport.place })
  await expect.poll(() => openFiles(dataDir)).toEqual([])
})
