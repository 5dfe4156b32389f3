import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { GENERATION } from '../store/migrations/migration.js'
import { type CuttableProxy, cuttableProxy } from '../store/testing/cuttable-proxy.js'
import { describeOnStore } from '../store/testing/index.js'
import { raw } from '../store/testing/inspect.js'
import { NodeRig, type RiggedNode } from './testing/node-rig.js'
import * as nodesAdmin from './transactions/nodes-admin.js'
import { PARTITIONS } from './types.js'

const counts = (nodes: readonly RiggedNode[]): number[] =>
  nodes.map(({ cluster }) => cluster.owned.length).sort((one, other) => one - other)
const ALL = Array.from({ length: PARTITIONS }, (_, partition) => partition)
const sorted = (numbers: Iterable<number>): number[] => [...numbers].sort((one, other) => one - other)

describeOnStore('postgres', 'nodes of a cluster', (_open, on) => {
  let rig: NodeRig
  let proxy: CuttableProxy | undefined
  let location: string

  beforeAll(async () => {
    ;({ location } = await on.newPlace())
  })
  beforeEach(() => {
    rig = new NodeRig(location)
  })
  afterEach(async () => {
    proxy?.mend()
    await rig.close()
    await proxy?.close()
    proxy = undefined
  })

  const cable = async (): Promise<string> => {
    const url = new URL(location)
    proxy = await cuttableProxy(Number(url.port))
    url.port = String(proxy.port)
    return url.href
  }

  it('share partitions, and share those of one that is killed', async () => {
    const [a, b] = [await rig.add('a'), await rig.add('b')]
    await rig.until(() => counts([a, b])[0] === 32)
    const c = await rig.add('c')
    expect(await rig.until(() => counts([a, b, c])[0] === 21)).toBeLessThan(10_000)
    expect(sorted([a, b, c].flatMap(({ cluster }) => cluster.owned))).toEqual(ALL)
    expect([...c.holder.held.values()]).toContainEqual({ from: c.cluster.owned[0] })
    expect([a, b, c].filter(({ cluster }) => cluster.isLeader)).toEqual([a])

    const killed = a.cluster.incarnation
    a.clock.pause()
    expect(await rig.until(() => counts([b, c])[0] === 32)).toBeLessThan(7_000)
    expect(a.cluster.mayAct()).toBe(false)
    expect([b.gone, c.gone]).toEqual([[killed], [killed]])
    expect(b.meter.declaredDead + c.meter.declaredDead).toBe(1)
    await rig.until(() => b.cluster.isLeader || c.cluster.isLeader)
    expect(await b.cluster.isLive(killed)).toBe(false)

    await expect(a.cluster.isLive(killed)).rejects.toMatchObject({ code: 'store_unavailable' })
    a.clock.resume()
    await rig.until(() => a.deaths.length > 0)
    expect(a.deaths).toMatchObject([{ code: 'node_declared_dead' }])
    expect([a.cluster.owned, [...a.holder.held]]).toEqual([[], []])
  })

  it('declare nobody dead while the store is away, and act again afterwards', async () => {
    const far = await cable()
    const [a, b] = [await rig.add('a', { location: far }), await rig.add('b', { location: far })]
    await rig.until(() => counts([a, b])[0] === 32)
    const before = a.cluster.owned
    proxy?.cut()
    await rig.pass(3_000)
    expect(a.cluster.mayAct()).toBe(true)
    await rig.pass(57_000)
    expect([a.cluster.mayAct(), a.cluster.isLeader, a.meter.beatsMissed > 10]).toEqual([false, false, true])
    proxy?.mend()
    await rig.until(() => a.cluster.mayAct() && b.cluster.mayAct() && a.cluster.isLeader)
    await rig.pass(10_000)
    expect([a.cluster.owned, a.deaths, b.deaths]).toEqual([before, [], []])
  })

  it('hand everything over when one drains, busy partitions with their requests', async () => {
    const [a, b] = [await rig.add('a'), await rig.add('b')]
    for (const partition of [0, 1, 2]) a.holder.busy.add(partition)
    await rig.until(() => counts([a, b])[0] === 32)
    expect(a.cluster.owned).toEqual(expect.arrayContaining([0, 1, 2]))
    await rig.during(a.cluster.drain(1_000))
    await rig.pass(1_000)
    expect([a.cluster.owned, b.cluster.owned, b.cluster.isLeader]).toEqual([[], ALL, true])
    expect(b.holder.held.get(1)).toEqual({ from: 1 })
    expect([a.cluster.mayAct(), a.cluster.isDraining, b.cluster.peers[0]?.state]).toEqual([true, true, 'draining'])
    await rig.during(a.cluster.stop())
    await rig.pass(500)
    expect([b.gone, b.cluster.peers]).toEqual([[a.cluster.incarnation], []])
  })

  it('hand over quiet partitions at once', async () => {
    const [a, b] = [await rig.add('a'), await rig.add('b')]
    await rig.until(() => counts([a, b])[0] === 32 && a.cluster.isLeader)
    const given = sorted(a.cluster.owned)
    await a.cluster.drain(1_000)
    expect([a.cluster.owned, b.cluster.owned]).toEqual([[], ALL])
    expect(given.map((partition) => b.holder.held.get(partition))).toEqual(given.map((from) => ({ from })))
  })

  it('drain for the operator, and take part again when they are resumed', async () => {
    const [a, b] = [await rig.add('a'), await rig.add('b')]
    await rig.until(() => counts([a, b])[0] === 32)
    await a.store.run(nodesAdmin.setNodeState, { name: 'b', state: 'draining' })
    await rig.until(() => b.cluster.isDraining && a.cluster.owned.length === PARTITIONS)
    expect([b.cluster.mayAct(), b.cluster.owned]).toEqual([true, []])
    await b.store.run(nodesAdmin.setNodeState, { name: 'b', state: 'live' })
    await rig.until(() => counts([a, b])[0] === 32)
    expect(b.cluster.isDraining).toBe(false)

    // When all nodes are drained, they keep their partitions, and take over from nodes that stop.
    for (const name of ['a', 'b']) await a.store.run(nodesAdmin.setNodeState, { name, state: 'draining' })
    await rig.until(() => a.cluster.isDraining && b.cluster.isDraining)
    await rig.pass(2_000)
    expect([counts([a, b]), a.cluster.isLeader]).toEqual([[32, 32], true])
    await rig.during(a.cluster.stop())
    await rig.until(() => b.cluster.owned.length === PARTITIONS && b.cluster.isLeader)

    // A node that is still starting takes no partitions.
    const release = vi.spyOn(b.holder, 'release')
    const c = await rig.make('c')
    await rig.during(c.cluster.start())
    await rig.pass(2_000)
    expect([b.cluster.owned, b.cluster.isLeader, release.mock.calls]).toEqual([ALL, true, []])
    c.cluster.open()
    await rig.until(() => c.cluster.owned.length === PARTITIONS && c.cluster.isLeader)
    expect(b.cluster.isLeader).toBe(false)

    const { remove, list } = nodesAdmin
    await expect(c.store.run(remove, { name: 'b' })).rejects.toMatchObject({ code: 'node_running' })
    await c.store.run(remove, { name: 'a' })
    expect((await c.store.run(list, {})).map(({ name, state, partitions }) => [name, state, partitions])).toEqual([
      ['b', 'draining', 0],
      ['c', 'live', PARTITIONS],
    ])
  })

  it('hand over for the operator also after a hand-over that the store has refused', async () => {
    const [a, b] = [await rig.add('a'), await rig.add('b')]
    await rig.until(() => counts([a, b])[0] === 32 && a.cluster.isLeader)
    const store = raw({ location, dataDir: '' })
    await store.execute(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE lock_not_available; END'",
    )
    await store.execute('CREATE TRIGGER refused BEFORE UPDATE ON partitions FOR EACH ROW EXECUTE FUNCTION refuse()')
    await a.store.run(nodesAdmin.setNodeState, { name: 'a', state: 'draining' })
    await rig.until(() => a.cluster.owned.length === 0)
    await store.execute('DROP FUNCTION refuse CASCADE')
    await rig.until(() => b.cluster.owned.length === PARTITIONS && b.cluster.isLeader)
  })

  it('take over from a node that was removed before another node could act', async () => {
    const [a, b] = [await rig.add('a'), await rig.make('b')]
    await rig.during(b.cluster.start())
    await rig.until(() => a.cluster.owned.length === PARTITIONS && a.cluster.isLeader)
    a.clock.pause()
    await rig.until(() => b.gone.length > 0)
    await b.store.run(nodesAdmin.remove, { name: 'a' })
    b.cluster.open()
    await rig.until(() => b.cluster.owned.length === PARTITIONS && b.cluster.isLeader)
  })

  it('take the partitions that a drained node left without an owner', async () => {
    const a = await rig.add('a')
    await rig.until(() => a.cluster.owned.length === PARTITIONS)
    await rig.during(a.cluster.drain(1_000))
    expect(a.cluster.owned).toEqual([])
    const b = await rig.add('b')
    await rig.until(() => b.cluster.owned.length === PARTITIONS)
  })

  it('notify each other, also nodes that the link does not reach, and do not wait for dead nodes', async () => {
    const [a, b, c] = [await rig.add('a'), await rig.add('b'), await rig.add('c')]
    await a.cluster.notify('news', { n: 1 })
    expect([a.heard, b.heard, c.heard]).toEqual([[], [{ n: 1 }], [{ n: 1 }]])
    rig.links.cut(c.cluster.incarnation)
    await rig.during(a.cluster.notify('news', { n: 2 }))
    expect([b.heard, c.heard]).toEqual([
      [{ n: 1 }, { n: 2 }, { n: 2 }],
      [{ n: 1 }, { n: 2 }],
    ])
    c.clock.pause()
    let isAnswered = false
    const third = a.cluster.notify('news', { n: 3 }).then(() => {
      isAnswered = true
    })
    await rig.pass(3_000)
    expect(isAnswered).toBe(false)
    await rig.during(third)
    expect(await a.cluster.isLive(c.cluster.incarnation)).toBe(false)
    expect(a.meter.announcements).toBe(2)
  })

  it('answer requests of each other, and pass hints to the owner of a partition and to the leader', async () => {
    const [a, b] = [await rig.add('a'), await rig.add('b')]
    await rig.until(() => counts([a, b])[0] === 32)
    b.cluster.handle('who', (_, from) => ({ asked: from }))
    const answers = await a.cluster.ask('who', null)
    expect(answers).toMatchObject([{ peer: { name: 'b' }, answer: { asked: a.cluster.incarnation } }])
    expect(await a.cluster.ask('who', null, 99)).toEqual([])
    a.cluster.hint(b.cluster.owned[0] ?? 0, 'news', 'for the owner')
    a.cluster.hint(a.cluster.owned[0] ?? 0, 'news', 'for nobody')
    b.cluster.hintLeader('news', 'for the leader')
    await rig.until(() => a.heard.length > 0 && b.heard.length > 0)
    await rig.pass(250)
    expect([a.heard, b.heard]).toEqual([['for the leader'], ['for the owner']])
  })

  it('have unique names; a restart ends the incarnation before', async () => {
    const a = await rig.add('a')
    const other = await rig.make('a', { dir: 'another disk' })
    await expect(rig.during(other.cluster.start())).rejects.toMatchObject({
      code: 'node_name_taken',
      details: { node: 'a' },
    })
    const again = await rig.add('a')
    expect(again.cluster.incarnation).toBeGreaterThan(a.cluster.incarnation)
    await rig.until(() => a.deaths.length === 1 && again.cluster.owned.length === PARTITIONS)
    again.clock.pause()
    const moved = await rig.make('a', { dir: 'another disk' })
    await rig.during(moved.cluster.start())
    expect(await moved.cluster.isLive(again.cluster.incarnation)).toBe(false)
  })

  it('refuse a node whose options differ', async () => {
    await rig.add('a', { config: { retentionMs: '1', deliveryTimeoutMs: '2' } })
    const other = await rig.make('b', { config: { retentionMs: '1', deliveryTimeoutMs: '3' } })
    const start = rig.during(other.cluster.start())
    await expect(start).rejects.toMatchObject({
      code: 'node_config_differs',
      details: { node: 'a', options: ['deliveryTimeoutMs'] },
    })
  })

  it('refuse a node whose PostgreSQL user may not end the connections of the others', async () => {
    const place = await on.newPlace()
    const [own, store] = [new NodeRig(place.location), raw(place)]
    try {
      await own.add('a')
      const url = new URL(place.location)
      const user = `other_${url.pathname.slice(1)}`
      await store.execute(`CREATE ROLE ${user} LOGIN PASSWORD 'secret'`)
      for (const what of ['TABLES', 'SEQUENCES'])
        await store.execute(`GRANT ALL ON ALL ${what} IN SCHEMA public TO ${user}`)
      const first = url.username
      Object.assign(url, { username: user, password: 'secret' })
      const b = await own.make('b', { location: url.href })
      await expect(own.during(b.cluster.start())).rejects.toMatchObject({
        code: 'node_user_differs',
        details: { users: first },
      })
      await own.close()
      await store.execute(`DROP OWNED BY ${user}`)
      await store.execute(`DROP ROLE ${user}`)
    } finally {
      await own.close()
    }
  })

  it('may be of the next version, which has more options, but not of the one after that', async () => {
    const a = await rig.add('a', { config: { retentionMs: '1' } })
    const range = (generation: number) => ({ generation, schema_from: generation, schema_to: generation + 1 })
    await rig.add('b', { config: { retentionMs: '1', newOption: '2' }, range: range(GENERATION + 1) })
    const far = await rig.make('far', { range: range(GENERATION + 2) })
    await expect(rig.during(far.cluster.start())).rejects.toMatchObject({
      code: 'node_versions_apart',
      details: { nodes: ['"a" (version 1)'], isOlder: false },
    })
    expect(a.deaths).toEqual([])
  })

  it('start again after a newer node has migrated the store, if they work with its schema', async () => {
    const place = await on.newPlace()
    const other = new NodeRig(place.location)
    try {
      const node = await other.make('a')
      const applied = (number: number, worksFrom: number) =>
        raw(place).execute(`INSERT INTO schema_migrations VALUES (${number}, 'contract', 1, 0, ${worksFrom})`)
      await applied(998, GENERATION)
      await other.during(node.cluster.start())
      const late = await other.make('b')
      await applied(999, GENERATION + 1)
      await expect(late.cluster.start()).rejects.toMatchObject({ code: 'store_newer', details: { number: 999 } })
      await expect(other.make('c')).rejects.toMatchObject({ code: 'store_newer', details: { number: 999 } })
    } finally {
      await other.close()
    }
  })
})
