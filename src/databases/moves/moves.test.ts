import { afterEach, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { PeerHandler } from '../../cluster/index.js'
import { DEFAULT_PLANS } from '../../contract/databases/plans.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { DatabaseRow } from '../lifecycle.js'
import { NO_TRAFFIC } from '../testing/no-traffic.js'
import { servedRow } from '../testing/rows.js'
import { list as backupRows } from '../transactions/backups.js'
import { find } from '../transactions/databases.js'
import * as rows from '../transactions/moves.js'
import { nodesOf } from '../transactions/standbys.js'
import type { MovesDeps } from './deps.js'
import { Moves } from './moves.js'

/** What a node does about its moves when one cannot continue, or when the other node is gone. */

type Row = rows.MoveRow

const move = (id: string, change: Partial<Row> = {}): Row => ({
  move_id: `move-${id}`,
  database_id: id,
  source: 'a',
  target: 'b',
  epoch: 1,
  state: 'asked',
  problem: null,
  asked_at: 0,
  ended_at: null,
  ...change,
})

const database = (id: string, home: string): DatabaseRow => servedRow({ database_id: id, home, plan: 'free' })

const PEER = { incarnation: 2, name: 'b', advertise: '127.0.0.1:1', state: 'live' } as const
const NO_SLEEP = {
  forget: () => undefined,
  reportStarted: () => undefined,
  isAwake: () => false,
  wake: () => undefined,
}

interface Found {
  readonly node: string
  readonly moves: readonly Row[]
  /** The home of each database in the store. */
  readonly homes?: Readonly<Record<string, string>>
  readonly isBeingDrained?: boolean
  /** What happens when files are set aside. */
  readonly quarantine?: () => Promise<void>
  /** Awaited before a database is copied. */
  readonly beforeCopy?: () => Promise<void>
  /** Free space of the disk, bytes. */
  readonly freeBytes?: number
  /** Whether the engine can write its log. */
  readonly canLog?: boolean
  /** What another node answers. */
  readonly answerOf?: (topic: string) => unknown
  /** Called before a move is asked for. */
  readonly beforeAsk?: (databaseId: string) => void
  /** Called before the end of a move is stored. */
  readonly beforeAbort?: () => void
}

const started: Moves[] = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((one) => one.stop()))
})

/** A node whose store, fleet and other nodes record the calls to them. */
function nodeWith(found: Found) {
  const { node, homes = {}, quarantine = async () => undefined } = found
  const [clock, noted, handlers] = [new ManualClock(), [] as string[], new Map<string, PeerHandler>()]
  const [moves, served] = [new Map(found.moves.map((one) => [one.move_id, one])), new Set<string>()]
  const at = { ...homes }
  let isLost = true
  const run = async (operation: unknown, args: { moveId: string; databaseId: string; target: string }) => {
    const { moveId, databaseId } = args
    const isEnded = ({ state }: Row): boolean => state === 'done' || state === 'failed'
    switch (operation) {
      case rows.open:
        return [...moves.values()].filter((one) => !isEnded(one))
      case rows.find:
        return moves.get(moveId)
      case find:
        return at[databaseId] === undefined ? undefined : database(databaseId, at[databaseId])
      case rows.begin:
        noted.push(`begin ${moveId}`)
        return found.answerOf ? 'begun' : 'busy'
      case rows.abort:
        found.beforeAbort?.()
        return void noted.push(`abort ${moveId}`)
      case rows.swap:
        if (!isLost) return false
        isLost = false
        noted.push('swap')
        throw new HomeportError('store_outcome_unknown', {})
      case rows.ask:
        found.beforeAsk?.(databaseId)
        return void noted.push(`ask ${databaseId} to ${args.target}`)
      case rows.settle:
        return void noted.push(`settle ${moveId}`)
      case nodesOf:
      case backupRows:
        return []
      default:
        throw new Error('not expected')
    }
  }
  const isLinked = found.answerOf !== undefined || found.canLog === false
  const log = { isLogged: found.canLog !== false, hasLogFailed: found.canLog === false }
  const position = async () => ({ replid: 'r', offset: 7, isLinked, ...log })
  const replication = {
    position,
    pauseWrites: async () => undefined,
    socketPath: '/none',
    password: 'p',
    resumeWrites: async () => void noted.push('resume'),
  }
  const answer = async (topic: string) => (found.answerOf ? [{ peer: PEER, answer: found.answerOf(topic) }] : [])
  const deps = {
    node,
    clock,
    plans: DEFAULT_PLANS,
    only: undefined,
    store: { run },
    cluster: {
      ask: answer,
      serve: () => undefined,
      peers: [PEER] as (typeof PEER)[],
      tunnel: async () => expect.fail(),
      isBeingDrained: found.isBeingDrained ?? false,
      handle: (topic: string, handler: PeerHandler) => handlers.set(topic, handler),
    },
    logger: { info: () => undefined, warn: (event: string) => noted.push(event), error: () => undefined },
    fleet: {
      remove: async (id: string) => void noted.push(`remove ${id}`),
      ensure: async ({ databaseId: id }: { databaseId: string }) => void noted.push(`ensure ${id}`),
      suspend: async () => undefined,
      checkSpace: async (bytes = 0) => bytes <= (found.freeBytes ?? 0),
      quarantineData: () => {
        noted.push('quarantine')
        return quarantine()
      },
      replicationWith: async () => replication,
      endpoints: async () => [],
      usedBytes: async () => 0,
    },
    files: { removeAll: async () => undefined },
    directory: {
      has: (id: string) => served.has(id),
      put: (row: DatabaseRow) => served.add(row.database_id),
      remove: (id: string) => served.delete(id),
      onChange: () => () => undefined,
      rowOf: (id: string) => database(id, node),
      hideTokens: () => undefined,
      list: () => Object.keys(at).flatMap((id) => (at[id] === node ? [{ databaseId: id }] : [])),
    },
    locator: { moved: () => undefined, leaving: () => () => undefined },
    usage: { expect: async () => undefined, handOver: async () => undefined },
    sleep: { ...NO_SLEEP, during: (_: string, __: string, work: () => unknown) => work() },
    traffic: {
      ...NO_TRAFFIC,
      disconnectClients: () => noted.push('disconnect clients'),
      proceed: () => noted.push('proceed'),
    },
    placement: { homeFor: async () => 'c' },
    homes: { announce: async () => undefined },
    changes: {
      inTurn: (_: string, work: () => unknown) => work(),
      holding: (_: string, work: () => unknown) => work(),
    },
    onServing: async () => undefined,
  }
  const all = new Moves(deps as unknown as MovesDeps)
  if (found.beforeCopy) all.beforeCopy(found.beforeCopy)
  started.push(all)
  const counts = (event: string) => noted.filter((one) => one === event).length
  const settled = (event: string) => waitFor(() => noted.includes(event), { what: event })
  const hear = (topic: string, payload: object) => handlers.get(topic)?.(payload, 1)
  return { all, at, clock, noted, moves, served, counts, settled, hear, peers: deps.cluster.peers }
}

