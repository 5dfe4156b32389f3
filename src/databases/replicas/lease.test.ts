import { expect, it } from 'vitest'
import { HomeRelay } from '../copies.js'
import { Copy } from './copy.js'
import { Member } from './member.js'
import { beatAnswerOf, beatOf, type CopyReport, LEASE_MS, since } from './messages.js'
import { NodeRegions } from './node-regions.js'

/** The lease that a home gives to the node of a read region, and the reports of that node. */

const at = (ms: number, wallMs = ms) => ({ monotonicMs: ms, wallMs })
function newCopy(): Copy {
  const relay = new HomeRelay(() => Promise.reject(new Error('no home')))
  const copy = new Copy({ databaseId: 'db', region: 'eu-west-1', source: 'a' }, relay)
  copy.connected({ incarnation: 1, revision: 1 })
  return copy
}
const totals = (reads: number) => ({ reads, bytesIn: 10 * reads, bytesOut: 0, commands: [['GET', reads] as const] })
const report = (reads: number, copyId = 'one'): CopyReport => ({
  databaseId: 'db',
  copyId,
  state: 'following',
  problem: '',
  replid: 'r',
  offset: 1,
  revision: 1,
  totals: totals(reads),
})

it('a lease ends by either clock, and with the copy', () => {
  const copy = newCopy()
  copy.allow({ stamp: at(1_000), ceiling: 10, siblings: [] })
  expect(copy.mayRead(at(1_000 + LEASE_MS - 1))).toBe(true)
  expect(copy.mayRead(at(1_000 + LEASE_MS))).toBe(false)
  // The machine was suspended: only the wall clock went on. A clock that was set back proves nothing.
  expect([copy.mayRead(at(1_001, 60_000)), copy.mayRead(at(1_001, 0))]).toEqual([false, false])
  copy.allow(undefined)
  expect(copy.mayRead(at(1_001))).toBe(false)
  copy.allow({ stamp: at(1_000), ceiling: 10, siblings: [] })
  copy.end()
  expect(copy.mayRead(at(1_001))).toBe(false)
})

it('a lease allows a number of reads, and without a token only where the nodes of the region are known', () => {
  const copy = newCopy()
  copy.allow({ stamp: at(0), ceiling: 3, siblings: [2] })
  expect([copy.take(2, at(1), 'node'), copy.take(2, at(1), 'node'), copy.take(1, at(1), 'node')]).toEqual([
    true,
    false,
    true,
  ])
  copy.allow({ stamp: at(0), ceiling: 5, siblings: undefined })
  expect([copy.take(1, at(1), 'node'), copy.take(1, at(1), 'token')]).toEqual([false, true])
  expect(copy.totals.reads).toBe(4)
})

it('the home counts each read once, whatever answers are lost', () => {
  const member = new Member('db', 'eu-west-1')
  member.moveTo(2)
  expect(member.lease(5, [], 0)).toBeUndefined()
  // Reads that an earlier life of the home has counted are not counted again.
  expect(member.reported(report(7), at(1))).toBeUndefined()
  expect(member.lease(5, [], 0)).toEqual({ stamp: at(1), ceiling: 12, siblings: [] })
  expect(member.outstanding).toBe(5)
  expect(member.reported(report(10), at(2))).toEqual(totals(3))
  expect(member.outstanding).toBe(2)
  expect(member.reported(report(10), at(3))).toMatchObject({ reads: 0 })
  expect([member.leasedFor(100), member.leasedFor(LEASE_MS)]).toEqual([LEASE_MS - 100, 0])
  expect(since(totals(3), undefined)).toEqual(totals(3))
})

it('a node whose region is not known counts as one that may be in the region', () => {
  const peers = [1, 2].map((incarnation) => ({
    incarnation,
    name: `n${incarnation}`,
    advertise: '',
    state: 'live' as const,
  }))
  const regions = new Map<number, string | undefined>([
    [1, 'us-east-1'],
    [2, 'eu-west-1'],
  ])
  const asked: Promise<unknown>[] = []
  const known = new NodeRegions({
    cluster: { peers } as never,
    placement: { regionsOfPeers: async () => regions } as never,
    logger: {} as never,
  })
  expect(known.siblingsIn('eu-west-1', 2)).toBeUndefined()
  known.look()
  asked.push(Promise.resolve())
  return Promise.all(asked).then(() => {
    expect(known.siblingsIn('eu-west-1', 2)).toEqual([])
    known.joined(3)
    expect(known.siblingsIn('eu-west-1', 2)).toBeUndefined()
    known.gone(3)
    expect([known.siblingsIn('eu-west-1', 2), known.siblingsIn('us-east-1', 2)]).toEqual([[], [1]])
  })
})

it('messages and parts of messages that are no beats are ignored', () => {
  const wanted = [
    { databaseId: 'db', region: 'r', revision: 1, lease: { stamp: at(1), ceiling: 1 } },
    { databaseId: 1 },
  ]
  expect(beatOf({ source: 'a', sequence: 1, wanted })).toEqual({
    source: 'a',
    sequence: 1,
    wanted: [{ ...wanted[0], password: undefined, lease: { stamp: at(1), ceiling: 1, siblings: undefined } }],
  })
  expect([beatOf(null), beatOf({ wanted: [] }), beatAnswerOf({ copies: [] })]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
  const answer = { stamp: at(1), copies: [report(1), { databaseId: 'db' }], leaving: ['x', 1] }
  expect(beatAnswerOf(answer)).toEqual({ stamp: at(1), copies: [report(1)], leaving: ['x'] })
})
