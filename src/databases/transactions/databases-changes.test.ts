import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { auditRow, newAccountRows } from '../../accounts/testing/rows.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import * as teams from '../../accounts/transactions/teams.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import type { Store } from '../../store/types.js'
import { creationOf } from '../testing/rows.js'
import * as databases from './databases.js'
import * as changes from './databases-changes.js'
import * as homes from './homes.js'

const NOW = 1_800_000_000_000

describeOnEveryStore('changes of databases', (openStore) => {
  let shared: Store | undefined
  let store: Store
  let accountId: string
  let databaseId: string

  beforeEach(async () => {
    shared ??= await openStore()
    store = shared
    await store.run(accounts.identify, { freshId: 'store-1', at: 1 })
    accountId = randomUUID()
    await store.run(accounts.create, newAccountRows(accountId, 1))
    databaseId = await serving()
  })

  const auditOf = (entity: string) => auditRow(accountId, NOW, entity)
  const acts = async () => (await store.run(accounts.auditLog, { accountId, limit: 100 })).length
  const row = () => store.run(databases.get, { accountId, databaseId })

  async function serving(): Promise<string> {
    const id = randomUUID()
    const outcome = await store.run(databases.create, creationOf(id, accountId, NOW))
    expect(outcome.kind).toBe('created')
    await store.run(databases.finishCreate, { databaseId: id, audit: auditOf(id) })
    return id
  }

  const configure = (set: Partial<changes.Configuration>, owner = accountId) =>
    store.run(changes.configure, { accountId: owner, databaseId, set, audit: auditOf(databaseId) })
  const begin = (modifyingState: changes.ChangingState) =>
    store.run(changes.begin, { accountId, databaseId, modifyingState })

  describe('configure', () => {
    it('writes the given columns only, with one audit entry', async () => {
      const before = await row()
      const outcome = await configure({ name: 'new', budget: 7 })
      expect(outcome).toEqual({ kind: 'changed', database: { ...before, name: 'new', budget: 7 } })
      expect(await row()).toEqual({ ...before, name: 'new', budget: 7 })
      expect(await acts()).toBe(2)
    })

    it('writes nothing when the row has the desired state already', async () => {
      expect((await configure({ name: 'shop', eviction: 0 })).kind).toBe('same')
      expect(await acts()).toBe(1)
    })

    it('finds only databases of the account', async () => {
      expect(await configure({ name: 'new' }, 'somebody else')).toEqual({ kind: 'not_found' })
      databaseId = randomUUID()
      expect(await configure({ name: 'new' })).toEqual({ kind: 'not_found' })
    })

    it('is refused to a node that the database has left, as a deletion is', async () => {
      await store.run(homes.adopt, { databaseId, home: 'b' })
      const args = { accountId, databaseId, home: 'a', audit: auditOf(databaseId) }
      const moved = { kind: 'busy', modifyingState: 'updating_regions' }
      expect(await store.run(changes.configure, { ...args, set: { password: 'new' } })).toEqual(moved)
      expect(await store.run(databases.beginDelete, args)).toEqual(moved)
      expect(await store.run(databases.beginDelete, { ...args, home: 'b' })).toEqual({ kind: 'deleting' })
    })

    it('loses no concurrent change', async () => {
      const outcomes = await Promise.all([configure({ name: 'new' }), configure({ budget: 7 }), configure({ tls: 1 })])
      expect(outcomes.map((outcome) => outcome.kind)).toEqual(['changed', 'changed', 'changed'])
      expect(await row()).toMatchObject({ name: 'new', budget: 7, tls: 1 })
    })
  })

  describe('a long change', () => {
    it('is begun by one of many concurrent calls; the others get its modifying_state', async () => {
      const states = ['changing_plan', 'updating_regions', 'changing_plan', 'updating_regions'] as const
      const outcomes = await Promise.all(states.map(begin))
      const won = outcomes.flatMap((outcome) => (outcome.kind === 'begun' ? [outcome.database.modifying_state] : []))
      expect(won).toHaveLength(1)
      const lost = outcomes.filter((outcome) => outcome.kind !== 'begun')
      expect(lost).toEqual([1, 2, 3].map(() => ({ kind: 'busy', modifyingState: won[0] })))
      expect(await configure({ name: 'new' })).toEqual({ kind: 'busy', modifyingState: won[0] })
    })

    it('is written when it is finished, and cannot be finished twice', async () => {
      const before = await row()
      await begin('changing_plan')
      expect(await row()).toEqual({ ...before, modifying_state: 'changing_plan' })
      const args = { databaseId, modifyingState: 'changing_plan', set: { plan: 'fixed_1gb' } } as const
      const finished = await store.run(changes.finish, { ...args, audit: auditOf(databaseId) })
      expect(finished).toEqual({ ...before, plan: 'fixed_1gb' })
      expect(await row()).toEqual(finished)
      expect(await store.run(changes.finish, { ...args, audit: auditOf(databaseId) })).toBeUndefined()
      expect(await acts()).toBe(2)
    })

    it('changes nothing when it is abandoned; only the named change can be abandoned', async () => {
      const before = await row()
      await begin('updating_regions')
      await store.run(changes.abandon, { databaseId, modifyingState: 'changing_plan' })
      expect(await row()).toMatchObject({ modifying_state: 'updating_regions' })
      await store.run(changes.abandon, { databaseId, modifyingState: 'updating_regions' })
      expect(await row()).toEqual(before)
      expect(await acts()).toBe(1)
    })
  })

  describe('a move to a team', () => {
    async function team(role: teams.TeamRole): Promise<string> {
      const teamId = randomUUID()
      const member = { team_id: teamId, created_at: 1 }
      await store.run(teams.create, {
        account: newAccountRows(teamId, 1).account,
        team: { team_id: teamId, name: 't', copy_cc: 0, created_at: 1 },
        owner: { ...member, email_key: 'boss@x', email: 'boss@x', role: 'owner' },
        maxOwned: 99,
        audit: auditOf(teamId),
      })
      if (role === 'owner') return teamId
      const added = { ...member, email_key: `${role}@x`, email: `${role}@x`, role }
      await store.run(teams.addMember, { teamId, emailKey: 'boss@x', member: added, most: 9, audit: auditOf(teamId) })
      return teamId
    }
    const move = (teamId: string, emailKey: string, limit = 10) =>
      store.run(changes.moveToTeam, {
        accountId,
        databaseId,
        teamId,
        emailKey,
        limits: { free: 0, paid: limit },
        audit: auditOf(databaseId),
      })

    it('needs a role in that team, and a free place under its limit', async () => {
      const [devs, finance] = [await team('dev'), await team('finance')]
      expect(await move(devs, 'nobody@x')).toEqual({ kind: 'no_such_team' })
      expect(await move(finance, 'finance@x')).toEqual({ kind: 'role_refused', role: 'finance' })
      expect(await move(devs, 'dev@x', 0)).toEqual({ kind: 'limit_reached', accountType: 'paid' })
      expect((await move(devs, 'dev@x')).kind).toBe('changed')
      expect(await row()).toBeUndefined()
      expect(await store.run(databases.get, { accountId: devs, databaseId })).toMatchObject({ account_id: devs })
      const args = { teamId: devs, emailKey: 'boss@x', audit: auditOf(devs) }
      expect(await store.run(teams.remove, args)).toEqual({ kind: 'not_empty', databases: 1 })
    })
  })
})
