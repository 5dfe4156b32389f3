import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { create } from '../testing/checks.js'
import { type ManagementServer, startManagement } from '../testing/management.js'
import { backUp, command, restore } from '../testing/requests.js'

const OK = { status: 200, body: 'OK' }

const listed = async (server: ManagementServer, record: DatabaseRecord) =>
  (await server.api('GET', `/v2/redis/list-backup/${record.database_id}`)).body as { backup_id: string }[]

describe('a restore of a database', () => {
  let server: ManagementServer

  beforeAll(async () => {
    server = await startManagement()
  })

  const memberDir = (record: DatabaseRecord) => join(server.dataDir, 'databases', record.database_id, 'us-east-1')
  const basesOf = (record: DatabaseRecord) => {
    const dir = join(memberDir(record), 'appendonlydir')
    return readdirSync(dir).map((name) => statSync(join(dir, name)))
  }
  const backedUp = async () => {
    const record = await create(server)
    await command(server, record, 'SET', 'k', 'old')
    expect(await backUp(server, record)).toEqual(OK)
    const [backup] = await listed(server, record)
    return { record, backup, file: join(server.dataDir, 'backups', record.database_id, `${backup?.backup_id}.rdb`) }
  }
  /** Restarts; all databases sleep afterwards. */
  const restartAfter = async (change: () => void) => {
    await server.close()
    change()
    server = await startManagement({ dataDir: server.dataDir, redisPorts: server.redisPorts })
  }

  it('does not share an inode with the backup', async () => {
    const { record, backup, file } = await backedUp()
    expect(statSync(file).nlink).toBe(1)
    expect(await restore(server, record, backup?.backup_id)).toEqual(OK)
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
    expect(await restore(server, record, backup?.backup_id)).toEqual(OK)
    expect(await command(server, record, 'GET', 'k')).toBe('old')
    const [safety] = await listed(server, record)
    expect(safety).toMatchObject({ state: 'failed', failure: expect.stringContaining('damaged') })
    const kept = readdirSync(join(server.dataDir, 'quarantine')).filter((name) => name.includes(record.database_id))
    expect(kept).toHaveLength(1)
    const quarantined = join(server.dataDir, 'quarantine', kept[0] ?? '')
    const log = join(quarantined, 'data/us-east-1/appendonlydir/appendonly.aof.1.incr.aof')
    expect(readFileSync(log, 'latin1')).toContain('?3')
    const { body } = await server.api('GET', `/v2/redis/database/${record.database_id}`)
    expect(body).not.toHaveProperty('data_problem')
    expect(server.problems.count).toBe(0)
  })

  it('with missing data restores the backup', async () => {
    const { record, backup } = await backedUp()
    await restartAfter(() => rmSync(memberDir(record), { recursive: true }))
    await expect(command(server, record, 'GET', 'k')).rejects.toThrow('missing')
    expect(await restore(server, record, backup?.backup_id)).toEqual(OK)
    expect(await command(server, record, 'GET', 'k')).toBe('old')
    const open = server.problems
      .visibleTo(server.owner.accountId)
      .filter(({ subject }) => subject === record.database_id)
    expect(open).toEqual([])
  })
})