it('a node retries a move at its next timed look while the database changes, and begins other moves meanwhile', async () => {
  const { all, clock, counts, settled } = nodeWith({ node: 'a', moves: ['one', 'two', 'three'].map((id) => move(id)) })
  all.start()
  await settled('begin move-three')
  for (let looks = 0; looks < 3; looks++) await all.look()
  expect(counts('begin move-one')).toBe(1)
  await waitFor(() => clock.pendingTimers === 1, { what: 'the next look' })
  clock.advance(2_000)
  await waitFor(() => counts('begin move-three') === 2, { what: 'the next try' })
  expect(counts('begin move-one')).toBe(2)
})

it('a node retries to set files aside only at each timed look, when the disk refuses it', async () => {
  const refuses = () => Promise.reject(new Error('EROFS: read-only file system'))
  const moves = [move('one', { state: 'switched' })]
  const { all, counts, settled } = nodeWith({ node: 'a', moves, homes: { one: 'b' }, quarantine: refuses })
  all.start()
  await settled('database_moves_not_read')
  for (let looks = 0; looks < 3; looks++) await all.look()
  expect(counts('quarantine')).toBe(1)
})

it('a node does not set aside the files of a move back, although the move away has not ended here', async () => {
  let [isSetAside, proceed] = [Promise.resolve(), (): void => undefined]
  isSetAside = new Promise((resolve) => {
    proceed = resolve
  })
  const away = move('one', { state: 'switched' })
  const found = { node: 'a', moves: [away], homes: { one: 'b' }, quarantine: () => isSetAside }
  const { all, moves, noted, settled, hear } = nodeWith(found)
  moves.set('back', move('one', { move_id: 'back', source: 'b', target: 'a', state: 'copying' }))
  await hear('moves.receive', { moveId: 'back', databaseId: 'one', epoch: 2, password: 'p' })
  await settled('quarantine')
  all.start()
  await all.look()
  moves.set(away.move_id, { ...away, state: 'done' })
  proceed()
  await settled('ensure one')
  await all.stop()
  expect(noted.filter((one) => one === 'quarantine')).toHaveLength(1)
})

it('a node drains databases whose last move was not cleaned up, because the other node is away', async () => {
  const left = [move('one', { state: 'aborted' }), move('two', { source: 'c', target: 'a', state: 'switched' })]
  const { all, settled } = nodeWith({ node: 'a', moves: left, homes: { one: 'a', two: 'a' }, isBeingDrained: true })
  all.start()
  await settled('ask one to c')
  await settled('ask two to c')
})

