import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freePortRange, waitFor } from '../../../test/support/index.js'
import { sha256Hex } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { BackupSchema } from '../../contract/databases/backups.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { DEFAULT_PLANS } from '../../contract/databases/plans.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { compileChecker } from '../../http/index.js'
import { ask, create } from '../testing/checks.js'
import { type ManagementOptions, type ManagementServer, startManagement } from '../testing/management.js'
import { backUp, command, restore } from '../testing/requests.js'

const DAY_MS = 86_400_000
const checkBackup = compileChecker(BackupSchema, 'body')

async function listed(server: ManagementServer, record: DatabaseRecord) {
  const { status, body } = await server.api('GET', `/v2/redis/list-backup/${record.database_id}`)
  expect(status).toBe(200)
  for (const backup of body) checkBackup(backup)
  return body as { backup_id: string; name: string; state: string; [field: string]: unknown }[]
}

const filesOf = (server: ManagementServer, record: DatabaseRecord): string[] => {
  const dir = join(server.dataDir, 'backups', record.database_id)
  return existsSync(dir) ? readdirSync(dir) : []
}

const OK = { status: 200, body: 'OK' }

let server: ManagementServer
/** The methods of the fleet that a test replaces. */
let faults: Pick<ManagementOptions, 'checkSnapshot' | 'adoptSnapshot'> = {}

beforeAll(async () => {
  server = await startManagement({
    redisPorts: await freePortRange(40),
    plans: { ...DEFAULT_PLANS, free: { ...DEFAULT_PLANS.free, db_memory_threshold: 4 * 2 ** 20 } },
    checkSnapshot: (fleet, file) => faults.checkSnapshot?.(fleet, file),
    adoptSnapshot: (fleet, spec, file) => faults.adoptSnapshot?.(fleet, spec, file),
  })
})
afterEach(() => {
  faults = {}
})

/** A gate that work reaches and waits at. */
function gate() {
  let reach = (): void => {}
  let open = (): void => {}
  const reached = new Promise<void>((resolve) => (reach = resolve))
  const opened = new Promise<void>((resolve) => (open = resolve))
  const pass = (): Promise<void> => {
    reach()
    return opened
  }
  return { pass, reached, open }
}

