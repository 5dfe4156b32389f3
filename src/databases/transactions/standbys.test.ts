import { randomUUID } from 'node:crypto'
import { beforeEach, expect, it } from 'vitest'
import { auditRow, newAccountRows } from '../../accounts/testing/rows.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import * as nodes from '../../cluster/transactions/cluster-nodes.js'
import * as nodesAdmin from '../../cluster/transactions/nodes-admin.js'
import { SCHEMA_RANGE } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import type { Store } from '../../store/types.js'
import { creationOf } from '../testing/rows.js'
import * as backups from './backups.js'
import * as databases from './databases.js'
import * as homes from './homes.js'
import * as lostHomes from './lost-homes.js'
import * as moves from './moves.js'
import * as promotions from './promotions.js'
import * as sets from './standby-sets.js'
import * as standbys from './standbys.js'

/** The rows of standbys. The nodes `a` to `c` are new in each test. */

const AT = 1_800_000_000_000
const COMPLETE = { complete_until: AT, home_offset: 1, standby_offset: 1 }
const FOLLOWING = { mode: 'async', state: 'following', epoch: 1, problem: null, ...COMPLETE } as const

describeOnEveryStore('standbys', (openStore) => {
  let store: Store
  let accountId: string
  let databaseId: string
  let a: string
  let b: string
  let c: string
  const incarnations = new Map<string, number>()

  const audit = () => auditRow(accountId, AT)

  async function begin(name: string, generation = SCHEMA_RANGE.generation): Promise<string> {
    const range = { ...SCHEMA_RANGE, generation }
    const node = { name, dir: name, advertise: 'host:1', version: '0', config: '{}', range, region: null }
    const registered = await store.run(nodes.register, { node, now: AT })
    if (registered.kind !== 'registered') throw new Error(registered.kind)
    incarnations.set(name, registered.incarnation)
    return name
  }

  const bury = (name: string) => store.run(nodes.declareDead, { incarnation: incarnations.get(name) ?? 0, beat: 0 })

  async function create(): Promise<string> {
    const id = randomUUID()
    await store.run(databases.create, creationOf(id, accountId, AT))
    await store.run(databases.finishCreate, { databaseId: id, audit: audit() })
    await store.run(homes.adopt, { databaseId: id, home: a })
    return id
  }

  async function setUp(): Promise<void> {
    await store.run(accounts.identify, { freshId: 'store-1', at: 1 })
    accountId = randomUUID()
    await store.run(accounts.create, newAccountRows(accountId, 1))
    ;[a, b, c] = [await begin(randomUUID()), await begin(randomUUID()), await begin(randomUUID())]
    databaseId = await create()
  }

  beforeEach(async () => {
    store ??= await openStore()
    await setUp()
  })

  const rows = async () => (await store.run(standbys.list, {})).filter((one) => one.database_id === databaseId)
  const row = async () => (await store.run(standbys.list, {})).find((one) => one.database_id === databaseId)
  interface Asked {
    mode?: standbys.StandbyRow['mode']
    copies?: number
  }
  const argsOf = ({ mode, copies }: Asked) => ({ databaseId, mode, copies, at: AT, audit: audit() })
  const put = (node: string, asked: Asked = {}) => store.run(sets.put, { node, ...argsOf(asked) })
  const auto = (asked: Asked = {}) => store.run(sets.putAuto, argsOf(asked))
  const choose = (from: string, node: string, { home = a, slot = 1 } = {}) =>
    store.run(standbys.choose, { databaseId, slot, home, from, node, at: AT, audit: audit() })
  const note = (change: Partial<standbys.StandbyNote>) =>
    store.run(standbys.note, { notes: [{ databaseId, node: b, ...FOLLOWING, ...change }] })
  const promote = (to = b) =>
    store.run(promotions.promote, { databaseId, from: a, to, epoch: 1, at: AT, audit: audit() })
  const stand = (
    node: string,
    offset: number | undefined,
    { replid = 'r', incarnation = incarnations.get(a) ?? 0 } = {},
  ) =>
    store.run(promotions.recordPosition, {
      databaseId,
      node,
      incarnation,
      place: offset === undefined ? undefined : { replid, offset },
    })
  const move = (target: string, moveId: string = randomUUID()) =>
    store.run(moves.ask, { moveId, databaseId, target, at: AT, audit: audit() })
  const entries = async () => (await store.run(accounts.auditLog, { accountId, limit: 100 })).length

  it('of a named node are stored once', async () => {
    await put(b)
    const before = await entries()
    await put(b)
    expect(await entries()).toBe(before)
    expect(await row()).toMatchObject({ node: b, placement: 'named', mode: 'async', state: 'asked' })
    await expect(put(a)).rejects.toMatchObject({ code: 'database_is_there' })
    await bury(c)
    await expect(put(c)).rejects.toMatchObject({ code: 'node_not_running' })
  })

  it('are chosen by the home, unless the rows have changed since it looked', async () => {
    await auto()
    expect(await row()).toMatchObject({ node: a, placement: 'auto', home_state: 'live', node_state: 'live' })
    expect(await choose(c, b)).toBe(false)
    expect(await choose(a, b, { home: c })).toBe(false)
    await bury(c)
    expect(await choose(a, c)).toBe(false)
    expect(await choose(a, b)).toBe(true)
    await note({})
    expect(await row()).toMatchObject({ node: b, state: 'following' })
    const before = await entries()
    await auto()
    expect(await entries()).toBe(before)
  })

  it('change their state only for a home that knows the node, the mode and the epoch', async () => {
    await put(b)
    await note({ node: c })
    await note({ mode: 'replicated' })
    expect(await row()).toMatchObject({ state: 'asked' })
    await note({ epoch: 2 })
    await note({ state: 'behind', epoch: 1 })
    expect(await row()).toMatchObject({ state: 'following', epoch: 2 })
  })

  it('that follow count as behind when the mode changes, until the home holds answers back', async () => {
    await put(b)
    await note({})
    await put(b, { mode: 'replicated' })
    expect(await row()).toMatchObject({ node: b, mode: 'replicated', state: 'behind' })
    await note({ mode: 'async' })
    expect(await promote()).toMatchObject({ kind: 'refused' })
    await note({ mode: 'replicated' })
    await auto()
    expect(await row()).toMatchObject({ placement: 'auto', mode: 'replicated', state: 'following' })
  })

  it('swap the roles when they take over', async () => {
    await put(b, { mode: 'replicated' })
    await note({ mode: 'replicated' })
    const made = { database_id: databaseId, name: '', kind: 'daily', created_at: AT } as const
    const backup = { backup_id: randomUUID(), ...made }
    await store.run(backups.begin, { backup })
    expect(await promote()).toMatchObject({ kind: 'refused', why: expect.stringContaining('is live') })
    await bury(a)
    expect(await promote()).toMatchObject({ kind: 'waits' })
    await stand(b, 7)
    expect(await promote()).toEqual({ kind: 'promoted' })
    const swapped = {
      home: b,
      node: a,
      now_epoch: 2,
      epoch: 2,
      state: 'asked',
      mode: 'replicated',
      complete_until: null,
    }
    expect(await row()).toMatchObject({ ...swapped, home_state: 'live', node_state: 'dead' })
    expect(await store.run(databases.find, { databaseId })).toMatchObject({ modifying_state: '' })
    expect(await store.run(backups.get, { accountId, backupId: backup.backup_id })).toMatchObject({ state: 'failed' })
    // The old home was not notified.
    await note({ node: a, mode: 'replicated', epoch: 1 })
    expect(await row()).toMatchObject({ state: 'asked' })
  })

  it('make way for a move only if the home has placed them', async () => {
    await put(b)
    await expect(move(b)).rejects.toMatchObject({ code: 'database_standby_there' })
    await auto()
    await note({})
    expect(await move(b)).toMatchObject({ target: b })
    expect(await row()).toMatchObject({ node: a, state: 'asked', complete_until: null })
    // No other copy begins while a move transfers files.
    expect(await choose(a, c)).toBe(false)
  })

  it('are not in the way of a database that was moving to a node that is removed', async () => {
    const moveId = randomUUID()
    await move(b, moveId)
    await store.run(moves.begin, { moveId, databaseId })
    await bury(b)
    expect(await store.run(moves.swap, { moveId, databaseId })).toBe(false)
    await store.run(nodesAdmin.remove, { name: b })
    expect(await store.run(databases.find, { databaseId })).toMatchObject({ home: a, modifying_state: '' })
    expect(await move(c)).toMatchObject({ target: c })
  })

  it('are requested for all databases without one at once', async () => {
    const other = await create()
    await put(b)
    const added = await store.run(sets.putAutoAll, { at: AT, audit: audit() })
    expect(added).toBeGreaterThanOrEqual(1)
    const found = (await store.run(standbys.list, {})).filter((one) => [databaseId, other].includes(one.database_id))
    expect(new Map(found.map((one) => [one.database_id, one.placement]))).toEqual(
      new Map([
        [databaseId, 'named'],
        [other, 'auto'],
      ]),
    )
    expect(await store.run(sets.putAutoAll, { at: AT, audit: audit() })).toBe(0)
  })

  const letterOf = (node: string) => 'abc'.charAt([a, b, c].indexOf(node))
  const shapeOf = async () => (await rows()).map((one) => `${one.slot} ${letterOf(one.node)} ${one.placement}`)

  it('are as many as requested; a named node replaces the least valuable one', async () => {
    await auto({ copies: 3 })
    expect(await shapeOf()).toEqual(['1 a auto', '2 a auto', '3 a auto'])
    expect(await choose(a, b, { slot: 2 })).toBe(true)
    // Never two at one node, and never the home.
    expect([await choose(a, b), await choose(a, a), await choose(a, c)]).toEqual([false, false, true])
    await note({})
    await auto({ copies: 2 })
    expect(await shapeOf()).toEqual(['1 c auto', '2 b auto'])
    expect((await rows())[1]).toMatchObject({ state: 'following', complete_until: AT })
    const d = await begin(randomUUID())
    await put(d)
    expect((await rows()).map(({ node, placement }) => [node, placement])).toEqual([
      [d, 'named'],
      [b, 'auto'],
    ])
    await put(c, { copies: 3, mode: 'replicated' })
    expect((await rows()).map(({ node, state, mode }) => [node, state, mode])).toEqual([
      [d, 'asked', 'replicated'],
      [b, 'behind', 'replicated'],
      [c, 'asked', 'replicated'],
    ])
    await store.run(sets.drop, { databaseId, node: b, audit: audit() })
    const before = await entries()
    await put(c)
    expect(await entries()).toBe(before)
    await put(c, { copies: 1 })
    expect(await shapeOf()).toEqual(['3 c named'])
    await put(b)
    expect(await shapeOf()).toEqual(['3 b named'])
    await store.run(sets.drop, { databaseId, node: undefined, audit: audit() })
    expect(await rows()).toEqual([])
  })

  it('are limited to one while a node knows no sets of standbys; with two, such a node is refused', async () => {
    store = await openStore()
    await setUp()
    const old = await begin(randomUUID(), 2)
    await auto()
    const refusal = { code: 'standbys_need_upgrade', details: { nodes: [old] } }
    await expect(auto({ copies: 2 })).rejects.toMatchObject(refusal)
    await expect(put(b, { copies: 2 })).rejects.toMatchObject(refusal)
    await bury(old)
    await begin(randomUUID(), 2).then(bury)
    await auto({ copies: 2 })
    await expect(begin(randomUUID(), 2)).rejects.toThrow('too old')
    await begin(randomUUID())
  })

  /** Both `b` and `c` follow. */
  async function twoFollow(mode: standbys.StandbyRow['mode'] = 'async'): Promise<void> {
    await put(b, { mode })
    await put(c, { copies: 2 })
    for (const node of [b, c]) await note({ node, mode })
    expect((await rows()).map(({ state }) => state)).toEqual(['following', 'following'])
  }

  it('take over when all have stored their position, and then only the one that is furthest', async () => {
    await twoFollow('replicated')
    await bury(a)
    await stand(b, 100)
    expect(await promote(b)).toMatchObject({ kind: 'waits', why: expect.stringContaining(c) })
    await stand(c, 101)
    // Repeated calls change nothing, nor do those about an earlier death.
    await stand(b, 100)
    await stand(c, 1, { incarnation: 0 })
    expect(await promote(b)).toMatchObject({ kind: 'waits', why: expect.stringContaining(c) })
    expect(await promote(c)).toEqual({ kind: 'promoted' })
    expect([await promote(b), await promote(c)]).toEqual([{ kind: 'late' }, { kind: 'promoted' }])
    expect(await rows()).toMatchObject([
      { slot: 1, home: c, node: b, state: 'asked', epoch: 2, stand_life: null, mode: 'replicated' },
      { slot: 2, home: c, node: a, state: 'asked', epoch: 2, stand_life: null, mode: 'replicated' },
    ])
  })

  it('that are equally far leave the takeover to the lowest slot', async () => {
    await twoFollow()
    await bury(a)
    for (const node of [c, b]) await stand(node, 100)
    expect([await promote(c), await promote(b)]).toMatchObject([{ kind: 'waits' }, { kind: 'promoted' }])
  })

  it('do not wait for one whose node is dead, whether it has stored its position or not', async () => {
    await twoFollow()
    await bury(a)
    await stand(b, 100)
    expect(await promote(b)).toMatchObject({ kind: 'waits' })
    await stand(c, 200)
    expect(await promote(b)).toMatchObject({ kind: 'waits' })
    await bury(c)
    expect(await promote(c)).toMatchObject({ kind: 'refused', why: 'this node was declared dead' })
    expect(await promote(b)).toEqual({ kind: 'promoted' })
  })

  it('do not wait for one that cannot take over or is behind; one without a node stays without', async () => {
    await twoFollow()
    await auto({ copies: 3 })
    await bury(a)
    await stand(c, 100)
    await stand(b, undefined)
    expect(await promote(b)).toMatchObject({ kind: 'waits' })
    expect(await promote(c)).toEqual({ kind: 'promoted' })
    expect((await rows()).map(({ node }) => node)).toEqual([b, a, c])
  })

  it('that are behind neither take over nor are waited for', async () => {
    await twoFollow()
    await note({ node: c, state: 'behind' })
    await bury(a)
    await expect(store.run(lostHomes.remove, { name: a, audits: [] })).rejects.toThrow('has a complete copy')
    await stand(c, 200)
    await stand(b, 100)
    expect(await promote(c)).toMatchObject({ kind: 'refused' })
    expect(await promote(b)).toEqual({ kind: 'promoted' })
  })

  it('do not block a move after a takeover: the requests to the old home are over', async () => {
    await put(b)
    await note({})
    const old = await move(c)
    expect(await store.run(moves.begin, { moveId: old.move_id, databaseId })).toBe('begun')
    await bury(a)
    await stand(b, 100)
    expect(await promote(b)).toEqual({ kind: 'promoted' })
    // Its target deletes what it has copied.
    expect(await store.run(moves.find, { moveId: old.move_id })).toMatchObject({ state: 'aborted' })
    expect(await move(c)).toMatchObject({ source: b, target: c, state: 'asked' })
  })

  it('forget their position when the home has come back', async () => {
    await twoFollow()
    await bury(a)
    await stand(b, 100)
    await begin(a)
    expect(await promote(b)).toMatchObject({ kind: 'refused', why: expect.stringContaining('is live') })
    await bury(a)
    // How far `b` has followed since is not known before it says so.
    await stand(c, 50)
    expect(await promote(c)).toMatchObject({ kind: 'waits', why: expect.stringContaining(b) })
    await stand(b, 120)
    expect(await promote(c)).toMatchObject({ kind: 'waits' })
    expect(await promote(b)).toEqual({ kind: 'promoted' })
  })

  it('of two histories leave the takeover to the one that is complete until the later moment', async () => {
    await twoFollow()
    await note({ node: b, complete_until: AT + 5 })
    await bury(a)
    await stand(b, 10, { replid: 'newer' })
    await stand(c, 500)
    expect([await promote(c), await promote(b)]).toMatchObject([{ kind: 'waits' }, { kind: 'promoted' }])
  })

  it('keep one copy at the node that the database leaves, and never two at one node', async () => {
    await auto({ copies: 3 })
    await choose(a, b)
    await choose(a, c, { slot: 2 })
    const moveId = randomUUID()
    await move(b, moveId)
    expect(await shapeOf()).toEqual(['1 a auto', '2 c auto', '3 a auto'])
    await store.run(moves.begin, { moveId, databaseId })
    expect(await store.run(moves.swap, { moveId, databaseId })).toBe(true)
    // The third one still has no node: its row names the new home.
    expect(await shapeOf()).toEqual(['1 a auto', '2 c auto', '3 b auto'])
  })

  it('begin only for the home of now, and once the node has set aside what it served itself', async () => {
    await auto()
    await choose(a, b)
    const may = (home: string, node: string) => store.run(standbys.mayCopy, { databaseId, home, node })
    expect([await may(a, b), await may(c, b), await may(a, c)]).toEqual([true, false, false])
    const moveId = randomUUID()
    await move(b, moveId)
    await store.run(moves.begin, { moveId, databaseId })
    expect(await store.run(moves.swap, { moveId, databaseId })).toBe(true)
    expect([await may(b, a), await may(a, b)]).toEqual([false, false])
    await store.run(moves.settle, { moveId, at: AT })
    expect(await may(b, a)).toBe(true)
  })
})
