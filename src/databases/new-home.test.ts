import { createConnection } from 'node:net'
import { Duplex } from 'node:stream'
import { afterEach, expect, it } from 'vitest'
import { tempDir, waitFor } from '../../test/support/index.js'
import { systemClock } from '../base/index.js'
import { DEFAULT_PLANS } from '../contract/databases/plans.js'
import type { EngineSpec } from '../fleet/index.js'
import { NodeSide } from './replicas/node-side.js'
import { CopySide } from './standbys/copy-side.js'
import { servedRow } from './testing/rows.js'
import * as databases from './transactions/databases.js'
import * as standbys from './transactions/standbys.js'

/** When a database gets another home, the copies at other nodes follow the new home. */

const sides: { stop(): Promise<void> }[] = []
afterEach(() => Promise.all(sides.splice(0).map((side) => side.stop())))

/** A node `b` that keeps copies of the database `db`, with an engine and a link to other nodes that only record calls. */
function nodeB() {
  const row = servedRow({ home: 'a' })
  const [ports, opened, problems]: [number[], string[], unknown[]] = [[], [], []]
  const shown: string[] = []
  const peers = [{ incarnation: 1 }, { incarnation: 3 }]
  const disk = { freeBytes: 100, hasLogFailed: false, isBroken: false }
  let removals = 0
  const answers = new Map<unknown, unknown>([
    [databases.find, row],
    [standbys.mayCopy, true],
  ])
  const deps = {
    node: 'b',
    dataDir: tempDir(),
    clock: systemClock,
    plans: DEFAULT_PLANS,
    hasOther: () => false,
    store: { run: async (operation: unknown) => answers.get(operation) ?? [] },
    fleet: {
      suspend: async () => undefined,
      remove: async () => void removals++,
      checkSpace: async (bytes = 0) => bytes <= disk.freeBytes,
      ensure: async (spec: EngineSpec) => {
        if (disk.isBroken) throw new Error('the engine does not start')
        ports.push(spec.follows?.port ?? 0)
      },
      replicationWith: async () => ({
        position: async () => ({ isLinked: disk.hasLogFailed, isLogged: false, hasLogFailed: disk.hasLogFailed }),
      }),
    },
    cluster: {
      peers,
      tunnel: async (node: string) => {
        opened.push(node)
        return new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
      },
    },
    copies: { put: () => void shown.push('put'), remove: () => void shown.push('remove') },
    logger: { info: () => undefined, warn: (_: string, about: unknown) => problems.push(about) },
  }
  return {
    row,
    peers,
    deps: deps as never,
    problems,
    shown,
    disk,
    removals: () => removals,
    /** Which node the engine reaches when it connects to what it was last asked to follow. */
    followed: async (times: number): Promise<string | undefined> => {
      await waitFor(() => ports.length + problems.length >= times, { what: 'the engine to be asked to follow' })
      const before = opened.length
      const engine = createConnection({ port: ports.at(-1) ?? 0, host: '127.0.0.1' }).on('error', () => undefined)
      await waitFor(() => opened.length > before || engine.destroyed, { what: 'the stream to the home' })
      engine.destroy()
      return opened[before]
    },
  }
}

it('the copy of a standby follows the new home', async () => {
  const node = nodeB()
  const side = new CopySide(node.deps)
  sides.push(side)
  const follow = (source: string, epoch: number) =>
    side.follow({ databaseId: 'db', epoch, source, password: 'p', bytes: 0 })
  await follow('a', 1)
  expect(await node.followed(1)).toBe('a')
  node.row.home = 'c'
  await follow('c', 2)
  expect(await node.followed(2)).toBe('c')
  // A late request of the old home changes nothing.
  expect(await follow('a', 1)).toMatchObject({ progress: { kind: 'failed' } })
  expect([await node.followed(2), node.problems]).toEqual(['c', []])
})

it.each([
  ['for the data', 101, false],
  ['for its log', 100, true],
])('a copy of a standby says that its disk has no space %s, and takes up none', async (_, bytes, hasLogFailed) => {
  const node = nodeB()
  node.disk.hasLogFailed = hasLogFailed
  const side = new CopySide(node.deps)
  sides.push(side)
  const follow = async () =>
    (await side.follow({ databaseId: 'db', epoch: 1, source: 'a', password: 'p', bytes })).progress
  const failed = async () => {
    const progress = await follow()
    return progress.kind === 'failed' ? progress.problem : undefined
  }
  expect(await waitFor(failed, { what: 'the failure' })).toContain('has no space')
  const removals = node.removals()
  // The next request does not begin the copy again.
  expect(await follow()).toMatchObject({ kind: 'failed' })
  expect([node.problems.length, node.removals()]).toEqual([1, removals])
})

it('a copy of a standby that fails says why, and is begun again', async () => {
  const node = nodeB()
  node.disk.isBroken = true
  const side = new CopySide(node.deps)
  sides.push(side)
  const follow = async () =>
    (await side.follow({ databaseId: 'db', epoch: 1, source: 'a', password: 'p', bytes: 0 })).progress
  await follow()
  await waitFor(() => node.problems.length === 1, { what: 'the failure' })
  expect(await follow()).toEqual({ kind: 'failed', problem: 'the node b could not copy the data: see its log' })
  await waitFor(() => node.problems.length === 2, { what: 'the second try' })
  node.disk.isBroken = false
  await follow()
  expect(await node.followed(3)).toBe('a')
})

it('the replica of a read region follows the new home, at once', async () => {
  const node = nodeB()
  const side = new NodeSide(node.deps)
  sides.push(side)
  const wanted = [{ databaseId: 'db', region: 'eu-west-1', password: 'p', revision: 1, lease: undefined }]
  await side.beat({ source: 'a', sequence: 1, wanted }, 1)
  expect(await node.followed(1)).toBe('a')
  node.row.home = 'c'
  await side.beat({ source: 'c', sequence: 1, wanted }, 3)
  expect(await node.followed(2)).toBe('c')
  // The old home no longer wants a copy: the one that follows the new home stays.
  await side.beat({ source: 'a', sequence: 2, wanted: [] }, 1)
  expect([await node.followed(2), node.problems]).toEqual(['c', []])
  // It also stays when an old home that does not know yet that it was declared dead wants its copy back.
  node.peers.shift()
  expect(await side.beat({ source: 'a', sequence: 3, wanted }, 1)).toBeUndefined()
  expect(await side.beat({ source: 'c', sequence: 2, wanted }, 3)).toMatchObject({ copies: [{ databaseId: 'db' }] })
  expect([await node.followed(2), node.problems]).toEqual(['c', []])
})

it('a replica that is no longer wanted while it begins is not shown to clients', async () => {
  const node = nodeB()
  const side = new NodeSide(node.deps)
  const wanted = [{ databaseId: 'db', region: 'eu-west-1', password: 'p', revision: 1, lease: undefined }]
  await side.beat({ source: 'a', sequence: 1, wanted }, 1)
  // The port for its engine opens in a later turn of the event loop: until then the replica is beginning.
  for (let turn = 0; turn < 200; turn++) await Promise.resolve()
  await side.beat({ source: 'a', sequence: 2, wanted: [] }, 1)
  await side.stop()
  expect(node.shown).toEqual(['remove'])
})