it('a node drains its other databases when one move is refused, because the next home has just ended', async () => {
  const beforeAsk = (databaseId: string): void => {
    if (databaseId === 'one') throw new HomeportError('node_not_running', { name: 'c', state: 'left' })
  }
  const { all, settled, noted } = nodeWith({
    node: 'a',
    moves: [],
    homes: { one: 'a', two: 'a' },
    isBeingDrained: true,
    beforeAsk,
  })
  all.start()
  await settled('ask two to c')
  expect(noted).toEqual(['database_move_failed', 'ask two to c'])
})

it('a node deletes a copy whose move is gone with the node that sent it', async () => {
  const copying = move('one', { state: 'copying' })
  const { all, moves, settled, hear } = nodeWith({ node: 'b', moves: [copying], homes: { one: 'a' } })
  all.start()
  await hear('moves.receive', { moveId: 'move-one', databaseId: 'one', epoch: 1, password: 'p' })
  await settled('ensure one')
  moves.clear()
  await all.look()
  await settled('settle move-one')
  expect(all.isReceiving('one')).toBe(false)
})

it('a node serves its copy although it was not notified that it is the home', async () => {
  const copying = move('one', { state: 'copying' })
  const { all, at, moves, noted, served, settled, hear } = nodeWith({
    node: 'b',
    moves: [copying],
    homes: { one: 'a' },
  })
  all.start()
  await hear('moves.receive', { moveId: 'move-one', databaseId: 'one', epoch: 1, password: 'p' })
  await settled('ensure one')
  at.one = 'b'
  moves.set('move-one', { ...copying, state: 'done' })
  noted.length = 0
  await all.look()
  await waitFor(() => served.has('one'), { what: 'the database to be served' })
  expect(noted).not.toContain('remove one')
})

it('a node starts no engine for a copy that was given up before it began', async () => {
  let [isCleared, proceed] = [Promise.resolve(), (): void => undefined]
  isCleared = new Promise((resolve) => {
    proceed = resolve
  })
  const copying = move('one', { state: 'copying' })
  const found = { node: 'b', moves: [copying], homes: { one: 'a' }, beforeCopy: () => isCleared }
  const { all, moves, noted, settled, hear } = nodeWith(found)
  all.start()
  await hear('moves.receive', { moveId: 'move-one', databaseId: 'one', epoch: 1, password: 'p' })
  moves.set('move-one', { ...copying, state: 'aborted' })
  await all.look()
  await settled('settle move-one')
  noted.length = 0
  proceed()
  await settled('remove one')
  await all.stop()
  expect(noted).not.toContain('ensure one')
})

it('a node does not serve a database that its new home deleted before the lost answer of the change is known', async () => {
  const answers: Record<string, object> = {
    'moves.progress': { kind: 'following', replid: 'r', offset: 7, isLogged: true },
  }
  const { all, clock, noted, settled } = nodeWith({
    node: 'a',
    moves: [move('one')],
    answerOf: (topic) => answers[topic] ?? {},
  })
  all.start()
  await settled('swap')
  await waitFor(() => clock.pendingTimers === 2, { what: 'the pause' })
  clock.advance(500)
  await settled('disconnect clients')
  await all.stop()
  expect(noted).not.toContain('resume')
  expect(noted).not.toContain('proceed')
})

it('a move fails when the disk of the next home has no space for the data, or none for the log of the copy', async () => {
  const found = { node: 'b', moves: [move('one', { state: 'copying' })], homes: { one: 'a' }, freeBytes: 100 }
  const progress = { moveId: 'move-one', databaseId: 'one' }
  const asked = { ...progress, epoch: 1, password: 'p' }
  const small = nodeWith(found)
  await small.hear('moves.receive', { ...asked, bytes: 101 })
  await small.settled('database_move_failed')
  const problem = 'the disk of the node b has no space for the copy'
  expect(await small.hear('moves.progress', progress)).toEqual({ kind: 'failed', problem })
  expect(small.noted).not.toContain('ensure one')

  const full = nodeWith({ ...found, canLog: false })
  await full.hear('moves.receive', { ...asked, bytes: 100 })
  const answer = async () => ((await full.hear('moves.progress', progress)) as { problem?: string }).problem
  expect(await waitFor(answer, { what: 'the failure' })).toContain('could not write the copy to its disk')
})

it('a node gives a move up when the next home has ended, and stores why as soon as the store is there', async () => {
  let isAway = true
  const { all, clock, noted, settled, peers } = nodeWith({
    node: 'a',
    moves: [move('one')],
    answerOf: (topic) => (topic === 'moves.receive' ? {} : undefined),
    beforeAbort: () => {
      if (isAway) throw new HomeportError('store_unavailable', {})
    },
  })
  all.start()
  await settled('begin move-one')
  await waitFor(() => clock.pendingTimers === 2, { what: 'the next question' })
  peers.pop()
  clock.advance(100)
  await settled('database_move_failed')
  await waitFor(() => clock.pendingTimers === 2, { what: 'the next try' })
  expect(noted).not.toContain('abort move-one')
  isAway = false
  clock.advance(500)
  await settled('abort move-one')
})
