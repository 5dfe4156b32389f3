import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { Redis } from 'iovalkey'
import { expect, it, onTestFinished } from 'vitest'
import { readCredentials } from '../../src/objects/credentials.js'
import { ObjectServer } from '../../src/objects/testing/object-server.js'
import { startSink } from '../../src/queue/testing/sink.js'
import { atCleanup, commandHost, newPlace, placeFlags, startHomeport, tempDir, waitFor } from '../support/index.js'

interface Database {
  readonly database_id: string
  readonly port: number
  readonly password: string
}

const homeport = commandHost()

function connect({ port, password }: Database): Redis {
  const client = new Redis({ host: '127.0.0.1', port, password, retryStrategy: () => null })
  client.on('error', () => undefined)
  onTestFinished(() => client.disconnect())
  return client
}

it('`homeport backup` backs up the whole service while it runs, and `homeport restore` restores it elsewhere', async () => {
  const sink = await startSink()
  atCleanup(() => sink.close())
  const place = await newPlace()
  const first = await startHomeport(place)
  const create = async (name: string): Promise<Database> =>
    (
      await first.api('POST', '/v2/redis/database', {
        database_name: name,
        platform: 'aws',
        primary_region: 'us-east-1',
      })
    ).body as Database
  const [full, empty] = [await create('full'), await create('empty')]
  await connect(full).set('k', 'v')
  const { body } = await first.queue('POST', `/v2/publish/${sink.url}`, 'x', { 'upstash-delay': '1h' })
  const { messageId } = body as { messageId: string }

  // A server that was a node of a cluster before has this file.
  writeFileSync(join(place.dataDir, 'token-keys-of-nodes'), 'key of another node')
  const to = join(tempDir(), 'backups')
  const backUp = (...more: string[]) => homeport(['backup', '--to', to, ...more, ...placeFlags(place)])
  expect(await backUp()).toMatchObject({ code: 0, stdout: expect.stringContaining(': 2 databases, ') })
  expect(await backUp('--keep', '1')).toMatchObject({ code: 0 })
  const [name = '', ...others] = readdirSync(to)
  expect([others, statSync(join(to, name)).mode & 0o777]).toEqual([[], 0o700])
  const shared = join(tempDir(), 'shared')
  const { installation, ...facts } = JSON.parse(readFileSync(join(to, name, 'manifest.json'), 'utf8'))
  mkdirSync(join(shared, name), { recursive: true })
  writeFileSync(join(shared, name, 'manifest.json'), JSON.stringify({ ...facts, installation: `not-${installation}` }))
  const refused = await homeport(['backup', '--to', shared, '--keep', '1', ...placeFlags(place)])
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('has backups of another server')])
  expect(readdirSync(shared)).toEqual([name])
  await connect(full).set('k', 'later')
  await first.kill('SIGTERM')

  const verified = await homeport(['backup', 'verify', '--from', to])
  const listed = await homeport(['backup', 'list', '--from', to, '--json'])
  expect([verified.stderr, verified.stdout]).toEqual(['', expect.stringContaining('2 of 2 databases')])
  expect(verified.stdout).toContain('1 key.')
  expect(JSON.parse(listed.stdout)).toMatchObject([{ name, databases: 2, databases_done: 2 }])

  const dataDir = join(tempDir(), 'restored')
  const restore = () => homeport(['restore', '--from', to, '--data-dir', dataDir])
  const snapshot = join(to, name, 'databases', `${full.database_id}.rdb`)
  const { size } = statSync(snapshot)
  appendFileSync(snapshot, 'x')
  const damaged = await restore()
  expect([damaged.stderr, existsSync(dataDir)]).toEqual([
    expect.stringContaining(`${full.database_id}.rdb is damaged`),
    false,
  ])
  truncateSync(snapshot, size)
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'mine'), '')
  expect((await restore()).stderr).toContain('is not empty: it has mine')
  const target = join(tempDir(), 'restored')
  expect(await homeport(['restore', '--from', to, '--data-dir', target])).toMatchObject({ code: 0 })
  expect(readFileSync(join(target, 'token-keys-of-nodes'), 'utf8')).toBe('key of another node')

  const daily = join(tempDir(), 'daily')
  const second = await startHomeport({ ...place, dataDir: target, args: ['--backup-to', daily] })
  expect(await connect(full).get('k')).toBe('v')
  expect(await connect(empty).dbsize()).toBe(0)
  await waitFor(() => existsSync(daily) && readdirSync(daily).some((one) => /^homeport-.*Z$/.test(one)), {
    what: 'a backup by itself',
  })
  expect(await second.queue('GET', `/v2/messages/${messageId}`)).toMatchObject({ status: 200 })
})

