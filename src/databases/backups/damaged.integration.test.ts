import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { ask, create } from '../testing/checks.js'
import { type ManagementServer, startManagement } from '../testing/management.js'

const OK = { status: 200, body: 'OK' }

/** Runs a command on the primary of a database as its owner. */
const command = (at: ManagementServer, record: DatabaseRecord, ...words: string[]) =>
  ask(at, record.database_id, 'us-east-1', ['default', record.password ?? ''], words)
const listed = async (at: ManagementServer, record: DatabaseRecord) =>
  (await at.api('GET', `/v2/redis/list-backup/${record.database_id}`)).body as { backup_id: string }[]
const backUp = (at: ManagementServer, record: DatabaseRecord) =>
  at.api('POST', `/v2/redis/create-backup/${record.database_id}`, { name: 'nightly' })
const restore = (at: ManagementServer, record: DatabaseRecord, backupId: string | undefined) =>
  at.api('POST', `/v2/redis/restore-backup/${record.database_id}`, { backup_id: backupId })

describe('a restore of a database', () => {
  let at: ManagementServer

  beforeAll(async () => {
    at = await startManagement()
  })

  const memberDir = (record: DatabaseRecord) => join(at.dataDir, 'databases', record.database_id, 'us-east-1')
  const basesOf = (record: DatabaseRecord) => {
    const dir = join(memberDir(record), 'appendonlydir')
    return readdirSync(dir).map((name) => statSync(join(dir, name)))
  }
  const backedUp = async () => {
    const record = await create(at)
    await command(at, record, 'SET', 'k', 'old')
    expect(await backUp(at, record)).toEqual(OK)
    const [backup] = await listed(at, record)
    return { record, backup, file: join(at.dataDir, 'backups', record.database_id, `${backup?.backup_id}.rdb`) }
  }
  /** Restarts; all databases sleep afterwards. */
  const restartAfter = async (change: () => void) => {
    await at.close()
    change()
    at = await startManagement({ dataDir: at.dataDir, redisPorts: at.redisPorts })
  }

  it('does not share an inode with the backup', async () => {
    const { record, backup, file } = await backedUp()
    expect(statSync(file).nlink).toBe(1)
    expect(await restore(at, record, backup?.backup_id)).toEqual(OK)
    const inodes = basesOf(record).map(({ ino }) => ino)
    expect(inodes).not.toContain(statSync(file).ino)
    expect([statSync(file).nlink, ...basesOf(record).map(({ nlink }) => nlink)].every((links) => links === 1)).toBe(
      true,
    )
  })

  it('with unreadable data restores the backup, and sets the old data aside', async () => {
    const { record, backup } = await backedUp()
    await restartAfter(() => {
      const log = join(memberDir(record), 'appendonlydir', 'appendonly.aof.1.incr.aof')
      writeFileSync(log, readFileSync(log, 'latin1').replaceAll('*3', '?3'), 'latin1')
    })
    expect(await restore(at, record, backup?.backup_id)).toEqual(OK)
    expect(await command(at, record, 'GET', 'k')).toBe('old')
    const [safety] = await listed(at, record)
    expect(safety).toMatchObject({ state: 'failed', failure: expect.stringContaining('damaged') })
    const kept = readdirSync(join(at.dataDir, 'quarantine')).filter((name) => name.includes(record.database_id))
    expect(kept).toHaveLength(1)
    const quarantined = join(at.dataDir, 'quarantine', kept[0] ?? '')
    const log = join(quarantined, 'data/us-east-1/appendonlydir/appendonly.aof.1.incr.aof')
    expect(readFileSync(log, 'latin1')).toContain('?3')
    const { body } = await at.api('GET', `/v2/redis/database/${record.database_id}`)
    expect(body).not.toHaveProperty('data_problem')
    expect(at.problems.count).toBe(0)
  })

  it('with missing data restores the backup', async () => {
    const { record, backup } = await backedUp()
    await restartAfter(() => rmSync(memberDir(record), { recursive: true }))
    await expect(command(at, record, 'GET', 'k')).rejects.toThrow('missing')
    expect(await restore(at, record, backup?.backup_id)).toEqual(OK)
    expect(await command(at, record, 'GET', 'k')).toBe('old')
    const open = at.problems.visibleTo(at.owner.accountId).filter(({ subject }) => subject === record.database_id)
    expect(open).toEqual([])
  })
})
