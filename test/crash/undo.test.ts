import { Client } from '@upstash/workflow'
import { afterAll, expect, it } from 'vitest'
import { randomFrom } from '../../src/base/testing/random.js'
import { startPostgresServer } from '../../src/store/testing/postgres-server.js'
import { atCleanup, type Place, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { withStore } from './queue-ledger-store.js'

/**
 * The server is killed with SIGKILL again and again, in the middle of a bulk cancel of runs or messages, of its undo, of the
 * pause and the resume of a workflow, and of restarts and of triggers with keys. The cancel selects by conditions on state,
 * age, attempts and payload. A request whose answer was lost is repeated.
 *
 * Then every run is where it stood: active, with exactly one pending delivery, due at its original time, and nothing of it
 * is parked. Every message is due when it was, and the messages of a paused queue wait. Each restart was made once, and one
 * run holds each debounce or singleton key.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
const RUNS = 600
/** Runs with another payload, which the cancel does not select. */
const OTHERS = 20
const SELECTOR = { state: ['delayed'], youngerThan: '1d', attemptsAtMost: 0, payload: '$.kind = "later"' }
/** The action takes about half a second, so that most kills hit it. */
const RATE = 1_200
const MAX_LIFE_MS = 500
/** A pause of as many runs takes about this long. */
const MAX_PAUSE_MS = 150
const MAX_RESTART_MS = 20
const DEADLINE_MS = 60_000
const URL = 'http://127.0.0.1:9/later'
const QUEUE = 'held'
const MESSAGES = 300
/** A campaign also cancels messages, runs on PostgreSQL, and kills the server at every chance. */
const IS_CAMPAIGN = CYCLES > 2
const STORES = IS_CAMPAIGN ? (['sqlite', 'postgres'] as const) : (['sqlite'] as const)
/** Chances to kill the server in a cycle. A short run takes two of them, by its seed. */
const CHANCES = 5
afterAll(() => console.log(`undo crash test: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${CYCLES}`))

interface Action {
  readonly state: string
  readonly outcomes: Readonly<Record<string, number>>
}

/** URL of the PostgreSQL that the servers use; absent for SQLite. */
let storeUrl: string | undefined

/** Whether to kill the server at this chance. */
let isKilled: () => boolean

const start = (place: Partial<Place> = {}): Promise<RunningHomeport> =>
  startHomeport({ ...place, ...(storeUrl !== undefined && { args: ['--store', storeUrl] }) })

/** The runs with their states, and what is pending for them. */
interface Standing {
  readonly run_id: string
  readonly state: string
  readonly due: number | null
  readonly paused: boolean
}

type Row = Omit<Standing, 'due' | 'paused'> & Readonly<Record<'due' | 'paused_at', number | string | null>>

/** One entry for each pending delivery of a run, and one for a run without any. */
async function standingOf({ place }: RunningHomeport): Promise<Standing[]> {
  const rows = await withStore({ ...place, store: storeUrl }, (access) =>
    access.rows<Row>(
      `SELECT run_id, runs.state, messages.next_at AS due, paused_at FROM runs
       LEFT JOIN messages ON messages.group_key = runs.seq AND messages.state = 'pending' ORDER BY run_id`,
    ),
  )
  return rows.map(({ run_id, state, due, paused_at }) => {
    return { run_id, state, due: due === null ? null : Number(due), paused: paused_at !== null }
  })
}

async function until(lifeMs: number): Promise<void> {
  const endsAt = performance.now() + lifeMs
  await waitFor(async () => performance.now() >= endsAt, { what: 'the kill', deadlineMs: DEADLINE_MS, everyMs: 5 })
}

async function ended(homeport: RunningHomeport, actionId: string): Promise<Action['outcomes']> {
  const read = async () => (await homeport.queue('GET', `/v2/workflows/bulkActions/${actionId}`)).body as Action
  const isOver = async () => (await read()).state === 'finished'
  await waitFor(isOver, { what: 'the end of the action', deadlineMs: DEADLINE_MS, everyMs: 50 })
  return (await read()).outcomes
}

/** Starts an action, kills the server at a random moment, and resolves with the next server when the action has ended. */
async function through(homeport: RunningHomeport, path: string, body: object, lifeMs: number) {
  const { status, body: answer } = await homeport.queue('POST', path, body)
  expect(status).toBe(202)
  const { actionId } = answer as { actionId: string }
  const next = await nextLife(homeport, lifeMs)
  return { next, actionId, outcomes: await ended(next, actionId) }
}

/** Says yes at two of the chances to kill, chosen at random. */
function killsTwice(random: () => number): () => boolean {
  const first = Math.floor(random() * CHANCES)
  const second = (first + 1 + Math.floor(random() * (CHANCES - 1))) % CHANCES
  let chance = 0
  return () => [first, second].includes(chance++ % CHANCES)
}

/** Kills the server at a random moment and starts it again, if this run takes this chance. */
async function nextLife(homeport: RunningHomeport, lifeMs: number): Promise<RunningHomeport> {
  if (!isKilled()) return homeport
  await until(lifeMs)
  await homeport.kill('SIGKILL')
  return await start(homeport.place)
}

type Request = readonly [path: string, body: object, headers?: Record<string, string>]

/** Sends requests, kills the server at a random moment, and repeats them. @returns the new answer to the first request. */
async function repeated(homeport: RunningHomeport, requests: readonly Request[], lifeMs: number) {
  const send = (to: RunningHomeport) =>
    Promise.all(requests.map(([path, body, headers]) => to.queue('POST', path, body, headers)))
  const first = send(homeport).catch(() => undefined)
  const next = await nextLife(homeport, lifeMs)
  await first
  const [answered] = await send(next)
  return { next, status: answered?.status, answer: answered?.body as { actionId: string; workflowRunId: string } }
}

type Message = Readonly<Record<'message_id' | 'state', string> & Record<'next_at' | 'queue', string | number | null>>

/** The messages of clients, with when they are due. */
async function messagesOf({ place }: RunningHomeport): Promise<Message[]> {
  const rows = await withStore({ ...place, store: storeUrl }, (access) =>
    access.rows<Message>(
      `SELECT message_id, state, next_at, queue FROM messages WHERE kind = 'http' ORDER BY message_id`,
    ),
  )
  return rows.map((row) => ({ ...row, next_at: Number(row.next_at) }))
}

/** Messages that are due later, and some of a queue that is paused, with a kill after the answer to its pause. */
async function withMessages(homeport: RunningHomeport): Promise<RunningHomeport> {
  expect((await homeport.queue('POST', `/v2/queues`, { queueName: QUEUE, parallelism: 2 })).status).toBe(200)
  expect((await homeport.queue('POST', `/v2/queues/${QUEUE}/pause`)).status).toBe(200)
  await homeport.kill('SIGKILL')
  const next = await start(homeport.place)
  const item = { destination: URL, headers: { 'Upstash-Delay': '1h' } }
  const batch = Array.from({ length: MESSAGES }, (_, index) => (index < 20 ? { destination: URL, queue: QUEUE } : item))
  expect((await next.queue('POST', '/v2/batch', batch)).status).toBe(200)
  return next
}

for (const kind of STORES) {
  it(
    `brings every run back where it stood, whenever the server is killed, on ${kind}`,
    async () => {
      const random = randomFrom(SEED)
      isKilled = IS_CAMPAIGN ? () => true : killsTwice(random)
      const server = kind === 'postgres' ? await startPostgresServer() : undefined
      if (server) atCleanup(() => server.stop())
      storeUrl = server && `${server.url}/postgres`
      let homeport = await start()
      const client = new Client({ baseUrl: homeport.queueUrl, token: homeport.credentials.queueToken })
      const runs = Array.from({ length: RUNS + OTHERS }, (_, index) => {
        return { url: URL, delay: '1h' as const, body: { kind: index < RUNS ? 'later' : 'other' } }
      })
      await client.trigger(runs)
      const before = await standingOf(homeport)
      expect(before.filter(({ state, due }) => state === 'RUN_STARTED' && due !== null)).toHaveLength(RUNS + OTHERS)
      if (IS_CAMPAIGN) homeport = await withMessages(homeport)
      const messages = await messagesOf(homeport)
      expect(messages.filter(({ state }) => state === 'held')).toHaveLength(IS_CAMPAIGN ? 20 : 0)
      for (let cycle = 0; cycle < CYCLES; cycle++) {
        const cancel = { kind: 'cancelRuns', selector: SELECTOR, ratePerSecond: RATE }
        const cancelled = await through(homeport, '/v2/workflows/bulkActions', cancel, random() * MAX_LIFE_MS)
        expect(cancelled.outcomes).toMatchObject({ cancelled: RUNS, failed: 0 })
        const path = `/v2/workflows/bulkActions/${cancelled.actionId}/undo`
        const undone = await through(cancelled.next, path, { ratePerSecond: RATE }, random() * MAX_LIFE_MS)
        expect(undone.outcomes).toMatchObject({ undone: RUNS, failed: 0 })
        expect(await originals(undone.next)).toEqual(before)
        homeport = IS_CAMPAIGN ? await throughMessages(undone.next, messages, random) : undone.next
        // Each kill costs the start of a server.
        if (cycle % 2 === 1) continue
        homeport = await throughPause(homeport, before[cycle]?.run_id ?? '', `wfr_restarted_${cycle}`, random)
        expect(await originals(homeport)).toEqual(before)
      }
    },
    DEADLINE_MS * 4 + CYCLES * 60_000,
  )
}

/** Cancels the messages, those of the paused queue too, and brings them back, with a kill during each. */
async function throughMessages(homeport: RunningHomeport, before: readonly Message[], random: () => number) {
  const cancel = { kind: 'cancelMessages', selector: {}, ratePerSecond: RATE }
  const cancelled = await through(homeport, '/v2/workflows/bulkActions', cancel, random() * MAX_PAUSE_MS)
  expect(cancelled.outcomes).toMatchObject({ cancelled: MESSAGES, failed: 0 })
  const path = `/v2/workflows/bulkActions/${cancelled.actionId}/undo`
  const undone = await through(cancelled.next, path, { ratePerSecond: RATE }, random() * MAX_PAUSE_MS)
  expect(undone.outcomes).toMatchObject({ undone: MESSAGES, failed: 0 })
  expect(await messagesOf(undone.next)).toEqual(before)
  return undone.next
}

/** Pauses the workflow, restarts a run, and resumes the workflow, with a kill during each. */
async function throughPause(homeport: RunningHomeport, original: string, runId: string, random: () => number) {
  const workflow = { workflowUrl: URL }
  const paused = await repeated(homeport, [['/v2/workflows/pause', workflow]], random() * MAX_PAUSE_MS)
  await ended(paused.next, paused.answer.actionId)
  await waitForAll(paused.next, true)
  const isParked = ({ due }: Standing): boolean => due === null || due > 1e15
  expect((await standingOf(paused.next)).filter((run) => !isParked(run))).toEqual([])
  const headers = { 'upstash-workflow-runid': runId, 'upstash-delay': '1h' }
  const restart = [`/v2/workflows/runs/${original}/restart`, { fromStep: 1 }, headers] as const
  const keyed = await withKeys(paused.next, runId)
  const restarted = await repeated(paused.next, [restart, ...keyed.requests], random() * MAX_RESTART_MS)
  expect(restarted).toMatchObject({ status: 200, answer: { workflowRunId: runId } })
  const made = (await standingOf(restarted.next)).filter(({ run_id }) => run_id === runId)
  expect(made).toMatchObject([{ state: 'RUN_STARTED', paused: true }])
  const holders = (await standingOf(restarted.next)).filter(({ run_id }) => run_id.includes('keyed'))
  const active = holders.filter(({ state }) => state === 'RUN_STARTED')
  expect(active.map(({ run_id }) => run_id)).toEqual(keyed.holders)
  for (const id of [runId, ...keyed.holders]) await restarted.next.queue('DELETE', `/v2/workflows/runs/${id}`)
  const resumed = await repeated(restarted.next, [['/v2/workflows/resume', workflow]], random() * MAX_PAUSE_MS)
  await ended(resumed.next, resumed.answer.actionId)
  await waitForAll(resumed.next, false)
  return resumed.next
}

/**
 * Triggers runs with a debounce and a singleton key. @returns the next triggers with the same keys, and the runs that must hold
 * the keys after them.
 */
async function withKeys(homeport: RunningHomeport, name: string) {
  const debounce = { 'homeport-debounce': name, 'homeport-debounce-delay': '1h' }
  const singleton = { 'homeport-singleton': name, 'homeport-singleton-mode': 'skip', 'homeport-priority': '60' }
  const trigger = (id: string, keys: object): Request => [
    `/v2/trigger/${URL}`,
    {},
    { ...keys, 'upstash-workflow-runid': `wfr_keyed_${id}_${name}` },
  ]
  const before = [trigger('a', debounce), trigger('b', debounce), trigger('c', singleton)]
  for (const [path, body, headers] of before)
    expect((await homeport.queue('POST', path, body, headers)).status).toBe(200)
  const holders = [`wfr_keyed_c_${name}`, `wfr_keyed_d_${name}`]
  return { requests: [trigger('d', debounce), trigger('e', singleton)], holders }
}

/** The standing of the runs that the test triggered first. */
const originals = async (homeport: RunningHomeport): Promise<Standing[]> =>
  (await standingOf(homeport)).filter(({ run_id }) => !/restarted|keyed/.test(run_id))

/** Waits for the runs instead of an action: of a repeated request, the action of the first one may change the runs. */
async function waitForAll(homeport: RunningHomeport, paused: boolean): Promise<void> {
  const isSo = async () =>
    (await standingOf(homeport)).every((run) => run.state !== 'RUN_STARTED' || run.paused === paused)
  await waitFor(isSo, { what: paused ? 'every pause' : 'every resume', deadlineMs: DEADLINE_MS, everyMs: 50 })
}
