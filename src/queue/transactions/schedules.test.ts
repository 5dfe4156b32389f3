import { expect, it } from 'vitest'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as schedules from './schedules.js'

const T = Date.parse('2026-01-01T00:00:30Z')
const MINUTE = 60_000

describeOnEveryStore('a schedule', (openStore) => {
  it('is changed by no operation of another account on one with the same id', async () => {
    const store = await openStore()
    const [mine, other] = ['acc_mine', 'acc_other'].map((accountId) => ({ accountId, scheduleId: 'same' }))
    if (!mine || !other) throw new Error('two accounts')
    const nextAt = T + 60 * MINUTE
    const put = (account_id: string, created_at: number, schedule_id = 'same', most = 1) => {
      const settings = { cron: '* * * * *', destination: 'g', queue: null, caller_ip: null, body: null, headers: '{}' }
      return store.run(schedules.put, { ...settings, account_id, schedule_id, created_at, next_at: nextAt, most })
    }
    await put(other.accountId, T)
    const before = await store.run(schedules.get, other)
    await put(mine.accountId, T)
    await expect(put(mine.accountId, T, 'second')).rejects.toMatchObject({ code: 'too_many_schedules' })
    const fire = { dueAt: nextAt, nextAt: nextAt + MINUTE, now: nextAt, entries: [], error: 'none' }
    await store.run(schedules.fire, { ...mine, ...fire })
    expect((await store.run(schedules.get, mine))?.schedule).toMatchObject({ error: 'none', next_at: nextAt + MINUTE })
    await store.run(schedules.setPaused, { ...mine, cron: '* * * * *', paused: 1, nextAt: null })
    // A replaced schedule has none of the old state but the record of its fires.
    await put(mine.accountId, T + 1)
    const { schedule } = (await store.run(schedules.get, mine)) ?? {}
    expect(schedule).toMatchObject({ error: null, paused: 0, last_at: nextAt })
    const pull = (from: number) => store.run(schedules.pullBack, { ...mine, from, to: T })
    expect([await pull(nextAt - 1), await pull(nextAt)]).toEqual([0, 1])
    expect(await store.run(schedules.remove, mine)).toBe(1)
    expect(await store.run(schedules.get, other)).toEqual(before)
    await store.run(schedules.remove, other)
  })
})
