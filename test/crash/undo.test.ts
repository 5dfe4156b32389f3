import { join } from 'node:path'
import { Client } from '@upstash/workflow'
import { afterAll, expect, it } from 'vitest'
import { openSqlite } from '../../src/base/index.js'
import { type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { randomFrom } from './random.js'

/**
 * The server is killed with SIGKILL in the middle of a bulk cancel and in the middle of its undo, again and again. Then
 * every run is back where it stood: active, with exactly one pending delivery, due at its original time.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 2)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
const RUNS = 600
/** The action takes about half a second, so that most kills hit it. */
const RATE = 1_200
const LONGEST_LIFE_MS = 500
const DEADLINE_MS = 60_000
afterAll(() => console.log(`undo crash test: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${CYCLES}`))

interface Action {
  readonly state: string
  readonly outcomes: Readonly<Record<string, number>>
}

/** The runs with their states, and what is pending for them. */
interface Standing {
  readonly run_id: string
  readonly state: string
  readonly due: string | null
}

function standingOf({ place }: RunningHomeport): Standing[] {
  const db = openSqlite(join(place.dataDir, 'homeport.sqlite'), { mustExist: true, busyTimeoutMs: 5_000 })
  try {
    return db
      .prepare(
        `SELECT run_id, runs.state, group_concat(messages.next_at) AS due FROM runs
         LEFT JOIN messages ON messages.group_key = runs.seq AND messages.state = 'pending'
         GROUP BY run_id ORDER BY run_id`,
      )
      .all() as Standing[]
  } finally {
    db.close()
  }
}

/** Starts an action, kills the server at some moment of it, and resolves with the server that has ended it. */
async function through(homeport: RunningHomeport, path: string, body: object, lifeMs: number) {
  const { status, body: answer } = await homeport.queue('POST', path, body)
  expect(status).toBe(202)
  const { actionId } = answer as { actionId: string }
  const endsAt = performance.now() + lifeMs
  await waitFor(async () => performance.now() >= endsAt, { what: 'the kill', deadlineMs: DEADLINE_MS, everyMs: 5 })
  await homeport.kill('SIGKILL')
  const next = await startHomeport(homeport.place)
  const read = async () => (await next.queue('GET', `/v2/workflows/bulkActions/${actionId}`)).body as Action
  const isOver = async () => (await read()).state === 'finished'
  await waitFor(isOver, { what: 'the end of the action', deadlineMs: DEADLINE_MS, everyMs: 50 })
  return { next, actionId, outcomes: (await read()).outcomes }
}

it(
  'brings every run of a bulk cancel back where it stood, whenever the server is killed',
  async () => {
    const random = randomFrom(SEED)
    let homeport = await startHomeport()
    const client = new Client({ baseUrl: homeport.queueUrl, token: homeport.credentials.queueToken })
    const runs = Array.from({ length: RUNS }, () => ({ url: 'http://127.0.0.1:9/later', delay: '1h' as const }))
    await client.trigger(runs)
    const before = standingOf(homeport)
    expect(before.filter(({ state, due }) => state === 'RUN_STARTED' && /^\d+$/.test(due ?? ''))).toHaveLength(RUNS)
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      const cancel = { kind: 'cancelRuns', selector: {}, ratePerSecond: RATE }
      const cancelled = await through(homeport, '/v2/workflows/bulkActions', cancel, random() * LONGEST_LIFE_MS)
      expect(cancelled.outcomes).toMatchObject({ cancelled: RUNS, failed: 0 })
      const path = `/v2/workflows/bulkActions/${cancelled.actionId}/undo`
      const undone = await through(cancelled.next, path, { ratePerSecond: RATE }, random() * LONGEST_LIFE_MS)
      expect(undone.outcomes).toMatchObject({ undone: RUNS, failed: 0 })
      homeport = undone.next
      expect(standingOf(homeport)).toEqual(before)
    }
  },
  DEADLINE_MS * 4 + CYCLES * 10_000,
)
