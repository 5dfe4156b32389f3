import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { commandHost, placeFlags, type RunningHomeport, startHomeport, tempDir } from '../support/index.js'

interface Database {
  readonly database_id: string
  readonly database_name: string
  readonly port: number
  readonly password: string
}

/** Backups and restores of single databases, by commands and over the API. */

let homeport: RunningHomeport
const host = commandHost()

beforeAll(async () => {
  homeport = await startHomeport()
})

async function create(name: string, some: object = {}): Promise<{ database: Database; client: Redis }> {
  const fields = { database_name: name, platform: 'aws', primary_region: 'us-east-1', ...some }
  const database = (await homeport.api('POST', '/v2/redis/database', fields)).body as Database
  return { database, client: connect(database) }
}

function connect({ port, password }: Database): Redis {
  const client = new Redis({ host: '127.0.0.1', port, password, retryStrategy: () => null })
  client.on('error', () => undefined)
  onTestFinished(() => client.disconnect())
  return client
}

/** Runs `homeport db` with `--json` and returns its output. */
async function db(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await host(['db', ...args, '--json', ...placeFlags(homeport.place)])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

it('the command line backs up and restores, in place and into a new database', async () => {
  const { client } = await create('shop')
  await client.set('k', 'old')
  const backup = await db('backup', 'shop', '--name', 'before')
  expect(backup).toMatchObject({ name: 'before', state: 'completed', key_count: 1 })
  await client.set('k', 'new')
  const made = await db('restore', 'shop', 'before', '--as-new', 'shop-copy')
  const { body } = await homeport.api('GET', `/v2/redis/database/${made.database_id}`)
  expect(body).toMatchObject({ database_name: 'shop-copy' })
  expect([await connect(body as Database).get('k'), await client.get('k')]).toEqual(['old', 'new'])
  await db('restore', 'shop', String(backup.backup_id), '--yes')
  expect(await client.get('k')).toBe('old')
  // The newest one is now the safety backup of that restore.
  expect(await db('restore', 'shop', '--yes')).toMatchObject({ backup_id: backup.backup_id })
  expect(await client.get('k')).toBe('old')
})

it('the command line leaves no new database behind when the restore is refused', async () => {
  await create('kept')
  const { database_id, backup_id } = await db('backup', 'kept')
  writeFileSync(join(homeport.place.dataDir, 'backups', `${database_id}`, `${backup_id}.rdb`), 'changed')
  const { code, stderr } = await host(['db', 'restore', 'kept', '--as-new', 'kept-copy', ...placeFlags(homeport.place)])
  expect([code, stderr]).toEqual([2, expect.stringContaining('its file has changed')])
  const { body } = await homeport.api('GET', '/v2/redis/databases')
  expect((body as Database[]).map(({ database_name }) => database_name)).not.toContain('kept-copy')
})

it('the command line exports into a file and imports it elsewhere', async () => {
  const [from, to] = [await create('from'), await create('to')]
  await from.client.set('k', 'v')
  const file = join(tempDir(), 'dump.rdb')
  expect(await db('export', 'from', file)).toMatchObject({ key_count: 1, bytes: readFileSync(file).length })
  expect(existsSync(`${file}.part`)).toBe(false)
  expect(await db('import', 'to', file, '--yes')).toMatchObject({ state: 'completed', keys_read: 1 })
  expect(await to.client.get('k')).toBe('v')
})

it('the command line replaces no data without a confirmation', async () => {
  const { client } = await create('precious')
  const file = join(tempDir(), 'dump.rdb')
  await db('backup', 'precious')
  await db('export', 'precious', file)
  await client.set('k', 'v')
  for (const args of [
    ['restore', 'precious'],
    ['import', 'precious', file],
    ['import', 'precious', '-'],
  ]) {
    const { code, stderr } = await host(['db', ...args, ...placeFlags(homeport.place)], { input: 'redis://x' })
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/data of the database "precious".*Nothing was changed\.\n$/),
    ])
  }
  expect(await client.get('k')).toBe('v')
})

it('the command line fails with one sentence and the exit code of the failure', async () => {
  await create('lonely')
  const bad = join(tempDir(), 'bad.rdb')
  writeFileSync(bad, 'hello')
  for (const [args, wanted, reason] of [
    [['backup', 'nobody'], 3, 'no database with the id or name "nobody"'],
    [['restore', 'lonely'], 3, 'no completed backup'],
    [['import', 'lonely', join(tempDir(), 'none')], 2, 'cannot be read'],
    [['import', 'lonely', 'redis://127.0.0.1', '--yes'], 2, 'give "-" as the source'],
    [['export', 'lonely', '-'], 2, 'cannot go to the standard output'],
    [['import', 'lonely', bad, '--yes'], 2, 'cannot load it'],
  ] as const) {
    const { code, stderr } = await host(['db', ...args, ...placeFlags(homeport.place)])
    expect(code).toBe(wanted)
    expect(stderr).toMatch(new RegExp(`^error: .*${reason}.*\n$`))
  }
  // A tenant who uploads an unreadable file is no problem of the operator: the level is info.
  const logged = await host(['logs', '--event', 'import_failed', '--json', ...placeFlags(homeport.place)])
  expect(logged.stdout).toMatch(/^\{"level":"info",.*cannot load it/)
  const failed = await host(['logs', '--event', 'backup_failed', '--json', ...placeFlags(homeport.place)])
  expect(failed.stdout).not.toContain('cannot load it')
})

it('the server keeps the connections of clients over a backup and a restore', async () => {
  const { database, client } = await create('steady', { read_regions: ['eu-west-1'] })
  let closed = false
  client.on('close', () => {
    closed = true
  })
  await client.set('k', 'old')
  const path = (verb: string) => `/v2/redis/${verb}/${database.database_id}`
  expect(await homeport.api('POST', path('create-backup'), { name: 'old' })).toMatchObject({ status: 200 })
  const [backup] = (await homeport.api('GET', path('list-backup'))).body as { backup_id: string }[]
  await client.set('k', 'new')
  const restored = homeport.api('POST', path('restore-backup'), { backup_id: backup?.backup_id })
  const seen = new Set<string>()
  let isOver = false
  void restored.then(() => {
    isOver = true
  })
  while (!isOver) {
    // Commands pending when the engine stops get a clear error; later ones wait.
    seen.add(await client.get('k').then(String, (error: Error) => error.message.split(' ')[0] ?? ''))
  }
  expect(await restored).toMatchObject({ status: 200 })
  expect(await client.get('k')).toBe('old')
  expect([...seen].filter((value) => !['new', 'old', 'ERR'].includes(value))).toEqual([])
  expect(closed).toBe(false)
})
