import { beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { yieldToEventLoop } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import { QueueMeter, silentLogger } from '../../telemetry/index.js'
import * as schedules from '../transactions/schedules.js'
import { Scheduler } from './scheduler.js'

const PAUSE_MS = 1_000
const MINUTE_MS = 60_000
const KEY = { accountId: 'acc', scheduleId: 'mine' }

/** What a store answers; each test replaces what it needs. */
interface Answers {
  due: () => readonly schedules.DueSchedule[]
  isStillDue: () => boolean
  fire: (fire: schedules.Fire) => unknown
  next: () => number | null
  ahead: (after: typeof KEY) => readonly schedules.AheadRow[]
}

let clock: ManualClock
let meter: QueueMeter
let isLeader: boolean
let scheduler: Scheduler
let answers: Answers
/** Headers of the schedule. A fire with `no JSON` cannot be drafted. */
let headers: string
let due: number
let looks: number
let tries: number
let fired: schedules.Fire[]

beforeEach(() => {
  clock = new ManualClock()
  meter = new QueueMeter()
  isLeader = true
  headers = '{}'
  ;[due, looks, tries, fired] = [clock.now(), 0, 0, []]
  answers = {
    due: () => [],
    isStillDue: () => true,
    fire: () => ({ offers: [], dropped: [] }),
    next: () => null,
    ahead: () => [],
  }
  const run = async (operation: unknown, args: never) => {
    if (operation === schedules.due) {
      looks++
      return answers.due()
    }
    if (operation === schedules.ifDue) {
      if (!answers.isStillDue()) return undefined
      tries++
      const row = { account_id: KEY.accountId, schedule_id: KEY.scheduleId, cron: '* * * * *', next_at: due }
      return { ...row, created_at: 1, last_at: null, destination: 'http://x.test', headers, body: null, queue: null }
    }
    if (operation === schedules.fire) {
      const result = answers.fire(args)
      fired.push(args)
      return result
    }
    if (operation === schedules.next) return answers.next()
    return operation === schedules.ahead ? answers.ahead(args) : []
  }
  scheduler = new Scheduler({
    store: { run } as unknown as Store,
    clock,
    logger: silentLogger,
    drop: async () => undefined,
    offer: () => undefined,
    meter,
    partitionFor: () => undefined,
    isLeader: () => isLeader,
    isHeld: () => false,
    dailyMessagesOf: () => undefined,
  })
})

const dueSchedule = { ...KEY, target: 'http://x.test', bytes: 1 }

/** Lets everything happen that needs no time to pass. */
async function settle(): Promise<void> {
  for (let round = 0; round < 20; round++) await yieldToEventLoop()
}

/** Lets the pauses after failures pass until the condition holds. */
async function until(condition: () => boolean, what: string): Promise<void> {
  for (let pauses = 0; !condition() && pauses < 100; pauses++) {
    await settle()
    if (!condition()) clock.advance(PAUSE_MS)
  }
  expect(condition(), what).toBe(true)
}

it('the scheduler does not count the failures of a deleted schedule for a new one with the same id', async () => {
  let isThere = true
  let looksWithout = 0
  headers = 'no JSON'
  answers.due = () => {
    if (!isThere) looksWithout++
    return isThere ? [dueSchedule] : []
  }
  await scheduler.start()
  await until(() => tries === 4, 'all tries but the last')
  isThere = false
  await until(() => looksWithout > 0, 'a look without it')
  isThere = true
  scheduler.fireDue()
  await until(() => fired.length > 0, 'the fire to be skipped')
  expect([tries, fired[0]?.error]).toEqual([9, expect.stringContaining('cannot be stored')])
  await waitFor(() => meter.failedFires === 1, { what: 'the count' })
  expect(meter.fires).toBe(0)
  await scheduler.stop()
})

it('the scheduler skips a fire only after five failures in a row', async () => {
  answers.due = () => [dueSchedule]
  answers.fire = ({ error }) => {
    if (tries % 5 !== 0 && error === null) throw new Error('a defect')
    return { offers: [], dropped: [] }
  }
  await scheduler.start()
  await until(() => fired.length === 3, 'three fires')
  expect([tries, fired.map(({ error }) => error)]).toEqual([15, [null, null, null]])
  await scheduler.stop()
})

it('the scheduler skips no fire because the store is away for long', async () => {
  answers.due = () => [dueSchedule]
  answers.fire = ({ error }) => {
    if (tries <= 12 && error === null) throw new HomeportError('store_unavailable', {})
    return { offers: [], dropped: [] }
  }
  await scheduler.start()
  await until(() => fired.length > 0, 'the fire')
  expect([tries, fired[0]?.error]).toEqual([13, null])
  await scheduler.stop()
})

it('the scheduler fires on at once when more are due than one read brings', async () => {
  const page = Array.from({ length: 2_000 }, () => dueSchedule)
  answers.due = () => (looks === 1 ? page : [])
  answers.isStillDue = () => false
  answers.next = () => clock.now() + MINUTE_MS
  await scheduler.start()
  await waitFor(() => looks === 2, { what: 'both reads' })
  await scheduler.stop()
})

it('the scheduler looks every 15 seconds, with one timer, however often it is called', async () => {
  answers.next = () => clock.now() + 60 * MINUTE_MS
  await scheduler.start()
  await settle()
  for (let call = 0; call < 3; call++) {
    scheduler.fireDue()
    await settle()
  }
  expect([looks, clock.pendingTimers]).toEqual([4, 1])
  clock.advance(14_999)
  await settle()
  expect(looks).toBe(4)
  clock.advance(1)
  await settle()
  expect(looks).toBe(5)
  await scheduler.stop()
  expect(clock.pendingTimers).toBe(0)
})

it('the scheduler searches the next fire after the one that is due, although its clock was set back', async () => {
  answers.due = () => (fired.length === 0 ? [dueSchedule] : [])
  due = Math.ceil(clock.now() / MINUTE_MS) * MINUTE_MS
  await scheduler.start()
  await waitFor(() => fired.length === 1, { what: 'the fire' })
  expect(fired[0]).toMatchObject({ dueAt: due, nextAt: due + MINUTE_MS })
  await scheduler.stop()
})

it('the scheduler checks all stored fires after its clock was set, page by page', async () => {
  const pages: string[] = []
  answers.ahead = ({ scheduleId }) => {
    pages.push(scheduleId)
    const from = pages.length * 200
    const rows = Array.from({ length: pages.length < 3 ? 200 : 7 }, (_, n) => ({
      account_id: KEY.accountId,
      schedule_id: `s${from + n}`,
      cron: '* * * * *',
      last_at: null,
      next_at: 0,
    }))
    return rows
  }
  await scheduler.start()
  await waitFor(() => looks === 1, { what: 'a look' })
  expect(pages).toEqual(['', 's399', 's599'])
  await scheduler.stop()
})

it('the scheduler checks the stored fires again after the store was away', async () => {
  let checks = 0
  answers.ahead = () => {
    if (++checks === 1) throw new HomeportError('store_unavailable', {})
    return []
  }
  await scheduler.start()
  await until(() => looks === 1, 'a look')
  expect(checks).toBe(2)
  await scheduler.stop()
})

it('the scheduler does not fire what it has read when its node is no longer the leader', async () => {
  answers.due = () => [dueSchedule]
  answers.isStillDue = () => {
    isLeader = false
    return true
  }
  await scheduler.start()
  await waitFor(() => tries === 1, { what: 'the read' })
  await settle()
  expect(fired).toEqual([])
  await scheduler.stop()
})

it('the scheduler has stored its fires when it has stopped', async () => {
  let store = (_: unknown): void => undefined
  const storing = new Promise((resolve) => (store = resolve))
  answers.due = () => [dueSchedule]
  answers.fire = () => storing
  await scheduler.start()
  await waitFor(() => fired.length === 1, { what: 'the fire' })
  let isStopped = false
  const stopped = scheduler.stop().then(() => (isStopped = true))
  await settle()
  expect(isStopped).toBe(false)
  store({ offers: [], dropped: [] })
  await stopped
})
