import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { type DatabaseRecord, DatabaseRecordSchema } from '../contract/databases/databases.js'
import { HomeportError } from '../contract/errors/errors.js'
import { compileChecker } from '../http/index.js'
import { create } from './testing/checks.js'
import { type ManagementOptions, type ManagementServer, startManagement } from './testing/management.js'
import { command, recordOf } from './testing/requests.js'

const checkRecord = compileChecker(DatabaseRecordSchema, 'body')

describe('lost data', () => {
  let server: ManagementServer

  /** The start of an engine that fails after it was stopped: `armed`, then `stopped`. */
  let failing: 'not' | 'armed' | 'stopped' = 'not'
  const ensure: ManagementOptions['ensure'] = (fleet, spec) => {
    if (failing === 'stopped') {
      failing = 'not'
      return Promise.reject(new HomeportError('engine_failed', { reason: 'a test' }))
    }
    if (failing === 'armed' && spec.state === 'stopped') failing = 'stopped'
    return fleet.ensure(spec, 'while-loading')
  }

  beforeAll(async () => {
    server = await startManagement()
  })

  const dirOf = (record: DatabaseRecord) => join(server.dataDir, 'databases', record.database_id, 'us-east-1')
  const checkedRecord = async (record: DatabaseRecord): Promise<DatabaseRecord> => {
    const now = await recordOf(server, record)
    checkRecord(now)
    return now
  }
  const acceptLoss = (record: DatabaseRecord) => server.api('POST', `/v2/redis/accept-loss/${record.database_id}`)
  const reopen = async () => {
    await server.close()
    server = await startManagement({ dataDir: server.dataDir, redisPorts: server.redisPorts, ensure })
  }
  const problemsOf = (record: DatabaseRecord) =>
    server.problems.visibleTo(server.owner.accountId).filter(({ subject }) => subject === record.database_id)

  it('is found at the start, shown until the owner accepts it, and served empty only then', async () => {
    const [gone, cut] = [await create(server), await create(server)]
    await command(server, gone, 'SET', 'k', 'v')
    for (let n = 0; n < 20; n++) await command(server, cut, 'SET', `k${n}`, 'v')
    await server.close()
    rmSync(join(server.dataDir, 'databases', gone.database_id), { recursive: true })
    const log = join(dirOf(cut), 'appendonlydir', 'appendonly.aof.1.incr.aof')
    truncateSync(log, Math.floor(statSync(log).size / 2))
    await reopen()
    const hasProblem = async (record: DatabaseRecord) => (await checkedRecord(record)).data_problem !== undefined
    await waitFor(() => hasProblem(gone), { what: 'the problem of the missing directory' })
    const { data_problem } = await checkedRecord(gone)
    expect(data_problem).toMatchObject({ kind: 'missing', text: 'its data directory is missing' })
    expect(problemsOf(gone)).toMatchObject([{ kind: 'data_missing', severity: 'error' }])
    await expect(command(server, gone, 'GET', 'k')).rejects.toMatchObject({ code: 'data_missing' })
    expect(Number(await command(server, cut, 'DBSIZE'))).toBeLessThan(20)
    await waitFor(() => hasProblem(cut), { what: 'the problem of the cut log' })

    await reopen()
    expect((await checkedRecord(gone)).data_problem).toEqual(data_problem)
    expect(problemsOf(gone)).toHaveLength(1)
    expect((await checkedRecord(cut)).data_problem).toMatchObject({ kind: 'cut', last_whole: expect.any(Number) })
    expect(problemsOf(cut)).toMatchObject([{ kind: 'log_truncated' }])
    for (const record of [gone, cut]) {
      expect(await acceptLoss(record)).toEqual({ status: 200, body: 'OK' })
      expect(await checkedRecord(record)).toMatchObject({ modifying_state: '' })
      expect(await checkedRecord(record)).not.toHaveProperty('data_problem')
      expect(problemsOf(record)).toEqual([])
    }
    expect(await command(server, gone, 'GET', 'k')).toBeNull()
    expect(await acceptLoss(gone)).toEqual({ status: 200, body: 'OK' })
    await command(server, cut, 'SET', 'k', 'v')
  })

  it('costs what is damaged and nothing before it, also when its acceptance is repeated', async () => {
    const record = await create(server)
    for (let n = 0; n < 20; n++) await command(server, record, 'SET', `k${n}`, 'v')
    await server.close()
    const log = join(dirOf(record), 'appendonlydir', 'appendonly.aof.1.incr.aof')
    const bytes = readFileSync(log)
    bytes.fill('?', Math.floor(bytes.length / 2), Math.floor(bytes.length / 2) + 20)
    writeFileSync(log, bytes)
    await reopen()
    await expect(command(server, record, 'GET', 'k0')).rejects.toMatchObject({ code: 'data_unreadable' })
    failing = 'armed'
    expect(await acceptLoss(record)).toMatchObject({ status: 503 })
    expect(await checkedRecord(record)).toMatchObject({ modifying_state: '', data_problem: { kind: 'unreadable' } })
    expect(await acceptLoss(record)).toEqual({ status: 200, body: 'OK' })
    expect(await command(server, record, 'GET', 'k0')).toBe('v')
    expect(await checkedRecord(record)).not.toHaveProperty('data_problem')
  })

  it('of a directory that is deleted while the engine runs is found when the engine stops', async () => {
    const record = await create(server)
    rmSync(dirOf(record), { recursive: true })
    process.kill(server.fleet.observe(record.database_id)[0]?.pid ?? 0, 'SIGKILL')
    await waitFor(() => problemsOf(record).length === 1, { what: 'the problem' })
    await expect(command(server, record, 'GET', 'k')).rejects.toMatchObject({ code: 'data_missing' })
    expect(problemsOf(record)).toHaveLength(1)
    expect(await server.api('DELETE', `/v2/redis/database/${record.database_id}`)).toMatchObject({ status: 200 })
    expect(problemsOf(record)).toEqual([])
  })
})
