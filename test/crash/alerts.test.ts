import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { pause, systemClock } from '../../src/base/index.js'
import { randomFrom } from '../../src/base/testing/random.js'
import type { Alert, AlertChannel } from '../../src/contract/alerts/alerts.js'
import type { Silence } from '../../src/contract/alerts/silences.js'
import { type Received, startSink } from '../../src/queue/testing/sink.js'
import {
  atCleanup,
  bundleProgram,
  type Place,
  type RunningHomeport,
  startHomeport,
  THREADS,
  waitFor,
} from '../support/index.js'
import { deadMessages } from './queue-ledger-store.js'

/**
 * The server is killed with SIGKILL at random moments while messages die, a workflow fails and a schedule cannot publish,
 * with a clock that runs 60 times as fast. Then every dead letter has been counted by exactly one alert, every alert that
 * was to be sent has arrived, grouped and within the limits, and history, channels and silences are still there.
 * `HOMEPORT_CRASH_SEED` and `HOMEPORT_CRASH_CYCLES` as in the other crash tests.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
const SPEED = 60
const MIN_LIFE_MS = 100
const MAX_LIFE_MS = 1_500
const DEADLINE_MS = 60_000 + CYCLES * 2_000
/** In the time of the server. */
const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000]
const FEW_AN_HOUR = 3

const from = Date.now()
let summary = ''
afterAll(() =>
  console.log(`alerts crash test: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${CYCLES}; ${summary}`),
)

const start = (program: string, place?: Place): Promise<RunningHomeport> =>
  startHomeport({
    ...place,
    program,
    env: { HOMEPORT_TEST_CLOCK_SPEED: String(SPEED), HOMEPORT_TEST_CLOCK_FROM: String(from) },
  })

/** Time between two publishes. */
const BETWEEN_MS = CYCLES > 2 ? 0 : 30

/** Publishes what dies until the server is gone. */
async function load(homeport: RunningHomeport, urls: readonly string[]): Promise<void> {
  const publish = (url: string) => homeport.queue('POST', `/v2/publish/${url}`, {}, { 'upstash-retries': '0' })
  for (let turn = 0; ; turn++) {
    const isThere = await publish(urls[turn % urls.length] ?? '').then(
      ({ status }) => status < 300,
      () => false,
    )
    if (!isThere) return
    await pause(systemClock, BETWEEN_MS)
  }
}

async function historyOf(homeport: RunningHomeport): Promise<Alert[]> {
  const found: Alert[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const path: string = `/v2/alerts/history?count=100${cursor === '' ? '' : `&cursor=${cursor}`}`
    const page = (await homeport.api('GET', path)).body as { alerts: Alert[]; cursor?: string }
    found.push(...page.alerts)
    cursor = page.cursor
  }
  return found
}

const sumOf = (alerts: readonly Pick<Alert, 'count'>[]): number => alerts.reduce((sum, { count }) => sum + count, 0)

/** The notifications that reached a channel, without repeated deliveries. */
function noticesAt(target: string, received: readonly Received[]): Alert[] {
  const messages = new Map<unknown, string>()
  for (const request of received) {
    if (request.target === target) messages.set(request.headers['upstash-message-id'], request.body)
  }
  return [...messages.values()].map((body) => JSON.parse(Buffer.from(body, 'latin1').toString()) as Alert)
}