describe('a backup', () => {
  it('is completed when the request is answered', async () => {
    const record = await create(server)
    await command(server, record, 'MSET', 'a', '1', 'b', '2')
    expect(await backUp(server, record, '  before the sale ')).toEqual(OK)
    const [backup, ...rest] = await listed(server, record)
    expect(rest).toEqual([])
    expect(backup).toMatchObject({
      database_id: record.database_id,
      customer_id: 'owner@homeport.local',
      name: 'before the sale',
      state: 'completed',
      key_count: 2,
      daily_backup: 'false',
      hourly_backup: 'false',
      internal_backup_tag: 'manual',
    })
    expect(backup?.backup_size).toBe(
      readFileSync(join(server.dataDir, 'backups', record.database_id, `${backup?.backup_id}.rdb`)).length,
    )
    expect((await server.api('GET', `/v2/redis/database/${record.database_id}`)).body.modifying_state).toBe('')
  })

  it('is listed as pending while it is made, and blocks other changes', async () => {
    const check = gate()
    faults = { checkSnapshot: (fleet, file) => check.pass().then(() => fleet.checkSnapshot(file)) }
    const record = await create(server)
    const answer = backUp(server, record)
    await check.reached
    expect(await listed(server, record)).toMatchObject([{ state: 'pending', backup_size: 0 }])
    const refused = [
      await backUp(server, record),
      await restore(server, record, 'bak_x'),
      await server.api('DELETE', `/v2/redis/database/${record.database_id}`),
    ]
    for (const { status, body } of refused) {
      expect(status).toBe(409)
      expect(body.error).toContain('modifying_state is "backing_up"')
    }
    expect(await command(server, record, 'SET', 'k', 'v')).toBe('OK')
    check.open()
    expect(await answer).toEqual(OK)
  })

  it('waits while four others of its account are made', async () => {
    const check = gate()
    faults = { checkSnapshot: (fleet, file) => check.pass().then(() => fleet.checkSnapshot(file)) }
    const records = await Promise.all(Array.from({ length: 5 }, () => create(server)))
    const pending = async () => (await Promise.all(records.map((record) => listed(server, record)))).flat().length
    const answers = records.map((record) => backUp(server, record))
    await waitFor(async () => (await pending()) === 4, { what: 'four backups' })
    faults = {}
    check.open()
    expect(await Promise.all(answers)).toEqual(records.map(() => OK))
    expect(await pending()).toBe(5)
  })

  it('fails with a reason when its check fails, and leaves no file and a free database', async () => {
    const odd = new HomeportError('snapshot_unusable', { reason: 'it is odd' })
    faults = { checkSnapshot: () => Promise.reject(odd) }
    const record = await create(server)
    const { status, body } = await backUp(server, record)
    expect([status, body.error]).toEqual([503, expect.stringContaining('it is odd')])
    const [backup] = await listed(server, record)
    expect(backup).toMatchObject({ state: 'failed', backup_size: 0, failure: expect.stringContaining('it is odd') })
    expect(filesOf(server, record)).toEqual([])
    expect(await restore(server, record, backup?.backup_id)).toMatchObject({ status: 409 })
    const readOnly = Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' })
    faults = { checkSnapshot: () => Promise.reject(readOnly) }
    const refused = { status: 503, body: { error: expect.stringContaining('full or read-only') } }
    expect(await backUp(server, record)).toMatchObject(refused)
    faults = {}
    expect(await backUp(server, record)).toEqual(OK)
  })

  it('can be downloaded', async () => {
    const record = await create(server)
    await command(server, record, 'SET', 'k', 'v')
    await backUp(server, record, 'nachts, größer')
    const [backup] = await listed(server, record)
    const download = await server.databases.backups.download(server.owner, record.database_id, backup?.backup_id ?? '')
    download.stream.destroy()
    const response = await server.raw('GET', `/v2/redis/download-backup/${record.database_id}/${backup?.backup_id}`)
    const bytes = new Uint8Array(await response.arrayBuffer())
    expect(response.headers.get('content-type')).toBe('application/octet-stream')
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="nachts-gr-er.rdb"')
    expect(response.headers.get('x-content-sha256')).toBe(sha256Hex(bytes))
    // Valkey writes its own name from 9.0 on.
    expect(Buffer.from(bytes.subarray(0, 9)).toString()).toMatch(/^(REDIS\d{4}|VALKEY\d{3})$/)
    expect(bytes.length).toBe(backup?.backup_size)
  })

  it('is deleted with its file, and all with their database', async () => {
    const record = await create(server)
    await backUp(server, record, 'one')
    await backUp(server, record, 'two')
    const [two, one] = await listed(server, record)
    const path = `/v2/redis/delete-backup/${record.database_id}/${one?.backup_id}`
    expect(await server.api('DELETE', path, 'null')).toEqual(OK)
    expect(filesOf(server, record)).toEqual([`${two?.backup_id}.rdb`])
    expect(await server.api('DELETE', path)).toMatchObject({ status: 404 })
    // Its file cannot be deleted.
    const left = join(server.dataDir, 'backups', record.database_id, `${two?.backup_id}.rdb`)
    rmSync(left)
    mkdirSync(join(left, 'full'), { recursive: true })
    expect(await server.api('DELETE', path.replace(`${one?.backup_id}`, `${two?.backup_id}`))).toEqual(OK)
    expect(await listed(server, record)).toEqual([])
    expect(await server.api('DELETE', `/v2/redis/database/${record.database_id}`)).toEqual(OK)
    expect(existsSync(join(server.dataDir, 'backups', record.database_id))).toBe(false)
  })

  it('is refused without a valid name', async () => {
    const record = await create(server)
    for (const body of [{}, { name: '' }, { name: ' \t ' }, { name: 7 }, { name: 'x'.repeat(129) }, { name: 'a\nb' }]) {
      const answer = await server.api('POST', `/v2/redis/create-backup/${record.database_id}`, body)
      expect([body, answer.status, answer.body.error]).toEqual([body, 400, expect.stringContaining('name')])
    }
    expect(await listed(server, record)).toEqual([])
  })

  it('of a database that does not exist is not found', async () => {
    for (const [method, path, body] of [
      ['GET', 'list-backup/nope'],
      ['POST', 'create-backup/nope', { name: 'x' }],
      ['DELETE', 'delete-backup/nope/bak'],
      ['POST', 'restore-backup/nope', { backup_id: 'bak' }],
      ['PATCH', 'enable-dailybackup/nope'],
      ['GET', 'download-backup/nope/bak'],
    ] as const) {
      expect(await server.api(method, `/v2/redis/${path}`, body)).toMatchObject({ status: 404 })
    }
  })
})

