import { appendFileSync, existsSync, mkdirSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { expect, it, onTestFinished } from 'vitest'
import { startSink } from '../../src/queue/testing/sink.js'
import { atCleanup, newPlace, placeFlags, runHomeport, startHomeport, tempDir, waitFor } from '../support/index.js'

interface Database {
  readonly database_id: string
  readonly port: number
  readonly password: string
}

function connect({ port, password }: Database): Redis {
  const client = new Redis({ host: '127.0.0.1', port, password, retryStrategy: () => null })
  client.on('error', () => undefined)
  onTestFinished(() => client.disconnect())
  return client
}

it('backs up the whole service while it runs, and restores it elsewhere', async () => {
  const sink = await startSink()
  atCleanup(() => sink.close())
  const place = await newPlace()
  const first = await startHomeport(place)
  const create = async (name: string): Promise<Database> =>
    (
      await first.api('POST', '/v2/redis/database', {
        ...{ database_name: name, platform: 'aws', primary_region: 'us-east-1' },
      })
    ).body as Database
  const [full, empty] = [await create('full'), await create('empty')]
  await connect(full).set('k', 'v')
  const { body } = await first.queue('POST', `/v2/publish/${sink.url}`, 'x', { 'upstash-delay': '1h' })
  const { messageId } = body as { messageId: string }

  const to = join(tempDir(), 'backups')
  const backUp = (...more: string[]) => runHomeport(['backup', '--to', to, ...more, ...placeFlags(place)])
  expect(await backUp()).toMatchObject({ code: 0, stdout: expect.stringContaining(': 2 databases, ') })
  expect(await backUp('--keep', '1')).toMatchObject({ code: 0 })
  const [name = '', ...others] = readdirSync(to)
  expect([others, statSync(join(to, name)).mode & 0o777]).toEqual([[], 0o700])
  await connect(full).set('k', 'later')
  await first.kill('SIGTERM')

  const verified = await runHomeport(['backup', 'verify', '--from', to])
  expect([verified.stderr, verified.stdout]).toEqual(['', expect.stringContaining('2 of 2 databases')])
  expect(verified.stdout).toContain('1 keys')

  const dataDir = join(tempDir(), 'restored')
  const restore = () => runHomeport(['restore', '--from', to, '--data-dir', dataDir])
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
  expect(await runHomeport(['restore', '--from', to, '--data-dir', target])).toMatchObject({ code: 0 })

  const daily = join(tempDir(), 'daily')
  const second = await startHomeport({ ...place, dataDir: target, args: ['--backup-to', daily] })
  expect(await connect(full).get('k')).toBe('v')
  expect(await connect(empty).dbsize()).toBe(0)
  await waitFor(() => existsSync(daily) && readdirSync(daily).some((one) => /^homeport-.*Z$/.test(one)), {
    what: 'a backup by itself',
  })
  expect(await second.queue('GET', `/v2/messages/${messageId}`)).toMatchObject({ status: 200 })
})
