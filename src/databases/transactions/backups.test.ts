import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { auditRow, newAccountRows } from '../../accounts/testing/rows.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import type { Store } from '../../store/types.js'
import { databaseRow } from '../testing/rows.js'
import * as deletions from './backup-deletions.js'
import * as objects from './backup-objects.js'
import * as backups from './backups.js'
import * as daily from './backups-daily.js'
import * as databases from './databases.js'
import * as homes from './homes.js'
import * as imports from './imports.js'
import * as restores from './restores.js'

const DAY_MS = 86_400_000
const NOW = 1_800_000_000_000
const AGES = { daily: NOW - DAY_MS, dailyWithPack: NOW - 3 * DAY_MS, intermediate: NOW - 3 * DAY_MS }

describeOnEveryStore('transactions of backups', (openStore) => {
  let shared: Store | undefined
  let store: Store
  let accountId: string
  let databaseId: string
  let port = 20_000

  beforeEach(async () => {
    shared ??= await openStore()
    store = shared
    await store.run(accounts.identify, { freshId: 'store-1', at: 1 })
    accountId = await newAccount()
    databaseId = await newDatabase()
  })

  async function newAccount(): Promise<string> {
    const id = randomUUID()
    await store.run(accounts.create, newAccountRows(id, 1))
    return id
  }

  async function newDatabase(plan = 'payg'): Promise<string> {
    const id = randomUUID()
    const database: databases.NewDatabase = databaseRow({
      database_id: id,
      account_id: accountId,
      plan,
      created_at: NOW,
    })
    const ports = { from: ++port, to: port, avoid: [] }
    await store.run(databases.create, { database, ports, slugs: [id], limit: 99, forgetBefore: 0 })
    await store.run(databases.finishCreate, { databaseId: id, audit: auditOf(id) })
    return id
  }

  const auditOf = (entity: string) => auditRow(accountId, NOW, entity)
  const newBackup = (some: Partial<backups.NewBackup> = {}): backups.NewBackup => ({
    backup_id: randomUUID(),
    database_id: databaseId,
    name: 'nightly',
    kind: 'manual',
    created_at: NOW,
    ...some,
  })
  const completed = { kind: 'completed', sizeBytes: 10, keyCount: 2, dataBytes: 100, sha256: 'abc' } as const
  const modifyingOf = async (id = databaseId) =>
    (await store.run(databases.get, { accountId, databaseId: id }))?.modifying_state

  async function made(some: Partial<backups.NewBackup> = {}): Promise<backups.BackupRow> {
    const backup = newBackup(some)
    await store.run(backups.begin, { backup, accountId })
    const row = await store.run(backups.finish, { backupId: backup.backup_id, result: completed, at: NOW })
    if (!row) throw new Error('not finished')
    return row
  }

  describe('a backup', () => {
    it('is begun by the home of its database only', async () => {
      await store.run(homes.adopt, { databaseId, home: 'b' })
      const begin = (home: string) => store.run(backups.begin, { backup: newBackup(), home })
      expect(await begin('a')).toEqual({ kind: 'busy', modifyingState: 'updating_regions' })
      expect(await begin('b')).toMatchObject({ kind: 'begun' })
    })

    it('is refused beyond the limit of manual ones, and the newest safety and import ones stay', async () => {
      const kinds = ['manual', 'manual', 'safety', 'import', 'safety', 'daily'] as const
      for (const [n, kind] of kinds.entries()) await made({ kind, created_at: NOW + n })
      const begin = (most: number) => store.run(backups.begin, { backup: newBackup(), accountId, most })
      expect(await begin(2)).toEqual({ kind: 'too_many', most: 2 })
      expect(await store.run(backups.prune, { databaseId, keep: 2, at: NOW })).toHaveLength(1)
      const left = (await store.run(backups.list, { accountId, databaseId })) ?? []
      expect(left.map(({ kind }) => kind)).toEqual(['daily', 'safety', 'import', 'manual', 'manual'])
      expect(await begin(3)).toMatchObject({ kind: 'begun' })
    })

    it('is known as deleted until its file is deleted, or its database', async () => {
      const [first, second] = [await made({}), await made({ created_at: NOW + 1 })]
      for (const { backup_id: backupId } of [first, second])
        await store.run(backups.remove, { accountId, databaseId, backupId, audit: auditOf(databaseId) })
      expect(await store.run(backups.list, { accountId, databaseId })).toEqual([])
      const left = async () => {
        const all = await store.run(deletions.left, { home: '' })
        return all.filter((backup) => backup.database_id === databaseId).map((backup) => backup.backup_id)
      }
      expect((await left()).toSorted()).toEqual([first.backup_id, second.backup_id].toSorted())
      expect(await store.run(deletions.left, { home: 'another node' })).toEqual([])
      // Its retention may end in the same moment.
      await store.run(deletions.expire, { gone: [first], at: NOW })
      expect(await left()).toHaveLength(2)
      const { backup_id, database_id, name, kind, created_at } = first
      const backup = { backup_id, database_id, name, kind, created_at }
      await store.run(backups.adopt, { backup, result: completed, at: NOW, audit: auditOf(databaseId) })
      expect(await left()).toEqual([second.backup_id])
      await store.run(backups.remove, { accountId, databaseId, backupId: backup_id, audit: auditOf(databaseId) })
      await store.run(deletions.forget, { ids: [backup_id] })
      expect(await left()).toEqual([second.backup_id])
      await store.run(backups.removeAll, { databaseId, at: NOW })
      expect(await left()).toEqual([])
    })

    it('makes its database busy until it is finished', async () => {
      const backup = newBackup()
      expect(await store.run(backups.begin, { backup, accountId })).toMatchObject({ kind: 'begun' })
      expect(await modifyingOf()).toBe('backing_up')
      const second = await store.run(backups.begin, { backup: newBackup(), accountId })
      expect(second).toEqual({ kind: 'busy', modifyingState: 'backing_up' })
      expect(await store.run(backups.list, { accountId, databaseId })).toMatchObject([
        { state: 'pending', size_bytes: 0 },
      ])
      await store.run(backups.finish, { backupId: backup.backup_id, result: completed, at: NOW + 1 })
      expect(await modifyingOf()).toBe('')
      expect(await store.run(backups.get, { accountId, backupId: backup.backup_id })).toMatchObject({
        state: 'completed',
        size_bytes: 10,
        key_count: 2,
        data_bytes: 100,
        sha256: 'abc',
        finished_at: NOW + 1,
      })
    })

    it('cannot be finished twice', async () => {
      const { backup_id: backupId } = await made()
      const failed = { kind: 'failed', failure: 'late' } as const
      expect(await store.run(backups.finish, { backupId, result: failed, at: NOW })).toMatchObject({
        state: 'completed',
      })
    })

    it('does not end the next one when its end is stored again', async () => {
      const { backup_id: backupId } = await made()
      await store.run(backups.begin, { backup: newBackup(), accountId })
      await store.run(backups.finish, { backupId, result: completed, at: NOW })
      expect(await modifyingOf()).toBe('backing_up')
    })

    it('can be seen and deleted only by its owner', async () => {
      const { backup_id: backupId } = await made()
      const other = await newAccount()
      expect(await store.run(backups.list, { accountId: other, databaseId })).toBeUndefined()
      expect(await store.run(backups.get, { accountId: other, backupId })).toBeUndefined()
      const foreign = { accountId: other, databaseId, backupId, audit: auditOf(databaseId) }
      expect(await store.run(backups.remove, foreign)).toEqual({ kind: 'not_found' })
      const own = { ...foreign, accountId }
      const otherDatabase = await newDatabase()
      expect(await store.run(backups.remove, { ...own, databaseId: otherDatabase })).toEqual({ kind: 'no_backup' })
      expect(await store.run(backups.remove, own)).toEqual({ kind: 'removed' })
      expect(await store.run(backups.list, { accountId, databaseId })).toEqual([])
    })
  })

  describe('a restore', () => {
    const begin = (backupId: string, account = accountId) =>
      store.run(restores.begin, { accountId: account, databaseId, backupId, at: NOW, audit: auditOf(databaseId) })

    it('can be undone until the data is replaced, and only finished after that', async () => {
      const { backup_id: backupId } = await made()
      expect(await begin(backupId)).toMatchObject({ kind: 'begun', backup: { backup_id: backupId } })
      expect(await modifyingOf()).toBe('restoring')
      await store.run(restores.finish, { databaseId })
      expect(await modifyingOf()).toBe('restoring')
      expect(await store.run(restores.undo, { databaseId })).toBe(true)
      expect(await modifyingOf()).toBe('')
      await begin(backupId)
      await store.run(restores.replace, { databaseId })
      expect(await store.run(restores.undo, { databaseId })).toBe(false)
      expect(await modifyingOf()).toBe('restoring')
      await store.run(restores.finish, { databaseId })
      expect(await modifyingOf()).toBe('')
    })

    it('accepts only completed backups of the same account', async () => {
      const pending = newBackup()
      await store.run(backups.begin, { backup: pending, accountId })
      databaseId = await newDatabase()
      expect(await begin(pending.backup_id)).toEqual({ kind: 'not_ready', state: 'pending' })
      expect(await begin(randomUUID())).toEqual({ kind: 'no_backup' })
      const { backup_id: foreign } = await made()
      accountId = await newAccount()
      databaseId = await newDatabase()
      expect(await begin(foreign)).toEqual({ kind: 'no_backup' })
      expect(await modifyingOf()).toBe('')
    })
  })

  describe('recovery', () => {
    it('fails pending backups but those kept, undoes prepared restores, and returns those to complete', async () => {
      const { backup_id: backupId } = await made()
      const [idle, preparing, replacing, backing, importing, safe] = [
        databaseId,
        ...(await Promise.all([newDatabase(), newDatabase(), newDatabase(), newDatabase(), newDatabase()])),
      ] as [string, string, string, string, string, string]
      for (const id of [preparing, replacing]) {
        await store.run(restores.begin, { accountId, databaseId: id, backupId, at: NOW, audit: auditOf(id) })
      }
      await store.run(restores.replace, { databaseId: replacing })
      await store.run(backups.begin, { backup: newBackup({ database_id: backing }), accountId })
      const filled = newBackup({ database_id: importing, kind: 'import' })
      const args = { accountId, backup: filled, source: 'RDB file', audit: auditOf(importing) }
      expect(await store.run(imports.begin, args)).toMatchObject({ kind: 'begun' })

      const safety = newBackup({ database_id: safe, kind: 'safety' })
      await store.run(backups.add, { backup: safety })
      const snapshots = (await store.run(backups.pendingSnapshots, { home: '' })).map((row) => row.database_id)
      expect(snapshots).toEqual(expect.arrayContaining([backing, safe]))
      expect(snapshots).not.toContain(importing)
      expect(await store.run(backups.pendingSnapshots, { home: 'another node' })).toEqual([])

      const recovery = { at: NOW, kept: [safety.backup_id], home: '' }
      expect(await store.run(restores.recover, recovery)).toMatchObject([
        { database_id: replacing, backup_id: backupId },
      ])
      const states = await Promise.all([idle, preparing, replacing, backing, importing, safe].map(modifyingOf))
      expect(states).toEqual(['', '', 'restoring', '', '', 'backing_up'])
      await store.run(backups.finish, { backupId: safety.backup_id, result: { kind: 'failed', failure: 'x' }, at: NOW })
      expect(await modifyingOf(safe)).toBe('')
      const failed = { state: 'failed', failure: backups.INTERRUPTED, finished_at: NOW }
      expect(await store.run(backups.list, { accountId, databaseId: backing })).toMatchObject([failed])
      expect(await store.run(backups.list, { accountId, databaseId: importing })).toMatchObject([failed])
      expect(await store.run(imports.get, { accountId, databaseId: importing })).toMatchObject(failed)
      const known = await store.run(backups.everyName, {})
      const stateOf = (id: string) => known.find((one) => one.backup_id === id)?.state
      expect([stateOf(backupId), stateOf(filled.backup_id)]).toEqual(['completed', 'failed'])
      await store.run(restores.finish, { databaseId: replacing })
    })
  })

  describe('daily backups', () => {
    const set = (firstAt: number | undefined, id = databaseId) =>
      store.run(daily.set, { accountId, databaseId: id, firstAt, audit: auditOf(id) })

    it('keep their schedule when they are switched on again', async () => {
      expect(await set(NOW)).toEqual({ kind: 'set' })
      expect(await set(NOW + 5)).toEqual({ kind: 'set' })
      const due = await store.run(daily.due, { now: NOW, home: '' })
      expect(due.map((row) => row.database_id)).toEqual([databaseId])
      expect(await store.run(daily.next, { after: NOW - 1, home: '' })).toBe(NOW)
      await store.run(daily.postpone, { databaseId, nextAt: NOW + DAY_MS })
      expect(await store.run(daily.due, { now: NOW, home: '' })).toEqual([])
      await set(undefined)
      await store.run(daily.postpone, { databaseId, nextAt: NOW })
      expect(await store.run(daily.next, { after: 0, home: '' })).toBeUndefined()
    })

    it('are pulled back for the databases of the node whose clock was set back, and no others', async () => {
      await set(NOW + 2 * DAY_MS)
      const home = randomUUID()
      await store.run(homes.adopt, { databaseId, home })
      expect(await store.run(daily.pullBack, { latest: NOW, home: 'another node' })).toBe(0)
      expect(await store.run(daily.pullBack, { latest: NOW, home })).toBe(1)
      expect(await store.run(daily.next, { after: NOW - 1, home })).toBe(NOW)
    })

    it('are refused on plan free', async () => {
      expect(await set(NOW, await newDatabase('free'))).toEqual({ kind: 'plan', plan: 'free' })
    })

    it('expire, but the newest stays while they are on', async () => {
      await set(NOW)
      const old = { kind: 'daily', created_at: NOW - DAY_MS - 2 } as const
      const first = await made(old)
      expect(await store.run(daily.expire, { ...AGES, home: '', keep: 'stored', at: NOW })).toEqual([])
      const second = await made({ ...old, created_at: NOW - DAY_MS - 1 })
      const gone = await store.run(daily.expire, { ...AGES, home: '', keep: 'stored', at: NOW })
      expect(gone.map((backup) => backup.backup_id)).toEqual([first.backup_id])
      await set(undefined)
      const rest = await store.run(daily.expire, { ...AGES, home: '', keep: 'stored', at: NOW })
      expect(rest.map((backup) => backup.backup_id)).toEqual([second.backup_id])
    })

    it('expire after a day, safety and import backups after three, manual ones never', async () => {
      const age = (ms: number, kind: backups.NewBackup['kind']) => made({ kind, created_at: NOW - ms })
      await age(9 * DAY_MS, 'manual')
      await age(2 * DAY_MS, 'safety')
      const expected = [
        await age(4 * DAY_MS, 'safety'),
        await age(4 * DAY_MS, 'import'),
        await age(2 * DAY_MS, 'daily'),
      ]
      const gone = await store.run(daily.expire, { ...AGES, home: '', keep: 'stored', at: NOW })
      expect(gone.map((one) => one.backup_id).sort()).toEqual(expected.map((one) => one.backup_id).sort())
      expect(await store.run(backups.list, { accountId, databaseId })).toHaveLength(2)
    })

    it('are not deleted before object storage has them, and then only there', async () => {
      await set(NOW)
      const old = { kind: 'daily', created_at: NOW - 9 * DAY_MS } as const
      const [first, second] = [await made(old), await made({ ...old, created_at: old.created_at + 1 })]
      const expired = { ...AGES, home: '', at: NOW }
      const due = async (which: 'all' | 'new' = 'all') =>
        (await store.run(objects.due, { home: '', which, limit: 99 })).filter((one) => one.database_id === databaseId)
      expect(await store.run(daily.expire, { ...expired, keep: 'all' })).toEqual([])
      const { backup_id: backupId } = first
      const begun = { backupId, databaseId, node: '', object: 's3://b/o', at: NOW }
      expect((await due()).map((one) => [one.backup_id, one.database_name])).toEqual([
        [second.backup_id, 'shop'],
        [backupId, 'shop'],
      ])
      // Accounts take turns.
      const [own, ofAccount] = [databaseId, accountId]
      accountId = await newAccount()
      const other = await made({ kind: 'daily', created_at: old.created_at - 1, database_id: await newDatabase() })
      const among = [first, second, other].map((one) => one.backup_id)
      const all = await store.run(objects.due, { home: '', which: 'all', limit: 99 })
      const order = all.map((one) => one.backup_id).filter((id) => among.includes(id))
      expect(order).toEqual([second, other, first].map((one) => one.backup_id))
      await store.run(backups.removeAll, { databaseId: other.database_id, at: NOW })
      ;[databaseId, accountId] = [own, ofAccount]
      expect(await store.run(objects.begin, begun)).toBe(true)
      expect(await store.run(objects.begin, begun)).toBe(true)
      // One that was tried is repeated after those that were not.
      expect((await due()).map((one) => one.backup_id)).toEqual([second.backup_id, backupId])
      expect((await due('new')).map((one) => one.backup_id)).toEqual([second.backup_id])
      const outcome = { state: 'stored', size_bytes: 7, failure: null, changed_at: NOW } as const
      await store.run(objects.finish, { backupId, outcome })
      expect((await due()).map((one) => one.backup_id)).toEqual([second.backup_id])
      expect(await store.run(daily.expire, { ...expired, keep: 'stored' })).toEqual([])
      expect(await store.run(objects.storedDaily, { home: '' })).toMatchObject([{ backup_id: backupId, size_bytes: 7 }])
      await store.run(deletions.expire, { gone: [{ backup_id: backupId, database_id: databaseId }], at: NOW })
      expect(await store.run(objects.begin, begun)).toBe(false)
      const deleting = { node: '', before: 0, limit: 9 }
      expect(await store.run(objects.deleting, deleting)).toMatchObject([{ backup_id: backupId }])
      expect(await store.run(objects.deleting, { ...deleting, node: 'other' })).toEqual([])
      expect(await store.run(objects.deleting, { ...deleting, node: 'other', before: NOW + 1 })).toHaveLength(1)
      await store.run(objects.drop, { backupId })
      expect(await store.run(objects.find, { backupId })).toBeUndefined()
    })

    it('are uploaded by the home of their database, also when it has moved since they were found', async () => {
      await store.run(homes.adopt, { databaseId, home: 'b' })
      const { backup_id: backupId } = await made({ kind: 'manual', created_at: NOW })
      const begun = { backupId, databaseId, object: 's3://b/o', at: NOW }
      expect(await store.run(objects.begin, { ...begun, node: 'a' })).toBe(false)
      expect(await store.run(objects.begin, { ...begun, node: 'b' })).toBe(true)
      const outcome = { state: 'unusable', size_bytes: 0, failure: 'its file cannot be read', changed_at: NOW } as const
      await store.run(objects.finish, { backupId, node: 'a', outcome })
      expect(await store.run(objects.find, { backupId })).toMatchObject({ state: 'waiting' })
      await store.run(objects.finish, { backupId, node: 'b', outcome })
      expect(await store.run(objects.find, { backupId })).toMatchObject({ state: 'unusable' })
    })

    it('leave their objects to be deleted when the backup is deleted during the upload', async () => {
      const { backup_id: backupId } = await made({ kind: 'manual', created_at: NOW })
      await store.run(objects.begin, { backupId, databaseId, node: '', object: 's3://b/o', at: NOW })
      await store.run(backups.removeAll, { databaseId, at: NOW })
      const outcome = { state: 'stored', size_bytes: 7, failure: null, changed_at: NOW } as const
      await store.run(objects.finish, { backupId, outcome })
      expect(await store.run(objects.find, { backupId })).toMatchObject({ state: 'deleting' })
    })
  })
})
