import { Client as QueueClient, Receiver } from '@upstash/qstash'
import { Redis as RestClient } from '@upstash/redis'
import { Client as WorkflowClient } from '@upstash/workflow'
import { Redis } from 'iovalkey'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { DeliveriesOptions } from '../../src/testkit/testing.cjs'
import { type App, type AppRoutes, startApp } from '../../src/workflow/testing/harness.js'
import { startTestServer } from './load.js'

/** `homeport/testing` with the published clients, as the tests of an application use it. */

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

let homeport: Awaited<ReturnType<typeof startTestServer>>
let queue: QueueClient
let workflow: WorkflowClient
const apps: App[] = []

beforeAll(async () => {
  homeport = await startTestServer()
  const access = { baseUrl: homeport.env.QSTASH_URL, token: homeport.env.QSTASH_TOKEN }
  queue = new QueueClient(access)
  workflow = new WorkflowClient(access)
})
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()))
})
afterAll(() => homeport.stop())

async function serve(routes: AppRoutes): Promise<App> {
  const { QSTASH_URL: url, QSTASH_TOKEN: token, ...keys } = homeport.env
  const signingKeys = () => ({ current: keys.QSTASH_CURRENT_SIGNING_KEY, next: keys.QSTASH_NEXT_SIGNING_KEY })
  const app = await startApp({ url, token, signingKeys }, routes)
  apps.push(app)
  return app
}

/** What was delivered to an app of the test that is running. */
const deliveriesTo = (app: App, options: DeliveriesOptions = {}) => homeport.deliveries({ url: app.url, ...options })

/** Refuses the first requests with 500, and then answers 200. */
function refusing(times: number) {
  let seen = 0
  return async () => new Response('seen', { status: ++seen > times ? 200 : 500 })
}

describe('messages', () => {
  it('are delivered with a signature, and the test sees them', async () => {
    const app = await serve({ '/mail': refusing(0) })
    const { messageId } = await queue.publishJSON({ url: `${app.url}/mail`, body: { to: 'Ada' }, label: 'welcome' })
    const [delivery, ...others] = await deliveriesTo(app, { count: 1 })
    expect(others).toEqual([])
    expect(delivery).toMatchObject({
      messageId,
      kind: 'http',
      state: 'delivered',
      url: `${app.url}/mail`,
      method: 'POST',
      attempt: 1,
      body: '{"to":"Ada"}',
      status: 200,
      responseBody: 'seen',
      labels: ['welcome'],
    })
    const receiver = new Receiver({
      currentSigningKey: homeport.env.QSTASH_CURRENT_SIGNING_KEY,
      nextSigningKey: homeport.env.QSTASH_NEXT_SIGNING_KEY,
    })
    const { headers, body } = app.delivered[0] ?? expect.fail('nothing arrived')
    const signature = String(headers['upstash-signature'])
    expect(await receiver.verify({ signature, body, url: `${app.url}/mail` })).toBe(true)
  })

  it('with a delay wait for the clock, and their signature is good then', async () => {
    const app = await serve({ '/later': refusing(0) })
    await queue.publishJSON({ url: `${app.url}/later`, body: {}, delay: '2d' })
    await homeport.advanceTime(DAY_MS)
    expect(await deliveriesTo(app)).toEqual([])
    await homeport.advanceTime(DAY_MS)
    expect(await deliveriesTo(app)).toHaveLength(1)
    const { headers, body } = app.delivered[0] ?? expect.fail('nothing arrived')
    const { QSTASH_CURRENT_SIGNING_KEY: currentSigningKey, QSTASH_NEXT_SIGNING_KEY: nextSigningKey } = homeport.env
    const receiver = new Receiver({ currentSigningKey, nextSigningKey })
    expect(await receiver.verify({ signature: String(headers['upstash-signature']), body })).toBe(true)
  })

  it('are retried as the clock advances, until they end in the dead letter queue', async () => {
    const app = await serve({ '/down': refusing(100), '/shaky': refusing(2) })
    await queue.publishJSON({ url: `${app.url}/down`, body: {}, retries: 2 })
    await queue.publishJSON({ url: `${app.url}/shaky`, body: {}, retries: 5 })
    await homeport.advanceTime(DAY_MS)
    const attempts = await homeport.deliveries({ attempts: true, url: `${app.url}/down` })
    expect(attempts.map(({ state, status }) => [state, status])).toEqual([
      ['retry', 500],
      ['retry', 500],
      ['failed', 500],
    ])
    for (const [index, { retryAt }] of attempts.entries()) {
      const next = attempts[index + 1]
      // A retry is sent when it is due, and not at the end of the day.
      if (retryAt && next) expect(next.at.getTime() - retryAt.getTime()).toBeLessThan(30_000)
    }
    expect((await deliveriesTo(app)).map(({ url, attempt }) => [url, attempt])).toEqual([[`${app.url}/shaky`, 3]])
    expect((await queue.dlq.listMessages()).messages).toHaveLength(1)
  })

  it('of schedules come at every fire', async () => {
    const app = await serve({ '/report': refusing(0) })
    const { scheduleId } = await queue.schedules.create({ destination: `${app.url}/report`, cron: '0 * * * *' })
    await homeport.advanceTime(DAY_MS)
    await queue.schedules.delete(scheduleId)
    const deliveries = await deliveriesTo(app)
    expect(deliveries).toHaveLength(24)
    expect(new Set(deliveries.map((delivery) => delivery.scheduleId))).toEqual(new Set([scheduleId]))
    expect(deliveries.every(({ at }) => at.getUTCMinutes() === 0)).toBe(true)
  })

  it('are refused as duplicates until the memory of the queue ends', async () => {
    const app = await serve({ '/once': refusing(0) })
    const publish = () => queue.publishJSON({ url: `${app.url}/once`, body: {}, deduplicationId: 'the-one' })
    await publish()
    await homeport.advanceTime(9 * MINUTE_MS)
    await publish()
    expect(await deliveriesTo(app)).toHaveLength(1)
    await homeport.advanceTime(2 * MINUTE_MS)
    await publish()
    expect(await deliveriesTo(app)).toHaveLength(2)
  })

  it('held back by the rate of a flow-control key go out period by period', async () => {
    const app = await serve({ '/slow': refusing(0) })
    const flowControl = { key: 'slow', rate: 1, period: '1h' } as const
    for (const n of [1, 2, 3]) await queue.publishJSON({ url: `${app.url}/slow`, body: { n }, flowControl })
    expect(await deliveriesTo(app)).toHaveLength(1)
    await homeport.advanceTime(2 * 60 * MINUTE_MS)
    expect(await deliveriesTo(app)).toHaveLength(3)
  })

  it('that nobody answers end by their timeout', async () => {
    const hung: (() => void)[] = []
    const app = await serve({
      '/hang': () => new Promise((resolve) => void hung.push(() => resolve(new Response('late')))),
    })
    await queue.publishJSON({ url: `${app.url}/hang`, body: {}, timeout: 60, retries: 0 })
    await homeport.advanceTime(2 * MINUTE_MS, { holdMs: 50 })
    expect(await deliveriesTo(app, { attempts: true })).toMatchObject([
      { state: 'failed', error: 'no complete response within 60000 ms' },
    ])
    for (const answer of hung) answer()
  })

  it('that do not come are reported with what came instead', async () => {
    const app = await serve({ '/down': refusing(100) })
    await queue.publishJSON({ url: `${app.url}/down`, body: {} })
    await deliveriesTo(app)
    const error = await deliveriesTo(app, { count: 1, timeoutMs: 50 }).catch((reason: Error) => reason)
    expect(String(error)).toContain('0 of 1 deliveries')
    expect(String(error)).toContain(`${app.url}/down: attempt 1 retry (status 500), tried again`)
    expect(String(error)).toMatch(/advanceTime\(\d+\) sends it/)
  })
})

