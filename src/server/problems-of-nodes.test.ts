import { expect, it } from 'vitest'
import { systemClock } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { PeerHandler } from '../cluster/index.js'
import * as nodeRows from '../cluster/transactions/cluster-nodes.js'
import * as nodesAdmin from '../cluster/transactions/nodes-admin.js'
import { SCHEMA_RANGE } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { type ProblemReport, Problems, silentLogger } from '../telemetry/index.js'
import { LostNodes } from './lost-nodes.js'
import { ProblemsOfNodes } from './problems-of-nodes.js'

const report = (subject: string, more: Partial<ProblemReport> = {}): ProblemReport => ({
  kind: 'data_missing',
  subject,
  severity: 'error',
  title: 'Data is missing',
  advice: 'Restore a backup',
  ...more,
})

it('an account sees the problems of all nodes: common ones once, and none of other accounts', async () => {
  const there = new Map<string, PeerHandler>()
  const [own, theirs] = [new Problems(systemClock, silentLogger), new Problems(systemClock, silentLogger)]
  const peer = { incarnation: 2, name: 'b', advertise: '127.0.0.1:1', state: 'live' } as const
  const clusterOf = (incarnation: number, handlers: Map<string, PeerHandler>) => ({
    incarnation,
    handle: (topic: string, handler: PeerHandler) => void handlers.set(topic, handler),
    ask: async (topic: string, payload: unknown) => [{ peer, answer: await there.get(topic)?.(payload, 1) }],
  })
  const here = new ProblemsOfNodes(clusterOf(1, new Map()), own)
  expect(new ProblemsOfNodes(clusterOf(2, there), theirs)).toBeDefined()
  for (const problems of [own, theirs]) problems.report(report('both'))
  own.report(report('here', { accountId: 'acc' }))
  theirs.report(report('there', { accountId: 'acc' }))
  theirs.report(report('foreign', { accountId: 'other' }))
  const shown = (await here.visibleTo('acc')).map(({ subject, node, count }) => ({ subject, node, count }))
  expect(shown).toEqual([
    { subject: 'both', node: undefined, count: 1 },
    { subject: 'here', node: undefined, count: 1 },
    { subject: 'there', node: 'b', count: 1 },
  ])
  expect(await here.counts()).toEqual(
    new Map([
      [1, 2],
      [2, 3],
    ]),
  )
})

describeOnSampledStore('lost nodes', (openStore) => {
  it('are problems of the leader until they run again or are removed', async () => {
    const [store, clock] = [await openStore(), new ManualClock()]
    const problems = new Problems(clock, silentLogger)
    const cluster = { isSingleNode: false, isLeader: false }
    const begin = async (name: string): Promise<number> => {
      const node = { name, dir: name, advertise: 'h:1', version: '1', config: '{}', range: SCHEMA_RANGE, region: null }
      const result = await store.run(nodeRows.register, { node, now: 0 })
      return result.kind === 'registered' ? result.incarnation : 0
    }
    const lostNodes = new LostNodes({ cluster, store, clock, problems })
    const shown = () => problems.all().map(({ kind, subject, severity, count }) => ({ kind, subject, severity, count }))
    /** Lets time pass until these are the problems. */
    const becomes = (expected: readonly object[]) =>
      expect
        .poll(
          () => {
            clock.advance(10_000)
            return shown()
          },
          { timeout: 20_000 },
        )
        .toEqual(expected)
    const lost = { kind: 'node_lost', severity: 'warning', count: 1 }
    await lostNodes.start()
    for (const name of ['b', 'c']) {
      await store.run(nodeRows.declareDead, { incarnation: await begin(name), beat: 0 })
    }
    await becomes([])
    cluster.isLeader = true
    await becomes([
      { ...lost, subject: 'b' },
      { ...lost, subject: 'c' },
    ])
    await begin('b')
    await becomes([{ ...lost, subject: 'c' }])
    await store.run(nodesAdmin.remove, { name: 'c' })
    await becomes([])
    await lostNodes.stop()
  })
})
