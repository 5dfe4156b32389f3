import { expect, it, onTestFinished } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { describeOnEveryStore } from '../store/testing/index.js'
import { startQueue } from './testing/harness.js'
import { startSink } from './testing/sink.js'
import type { Attempt } from './watched-kind.js'

const T = Date.parse('2026-01-01T00:00:30Z')

describeOnEveryStore('a queue with nothing to do', (openStore) => {
  it('says when its next message or schedule is due, and reports attempts', async () => {
    const [store, sink, clock] = [await openStore(), await startSink(), new ManualClock(T)]
    const attempts: Attempt[] = []
    const { queue, url, auth, stop } = await startQueue({
      store,
      clock,
      onAttempt: (attempt) => attempts.push(attempt),
    })
    onTestFinished(async () => {
      await stop()
      await sink.close()
    })
    const send = (target: string, headers: Record<string, string>) =>
      fetch(url + target, { method: 'POST', headers: { ...auth, ...headers }, body: 'x' })
    const rest = () =>
      waitFor(async () => (await queue.rest()).isIdle && (await queue.rest()), { what: 'the queue to rest' })

    expect(await rest()).toEqual({ isIdle: true, nextAt: Number.POSITIVE_INFINITY })
    await send(`/v2/schedules/${sink.url}/fire`, { 'Upstash-Cron': '0 * * * *' })
    expect((await rest()).nextAt).toBe(Date.parse('2026-01-01T01:00:00Z'))
    await send(`/v2/publish/${sink.url}/later`, { 'Upstash-Delay': '5m' })
    expect((await rest()).nextAt).toBe(T + 300_000)
    clock.advance(300_000)
    expect((await rest()).nextAt).toBe(Date.parse('2026-01-01T01:00:00Z'))
    expect(attempts).toMatchObject([{ outbound: { url: `${sink.url}/later` }, outcome: { kind: 'answered' } }])
    expect(attempts[0]?.nextAt).toBeUndefined()
  })
})
