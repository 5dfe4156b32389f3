import { expect, it, onTestFinished } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { describeOnEveryStore } from '../store/testing/index.js'
import { startQueue } from './testing/harness.js'
import { startSink } from './testing/sink.js'

const T = Date.parse('2026-01-01T00:00:30Z')

describeOnEveryStore('a server restarted with a lower limit for timeouts', (openStore) => {
  it('still sends callbacks and fires schedules that were accepted before', async () => {
    const store = await openStore()
    const clock = new ManualClock(T)
    const sink = await startSink()
    const server = { current: await startQueue({ store, clock, deliveryTimeoutMs: 600_000 }) }
    onTestFinished(async () => {
      await server.current.stop()
      await sink.close()
    })
    const send = (target: string, headers: Record<string, string>) =>
      fetch(server.current.url + target, { method: 'POST', headers: { ...server.current.auth, ...headers } })
    const long = {
      'Upstash-Callback': `${sink.url}/callback`,
      'Upstash-Callback-Timeout': '5m',
      'Upstash-Timeout': '5m',
    }
    await send(`/v2/publish/${sink.url}/source`, { 'Upstash-Delay': '20s', ...long })
    await send(`/v2/schedules/${sink.url}/fire`, { 'Upstash-Cron': '* * * * *', 'Upstash-Timeout': '5m' })
    await server.current.stop()

    server.current = await startQueue({ store, clock, deliveryTimeoutMs: 1_000 })
    const listed = await fetch(`${server.current.url}/v2/schedules`, { headers: server.current.auth })
    expect(await listed.json()).toMatchObject([{ cron: '* * * * *', timeout: 300_000 }])
    expect((await send(`/v2/publish/${sink.url}/new`, long)).status).toBe(412)
    const gets = (what: string) =>
      waitFor(() => sink.received.some(({ target }) => target === what), { what: `the delivery of ${what}` })
    clock.advance(20_000)
    await gets('/callback')
    clock.advance(10_000)
    await gets('/fire')
  })
})
