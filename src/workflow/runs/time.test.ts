import { WorkflowRetryAfterError } from '@upstash/workflow'
import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { pendingOf } from '../testing/harness.js'
import { useWorkflows } from '../testing/suite.js'

const HOUR_MS = 3_600_000

describe('runs and time', () => {
  const clock = new ManualClock(Date.now())
  const suite = useWorkflows({ clock })
  const { host } = suite

  /** Waits until all pending messages of a run are due later; returns the earliest time. */
  const dueAt = (runId: string): Promise<number> =>
    waitFor(
      async () => {
        const times = (await pendingOf(suite.store, runId)).map((message) => message.next_at)
        return times.length > 0 && times.every((time) => time > clock.now()) && Math.min(...times)
      },
      { what: `run ${runId} to wait` },
    )
  const advanceTo = (time: number) => clock.advance(time - clock.now())

  it('delivers nothing before a sleep ends', async () => {
    const app = await host({
      '/sleep': {
        route: async (context) => {
          await context.sleep('short', '1h')
          await context.sleepUntil('until', context.workflowRunCreatedAt / 1_000 + 3 * 3_600)
          return 'awake'
        },
      },
    })
    const started = clock.now()
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/sleep` })
    expect((await dueAt(workflowRunId)) - started).toBe(HOUR_MS)
    advanceTo(started + HOUR_MS - 1)
    expect(await app.allDelivered()).toHaveLength(1)
    clock.advance(1)
    const second = await waitFor(
      async () => {
        const time = await dueAt(workflowRunId)
        return time > clock.now() + HOUR_MS && time
      },
      { what: 'the second sleep' },
    )
    // SDKs send it in whole seconds.
    expect(Math.abs(second - started - 3 * HOUR_MS)).toBeLessThanOrEqual(1_000)
    expect(await app.allDelivered()).toHaveLength(2)
    advanceTo(second)
    const run = await suite.service.ended(workflowRunId)
    expect(run).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '"awake"' })
    expect(run.steps.map(({ steps }) => steps[0]?.stepType)).toEqual(['Initial', 'SleepFor', 'SleepUntil'])
  })

  it('delays a run', async () => {
    const app = await host({ '/later': { route: async (context) => context.run('one', () => 'done') } })
    const started = clock.now()
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/later`, delay: '2h' })
    expect((await dueAt(workflowRunId)) - started).toBe(2 * HOUR_MS)
    expect(app.delivered).toHaveLength(0)
    clock.advance(2 * HOUR_MS)
    expect(await suite.service.ended(workflowRunId)).toMatchObject({ workflowRunResponse: '"done"' })
  })

  it.each([
    ['3d' as const, 72 * HOUR_MS],
    [0.5, 500],
  ])('ends a wait for an event at the deadline, after %s', async (timeout, afterMs) => {
    const app = await host({
      '/wait': { route: async (context) => (await context.waitForEvent('wait', 'never', { timeout })).timeout },
    })
    const started = clock.now()
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/wait` })
    const deadline = await dueAt(workflowRunId)
    expect(deadline - started).toBe(afterMs)
    advanceTo(deadline)
    expect(await suite.service.ended(workflowRunId)).toMatchObject({ workflowRunResponse: 'true' })
    expect(await suite.service.client.getWaiters({ eventId: 'never' })).toEqual([])
  })

  it('keeps an event that is sent to a run until the run waits for it', async () => {
    const app = await host({
      '/late': {
        route: async (context) => {
          await context.sleep('first', '1h')
          return (await context.waitForEvent('wait', 'early', { timeout: '1h' })).eventData
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/late` })
    await suite.service.client.notify({ eventId: 'early', eventData: 'bird', workflowRunId })
    advanceTo(await dueAt(workflowRunId))
    expect(await suite.service.ended(workflowRunId)).toMatchObject({ workflowRunResponse: '"bird"' })
  })

  it('delays a retry as long as the program asks', async () => {
    let tries = 0
    const app = await host({
      '/busy': {
        route: async (context) =>
          context.run('one', () => {
            if (++tries === 1) throw new WorkflowRetryAfterError('busy', 3_600)
            return 'free'
          }),
      },
    })
    const started = clock.now()
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/busy`, retries: 1 })
    expect((await dueAt(workflowRunId)) - started).toBe(HOUR_MS)
    clock.advance(HOUR_MS)
    expect(await suite.service.ended(workflowRunId)).toMatchObject({ workflowRunResponse: '"free"' })
  })

  it('runs parallel branches of every kind and continues once', async () => {
    let continued = 0
    const app = await host({
      '/third': async () => new Response('third', { headers: { 'content-type': 'text/plain' } }),
      '/parallel': {
        route: async (context) => {
          const results = await Promise.all([
            context.run('run', () => 'ran'),
            context.sleep('sleep', '1h'),
            context.call('call', { url: `${app.url}/third` }),
            context.run('other', () => 'other'),
          ])
          await context.run('after', () => {
            continued++
          })
          return results.map((result) => (typeof result === 'object' ? result.body : (result ?? null)))
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/parallel` })
    // All other branches have ended by then.
    advanceTo(await dueAt(workflowRunId))
    const run = await suite.service.ended(workflowRunId)
    expect(run).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '["ran",null,"third","other"]' })
    expect(continued).toBe(1)
    // 1 first + 4 plans + 4 results + 1 result of the call + 1 step after.
    expect((await app.allDelivered()).filter(({ path }) => path === '/parallel')).toHaveLength(11)
    expect(run.steps.map(({ type, steps }) => [type, steps.map((step) => step.stepName)])).toEqual([
      ['sequential', ['init']],
      ['parallel', ['run', 'sleep', 'call', 'other']],
      ['sequential', ['after']],
    ])
  })

  it('resumes everything that was pending: a wait, a sleep, an invoked run and a parallel branch', async () => {
    let isBroken = true
    let letFail = (): void => undefined
    const othersAreActive = new Promise<void>((resolve) => {
      letFail = resolve
    })
    const app = await host({
      '/child': { route: async (context) => (await context.waitForEvent('child', 'end-child')).eventData },
      '/branches': {
        route: async (context) =>
          Promise.all([
            context.run('weak', async () => {
              // All other branches are active before this one fails for good.
              await othersAreActive
              if (isBroken) throw new Error('broken')
              return 'well'
            }),
            context.waitForEvent('wait', 'resumed-event').then((answer) => answer.eventData),
            context.sleep('sleep', '1h').then(() => 'slept'),
            context
              .invoke('child', { workflow: { workflowId: 'child', routeFunction: async () => '' } as never, body: '' })
              .then(({ body }) => body),
          ]),
      },
    })
    const { client } = suite.service
    const started = clock.now()
    const { workflowRunId } = await client.trigger({ url: `${app.url}/branches`, retries: 0 })
    await waitFor(async () => (await client.getWaiters({ eventId: 'end-child' })).length === 1, { what: 'the child' })
    await waitFor(async () => (await client.getWaiters({ eventId: 'resumed-event' })).length === 1, {
      what: 'the wait',
    })
    letFail()
    const failed = await suite.service.ended(workflowRunId)
    expect(await client.getWaiters({ eventId: 'resumed-event' })).toEqual([])
    // The child ends while its parent is dead.
    await client.notify({ eventId: 'end-child', eventData: 'grown' })
    isBroken = false
    const resumed = await client.dlq.resume({ dlqId: failed.dlqId ?? '' })
    await client.notify({ eventId: 'resumed-event', eventData: 'came' })
    // Only the sleep is left, with its original time.
    advanceTo(await dueAt(resumed.workflowRunId))
    expect(clock.now()).toBe(started + HOUR_MS)
    const run = await suite.service.ended(resumed.workflowRunId)
    expect(JSON.parse(run.workflowRunResponse ?? 'null')).toEqual(['well', 'came', 'slept', 'grown'])
  })

  it('respects the rate limit of the trigger', async () => {
    const app = await host({ '/limited': { route: async (context) => context.run('one', () => 'ran') } })
    const flowControl = { key: 'rate', rate: 2, period: '1h' } as const
    const trigger = () => suite.service.client.trigger({ url: `${app.url}/limited`, flowControl })
    const { workflowRunId: first } = await trigger()
    // Both deliveries of a period are those of the first run: its start, and the list with its step.
    await suite.service.ended(first)
    await app.allDelivered()
    const { workflowRunId: second } = await trigger()
    const held = await suite.service.when(
      second,
      'flow control',
      ({ because }) => because?.[0]?.kind === 'flow-control',
    )
    const limit = { rate: 2, periodMs: HOUR_MS, until: expect.any(Number) }
    expect(held.because).toMatchObject([{ flowControlKey: 'rate', place: 1, paused: false, ...limit }])
    expect(await app.allDelivered()).toHaveLength(2)
    clock.advance(HOUR_MS)
    expect(await suite.service.ended(second)).toMatchObject({ workflowRunResponse: '"ran"' })
  })

  it('respects the parallelism of the trigger', async () => {
    const open: (() => void)[] = []
    const app = await host({
      '/narrow': {
        route: async (context) => context.run('one', () => new Promise<string>((done) => open.push(() => done('ran')))),
      },
    })
    const flowControl = { key: 'narrow', parallelism: 1 }
    const runs = await suite.service.client.trigger([1, 2, 3].map(() => ({ url: `${app.url}/narrow`, flowControl })))
    await waitFor(() => open.length === 1, { what: 'the first step' })
    const [, , third] = runs
    const held = await suite.service.when(
      third?.workflowRunId ?? '',
      'its place',
      ({ because }) => because?.some(({ kind }) => kind === 'flow-control') ?? false,
    )
    expect(held.because).toMatchObject([{ place: 3, parallelism: 1 }])
    expect(open).toHaveLength(1)
    for (let step = 0; step < 3; step++) {
      await waitFor(() => open.length === 1, { what: 'the next step' })
      open.shift()?.()
    }
    for (const { workflowRunId } of runs) await suite.service.ended(workflowRunId)
  })
})
