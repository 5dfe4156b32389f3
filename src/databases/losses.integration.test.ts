import { rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { type DatabaseRecord, DatabaseRecordSchema } from '../contract/databases/databases.js'
import { compileChecker } from '../http/index.js'
import { ask, create } from './testing/checks.js'
import { type ManagementServer, startManagement } from './testing/management.js'

const checkRecord = compileChecker(DatabaseRecordSchema, 'body')

describe('lost data', () => {
  let server: ManagementServer

  beforeAll(async () => {
    server = await startManagement()
  })

  const dirOf = (record: DatabaseRecord) => join(server.dataDir, 'databases', record.database_id, 'us-east-1')
  const command = (record: DatabaseRecord, ...words: string[]) =>
    ask(server, record.database_id, 'us-east-1', ['default', record.password ?? ''], words)
  const recordOf = async (record: DatabaseRecord): Promise<DatabaseRecord> => {
    const { body } = await server.api('GET', `/v2/redis/database/${record.database_id}`)
    checkRecord(body)
    return body
  }
  const acceptLoss = (record: DatabaseRecord) => server.api('POST', `/v2/redis/accept-loss/${record.database_id}`)
  const reopen = async () => {
    await server.close()
    server = await startManagement({ dataDir: server.dataDir, redisPorts: server.redisPorts })
  }
  const problemsOf = (record: DatabaseRecord) =>
    server.problems.visibleTo(server.owner.accountId).filter(({ subject }) => subject === record.database_id)

  it('is found at the start, shown in the record, and served empty only after the owner accepts it', async () => {
    const record = await create(server)
    await command(record, 'SET', 'k', 'v')
    await server.close()
    rmSync(join(server.dataDir, 'databases', record.database_id), { recursive: true })
    server = await startManagement({ dataDir: server.dataDir, redisPorts: server.redisPorts })
    await waitFor(async () => (await recordOf(record)).data_problem !== undefined, { what: 'the problem' })
    const { data_problem } = await recordOf(record)
    expect(data_problem).toMatchObject({ kind: 'missing', text: 'its data directory is missing' })
    expect(problemsOf(record)).toMatchObject([{ kind: 'data_missing', severity: 'error' }])
    await expect(command(record, 'GET', 'k')).rejects.toMatchObject({ code: 'data_missing' })
    await reopen()
    expect((await recordOf(record)).data_problem).toEqual(data_problem)
    expect(problemsOf(record)).toHaveLength(1)
    expect(await acceptLoss(record)).toEqual({ status: 200, body: 'OK' })
    expect(await command(record, 'GET', 'k')).toBeNull()
    expect(await recordOf(record)).toMatchObject({ modifying_state: '' })
    expect(await recordOf(record)).not.toHaveProperty('data_problem')
    expect(problemsOf(record)).toEqual([])
    expect(await acceptLoss(record)).toEqual({ status: 200, body: 'OK' })
  })

  it('of a cut log is shown until the owner accepts it, after restarts too', async () => {
    const record = await create(server)
    for (let n = 0; n < 20; n++) await command(record, 'SET', `k${n}`, 'v')
    await server.close()
    const log = join(dirOf(record), 'appendonlydir', 'appendonly.aof.1.incr.aof')
    truncateSync(log, Math.floor(statSync(log).size / 2))
    await reopen()
    expect(Number(await command(record, 'DBSIZE'))).toBeLessThan(20)
    await waitFor(async () => (await recordOf(record)).data_problem !== undefined, { what: 'the problem' })
    await reopen()
    expect((await recordOf(record)).data_problem).toMatchObject({ kind: 'cut', last_whole: expect.any(Number) })
    expect(problemsOf(record)).toMatchObject([{ kind: 'log_truncated' }])
    expect(await acceptLoss(record)).toEqual({ status: 200, body: 'OK' })
    expect(await recordOf(record)).not.toHaveProperty('data_problem')
    expect(problemsOf(record)).toEqual([])
    await command(record, 'SET', 'k', 'v')
  })

  it('of a directory that is deleted while the engine runs is found when the engine stops', async () => {
    const record = await create(server)
    rmSync(dirOf(record), { recursive: true })
    process.kill(server.fleet.observe(record.database_id)[0]?.pid ?? 0, 'SIGKILL')
    await waitFor(() => problemsOf(record).length === 1, { what: 'the problem' })
    await expect(command(record, 'GET', 'k')).rejects.toMatchObject({ code: 'data_missing' })
    expect(problemsOf(record)).toHaveLength(1)
    expect(await server.api('DELETE', `/v2/redis/database/${record.database_id}`)).toMatchObject({ status: 200 })
    expect(problemsOf(record)).toEqual([])
  })
})
