import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { PeerHandler } from '../cluster/index.js'
import type { Store } from '../store/index.js'
import type { Problem } from '../telemetry/index.js'
import { AlertNodes } from './nodes.js'

const PROBLEM: Problem = {
  kind: 'tls_files',
  subject: 'cert.pem',
  severity: 'warning',
  title: 'T.',
  advice: 'A.',
  sinceMs: 0,
  count: 1,
}
const PEER = { incarnation: 2, name: 'b', advertise: '', state: 'live' } as const

/** Two nodes of a cluster; `a` asks `b`. */
function nodes(some: { readonly disk?: 'unknown'; readonly answer?: unknown; readonly isSilent?: boolean } = {}) {
  let handler: PeerHandler = () => undefined
  const store = { run: async () => [] } as unknown as Store
  const node = (name: string) => {
    const made = new AlertNodes({
      store,
      clock: new ManualClock(),
      node: name,
      problems: { all: () => [PROBLEM] },
      sources: {
        databases: () => [{ accountId: 't', databaseId: `db-${name}`, name: 'shop', budget: 10, spent: 9 }],
        disk: async () => {
          if (some.disk === 'unknown') throw new Error('the test says so')
          return { freeBytes: 5, totalBytes: 100 }
        },
        certificateExpiresAt: () => undefined,
      },
      cluster: {
        isLeader: name === 'a',
        isSingleNode: false,
        peers: [PEER],
        handle: (_topic, given) => {
          handler = given
        },
        ask: async (_topic, payload) => {
          // As after the transport in JSON.
          const answer = some.answer ?? JSON.parse(JSON.stringify(await handler(payload, 1)))
          return some.isSilent ? [] : [{ peer: PEER, answer }]
        },
      },
    })
    return made
  }
  const [leader, other] = [node('a'), node('b')]
  other.join()
  return leader
}

const HOMES = ['a', 'b', 'c'].map((home) => ({ database_id: `db-${home}`, name: 'shop', home }))

it('a node reports what it observes, with its name', async () => {
  const leader = nodes()
  const others = await leader.elsewhere('first')
  expect(others).toMatchObject({ nodes: new Set(['b']), isComplete: true, seesDisks: true })
  expect(others.conditions.map(({ accountId, subject, title }) => [accountId, subject, title.slice(0, 12)])).toEqual([
    ['t', 'db-b', 'The database'],
    ['first', 'tls_files cert.pem (b)', 'Node b: T.'],
    ['first', 'data directory (b)', 'Node b: The '],
  ])
  const isUnjudged = leader.unjudged(others, true, HOMES)
  const unjudged = (kind: string) => HOMES.filter(({ database_id: subject }) => isUnjudged({ kind, subject }))
  expect(unjudged('budget').map(({ home }) => home)).toEqual(['c'])
  expect(unjudged('backup_old')).toEqual([])
  expect(isUnjudged({ kind: 'disk_full', subject: 'data directory (b)' })).toBe(false)
  expect(leader.unjudged(others, false, [])({ kind: 'disk_full', subject: 'data directory (b)' })).toBe(true)
})

it('the watch ends no state of a node that does not answer, or answers something else', async () => {
  for (const some of [{ isSilent: true }, { answer: { conditions: [{}] } }] as const) {
    const leader = nodes(some)
    const others = await leader.elsewhere('first')
    const isUnjudged = leader.unjudged(others, true, HOMES)
    expect([others.conditions, others.isComplete]).toEqual([[], false])
    expect(isUnjudged({ kind: 'problem', subject: 'x' })).toBe(true)
    expect(isUnjudged({ kind: 'schedule_missed', subject: 'x' })).toBe(false)
  }
  expect((await nodes({ disk: 'unknown' }).elsewhere('first')).seesDisks).toBe(false)
})