it(
  'counts every event once, and sends what was to be sent, whenever the server is killed',
  async () => {
    const random = randomFrom(SEED)
    const sink = await startSink()
    atCleanup(() => sink.close())
    sink.answer = ({ target }) => (target === '/dead' ? { status: 500 } : {})
    const { port } = new URL(sink.url)
    const [loud, quiet] = [`127.0.0.1:${port}`, `localhost:${port}`]
    const folder = await bundleProgram({ 'fast-server': ['test/crash/fast-server.ts'], ...THREADS })
    const program = join(folder, 'fast-server.js')
    let homeport = await start(program)
    const channel = { name: 'all', url: `${sink.url}/all`, group_minutes: 1, hourly_limit: 1_000 }
    await homeport.api('POST', '/v2/alerts/channels', channel)
    const few = { name: 'few', url: `${sink.url}/few`, hourly_limit: FEW_AN_HOUR, kinds: ['dead_letter'] }
    await homeport.api('POST', '/v2/alerts/channels', few)
    const until = Math.floor(from / 1000) + 300 * 86_400
    await homeport.api('POST', '/v2/alerts/silences', { kind: 'dead_letter', subject: quiet, until })
    await homeport.queue('POST', '/v2/topics/gone/endpoints', { endpoints: [{ url: `${sink.url}/fine` }] })
    await homeport.queue('POST', '/v2/schedules/gone', undefined, { 'upstash-cron': '* * * * *' })
    await homeport.queue('DELETE', '/v2/topics/gone')

    for (let cycle = 0; cycle < CYCLES; cycle++) {
      const loading = load(homeport, [`http://${loud}/dead`, `http://${quiet}/dead`])
      const endsAt = performance.now() + MIN_LIFE_MS + random() * (MAX_LIFE_MS - MIN_LIFE_MS)
      // A slow machine may need all of the first life until something of each kind is there.
      const hasBegun = () => [loud, quiet].every((host) => sink.received.some(({ headers }) => headers.host === host))
      const isOver = () => performance.now() >= endsAt && hasBegun()
      await waitFor(isOver, { what: 'the moment of the kill', deadlineMs: DEADLINE_MS, everyMs: 1 })
      await homeport.kill('SIGKILL')
      await loading
      homeport = await start(program, homeport.place)
    }

    const settled = async () => {
      const dead = await deadMessages(homeport.place)
      const counted = (await historyOf(homeport)).filter(({ kind }) => kind === 'dead_letter')
      return dead.pending === 0 && sumOf(counted) >= dead.dead && counted.every(({ state }) => state !== 'pending')
    }
    await waitFor(settled, { what: 'every dead letter to be in an alert', deadlineMs: DEADLINE_MS })
    const missed = async (status: string) =>
      (await historyOf(homeport)).filter(
        (one) => one.kind === 'schedule_missed' && one.status === status && one.state === 'sent',
      )
    await waitFor(async () => (await missed('firing')).length > 0, {
      what: 'the alert of the schedule',
      deadlineMs: DEADLINE_MS,
    })
    await homeport.queue('POST', '/v2/topics/gone/endpoints', { endpoints: [{ url: `${sink.url}/fine` }] })
    const [end] = await waitFor(async () => (await missed('resolved')).length > 0 && missed('resolved'), {
      what: 'its end',
      deadlineMs: DEADLINE_MS,
    })

    const { dead } = await deadMessages(homeport.place)
    const history = await historyOf(homeport)
    const letters = history.filter(({ kind }) => kind === 'dead_letter')
    expect(sumOf(letters)).toBe(dead)
    expect(new Set(letters.map(({ subject, state }) => `${subject} ${state}`))).toEqual(
      new Set([`${loud} sent`, `${quiet} silenced`]),
    )
    const loudCount = sumOf(letters.filter(({ subject }) => subject === loud))
    const lettersAt = (target: string) => noticesAt(target, sink.received).filter(({ kind }) => kind === 'dead_letter')
    await waitFor(() => sumOf(lettersAt('/all')) >= loudCount, { what: 'every notification', deadlineMs: DEADLINE_MS })
    expect(lettersAt('/all').every(({ subject }) => subject === loud)).toBe(true)
    expect(sumOf(lettersAt('/all'))).toBe(loudCount)
    const passedMs = (Date.now() - from) * SPEED
    expect(lettersAt('/all').length).toBeLessThanOrEqual(1 + passedMs / MINUTE_MS)
    expect(lettersAt('/few').length).toBeLessThanOrEqual(FEW_AN_HOUR * Math.ceil(1 + passedMs / HOUR_MS))
    const ofSchedule = () => noticesAt('/all', sink.received).filter(({ kind }) => kind === 'schedule_missed')
    await waitFor(() => ofSchedule().some(({ status }) => status === 'resolved'), { what: 'the end of the state' })
    const notified = ofSchedule()
      .filter(({ episode_id }) => episode_id === end?.episode_id)
      .map(({ status }) => status)
    expect(notified.filter((status) => status === 'resolved')).toHaveLength(1)
    expect(notified).toContain('firing')

    const channels = (await homeport.api('GET', '/v2/alerts/channels')).body as AlertChannel[]
    expect(channels.map(({ name }) => name)).toEqual(['all', 'few'])
    const silences = (await homeport.api('GET', '/v2/alerts/silences')).body as Silence[]
    expect(silences).toMatchObject([{ subject: quiet, until }])
    summary = `${dead} dead letters in ${letters.length} alerts, ${lettersAt('/all').length} notifications`
  },
  DEADLINE_MS * 3,
)
