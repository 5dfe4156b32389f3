import { expect, it, vi } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { JumpingClock } from '../testing/harness.js'
import { setQueueScenes } from '../testing/scene.js'
import * as schedules from '../transactions/schedules.js'

const MINUTE = 60_000
/** A body for messages that are only counted. */
const LATE = { delay: '7d' } as const
const MOST = 5
const T = Date.parse('2026-01-01T00:00:30Z')

describeOnSampledStore('schedules', (openStore) => {
  let clock: ManualClock
  let timeOfDay: JumpingClock
  const scene = setQueueScenes(openStore, {
    settings: { accountSchedules: MOST },
    clock: () => {
      clock = new ManualClock(T)
      timeOfDay = new JumpingClock(clock)
      return timeOfDay
    },
    tidy: async ({ client }) => {
      for (const { scheduleId } of await client.schedules.list()) await client.schedules.delete(scheduleId)
      await client.messages.cancel({ all: true })
    },
  })
  const fires = async () => (await scene.client.logs({ filter: { state: 'CREATED' } })).logs.length
  const nextIs = (scheduleId: string, at: number) =>
    waitFor(async () => (await scene.client.schedules.get(scheduleId)).nextScheduleTime === at, {
      what: 'the next fire',
    })

  it('refuses an expression without any fire', async () => {
    const never = scene.client.schedules.create({ destination: 'https://e.test/', cron: '0 0 30 2 *' })
    await expect(never).rejects.toThrow(/there is no such day/)
  })

  it('shows a schedule as it was made, without control and telemetry headers', async () => {
    const { scheduleId } = await scene.client.schedules.create({
      destination: 'https://e.test/p?x=1',
      cron: ' CRON_TZ=Europe/Berlin */5 * * * * ',
      body: '{"a":1}',
      headers: { 'X-Mine': 'yes' },
      retries: 5,
      delay: '90s',
      timeout: '1m',
      callback: 'https://cb.test/',
      failureCallback: 'https://fail.test/',
      method: 'PUT',
      queueName: 'q',
      label: 'red',
      flowControl: { key: 'k', parallelism: 2 },
      retryDelay: '1000',
    })
    const schedule = await scene.client.schedules.get(scheduleId)
    expect(schedule).toMatchObject({
      scheduleId: expect.stringMatching(/^scd_/),
      cron: 'CRON_TZ=Europe/Berlin */5 * * * *',
      destination: 'https://e.test/p?x=1',
      createdAt: T,
      method: 'PUT',
      body: '{"a":1}',
      retries: 5,
      delay: 90,
      timeout: 60_000,
      callback: 'https://cb.test/',
      failureCallback: 'https://fail.test/',
      queueName: 'q',
      label: 'red',
      flowControlKey: 'k',
      parallelism: 2,
      retryDelayExpression: '1000',
      isPaused: false,
      nextScheduleTime: Date.parse('2026-01-01T00:05:00Z'),
    })
    expect(schedule.header).toEqual({ 'Content-Type': ['application/json'], 'X-Mine': ['yes'] })
  })

  it.each([
    [{ 'Homeport-Priority': '30' }, { priority: 30 }],
    [
      { 'Homeport-Singleton': 's', 'Homeport-Singleton-Mode': 'cancel' },
      { singletonKey: 's', singletonMode: 'cancel' },
    ],
    [
      { 'Homeport-Debounce': 'd', 'Homeport-Debounce-Delay': '1500ms', 'Homeport-Debounce-Max-Delay': '1m' },
      { debounceKey: 'd', debounceDelay: 1.5, debounceMaxDelay: 60 },
    ],
  ])('shows what decides between its messages: %j', async (headers, shown) => {
    const { scheduleId } = await scene.client.schedules.create({
      destination: 'https://e.test/',
      cron: '* * * * *',
      headers,
    })
    expect(await scene.client.schedules.get(scheduleId)).toMatchObject(shown)
  })

  it('publishes one message at each fire, and shows their states', async () => {
    const { scheduleId } = await scene.client.schedules.create({
      destination: `${scene.sink.url}/t`,
      cron: '* * * * *',
      body: 'b',
    })
    clock.advance(30_000)
    await waitFor(() => scene.sink.received.length === 1, { what: 'a delivery' })
    expect(scene.sink.received[0]).toMatchObject({ target: '/t', body: 'b' })
    expect(scene.sink.received[0]?.headers['upstash-schedule-id']).toBe(scheduleId)
    await nextIs(scheduleId, T + 90_000)
    clock.advance(MINUTE)
    await waitFor(() => scene.sink.received.length === 2, { what: 'another delivery' })
    const delivered = async () => {
      const states = Object.values((await scene.client.schedules.get(scheduleId)).lastScheduleStates ?? {})
      return states.length === 2 && states.every((state) => state === 'SUCCESS')
    }
    await waitFor(delivered, { what: 'the states' })
    const { lastScheduleTime } = await scene.client.schedules.get(scheduleId)
    expect(lastScheduleTime).toBe(T + 90_000)
    const { logs } = await scene.client.logs({ filter: { scheduleId, state: 'DELIVERED' } })
    expect(logs).toHaveLength(2)
  })

  it('fires once for all missed fires, after a restart and after a jump of the clock', async () => {
    const { scheduleId } = await scene.client.schedules.create({
      destination: 'https://e.test/',
      cron: '* * * * *',
      delay: '7d',
    })
    await scene.restart(() => clock.advance(10 * MINUTE))
    await nextIs(scheduleId, T + 30_000 + 10 * MINUTE)
    expect(await fires()).toBe(1)
    await scene.restart(() => clock.advance(60 * MINUTE))
    await nextIs(scheduleId, T + 30_000 + 70 * MINUTE)
    expect(await fires()).toBe(2)
  })

  it('fires on time after its clock was set ahead, and once for all skipped fires', async () => {
    const { scheduleId } = await scene.client.schedules.create({
      destination: 'https://e.test/',
      cron: '0 * * * *',
      ...LATE,
    })
    timeOfDay.jump(10 * 60 * MINUTE)
    // Timers do not see the jump, so the fire depends on the regular clock checks.
    await waitFor(
      async () => {
        clock.advance(15_000)
        return (await fires()) === 1
      },
      { what: 'the fire' },
    )
    expect(clock.now() - T).toBeLessThan(5 * MINUTE)
    await nextIs(scheduleId, Date.parse('2026-01-01T11:00:00Z'))
  })

  it('repeats no fire when its clock is set back by less than a minute', async () => {
    const { scheduleId } = await scene.client.schedules.create({
      destination: scene.sink.url,
      cron: '* * * * *',
      ...LATE,
    })
    clock.advance(30_000)
    await nextIs(scheduleId, T + 90_000)
    timeOfDay.jump(-20_000)
    for (let quarter = 0; quarter < 5; quarter++) clock.advance(15_000)
    expect(await fires()).toBe(1)
    await nextIs(scheduleId, T + 90_000)
  })

  it('remembers a fire at its time when its clock was set back before it was stored, so that none is repeated', async () => {
    const dueAt = T + 30_000
    const { scheduleId } = await scene.client.schedules.create({ destination: 'https://e.test/', cron: '* * * * *' })
    const { accountId } = scene.service
    const fire = { accountId, scheduleId, dueAt, nextAt: dueAt + MINUTE, now: dueAt - 500, entries: [], error: null }
    await scene.store.run(schedules.fire, fire)
    expect(await scene.client.schedules.get(scheduleId)).toMatchObject({ lastScheduleTime: dueAt })
  })

  it.each([
    ['while it runs', async () => {}],
    ['over a restart', () => scene.restart()],
  ])('fires on time again when its clock was a year ahead and is corrected, %s', async (_how, between) => {
    timeOfDay.jump(365 * 24 * 60 * MINUTE)
    const { scheduleId } = await scene.client.schedules.create({
      destination: scene.sink.url,
      cron: '* * * * *',
      ...LATE,
    })
    // It fires while the clock is ahead, so that its last fire is a year ahead too.
    clock.advance(MINUTE)
    await waitFor(async () => (await fires()) === 1, { what: 'the fire of the wrong time' })
    timeOfDay.jump(-365 * 24 * 60 * MINUTE)
    await between()
    await waitFor(
      async () => {
        clock.advance(5_000)
        return (await fires()) >= 3
      },
      { what: 'two more fires' },
    )
    expect(clock.now() - T).toBeLessThan(10 * MINUTE)
    const { nextScheduleTime = 0 } = await scene.client.schedules.get(scheduleId)
    expect(nextScheduleTime - timeOfDay.now()).toBeLessThanOrEqual(MINUTE)
  })

  it('fires once however often the same fire is tried', async () => {
    const { scheduleId } = await scene.client.schedules.create({ destination: 'https://e.test/', cron: '* * * * *' })
    const { accountId } = scene.service
    const fire = { accountId, scheduleId, dueAt: T + 30_000, nextAt: T + 90_000, now: T, entries: [], error: 'none' }
    await scene.store.run(schedules.fire, fire)
    await scene.store.run(schedules.fire, { ...fire, error: 'twice' })
    expect(await scene.client.schedules.get(scheduleId)).toMatchObject({ error: 'none', nextScheduleTime: T + 90_000 })
  })

  it('does not fire what was replaced since it was read', async () => {
    const schedule = { scheduleId: 'mine', destination: 'https://e.test/', cron: '* * * * *' }
    await scene.client.schedules.create({ ...schedule, body: 'old' })
    const { accountId } = scene.service
    const dueAt = T + 30_000
    const fire = {
      accountId,
      scheduleId: 'mine',
      dueAt,
      nextAt: T + 90_000,
      now: T,
      entries: [],
      error: null,
      madeAt: T,
    }
    clock.advance(1_000)
    await scene.client.schedules.create({ ...schedule, body: 'new', ...LATE })
    await scene.store.run(schedules.fire, fire)
    expect(await scene.client.schedules.get('mine')).toMatchObject({ nextScheduleTime: dueAt })
    clock.advance(29_000)
    await nextIs('mine', T + 90_000)
    expect(await scene.client.schedules.get('mine')).toMatchObject({ lastScheduleTime: dueAt })
  })

  it('fires all due schedules in parallel, although one of them is invalid', async () => {
    const { accountId } = scene.service
    const [cron, destination, at] = ['* * * * *', scene.sink.url, T + 29_000]
    const spoilt = { queue: null, caller_ip: null, body: null, created_at: T, next_at: at, headers: 'no JSON' }
    await scene.store.run(schedules.put, {
      account_id: accountId,
      schedule_id: 'spoilt',
      cron,
      destination,
      ...spoilt,
    })
    try {
      for (const n of [1, 2, 3]) await scene.client.schedules.create({ destination: `${destination}/${n}`, cron })
      clock.advance(30_000)
      await scene.arrived(3)
      const isSkipped = async () => {
        clock.advance(1_000)
        const { schedule } = (await scene.store.run(schedules.get, { accountId, scheduleId: 'spoilt' })) ?? {}
        return schedule?.error?.includes('cannot be stored') ?? false
      }
      await waitFor(isSkipped, { what: 'the fire to be skipped' })
      expect(clock.now() - T).toBeLessThan(2 * MINUTE)
    } finally {
      await scene.store.run(schedules.remove, { accountId, scheduleId: 'spoilt' })
    }
  })

  it('lets accounts take turns when many are due', async () => {
    const { store } = scene
    const others = ['acc_many', 'acc_two'] as const
    const settings = { cron: '* * * * *', destination: 'g', queue: null, caller_ip: null, body: null, headers: '{}' }
    const put = (account_id: string, schedule_id: string, next_at: number) =>
      store.run(schedules.put, { ...settings, account_id, schedule_id, created_at: T, next_at })
    // Not due for the server of this test.
    const now = T + 60 * MINUTE
    for (const n of [1, 2, 3, 4, 5]) await put('acc_many', `many${n}`, now - 1_000)
    for (const n of [1, 2]) await put('acc_two', `two${n}`, now)
    const due = await store.run(schedules.due, { now, limit: 5 })
    expect(due.map((one) => one.scheduleId)).toEqual(['many1', 'two1', 'many2', 'two2', 'many3'])
    expect(due[0]).toMatchObject({ accountId: 'acc_many', target: 'g', bytes: 4 })
    for (const accountId of others) {
      for (const { schedule_id: scheduleId } of await store.run(schedules.list, { accountId }))
        await store.run(schedules.remove, { accountId, scheduleId })
    }
  })

  it('refuses more schedules than an account may have', async () => {
    const schedule = { destination: 'https://e.test/', cron: '* * * * *' }
    const create = (n: number) => scene.client.schedules.create({ ...schedule, scheduleId: `s${n}` })
    for (let n = 0; n < MOST; n++) await create(n)
    await expect(create(MOST)).rejects.toThrow(/has 5 schedules, which is the limit/)
    await create(0)
    await scene.client.schedules.delete('s0')
    await create(MOST)
  })

  it('skips a fire that would publish more than a request may', async () => {
    const endpoints = Array.from({ length: 300 }, (_, n) => ({ url: `${scene.sink.url}/${n}` }))
    await scene.client.urlGroups.addEndpoints({ name: 'large', endpoints })
    const body = 'x'.repeat(2 ** 20)
    await scene.client.schedules.create({ scheduleId: 'mine', destination: 'large', cron: '* * * * *', body })
    clock.advance(30_000)
    await nextIs('mine', T + 90_000)
    expect(await scene.client.schedules.get('mine')).toMatchObject({ error: expect.stringContaining('content') })
    expect(await fires()).toBe(0)
    await scene.client.urlGroups.delete('large')
  })

  it('replaces every setting of a schedule with the same id', async () => {
    const first = { scheduleId: 'mine', destination: 'https://e.test/', cron: '* * * * *', body: 'x', retries: 1 }
    await scene.client.schedules.create(first)
    await scene.client.schedules.create({ scheduleId: 'mine', destination: 'https://f.test/', cron: '0 * * * *' })
    const schedule = await scene.client.schedules.get('mine')
    expect(schedule).toMatchObject({ destination: 'https://f.test/', cron: '0 * * * *', retries: 3 })
    expect(schedule.body).toBeUndefined()
    expect(await scene.client.schedules.list()).toHaveLength(1)
  })

  it('does not fire while paused, and does not make up for it', async () => {
    const { scheduleId } = await scene.client.schedules.create({
      destination: 'https://e.test/',
      cron: '* * * * *',
      delay: '7d',
    })
    await scene.client.schedules.pause({ schedule: scheduleId })
    expect(await scene.client.schedules.get(scheduleId)).toMatchObject({ isPaused: true })
    clock.advance(10 * MINUTE)
    const resume = `${scene.service.url}/v2/schedules/${scheduleId}/resume`
    expect((await fetch(resume, { method: 'POST', headers: scene.service.auth })).status).toBe(200)
    await nextIs(scheduleId, T + 30_000 + 10 * MINUTE)
    expect(await fires()).toBe(0)
  })

  it('keeps its next fire when it is resumed without having been paused', async () => {
    const cron = '* * * * *'
    const { scheduleId } = await scene.client.schedules.create({ destination: 'https://e.test/', cron })
    const stale = { accountId: scene.service.accountId, scheduleId, cron, paused: 0 as const, nextAt: T - 30_000 }
    await scene.store.run(schedules.setPaused, stale)
    expect(await scene.client.schedules.get(scheduleId)).toMatchObject({ nextScheduleTime: T + 30_000 })
    await scene.client.schedules.resume({ schedule: scheduleId })
    expect(await scene.client.schedules.get(scheduleId)).toMatchObject({ nextScheduleTime: T + 30_000 })
  })

  it('resumes a schedule with its current expression although it is replaced and paused again meanwhile', async () => {
    const schedule = { scheduleId: 'mine', destination: 'https://e.test/', cron: '* * * * *' }
    await scene.client.schedules.create(schedule)
    await scene.client.schedules.pause({ schedule: 'mine' })
    const run = scene.store.run.bind(scene.store)
    const spy = vi.spyOn(scene.store, 'run').mockImplementation(async (transaction, args) => {
      const result = await run(transaction, args)
      if (transaction.name !== 'schedules.get') return result
      spy.mockRestore()
      await scene.client.schedules.create({ ...schedule, cron: '0 0 1 1 *' })
      await scene.client.schedules.pause({ schedule: 'mine' })
      return result
    })
    await scene.client.schedules.resume({ schedule: 'mine' })
    const nextScheduleTime = Date.parse('2027-01-01T00:00:00Z')
    expect(await scene.client.schedules.get('mine')).toMatchObject({ isPaused: false, nextScheduleTime })
  })

  it('publishes to groups and into queues, and shows the reason when it cannot', async () => {
    await scene.client.urlGroups.addEndpoints({
      name: 'g',
      endpoints: [{ url: `${scene.sink.url}/1` }, { url: `${scene.sink.url}/2` }],
    })
    const { scheduleId } = await scene.client.schedules.create({ destination: 'g', cron: '* * * * *', queueName: 'sq' })
    clock.advance(30_000)
    await waitFor(() => scene.sink.received.length === 2, { what: 'both deliveries' })
    expect(scene.sink.received.map((request) => request.target)).toEqual(['/1', '/2'])
    await nextIs(scheduleId, T + 90_000)
    await scene.client.urlGroups.delete('g')
    clock.advance(MINUTE)
    await nextIs(scheduleId, T + 150_000)
    const schedule = await scene.client.schedules.get(scheduleId)
    expect(schedule).toMatchObject({ error: expect.stringContaining('no URL group') })
  })

  it('refuses settings that are wrong', async () => {
    for (const [settings, expected] of [
      [{ 'Upstash-Cron': 'x' }, 400],
      [{}, 400],
      [{ 'Upstash-Cron': '* * * * *', 'Upstash-Not-Before': '1' }, 400],
      [{ 'Upstash-Cron': '* * * * *', 'Upstash-Schedule-Id': 'a b' }, 400],
      [{ 'Upstash-Cron': '* * * * *', 'Upstash-Retries': '100000' }, 412],
      [{ 'Upstash-Cron': '* * * * *', 'Upstash-Queue-Name': 'q', 'Homeport-Priority': '5' }, 400],
    ] as const) {
      const init = { method: 'POST', headers: { ...scene.service.auth, ...settings } }
      const { status } = await fetch(`${scene.service.url}/v2/schedules/https://e.test/`, init)
      expect([settings, status]).toEqual([settings, expected])
    }
  })

  it('answers 404 for unknown schedules', async () => {
    await expect(scene.client.schedules.get('nowhere')).rejects.toThrow(/no schedule/)
    await expect(scene.client.schedules.pause({ schedule: 'nowhere' })).rejects.toThrow(/no schedule/)
    await expect(scene.client.schedules.delete('nowhere')).rejects.toThrow(/no schedule/)
  })
})
