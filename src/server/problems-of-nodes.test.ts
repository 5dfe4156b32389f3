import { expect, it } from 'vitest'
import { systemClock } from '../base/index.js'
import type { PeerHandler } from '../cluster/index.js'
import { type ProblemReport, Problems, silentLogger } from '../telemetry/index.js'
import { ProblemsOfNodes } from './problems-of-nodes.js'

const report = (subject: string, more: Partial<ProblemReport> = {}): ProblemReport => ({
  kind: 'data_missing',
  subject,
  severity: 'error',
  title: 'Data is missing',
  advice: 'Restore a backup',
  ...more,
})

it('shows the problems of other nodes with their names, what several report alike once, and no other account’s', async () => {
  const handlers: PeerHandler[] = []
  const [own, theirs] = [new Problems(systemClock, silentLogger), new Problems(systemClock, silentLogger)]
  const peer = { incarnation: 2, name: 'b', advertise: '127.0.0.1:1', state: 'live' } as const
  const clusterWith = (asked: () => PeerHandler | undefined) => ({
    handle: (_: string, handler: PeerHandler) => void handlers.push(handler),
    ask: async (_: string, payload: unknown) => [{ peer, answer: await asked()?.(payload, 1) }],
  })
  const here = new ProblemsOfNodes(
    clusterWith(() => handlers[1]),
    own,
  )
  expect(
    new ProblemsOfNodes(
      clusterWith(() => undefined),
      theirs,
    ),
  ).toBeDefined()
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
})