describe('a restore', () => {
  it('replaces all data, on replicas too, after a safety backup of the old data', async () => {
    const record = await create(server, { read_regions: ['eu-west-1'] })
    await command(server, record, 'MSET', 'a', 'old', 'b', 'old')
    await backUp(server, record)
    const [backup] = await listed(server, record)
    await command(server, record, 'MSET', 'a', 'new', 'c', 'new')
    expect(await restore(server, record, backup?.backup_id)).toEqual(OK)
    expect(await command(server, record, 'MGET', 'a', 'b', 'c')).toEqual(['old', 'old', null])
    const onReplica = ['MGET', 'a', 'c']
    expect(await ask(server, record.database_id, 'eu-west-1', ['default', record.password ?? ''], onReplica)).toEqual([
      'old',
      null,
    ])
    const [safety] = await listed(server, record)
    expect(safety).toMatchObject({
      name: 'Before restoring nightly',
      state: 'completed',
      internal_backup_tag: 'safety',
    })
    expect(await restore(server, record, safety?.backup_id)).toEqual(OK)
    expect(await command(server, record, 'MGET', 'a', 'b', 'c')).toEqual(['new', 'old', 'new'])
    expect(filesOf(server, record)).not.toContain('restore.rdb')
  })

  it('holds commands while it replaces the data', async () => {
    const replacement = gate()
    faults = { adoptSnapshot: (fleet, spec, file) => replacement.pass().then(() => fleet.adoptSnapshot(spec, file)) }
    const record = await create(server)
    await command(server, record, 'SET', 'k', 'old')
    await backUp(server, record)
    const [backup] = await listed(server, record)
    await command(server, record, 'SET', 'k', 'new')
    const answer = restore(server, record, backup?.backup_id)
    await replacement.reached
    const held = command(server, record, 'GET', 'k')
    expect((await backUp(server, record)).body.error).toContain('"restoring"')
    replacement.open()
    expect(await held).toBe('old')
    expect(await answer).toEqual(OK)
  })

  it('accepts a backup of another database of the account', async () => {
    const [from, to] = [await create(server), await create(server, { plan: 'fixed_250mb' })]
    await command(server, from, 'SET', 'k', 'theirs')
    await command(server, to, 'SET', 'other', 'x')
    await backUp(server, from)
    const [backup] = await listed(server, from)
    expect(await restore(server, to, backup?.backup_id)).toEqual(OK)
    expect(await command(server, to, 'MGET', 'k', 'other')).toEqual(['theirs', null])
  })

  it('is refused before it changes anything when the data exceeds the plan', async () => {
    const [large, small] = [await create(server), await create(server, { plan: 'free' })]
    for (let i = 0; i < 6; i++) await command(server, large, 'SET', `k${i}`, 'x'.repeat(2 ** 20))
    await backUp(server, large)
    const [backup] = await listed(server, large)
    const { status, body } = await restore(server, small, backup?.backup_id)
    expect([status, body.error]).toEqual([409, expect.stringMatching(/needs \d+ bytes .* allows 4194304/)])
    expect(await listed(server, small)).toEqual([])
    expect((await server.api('GET', `/v2/redis/database/${small.database_id}`)).body.modifying_state).toBe('')
  })

  it('of a changed file is refused, and the data stays', async () => {
    const record = await create(server)
    await backUp(server, record)
    const [backup] = await listed(server, record)
    writeFileSync(join(server.dataDir, 'backups', record.database_id, `${backup?.backup_id}.rdb`), 'REDIS0010')
    await command(server, record, 'SET', 'k', 'v')
    expect(await restore(server, record, backup?.backup_id)).toMatchObject({ status: 400 })
    expect(await command(server, record, 'GET', 'k')).toBe('v')
    expect(await restore(server, record, 'bak_unknown')).toMatchObject({ status: 404 })
  })
})

describe('a backup of another engine', () => {
  it('is refused when the installed engine cannot read it, and the data stays', async () => {
    faults = {
      checkSnapshot: async (fleet, file) => {
        const facts = await fleet.checkSnapshot(file)
        writeFileSync(file, ofNewerEngine(readFileSync(file, 'latin1')), 'latin1')
        return facts
      },
    }
    const record = await create(server)
    await command(server, record, 'SET', 'k', 'newer')
    expect(await backUp(server, record)).toEqual(OK)
    faults = {}
    const [backup] = await listed(server, record)
    await command(server, record, 'SET', 'k', 'v')
    const { status, body } = await restore(server, record, backup?.backup_id)
    expect([status, body.error]).toEqual([400, expect.stringContaining('it was written by a newer engine')])
    expect(await command(server, record, 'GET', 'k')).toBe('v')
    expect((await server.api('GET', `/v2/redis/database/${record.database_id}`)).body.modifying_state).toBe('')
  })

  /** The magic of a file names its vendor and the version of its format. */
  const ofNewerEngine = (file: string): string =>
    file.replace(/^([A-Z]+)(\d+)/, (_, vendor, version) => vendor + '9'.repeat(version.length))
})

