import { EventEmitter, once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { openSqlite } from '../../base/index.js'
import type { BackupRecord } from '../../contract/databases/backups.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import type { QuarantineRecord } from '../../contract/databases/quarantine.js'
import { create } from '../testing/checks.js'
import { type ManagementOptions, type ManagementServer, startManagement } from '../testing/management.js'
import { backUp, command, restore } from '../testing/requests.js'

/** Backups that are pending in the store at the start of a server. */

const PENDING = "state = 'pending', size_bytes = 0, key_count = 0, data_bytes = 0, sha256 = '', finished_at = NULL"

/** Undoes committed rows, as the loss of the last commits does. */
function takeBack(dataDir: string, ...statements: readonly string[]): void {
  const db = openSqlite(join(dataDir, 'homeport.sqlite'))
  for (const statement of statements) db.exec(statement)
  db.close()
}

async function listed(server: ManagementServer, record: DatabaseRecord): Promise<BackupRecord[]> {
  return (await server.api('GET', `/v2/redis/list-backup/${record.database_id}`)).body
}

const stateOf = async (server: ManagementServer, record: DatabaseRecord): Promise<string> =>
  (await server.api('GET', `/v2/redis/database/${record.database_id}`)).body.modifying_state

async function untilSettled(server: ManagementServer, record: DatabaseRecord): Promise<void> {
  const isSettled = async () => (await listed(server, record)).every(({ state }) => state !== 'pending')
  await waitFor(isSettled, { what: 'all backups to be settled' })
}

/** Waits until the backups of a database are settled and it can be changed again. */
async function untilFree(server: ManagementServer, record: DatabaseRecord): Promise<void> {
  await untilSettled(server, record)
  await waitFor(async () => (await stateOf(server, record)) === '', { what: 'the database to be free' })
}

function filesOf({ dataDir }: ManagementServer, { database_id }: DatabaseRecord): string[] {
  const folder = join(dataDir, 'backups', database_id)
  return existsSync(folder) ? readdirSync(folder) : []
}

const restart = ({ dataDir, redisPorts }: ManagementServer) => startManagement({ dataDir, redisPorts })

it('a start completes a pending backup whose file is whole', async () => {
  const before = await startManagement()
  const record = await create(before)
  await command(before, record, 'SET', 'k', 'precious')
  await backUp(before, record, 'kept')
  const [backup] = await listed(before, record)
  await command(before, record, 'SET', 'k', 'later')
  await before.close()
  takeBack(before.dataDir, `UPDATE backups SET ${PENDING}`, "UPDATE databases SET modifying_state = 'backing_up'")

  const server = await restart(before)
  await untilFree(server, record)
  expect(await listed(server, record)).toEqual([backup])
  expect(await restore(server, record, backup?.backup_id)).toMatchObject({ status: 200 })
  expect(await command(server, record, 'GET', 'k')).toBe('precious')
})

it('a start keeps the data before a restore whose commits the store has lost', async () => {
  const before = await startManagement()
  const record = await create(before)
  await backUp(before, record, 'empty')
  const [empty] = await listed(before, record)
  await command(before, record, 'SET', 'k', 'precious')
  await restore(before, record, empty?.backup_id)
  const [safety] = await listed(before, record)
  await before.close()
  takeBack(
    before.dataDir,
    `UPDATE backups SET ${PENDING} WHERE kind = 'safety'`,
    "UPDATE databases SET modifying_state = 'restoring'",
    `INSERT INTO restores (database_id, backup_id, phase, started_at)
     VALUES ('${record.database_id}', '${empty?.backup_id}', 'preparing', 1)`,
  )

  const server = await restart(before)
  await untilFree(server, record)
  expect(await listed(server, record)).toEqual([safety, empty])
  expect(await command(server, record, 'GET', 'k')).toBeNull()
  await restore(server, record, safety?.backup_id)
  expect(await command(server, record, 'GET', 'k')).toBe('precious')
})

it('a start fails a pending backup whose file is missing, and one that an import was filling', async () => {
  const before = await startManagement()
  const records = [await create(before), await create(before)]
  for (const record of records) await backUp(before, record, 'doomed')
  const [missing, filled] = records as [DatabaseRecord, DatabaseRecord]
  await before.close()
  takeBack(
    before.dataDir,
    `UPDATE backups SET ${PENDING}`,
    `UPDATE backups SET kind = 'import' WHERE database_id = '${filled.database_id}'`,
    `UPDATE backups SET backup_id = 'bak_missing' WHERE database_id = '${missing.database_id}'`,
    "UPDATE databases SET modifying_state = 'backing_up'",
  )

  const server = await restart(before)
  for (const record of records) {
    await untilFree(server, record)
    expect(await listed(server, record)).toMatchObject([{ state: 'failed' }])
  }
  expect(filesOf(server, filled)).toEqual([])
})

it('a start moves the file of a pending backup that does not pass its check into quarantine', async () => {
  const before = await startManagement()
  const [cut, whole] = [await create(before), await create(before)] as const
  for (const record of [cut, whole]) await backUp(before, record, 'doubtful')
  await command(before, whole, 'SET', 'k', 'precious')
  await before.close()
  const [name = ''] = filesOf(before, cut)
  const path = join(before.dataDir, 'backups', cut.database_id, name)
  const rest = readFileSync(path).subarray(0, -4)
  writeFileSync(path, rest)
  takeBack(before.dataDir, `UPDATE backups SET ${PENDING}`, "UPDATE databases SET modifying_state = 'backing_up'")

  // The second file is whole, but the machine cannot check it.
  const { dataDir, redisPorts } = before
  const checkSnapshot: ManagementOptions['checkSnapshot'] = (_, file) =>
    file.includes(whole.database_id) ? Promise.reject(new Error('no memory')) : undefined
  const server = await startManagement({ dataDir, redisPorts, checkSnapshot })
  await untilFree(server, cut)
  await untilFree(server, whole)
  const entries: QuarantineRecord[] = (await server.api('GET', '/v2/redis/quarantine')).body
  expect(entries.map((entry) => entry.database_id).sort()).toEqual([cut.database_id, whole.database_id].sort())
  expect(server.problems.visibleTo('').map(({ subject }) => subject)).toEqual(entries.map(({ id }) => id))
  for (const { id, database_id, reason } of entries) {
    const failure = expect.stringContaining(`quarantine, entry ${id}`)
    const record = database_id === cut.database_id ? cut : whole
    expect(await listed(server, record)).toMatchObject([{ state: 'failed', failure }])
    expect(reason).toContain('could not complete this backup')
  }
  const idOf = (record: DatabaseRecord) => entries.find((entry) => entry.database_id === record.database_id)?.id ?? ''
  const [cutId, wholeId] = [idOf(cut), idOf(whole)]
  expect(readFileSync(join(dataDir, 'quarantine', cutId, 'data'))).toEqual(rest)

  // A later start leaves them there, and a whole one can be adopted.
  await server.close()
  const last = await restart(before)
  expect((await last.api('GET', '/v2/redis/quarantine')).body).toHaveLength(2)
  expect(await last.api('POST', `/v2/redis/quarantine/${wholeId}/adopt`, {})).toMatchObject({ status: 200 })
  expect(await last.api('POST', `/v2/redis/quarantine/${cutId}/adopt`, {})).toMatchObject({ status: 400 })
})

it('a stop while the start checks a pending backup leaves it to the next start', async () => {
  const before = await startManagement()
  const record = await create(before)
  await backUp(before, record, 'kept')
  const [backup] = await listed(before, record)
  await before.close()
  takeBack(before.dataDir, `UPDATE backups SET ${PENDING}`, "UPDATE databases SET modifying_state = 'backing_up'")

  const { dataDir, redisPorts } = before
  const check = new EventEmitter()
  const began = once(check, 'began')
  const checkSnapshot: ManagementOptions['checkSnapshot'] = async () => {
    check.emit('began')
    await once(check, 'ended')
    throw new Error('the engine was stopped')
  }
  const stopping = await startManagement({ dataDir, redisPorts, checkSnapshot })
  await began
  const closing = stopping.close()
  check.emit('ended')
  await closing

  const server = await restart(before)
  await untilFree(server, record)
  expect(await listed(server, record)).toEqual([backup])
})

it('the file of a backup stays when a stop hides whether the store has its outcome', async () => {
  const before = await startManagement({
    losesCommit: (name) => {
      if (name !== 'backups.finish') return false
      void before.databases.backups.stop()
      return true
    },
  })
  const record = await create(before)
  await command(before, record, 'SET', 'k', 'precious')
  expect((await backUp(before, record, 'kept')).status).not.toBe(200)
  await before.close()

  const server = await restart(before)
  const [backup] = await listed(server, record)
  expect(backup).toMatchObject({ name: 'kept', state: 'completed' })
  expect(await restore(server, record, backup?.backup_id)).toMatchObject({ status: 200 })
  expect(await command(server, record, 'GET', 'k')).toBe('precious')
})
