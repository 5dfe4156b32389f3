import { randomUUID } from 'node:crypto'
import { beforeEach, expect, it } from 'vitest'
import * as accounts from '../../accounts/transactions/accounts.js'
import * as nodes from '../../cluster/transactions/cluster-nodes.js'
import { SCHEMA_RANGE } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import type { Store } from '../../store/types.js'
import * as databases from './databases.js'
import * as homes from './homes.js'
import * as moves from './moves.js'
import * as promotions from './promotions.js'
import * as standbys from './standbys.js'

/** What is stored about standbys. The nodes `a` to `c` are new in each test. */

const AT = 1_800_000_000_000

describeOnEveryStore('standbys', (openStore) => {
  let store: Store
  let accountId: string
  let databaseId: string
  let a: string
  let b: string
  let c: string
  const lives = new Map<string, number>()

  const audit = (): accounts.NewAuditRow => ({
    ...{ log_id: randomUUID(), account_id: accountId, actor: 'a', source: 's', action: 'Act', entity: 'e' },
    ...{ details: '{}', ip: '', at: AT },
  })

  async function begin(name: string): Promise<string> {
    const node = {
      name,
      dir: name,
      advertise: 'host:1',
      version: '0',
      config: '{}',
      range: SCHEMA_RANGE,
      region: null,
    }
    const registered = await store.run(nodes.register, { node, now: AT })
    if (registered.kind !== 'registered') throw new Error(registered.kind)
    lives.set(name, registered.incarnation)
    return name
  }

  const bury = (name: string) => store.run(nodes.declareDead, { incarnation: lives.get(name) ?? 0, beat: 0 })

  async function create(): Promise<string> {
    const id = randomUUID()
    await store.run(databases.create, {
      database: {
        ...{ database_id: id, account_id: accountId, name: 'shop', platform: 'aws', primary_region: 'us-east-1' },
        ...{ read_regions: '[]', plan: 'payg', budget: 0, eviction: 0, tls: 0, persistence: 'append-only' },
        ...{ password: 'p', rest_token: `rw-${id}`, read_only_rest_token: `ro-${id}`, created_at: AT },
      },
      ...{ ports: { from: 9000, to: 9999, avoid: [] }, slugs: [`calm-bay-${id}`], limit: 10, forgetBefore: 0 },
    })
    await store.run(databases.finishCreate, { databaseId: id, audit: audit() })
    await store.run(homes.adopt, { databaseId: id, home: a })
    return id
  }

  beforeEach(async () => {
    store ??= await openStore()
    await store.run(accounts.identify, { freshId: 'store-1', at: 1 })
    accountId = randomUUID()
    const account = {
      type: 'paid' as const,
      ...{ account_id: accountId, email: `${accountId}@homeport.local`, created_at: 1 },
      ...{ queue_user_id: accountId, queue_token_hash: accountId, signing_current: 'a', signing_next: 'b' },
    } as const
    const key = {
      key_id: accountId,
      account_id: accountId,
      name: 'default',
      key_hash: accountId,
      read_only: 0,
    } as const
    await store.run(accounts.create, { account, key: { ...key, created_at: 1 } })
    ;[a, b, c] = [await begin(randomUUID()), await begin(randomUUID()), await begin(randomUUID())]
    databaseId = await create()
  })

  const row = async () => (await store.run(standbys.list, {})).find((one) => one.database_id === databaseId)
  const put = (node: string, mode?: standbys.StandbyRow['mode']) =>
    store.run(standbys.put, { databaseId, node, mode, at: AT, audit: audit() })
  const auto = (mode?: standbys.StandbyRow['mode']) =>
    store.run(standbys.putAuto, { databaseId, mode, at: AT, audit: audit() })
  const choose = (from: string, node: string, home = a) =>
    store.run(standbys.choose, { databaseId, home, from, node, at: AT, audit: audit() })
  const note = (change: Partial<standbys.StandbyNote>) =>
    store.run(standbys.note, {
      notes: [
        {
          ...{ databaseId, node: b, mode: 'async', state: 'following', epoch: 1, complete_until: AT },
          ...{ home_offset: 1, standby_offset: 1, problem: null, ...change },
        },
      ],
    })
  const promote = () => store.run(promotions.promote, { databaseId, from: a, to: b, epoch: 1, at: AT, audit: audit() })
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

  it('are left to the home, which chooses only what the rows still say', async () => {
    await auto()
    expect(await row()).toMatchObject({ node: a, placement: 'auto', home_life: 'live', node_life: 'live' })
    expect(await choose(c, b)).toBe(false)
    expect(await choose(a, b, c)).toBe(false)
    await bury(c)
    expect(await choose(a, c)).toBe(false)
    expect(await choose(a, b)).toBe(true)
    await note({})
    expect(await row()).toMatchObject({ node: b, state: 'following' })
    const before = await entries()
    await auto()
    expect(await entries()).toBe(before)
  })

  it('are noted only by a home that knows the node, the mode and the epoch', async () => {
    await put(b)
    await note({ node: c })
    await note({ mode: 'replicated' })
    expect(await row()).toMatchObject({ state: 'asked' })
    await note({ epoch: 2 })
    await note({ state: 'behind', epoch: 1 })
    expect(await row()).toMatchObject({ state: 'following', epoch: 2 })
  })

  it('that follow are behind again when the mode changes, so that answers are held back first', async () => {
    await put(b)
    await note({})
    await put(b, 'replicated')
    expect(await row()).toMatchObject({ node: b, mode: 'replicated', state: 'behind' })
    await note({ mode: 'async' })
    expect(await promote()).toMatchObject({ kind: 'refused' })
    await note({ mode: 'replicated' })
    await auto()
    expect(await row()).toMatchObject({ placement: 'auto', mode: 'replicated', state: 'following' })
  })

  it('swap the roles when they take over', async () => {
    await put(b, 'replicated')
    await note({ mode: 'replicated' })
    expect(await promote()).toMatchObject({ kind: 'refused', why: expect.stringContaining('is live') })
    await bury(a)
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
    expect(await row()).toMatchObject({ ...swapped, home_life: 'live', node_life: 'dead' })
    // The old home did not hear of it.
    await note({ node: a, mode: 'replicated', epoch: 1 })
    expect(await row()).toMatchObject({ state: 'asked' })
  })

  it('make way for a move only where the home has placed them', async () => {
    const move = (target: string) =>
      store.run(moves.ask, { moveId: randomUUID(), databaseId, target, at: AT, audit: audit() })
    await put(b)
    await expect(move(b)).rejects.toMatchObject({ code: 'database_standby_there' })
    await auto()
    await note({})
    expect(await move(b)).toMatchObject({ target: b })
    expect(await row()).toMatchObject({ node: a, state: 'asked', complete_until: null })
    // While files are on their way between nodes, no other copy begins.
    expect(await choose(a, c)).toBe(false)
  })

  it('of all databases without one are asked for at once', async () => {
    const other = await create()
    await put(b)
    const added = await store.run(standbys.putAutoAll, { at: AT, audit: audit() })
    expect(added).toBeGreaterThanOrEqual(1)
    const found = (await store.run(standbys.list, {})).filter((one) => [databaseId, other].includes(one.database_id))
    expect(new Map(found.map((one) => [one.database_id, one.placement]))).toEqual(
      new Map([
        [databaseId, 'named'],
        [other, 'auto'],
      ]),
    )
    expect(await store.run(standbys.putAutoAll, { at: AT, audit: audit() })).toBe(0)
  })
})
