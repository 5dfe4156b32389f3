import { readdirSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { basicOf, waitFor } from '../../../test/support/index.js'
import { type Clock, systemClock } from '../../base/index.js'
import { ImportSchema } from '../../contract/databases/backups.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { DEFAULT_PLANS } from '../../contract/databases/plans.js'
import { isThrowaway } from '../../fleet/index.js'
import { compileChecker } from '../../http/index.js'
import { create } from '../testing/checks.js'
import { type ManagementServer, startManagement } from '../testing/management.js'
import { command } from '../testing/requests.js'
import { systemCaller } from '../usage/index.js'
import { bulk, type PasswordEngine, page, startForeignServer, startPasswordEngine } from './testing/foreign-server.js'

const MIB = 2 ** 20
const checkImport = compileChecker(ImportSchema, 'body')

let server: ManagementServer
let foreign: PasswordEngine

beforeAll(async () => {
  const plans = { ...DEFAULT_PLANS, free: { ...DEFAULT_PLANS.free, db_disk_threshold: 3 * MIB } }
  server = await startManagement({ plans })
  foreign = await startPasswordEngine('p@ss:word')
})

afterAll(async () => {
  await foreign.kill()
  await server.close()
})

afterEach(async () => {
  for (const { database_id } of await server.databases.list(server.owner, 'hide'))
    await server.databases.remove(server.owner, database_id)
})

const importOf = async (record: DatabaseRecord) => {
  const { body } = await server.api('GET', `/v2/redis/import/${record.database_id}`)
  checkImport(body)
  return body
}
const importUrl = (record: DatabaseRecord, url: string) =>
  server.api('POST', `/v2/redis/import/${record.database_id}`, { url })
const ended = (record: DatabaseRecord) =>
  waitFor(async () => ['completed', 'failed'].includes((await importOf(record)).state), {
    what: 'the end of the import',
  })
const backupsOf = async (record: DatabaseRecord) =>
  (await server.api('GET', `/v2/redis/list-backup/${record.database_id}`)).body

describe('an import from another server', () => {
  it('replaces the data by all keys with their expiry, and reports its progress', async () => {
    const record = await create(server)
    await command(server, record, 'SET', 'own', 'x')
    await foreign.client.flushall()
    for (let i = 0; i < 1_000; i++) void foreign.client.set(`key ${i}`, `${i}`)
    await foreign.client.set('short', 'v', 'PX', 3_600_000)
    await foreign.client.hset('hash', 'field', 'value')
    const { status, body } = await importUrl(record, foreign.url)
    expect(status).toBe(200)
    expect(body).toMatchObject({ state: 'reading', source: expect.stringMatching(/^redis:\/\/127\.0\.0\.1:\d+\/0$/) })
    await ended(record)
    expect(await importOf(record)).toMatchObject({ state: 'completed', keys_read: 1_002, keys_total: 1_002 })
    expect(await command(server, record, 'DBSIZE')).toBe(1_002)
    expect(await command(server, record, 'MGET', 'own', 'key 7', 'short')).toEqual([null, '7', 'v'])
    const left = Number(await command(server, record, 'PTTL', 'short'))
    expect(left).toBeGreaterThan(3_000_000)
    expect(left).toBeLessThanOrEqual(3_600_000)
    const tags = (await backupsOf(record)).map((backup: { internal_backup_tag: string }) => backup.internal_backup_tag)
    expect(tags).toEqual(['safety', 'import'])
    expect(JSON.stringify([await importOf(record), await backupsOf(record)])).not.toContain('p@ss')
  })

  it.each([
    ['a wrong password', (url: string) => url.replace('word@', 'wrong@'), 'WRONGPASS'],
    ['a closed port', () => 'redis://127.0.0.1:1/0', 'ECONNREFUSED'],
  ])('with %s fails with a reason and leaves the data', async (_what, change, reason) => {
    const record = await create(server)
    await command(server, record, 'SET', 'own', 'x')
    expect(await importUrl(record, change(foreign.url))).toMatchObject({ status: 200 })
    await ended(record)
    expect(await importOf(record)).toMatchObject({ state: 'failed', failure: expect.stringContaining(reason) })
    expect(await command(server, record, 'GET', 'own')).toBe('x')
    expect((await server.api('GET', `/v2/redis/database/${record.database_id}`)).body.modifying_state).toBe('')
  })

  it('of more data than the plan holds fails and leaves the data', async () => {
    const record = await create(server, { plan: 'free' })
    await foreign.client.flushall()
    for (let i = 0; i < 6; i++) await foreign.client.set(`k${i}`, 'x'.repeat(MIB))
    expect(await importUrl(record, foreign.url)).toMatchObject({ status: 200 })
    await ended(record)
    expect(await importOf(record)).toMatchObject({ state: 'failed', failure: expect.stringContaining('OOM') })
    expect(await command(server, record, 'DBSIZE')).toBe(0)
  })

  it('ends when the account of its database is deleted, whatever the client or the source does', async () => {
    const silent = await startForeignServer({ SCAN: () => undefined })
    const [copied, uploaded] = [await create(server), await create(server)]
    expect((await importUrl(copied, silent.url)).status).toBe(200)
    const upload = new PassThrough()
    upload.write('REDIS')
    const received = server.databases.backups.importFile(server.owner, uploaded.database_id, {
      content: upload,
      isStillAllowed: async () => true,
    })
    received.catch(() => undefined)
    for (const { database_id } of [copied, uploaded]) {
      const isRestoring = () => server.databases.directory.rowOf(database_id)?.modifying_state === 'restoring'
      const isBusy = async () => (await importOf({ ...copied, database_id })).state === 'reading' || isRestoring()
      await waitFor(isBusy, { what: 'the import' })
      const remove = () => server.databases.remove(systemCaller(server.owner.accountId), database_id)
      const isGone = () =>
        remove().then(
          () => true,
          () => false,
        )
      await waitFor(isGone, { what: 'the deletion' })
    }
    await expect(received).rejects.toThrow()
  })

  it('ends when the user who began it is removed from the team', async () => {
    const { teams, keys } = server.accounts
    const { team_id } = await teams.create(server.owner, { team_name: 'crew', copy_cc: false })
    const member_email = 'dev@homeport.local'
    await teams.addMember(server.owner, { team_id, member_email, member_role: 'dev' })
    const { api_key } = await keys.create(server.owner, { name: 'dev', team_id, member_email })
    const authorization = basicOf(member_email, api_key)
    const asked: Socket[] = []
    const source = await startForeignServer({ SCAN: (_, socket) => void asked.push(socket) })
    const record = await create(server, {}, { authorization })
    const path = `/v2/redis/import/${record.database_id}`
    expect(await server.api('POST', path, { url: source.url }, { authorization })).toMatchObject({ status: 200 })
    await waitFor(() => asked.length > 0, { what: 'the copy to begin' })
    await teams.removeMember(server.owner, { team_id, member_email })
    asked[0]?.write(page('0', []))
    const progress = () =>
      server.databases.backups.importProgress({ ...server.owner, accountId: team_id }, record.database_id)
    await waitFor(async () => (await progress()).state === 'failed', { what: 'the import to end' })
    expect((await progress()).failure).toContain('may no longer change')
    await server.databases.remove(systemCaller(team_id), record.database_id)
  })

  it('from malicious servers fails, costs little memory, and leaves the database usable', async () => {
    const hostile = await Promise.all([
      startForeignServer({ SCAN: () => '*1\r\n'.repeat(2_000_000) }),
      startForeignServer({ SCAN: () => '*30000000\r\n'.repeat(60) }),
      startForeignServer({ SCAN: () => '*4294967295\r\n' }),
    ])
    const records = await Promise.all(hostile.map(() => create(server)))
    for (const record of records) await command(server, record, 'SET', 'own', 'x')
    const before = process.memoryUsage().rss
    await Promise.all(records.map((record, i) => importUrl(record, hostile[i]?.url ?? '')))
    await Promise.all(records.map(ended))
    expect((process.memoryUsage().rss - before) / MIB).toBeLessThan(300)
    for (const record of records) {
      expect(await importOf(record)).toMatchObject({ state: 'failed', failure: expect.stringContaining('unchanged') })
      expect((await server.api('GET', `/v2/redis/database/${record.database_id}`)).body.modifying_state).toBe('')
      expect(await command(server, record, 'GET', 'own')).toBe('x')
    }
  })

  it('from one of several servers of a Redis cluster is refused', async () => {
    const part = await startForeignServer({
      CLUSTER: () => bulk(Buffer.from('cluster_state:ok\r\ncluster_size:3\r\n')),
    })
    const record = await create(server)
    await importUrl(record, part.url)
    await ended(record)
    expect(await importOf(record)).toMatchObject({ failure: expect.stringContaining('one of 3 servers') })
  })

  it('leaves a directory that a start deletes, if the server is killed meanwhile', async () => {
    const asking: Socket[] = []
    const silent = await startForeignServer({ SCAN: (_, socket) => void asking.push(socket) })
    const record = await create(server)
    await importUrl(record, silent.url)
    await waitFor(() => asking.length > 0, { what: 'the copy to begin' })
    const others = readdirSync(join(server.dataDir, 'databases')).filter((name) => name !== record.database_id)
    asking[0]?.destroy()
    await ended(record)
    expect(others.map(isThrowaway)).toEqual([true])
  })

  it('from a private address is refused when only public addresses are allowed', async () => {
    const other = await startManagement({ deliveryTargets: 'public' })
    try {
      const record = await create(other)
      const path = `/v2/redis/import/${record.database_id}`
      for (const url of [foreign.url, foreign.url.replace('127.0.0.1', 'localhost')]) {
        expect(await other.api('POST', path, { url })).toMatchObject({ status: 200 })
        const progress = await waitFor(
          async () => {
            const { body } = await other.api('GET', path)
            return body.state === 'failed' || body.state === 'completed' ? body : undefined
          },
          { what: 'the end of the import' },
        )
        expect(progress).toMatchObject({ state: 'failed', failure: expect.stringContaining('public addresses only') })
      }
    } finally {
      await other.close()
    }
  })

  it('is refused while as many imports of the account are active as may be', async () => {
    const sockets: Socket[] = []
    const silent = await startForeignServer({ SCAN: (_words, socket) => void sockets.push(socket) })
    const records: DatabaseRecord[] = []
    while (records.length < 5) records.push(await create(server))
    const statuses: number[] = []
    for (const record of records) statuses.push((await importUrl(record, silent.url)).status)
    expect(statuses).toEqual([200, 200, 200, 200, 429])
    await waitFor(() => sockets.length === 4, { what: 'the imports to read' })
    for (const socket of sockets) socket.destroy()
    const last = records[4] as DatabaseRecord
    const admitted = async () => (await importUrl(last, foreign.url)).status === 200
    await waitFor(admitted, { what: 'the end of one of the imports' })
    for (const record of records) await ended(record)
  })

  it('is refused for a URL that is none of a Redis server', async () => {
    const record = await create(server)
    for (const url of [
      ...['', 'http://example.com', 'redis://', 'nonsense', 'redis://user:secret@', 'redis://user:%zz@host'],
      ...['redis://host/first', 'redis://host/0?path=/tmp/other.sock', 'redis://host/0#x'],
    ]) {
      const { status, body } = await importUrl(record, url)
      expect([url, status, body.error]).toEqual([url, 400, expect.stringContaining('`url`')])
      expect(body.error).not.toContain('secret')
    }
  })
})

it('an upload of which nothing arrives any more fails, and the database can be changed again', async () => {
  // Its timers for hours and minutes fire at once.
  const hurried: Clock = { ...systemClock, after: (ms, work) => systemClock.after(ms < 120_000 ? ms : 50, work) }
  const own = await startManagement({ clock: hurried })
  const record = await create(own)
  const content = new PassThrough()
  content.write('REDIS')
  const { backups } = own.databases
  await expect(
    backups.importFile(own.owner, record.database_id, { content, isStillAllowed: async () => true }),
  ).rejects.toMatchObject({ code: 'import_failed', message: expect.stringContaining('nothing of the file') })
  expect(content.destroyed).toBe(true)
  await own.databases.remove(own.owner, record.database_id)
  await own.close()
})

describe('an import of an RDB file', () => {
  const upload = async (record: DatabaseRecord, bytes: Uint8Array) => {
    const response = await server.raw('POST', `/v2/redis/import-rdb/${record.database_id}`, Buffer.from(bytes))
    return { status: response.status, body: (await response.json()) as { error?: string } }
  }

  async function exported(record: DatabaseRecord): Promise<Buffer> {
    await server.api('POST', `/v2/redis/create-backup/${record.database_id}`, { name: 'export' })
    const [backup] = await backupsOf(record)
    return readFileSync(join(server.dataDir, 'backups', record.database_id, `${backup.backup_id}.rdb`))
  }

  it('replaces the data by that of the file', async () => {
    const [from, to] = [await create(server), await create(server)]
    await command(server, from, 'SET', 'k', 'x'.repeat(2 * MIB))
    await command(server, to, 'SET', 'own', 'x')
    const file = await exported(from)
    const { status, body } = await upload(to, file)
    expect(status).toBe(200)
    expect(body).toMatchObject({ state: 'completed', keys_read: 1, bytes_read: file.length, source: 'RDB file' })
    expect([await command(server, to, 'STRLEN', 'k'), await command(server, to, 'GET', 'own')]).toEqual([2 * MIB, null])
  })

  it('is refused when the engine cannot load it, and the data stays', async () => {
    const record = await create(server)
    await command(server, record, 'SET', 'own', 'x')
    const file = await exported(record)
    const ofTwoDatabases = Buffer.from('REDIS0009\xfe\x01\xff\0\0\0\0\0\0\0\0', 'latin1')
    expect(await upload(record, ofTwoDatabases)).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining('it has keys in databases other than 0') },
    })
    for (const bytes of [Buffer.alloc(0), Buffer.from('hello'), file.subarray(0, file.length - 20)]) {
      const { status, body } = await upload(record, bytes)
      expect([status, body.error]).toEqual([400, expect.stringContaining('cannot load it')])
    }
    expect(await command(server, record, 'GET', 'own')).toBe('x')
    expect(await importOf(record)).toMatchObject({ state: 'failed' })
  })

  it('has no effect when its API key is deleted while the file arrives', async () => {
    const record = await create(server)
    await command(server, record, 'SET', 'own', 'x')
    const file = await exported(record)
    await command(server, record, 'SET', 'own', 'y')
    const { body: key } = await server.api('POST', '/v2/apikeys', { name: 'leaver' })
    const login = Buffer.from(`${server.owner.email}:${key.api_key}`).toString('base64')
    const content = new PassThrough()
    content.write(file.subarray(0, 20))
    const path = `/v2/redis/import-rdb/${record.database_id}`
    const answer = server.raw('POST', path, Readable.toWeb(content) as ReadableStream, {
      authorization: `Basic ${login}`,
    })
    const isReading = async () => (await importOf(record)).bytes_read > 0
    await waitFor(isReading, { what: 'the first bytes to arrive' })
    expect((await server.api('DELETE', `/v2/apikeys/${key.key_id}`)).status).toBe(200)
    content.end(file.subarray(20))
    expect((await answer).status).toBe(401)
    expect(await importOf(record)).toMatchObject({ state: 'failed' })
    expect(await command(server, record, 'GET', 'own')).toBe('y')
  })

  it('ignores commands that are appended to the data', async () => {
    const record = await create(server)
    await command(server, record, 'SET', 'own', 'x')
    const file = await exported(record)
    const behind = ['SET pwned 1', 'CONFIG SET maxmemory 0', 'ACL SETUSER eve on nopass ~* +@all'].map((line) => {
      const words = line.split(' ').map((word) => `$${word.length}\r\n${word}\r\n`)
      return `*${words.length}\r\n${words.join('')}`
    })
    const { status } = await upload(record, Buffer.concat([file, Buffer.from(behind.join(''))]))
    expect(status).toBe(200)
    expect(await command(server, record, 'KEYS', '*')).toEqual(['own'])
    const stored = await backupsOf(record)
    const [imported] = stored.filter(
      (backup: { internal_backup_tag: string }) => backup.internal_backup_tag === 'import',
    )
    const kept = readFileSync(join(server.dataDir, 'backups', record.database_id, `${imported.backup_id}.rdb`))
    expect(kept.includes('pwned')).toBe(false)
    expect(readdirSync(join(server.dataDir, 'backups', record.database_id))).toHaveLength(stored.length)
  })

  it('is refused beyond the size limit of the plan', async () => {
    const record = await create(server, { plan: 'free' })
    const { status, body } = await upload(record, Buffer.alloc(4 * MIB))
    expect([status, body.error]).toEqual([413, expect.stringContaining(`${3 * MIB}`)])
    expect(await command(server, record, 'DBSIZE')).toBe(0)
  })

  it('has no progress when nothing was imported', async () => {
    const record = await create(server)
    expect(await server.api('GET', `/v2/redis/import/${record.database_id}`)).toMatchObject({ status: 404 })
  })
})
