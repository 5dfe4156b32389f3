import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { MoveRow } from '../transactions/moves.js'
import { Departure } from './departure.js'
import { type MovesDeps, TOPICS } from './deps.js'

const TARGET = { name: 'b', incarnation: 7, advertise: '', state: 'live' } as const

const move: MoveRow = {
  move_id: 'move',
  database_id: 'db',
  source: 'a',
  target: 'b',
  epoch: 1,
  state: 'copying',
  problem: null,
  asked_at: 0,
  ended_at: null,
}

it('the home asks the next home again to copy when no answer arrives in time', async () => {
  const clock = new ManualClock()
  const asked: string[] = []
  const answers = [[], [{ answer: null }], [{ answer: { kind: 'failed', problem: 'seen' } }]]
  const deps = {
    node: 'a',
    clock,
    cluster: { peers: [TARGET], ask: async (topic: string) => asked.push(topic) && answers.shift() },
    sleep: { wake: () => undefined },
    fleet: {
      endpoints: async () => [],
      replicationWith: async () => ({ socketPath: '/socket', password: 'p' }),
      usedBytes: async () => 1,
    },
  }
  const opening = { open: () => undefined, close: () => undefined, isStopped: false }
  const run = new Departure(deps as unknown as MovesDeps, move, opening).run()
  const outcome = expect(run).rejects.toThrow('seen')
  await waitFor(() => clock.pendingTimers > 0 || asked.length > 1, { what: 'the pause' })
  clock.advance(500)
  await outcome
  expect(asked).toEqual([TOPICS.receive, TOPICS.receive, TOPICS.progress])
})