describe('workflows', () => {
  it('sleep for days and wait for events that never come, in moments', async () => {
    const steps: string[] = []
    const app = await serve({
      '/trial': {
        route: async (context) => {
          await context.run('welcome', () => void steps.push('welcome'))
          await context.sleep('trial', '14d')
          await context.run('remind', () => void steps.push('remind'))
          const { timeout } = await context.waitForEvent('payment', 'paid-7', { timeout: '30d' })
          await context.run('end', () => void steps.push(timeout ? 'never paid' : 'paid'))
        },
      },
    })
    const { workflowRunId } = await workflow.trigger({ url: `${app.url}/trial` })
    expect(await deliveriesTo(app)).not.toEqual([])
    expect(steps).toEqual(['welcome'])
    await homeport.advanceTime(14 * DAY_MS)
    expect(steps).toEqual(['welcome', 'remind'])
    await homeport.advanceTime(30 * DAY_MS)
    expect(steps).toEqual(['welcome', 'remind', 'never paid'])
    const { runs } = await workflow.logs({ workflowRunId })
    expect(runs[0]?.workflowState).toBe('RUN_SUCCESS')
  })
})

describe('a test server', () => {
  it('has databases for both clients', async () => {
    const { url, token, redisUrl, env } = await homeport.createDatabase()
    await new RestClient({ url, token, enableTelemetry: false }).set('greeting', 'hello')
    const client = new Redis(redisUrl)
    expect(await client.get('greeting')).toBe('hello')
    client.disconnect()
    expect(env).toEqual({ UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token, REDIS_URL: redisUrl })
  })

  it('is empty after a reset, at the same addresses and at the time of the machine', async () => {
    const app = await serve({ '/mail': refusing(0) })
    const { env } = homeport
    await homeport.reset()
    const database = await homeport.createDatabase('shop')
    await queue.urlGroups.addEndpoints({ name: 'all', endpoints: [{ url: app.url }] })
    await queue.publishJSON({ url: `${app.url}/mail`, body: {}, delay: '1h' })
    await homeport.advanceTime(60 * MINUTE_MS)
    await homeport.reset()
    expect(homeport.env).toEqual(env)
    expect(await homeport.deliveries({ attempts: true })).toEqual([])
    expect(await queue.urlGroups.list()).toEqual([])
    expect((await queue.logs()).logs).toEqual([])
    expect(Math.abs((await homeport.now()).getTime() - Date.now())).toBeLessThan(MINUTE_MS)
    expect((await homeport.createDatabase('shop')).id).not.toBe(database.id)
  })

  it('says what is wrong with its options and calls', async () => {
    const wrong = startTestServer({ options: { retentionMs: 'soon', dataDir: '/tmp', retentoin: 1 } })
    await expect(wrong).rejects.toThrow(/dataDir is chosen by startHomeport itself/)
    await expect(startTestServer({ options: { retentionMs: 'soon' } })).rejects.toThrow(/retentionMs .*"soon"/)
    await expect(homeport.advanceTime(-1)).rejects.toThrow(/advanceTime got -1/)
  })

  it('is one of many', async () => {
    const other = await startTestServer()
    expect(other.env.QSTASH_URL).not.toBe(homeport.env.QSTASH_URL)
    const app = await serve({ '/mail': refusing(0) })
    await queue.publishJSON({ url: `${app.url}/mail`, body: {} })
    await homeport.deliveries({ count: 1 })
    expect(await other.deliveries({ attempts: true })).toEqual([])
    await other.stop()
    await other.stop()
    await expect(other.now()).rejects.toThrow('This test server has been stopped.')
  })
})