describe('daily backups', () => {
  it('are created every day, kept for a day, and stop when switched off', async () => {
    const clock = new ManualClock()
    const server = await startManagement({ clock, manualBackups: 0 })
    const record = await create(server)
    expect(await backUp(server, record)).toMatchObject({
      status: 429,
      body: { error: expect.stringContaining('has 0 manual') },
    })
    const set = (method: string, verb: string) =>
      server.api(method, `/v2/redis/${verb}-dailybackup/${record.database_id}`)
    const isOn = async () =>
      (await server.api('GET', `/v2/redis/database/${record.database_id}`)).body.daily_backup_enabled
    expect(await isOn()).toBe(false)
    expect(await set('PATCH', 'enable')).toEqual(OK)
    expect(await set('POST', 'enable')).toEqual(OK)
    expect(await isOn()).toBe(true)
    const dayPasses = async (until: (names: string[]) => boolean) => {
      const before = clock.now()
      await waitFor(
        async () => {
          if (clock.now() < before + 1.1 * DAY_MS) clock.advance(DAY_MS / 24)
          const found = await listed(server, record)
          return found.every((one) => one.state === 'completed') && until(found.map((one) => one.backup_id))
        },
        { what: 'the daily backup' },
      )
    }
    await dayPasses((ids) => ids.length === 1)
    const [first] = await listed(server, record)
    expect(first).toMatchObject({ daily_backup: 'true', hourly_backup: 'false', internal_backup_tag: 'daily' })
    await dayPasses((ids) => ids.length === 1 && ids[0] !== first?.backup_id)
    const [second] = await listed(server, record)
    await expect.poll(() => filesOf(server, record)).toEqual([`${second?.backup_id}.rdb`])
    expect(await set('POST', 'disable')).toEqual(OK)
    expect(await set('PATCH', 'disable')).toEqual(OK)
    expect(await isOn()).toBe(false)
    await dayPasses((ids) => ids.length === 0)
    const { body: log } = await server.api('GET', '/v2/auditlogs?limit=2')
    expect(log).toMatchObject([
      { action_string: 'Disable Daily Backup', action: 33 },
      { action_string: 'Enable Daily Backup', action: 32 },
    ])
  })

  it('are refused on plan free', async () => {
    const record = await create(server, { plan: 'free' })
    const { status, body } = await server.api('PATCH', `/v2/redis/enable-dailybackup/${record.database_id}`, 'null')
    expect([status, body.error]).toEqual([409, expect.stringContaining('Plan "free"')])
  })
})

describe('a restart', () => {
  it('completes an interrupted replacement, keeps writes after a restore, and deletes files without a row', async () => {
    let interrupted: DatabaseRecord | undefined
    const cut = gate()
    const before = await startManagement({
      adoptSnapshot: (fleet, spec, file) =>
        spec.databaseId === interrupted?.database_id
          ? cut.pass().then(() => Promise.reject(new Error('cut short')))
          : fleet.adoptSnapshot(spec, file),
    })
    const records = [await create(before), await create(before)]
    for (const record of records) {
      await command(before, record, 'SET', 'k', 'old')
      await backUp(before, record)
      await command(before, record, 'SET', 'k', 'new')
    }
    const [restored, cutShort] = records as [DatabaseRecord, DatabaseRecord]
    const [backup] = await listed(before, restored)
    const doomed = join(before.dataDir, 'backups', restored.database_id, `${backup?.backup_id}.rdb`)
    expect(await restore(before, restored, backup?.backup_id)).toEqual(OK)
    // A file that cannot be deleted, as after a kill: a folder is in its place.
    rmSync(doomed)
    mkdirSync(doomed)
    expect(await before.api('DELETE', `/v2/redis/delete-backup/${restored.database_id}/${backup?.backup_id}`)).toEqual(
      OK,
    )
    rmdirSync(doomed)
    await command(before, restored, 'SET', 'k', 'newest')
    interrupted = cutShort
    const [last] = await listed(before, cutShort)
    const answer = restore(before, cutShort, last?.backup_id)
    await cut.reached
    cut.open()
    await before.close()
    expect(await answer).toMatchObject({ status: 503 })
    const known = filesOf(before, restored)
    const dir = join(before.dataDir, 'backups', restored.database_id)
    for (const path of [join(dir, 'restore.rdb'), join(dir, 'bak_left.rdb'), doomed]) writeFileSync(path, 'x')

    const again = await startManagement({ dataDir: before.dataDir, redisPorts: before.redisPorts })
    expect(await command(again, cutShort, 'GET', 'k')).toBe('old')
    expect((await again.api('GET', `/v2/redis/database/${cutShort.database_id}`)).body.modifying_state).toBe('')
    expect(await listed(again, cutShort)).toMatchObject([{ internal_backup_tag: 'safety', state: 'completed' }, {}])
    expect(await command(again, restored, 'GET', 'k')).toBe('newest')
    expect(filesOf(again, restored)).toEqual(known)
    // Only the file that was never known is kept for the operator.
    expect(await again.api('GET', '/v2/redis/quarantine')).toMatchObject({ body: [{ backup_id: 'bak_left' }] })
  })
})
