import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { auditRow, newAccountRows } from '../../accounts/testing/rows.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import * as teams from '../../accounts/transactions/teams.js'
import * as nodes from '../../cluster/transactions/cluster-nodes.js'
import * as nodesAdmin from '../../cluster/transactions/nodes-admin.js'
import { SCHEMA_RANGE } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import type { Store } from '../../store/types.js'
import { databaseRow } from '../testing/rows.js'
import type { DatabaseRow } from './database-row.js'
import * as databases from './databases.js'
import * as homes from './homes.js'
import * as promotions from './promotions.js'
import * as sets from './standby-sets.js'
import * as standbys from './standbys.js'

const DAY_MS = 86_400_000
const NOW = 1_800_000_000_000

describeOnEveryStore('transactions of databases', (openStore) => {
  let shared: Store | undefined
  let store: Store
  let accountId: string

  beforeEach(async () => {
    shared ??= await openStore()
    store = shared
    await store.run(accounts.identify, { freshId: 'store-1', at: 1 })
    for (const row of await everyRow()) await drop(row.database_id)
    accountId = await newAccount(store)
  })

  async function newAccount(on: Store): Promise<string> {
    const id = randomUUID()
    await on.run(accounts.create, newAccountRows(id, 1))
    return id
  }

  function argsOf(some: Partial<databases.CreateArgs> = {}, at = NOW, owner = accountId): databases.CreateArgs {
    const id = randomUUID()
    const database: databases.NewDatabase = databaseRow({ database_id: id, account_id: owner, created_at: at })
    const ports = { from: 9000, to: 9002, avoid: [] }
    return { database, ports, slugs: [`calm-bay-${id}`], limit: 10, forgetBefore: at - DAY_MS, ...some }
  }

  const auditOf = (entity: string) => auditRow(accountId, NOW, entity)

  async function created(args = argsOf()): Promise<DatabaseRow> {
    const outcome = await store.run(databases.create, args)
    if (outcome.kind !== 'created') throw new Error(`not created: ${outcome.kind}`)
    return outcome.database
  }

  async function serving(args = argsOf()): Promise<DatabaseRow> {
    const { database_id: databaseId } = await created(args)
    const row = await store.run(databases.finishCreate, { databaseId, audit: auditOf(databaseId) })
    if (!row) throw new Error('not finished')
    return row
  }

  const everyRow = (): Promise<DatabaseRow[]> => store.run(databases.load, { after: '', limit: 1_000 })

  async function drop(databaseId: string): Promise<void> {
    await store.run(databases.undoCreate, { databaseId })
    const [row] = (await everyRow()).filter((found) => found.database_id === databaseId)
    if (!row) return
    const args = { accountId: row.account_id, databaseId, audit: auditOf(databaseId) }
    await store.run(databases.beginDelete, args)
    await store.run(databases.finishDelete, { databaseId })
  }

  it('keep the newest life of a node that is their home in the list of nodes, however long it is gone', async () => {
    const node = { name: 'gone', dir: 'dir', advertise: 'host:1', version: '0', config: '{}', region: null }
    const begin = () => store.run(nodes.register, { node: { ...node, range: SCHEMA_RANGE }, now: NOW })
    await begin()
    await begin()
    const { database_id: databaseId } = await serving()
    await store.run(homes.adopt, { databaseId, home: 'gone' })
    const [life] = await store.run(nodesAdmin.list, {})
    await store.run(nodes.declareDead, { incarnation: life?.incarnation ?? 0, beat: 0 })
    const dropOld = () => store.run(nodes.dropOld, { now: NOW + 8 * DAY_MS })
    expect(await dropOld()).toBe(1)
    expect(await store.run(nodesAdmin.list, {})).toMatchObject([{ name: 'gone', databases: 1 }])
    await drop(databaseId)
    expect(await dropOld()).toBe(1)
  })

  describe('and the removal of a node', () => {
    const names = ['home', 'other']
    const incarnations = new Map<string, number>()
    const bury = (name: string) => store.run(nodes.declareDead, { incarnation: incarnations.get(name) ?? 0, beat: 0 })
    const remove = (name: string) => store.run(nodesAdmin.remove, { name })

    beforeEach(async () => {
      for (const name of names) {
        const node = { name, dir: name, advertise: 'host:1', version: '0', config: '{}', region: null }
        const registered = await store.run(nodes.register, { node: { ...node, range: SCHEMA_RANGE }, now: NOW })
        incarnations.set(name, registered.kind === 'registered' ? registered.incarnation : 0)
      }
    })

    async function atHome(): Promise<string> {
      const { database_id: databaseId } = await serving()
      await store.run(homes.adopt, { databaseId, home: 'home' })
      return databaseId
    }

    it('keep their home from being removed', async () => {
      await atHome()
      await expect(remove('home')).rejects.toMatchObject({ code: 'node_running' })
      await bury('home')
      await expect(remove('home')).rejects.toMatchObject({ code: 'node_has_databases', details: { databases: 1 } })
      expect((await store.run(nodesAdmin.list, {})).map(({ name }) => name)).toContain('home')
    })

    it('lose a named standby there, and place another one again', async () => {
      const [placed, named] = [await atHome(), await atHome()]
      const argsOf = (databaseId: string) => {
        const asked = { mode: undefined, copies: undefined }
        return { databaseId, ...asked, at: NOW, audit: auditOf(databaseId) }
      }
      await store.run(sets.putAuto, argsOf(placed))
      const place = { slot: 1, home: 'home', from: 'home', node: 'other' }
      expect(await store.run(standbys.choose, { ...argsOf(placed), ...place })).toBe(true)
      const offsets = { complete_until: NOW, home_offset: 1, standby_offset: 1, problem: null }
      const note = {
        databaseId: placed,
        node: 'other',
        mode: 'async',
        state: 'following',
        epoch: 1,
        ...offsets,
      } as const
      await store.run(standbys.note, { notes: [note] })
      await store.run(sets.put, { ...argsOf(named), node: 'other' })
      const incarnation = incarnations.get('home') ?? 0
      const position = { databaseId: placed, node: 'other', incarnation, place: { replid: 'r', offset: 5 } }
      await bury('home')
      await store.run(promotions.recordPosition, position)
      const rows = async () =>
        (await store.run(standbys.list, {})).filter((row) => [placed, named].includes(row.database_id))
      expect(await rows()).toHaveLength(2)
      expect(await rows()).toContainEqual(expect.objectContaining({ node: 'other', stand_life: incarnation }))
      await bury('other')
      await remove('other')
      expect(await rows()).toMatchObject([{ database_id: placed, node: 'home', state: 'asked', stand_life: null }])
    })
  })

  it('keep their team from being deleted', async () => {
    const teamId = randomUUID()
    const team = { team_id: teamId, name: 't', copy_cc: 0 as const, created_at: 1 }
    const owner = { team_id: teamId, email_key: teamId, email: teamId, role: 'owner' as const, created_at: 1 }
    const { account } = newAccountRows(teamId, 1)
    await store.run(teams.create, { account, team, owner, maxOwned: 9, audit: auditOf('t') })
    const remove = () => store.run(teams.remove, { teamId, emailKey: teamId, audit: auditOf('t') })
    await created()
    const { database_id: databaseId } = await created(argsOf({}, NOW, teamId))
    expect(await remove()).toEqual({ kind: 'not_empty', databases: 1 })
    await drop(databaseId)
    expect(await remove()).toEqual({ kind: 'deleted' })
  })

  describe('create', () => {
    it('inserts a row in state creating, with the lowest free port and the first free slug', async () => {
      const first = await created()
      expect(first).toMatchObject({ port: 9000, modifying_state: 'creating', state: 'active' })
      const second = await created(argsOf({ slugs: [first.slug, 'calm-bay-2'] }))
      expect(second).toMatchObject({ port: 9001, slug: 'calm-bay-2' })
      const rows = await store.run(databases.list, { accountId, limit: 10 })
      expect(rows.map((row) => row.port).sort()).toEqual([9000, 9001])
    })

    it('assigns different ports to concurrent creations, and reports when none is left', async () => {
      const outcomes = await Promise.all([1, 2, 3, 4].map(() => store.run(databases.create, argsOf())))
      const ports = outcomes.flatMap((outcome) => (outcome.kind === 'created' ? outcome.database.port : []))
      expect(ports.sort()).toEqual([9000, 9001, 9002])
      expect(outcomes.filter((outcome) => outcome.kind === 'no_port')).toHaveLength(1)
    })

    it('skips ports to avoid, and reuses the port of a deleted database', async () => {
      const avoiding = argsOf({ ports: { from: 9000, to: 9002, avoid: [9000, 9001] } })
      expect((await created(avoiding)).port).toBe(9002)
      const { database_id, port } = await created()
      expect(port).toBe(9000)
      await drop(database_id)
      expect((await created()).port).toBe(9000)
    })

    it('keeps the limit of an account with concurrent requests', async () => {
      const outcomes = await Promise.all([1, 2, 3].map(() => store.run(databases.create, argsOf({ limit: 1 }))))
      expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual(['created', 'limit_reached', 'limit_reached'])
    })
  })

  describe('an idempotency key', () => {
    const withKey = (key: string, requestHash = 'h', at = NOW) => argsOf({ idempotency: { key, requestHash } }, at)

    it('belongs to one database, also with concurrent requests', async () => {
      const outcomes = await Promise.all([1, 2, 3].map(() => store.run(databases.create, withKey('k1'))))
      const made = outcomes.flatMap((outcome) => (outcome.kind === 'created' ? outcome.database.database_id : []))
      expect(made).toHaveLength(1)
      expect(outcomes.filter((outcome) => outcome.kind === 'repeated')).toEqual([
        { kind: 'repeated', databaseId: made[0] },
        { kind: 'repeated', databaseId: made[0] },
      ])
    })

    it('is refused with another request', async () => {
      await created(withKey('k2'))
      expect(await store.run(databases.create, withKey('k2', 'other'))).toEqual({ kind: 'key_conflict' })
    })

    it('is refused when its account has been deleted meanwhile', async () => {
      accountId = 'gone'
      expect(await store.run(databases.create, withKey('k6'))).toEqual({ kind: 'account_gone' })
    })

    it('belongs to one account', async () => {
      await created(withKey('k3'))
      accountId = await newAccount(store)
      expect((await store.run(databases.create, withKey('k3', 'other'))).kind).toBe('created')
    })

    it('is deleted after its retention', async () => {
      await created(withKey('k4'))
      expect((await store.run(databases.create, withKey('k4', 'other', NOW + DAY_MS))).kind).toBe('key_conflict')
      expect((await store.run(databases.create, withKey('k4', 'other', NOW + DAY_MS + 1))).kind).toBe('created')
    })

    it('may be reused after an undone creation, but not after a deletion', async () => {
      const undone = await created(withKey('k5'))
      await store.run(databases.undoCreate, { databaseId: undone.database_id })
      const made = await serving(withKey('k5'))
      await drop(made.database_id)
      expect(await store.run(databases.create, withKey('k5'))).toEqual({ kind: 'key_gone' })
    })
  })

  it('gives a database that is being created another port', async () => {
    const { database_id: databaseId } = await created()
    const ports = { from: 9000, to: 9001, avoid: [] }
    expect(await store.run(databases.movePort, { databaseId, ports })).toBe(9001)
    expect(await store.run(databases.movePort, { databaseId, ports: { ...ports, from: 9001 } })).toBeUndefined()
    expect((await store.run(databases.get, { accountId, databaseId }))?.port).toBe(9001)
  })

  it('allows each transition only from its start state', async () => {
    const { database_id: databaseId } = await created()
    const audit = auditOf(databaseId)
    expect(await store.run(databases.beginDelete, { accountId, databaseId, audit })).toEqual({
      kind: 'busy',
      modifyingState: 'creating',
    })
    await store.run(databases.finishDelete, { databaseId })
    expect(await store.run(databases.finishCreate, { databaseId, audit })).toMatchObject({ modifying_state: '' })
    expect(await store.run(databases.finishCreate, { databaseId, audit: auditOf(databaseId) })).toBeUndefined()
    await store.run(databases.undoCreate, { databaseId })
    await store.run(databases.finishDelete, { databaseId })
    expect(await store.run(databases.get, { accountId, databaseId })).toMatchObject({ modifying_state: '' })
  })

  it('deletes in two steps; the first may be repeated', async () => {
    const { database_id: databaseId } = await serving()
    const begin = () => store.run(databases.beginDelete, { accountId, databaseId, audit: auditOf(databaseId) })
    expect([await begin(), await begin()]).toEqual([{ kind: 'deleting' }, { kind: 'deleting' }])
    expect(await store.run(databases.get, { accountId, databaseId })).toMatchObject({ modifying_state: 'deleting' })
    await store.run(databases.finishDelete, { databaseId })
    expect(await begin()).toEqual({ kind: 'not_found' })
  })

  it('shows and deletes a database only for its own account', async () => {
    const { database_id: databaseId } = await serving()
    const other = await newAccount(store)
    expect(await store.run(databases.get, { accountId: other, databaseId })).toBeUndefined()
    expect(await store.run(databases.list, { accountId: other, limit: 10 })).toEqual([])
    const args = { accountId: other, databaseId, audit: auditOf(databaseId) }
    expect(await store.run(databases.beginDelete, args)).toEqual({ kind: 'not_found' })
  })

  it('lists the databases of an account in pages, ordered by age and id', async () => {
    const made = [await created(argsOf({}, NOW + 1)), await created(argsOf()), await created(argsOf())]
    const expected = made.sort((a, b) => a.created_at - b.created_at || (a.database_id < b.database_id ? -1 : 1))
    const found: string[] = []
    for (let after: databases.ListPlace | undefined; found.length < 3; ) {
      const rows = await store.run(databases.list, { accountId, after, limit: 1 })
      expect(rows).toHaveLength(1)
      found.push(...rows.map((row) => row.database_id))
      after = rows[0]
    }
    expect(found).toEqual(expected.map((row) => row.database_id))
    expect(await store.run(databases.list, { accountId, after: expected[2], limit: 1 })).toEqual([])
  })

  it('writes one audit entry for each change', async () => {
    const { database_id: databaseId } = await serving()
    await drop(databaseId)
    const entries = await store.run(accounts.auditLog, { accountId, limit: 10 })
    expect(entries.map((entry) => entry.entity)).toEqual([databaseId, databaseId])
  })
})