it('a server backs up to object storage on a schedule and on demand, and is restored without its old files', async () => {
  const storage = await ObjectServer.start()
  atCleanup(() => storage.stop())
  const { accessKeyId, secretAccessKey } = await readCredentials(storage.credentials, '')
  const env = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey }
  const to = 's3://homeport/all'
  const place = await newPlace()
  const server = await startHomeport({
    ...place,
    env,
    args: ['--backup-to', to, '--backups-endpoint', storage.endpoint],
  })
  const keys = join(tempDir(), 'backup-keys')
  const from = ['--from', to, '--keys-file', keys, '--backups-endpoint', storage.endpoint]
  const listed = async () => {
    copyFileSync(join(place.dataDir, 'backup-keys'), keys)
    return (await homeport(['backup', 'list', ...from], { env })).stdout.match(/^homeport-\S+/gm) ?? []
  }
  await waitFor(async () => (await listed()).length === 1, { what: 'a backup by itself' })
  const [first] = await listed()

  const { body } = await server.api('POST', '/v2/redis/database', {
    database_name: 'full',
    platform: 'aws',
    primary_region: 'us-east-1',
  })
  const database = body as Database
  await connect(database).set('k', 'v'.repeat(200_000))
  const backUp = () => homeport(['backup', '--to', to, '--keep', '1', ...placeFlags(place)])
  expect(await backUp()).toMatchObject({ code: 0, stdout: expect.stringContaining(`${to}/service/homeport-`) })
  const left = await listed()
  expect(left).toHaveLength(1)
  expect(left).not.toContain(first)
  // The storage answers wrong bytes: the backup fails, removes no older one and leaves no temporary files.
  storage.fault = ({ method }) => (method === 'GET' ? { kind: 'flip', atByte: 100 } : undefined)
  expect((await backUp()).code).toBe(1)
  storage.fault = () => undefined
  expect(await listed()).toEqual(left)
  expect(existsSync(join(place.dataDir, 'service-backup'))).toBe(false)
  await server.kill('SIGTERM')

  const verified = await homeport(['backup', 'verify', ...from], { env })
  expect([verified.stderr, verified.stdout]).toEqual(['', expect.stringContaining('1 of 1 database, ')])
  const dataDir = join(tempDir(), 'restored')
  const restore = (...args: string[]) => homeport(['restore', ...args, '--data-dir', dataDir], { env })
  expect((await restore('--from', to)).stderr).toContain('--keys-file')
  const other = join(tempDir(), 'other-keys')
  writeFileSync(other, `hpbk1_${Buffer.alloc(32, 1).toString('base64url')}\n`)
  expect((await restore(...from.map((arg) => (arg === keys ? other : arg)))).code).not.toBe(0)
  expect(readdirSync(dirname(dataDir))).toEqual([])
  expect(await restore(...from)).toMatchObject({ code: 0, stderr: '' })
  expect(readdirSync(dirname(dataDir))).toEqual(['restored'])
  await startHomeport({ ...place, dataDir })
  expect(await connect(database).strlen('k')).toBe(200_000)
})
