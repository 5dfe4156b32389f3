import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { openSqlite } from '../../base/index.js'
import type { BackupRecord } from '../../contract/databases/backups.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { create } from '../testing/checks.js'
import { type ManagementServer, startManagement } from '../testing/management.js'
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
  await untilSettled(server, record)
  expect(await listed(server, record)).toEqual([backup])
  await waitFor(async () => (await stateOf(server, record)) === '', { what: 'the database to be free' })
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
  await untilSettled(server, record)
  expect(await listed(server, record)).toEqual([safety, empty])
  await waitFor(async () => (await stateOf(server, record)) === '', { what: 'the database to be free' })
  expect(await command(server, record, 'GET', 'k')).toBeNull()
  await restore(server, record, safety?.backup_id)
  expect(await command(server, record, 'GET', 'k')).toBe('precious')
})

it('a start fails a pending backup whose file is cut or missing, and one that an import was filling', async () => {
  const before = await startManagement()
  const records = [await create(before), await create(before), await create(before)]
  for (const record of records) await backUp(before, record, 'doomed')
  const [cut, , filled] = records as [DatabaseRecord, DatabaseRecord, DatabaseRecord]
  const folder = ({ database_id }: DatabaseRecord) => join(before.dataDir, 'backups', database_id)
  const filesOf = (record: DatabaseRecord) => (existsSync(folder(record)) ? readdirSync(folder(record)) : [])
  await before.close()
  const [name = ''] = filesOf(cut)
  writeFileSync(join(folder(cut), name), readFileSync(join(folder(cut), name)).subarray(0, -4))
  takeBack(
    before.dataDir,
    `UPDATE backups SET ${PENDING}`,
    `UPDATE backups SET kind = 'import' WHERE database_id = '${filled.database_id}'`,
    "UPDATE databases SET modifying_state = 'backing_up'",
  )
  const [, missing] = records as [DatabaseRecord, DatabaseRecord]
  takeBack(before.dataDir, `UPDATE backups SET backup_id = 'bak_missing' WHERE database_id = '${missing.database_id}'`)

  const server = await restart(before)
  for (const record of records) {
    await untilSettled(server, record)
    expect(await listed(server, record)).toMatchObject([{ state: 'failed' }])
    await waitFor(async () => (await stateOf(server, record)) === '', { what: 'the database to be free' })
  }
  expect([filesOf(cut), filesOf(filled)]).toEqual([[], []])
})
