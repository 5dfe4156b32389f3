import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Store } from '../../store/index.js'
import { describeOnStore } from '../../store/testing/index.js'
import { wrappedStore } from '../../store/testing/wrapped-store.js'
import { type QueueUnderTest, startQueue } from '../testing/harness.js'

describeOnStore('sqlite', 'a list of large items', (openStore) => {
  let store: Store
  let service: QueueUnderTest
  let largestRead = 0
  beforeAll(async () => {
    const real = await openStore()
    store = wrappedStore(real, async (operation, args) => {
      const result = await real.run(operation, args)
      if (/^(?:(?:schedules|urlGroups)\.some|queues\.list)$/.test(operation.name))
        largestRead = Math.max(largestRead, (result as unknown[]).length)
      return result
    })
    service = await startQueue({ store })
  })
  afterAll(() => service.stop())

  const call = (method: string, path: string, headers: Record<string, string> = {}, body?: string) =>
    fetch(service.url + path, { method, headers: { ...service.auth, ...headers }, ...(body && { body }) })
  const list = async () =>
    (await call('GET', '/v2/schedules')).json() as Promise<{ scheduleId: string; body: string }[]>
  const make = (scheduleId: string, bytes: number) => {
    const headers = { 'upstash-cron': '0 0 29 2 *', 'upstash-schedule-id': scheduleId }
    return call('POST', '/v2/schedules/https://e.test/', headers, 'x'.repeat(bytes))
  }

  it('of schedules is sent in batches as one array', async () => {
    expect(await list()).toEqual([])
    const sizes = { a: 600 * 1024, b: 600 * 1024, c: 10, d: 3 * 2 ** 20 }
    for (const [scheduleId, bytes] of Object.entries(sizes)) {
      expect((await make(scheduleId, bytes)).status).toBe(200)
    }
    expect((await list()).map(({ scheduleId, body }) => [scheduleId, body.length])).toEqual(Object.entries(sizes))
    expect(largestRead).toBe(2)
    const answer = await call('GET', '/v2/schedules')
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    await answer.body?.cancel()
    for (const scheduleId of ['a', 'd']) await call('DELETE', `/v2/schedules/${scheduleId}`)
    expect((await list()).map(({ scheduleId }) => scheduleId)).toEqual(['b', 'c'])
    // Reads megabytes several times, possibly on a busy machine.
  }, 120_000)

  it('of URL groups is sent in batches as one array', async () => {
    largestRead = 0
    const json = { 'content-type': 'application/json' }
    const endpoints = Array.from({ length: 50 }, (_, n) => ({ url: `https://e.test/${n}/${'x'.repeat(8_000)}` }))
    for (const name of ['a', 'b', 'c', 'd']) {
      const added = await call('POST', `/v2/topics/${name}/endpoints`, json, JSON.stringify({ endpoints }))
      expect(added.status).toBe(200)
    }
    const groups = (await (await call('GET', '/v2/topics')).json()) as { name: string; endpoints: unknown[] }[]
    expect(groups.map((group) => [group.name, group.endpoints.length])).toEqual(
      ['a', 'b', 'c', 'd'].map((name) => [name, 50]),
    )
    expect(largestRead).toBe(2)
  }, 120_000)

  it('of queues is read in pages and sent as one array', async () => {
    expect(await (await call('GET', '/v2/queues')).json()).toEqual([])
    largestRead = 0
    const names = Array.from({ length: 1_003 }, (_, n) => `q${String(n).padStart(4, '0')}`)
    const items = names.map((queue) => ({ destination: 'https://e.test/', queue, headers: { 'upstash-delay': '1h' } }))
    await call('POST', '/v2/batch', { 'content-type': 'application/json' }, JSON.stringify(items))
    const queues = (await (await call('GET', '/v2/queues')).json()) as { name: string; lag: number }[]
    expect(queues.map(({ name, lag }) => [name, lag])).toEqual(names.map((name) => [name, 1]))
    expect(largestRead).toBe(1_000)
  }, 120_000)

  it('limits pages of the log by the headers that each entry repeats, with the bodies and without', async () => {
    const headers = Object.fromEntries(
      Array.from({ length: 7 }, (_, at) => [`Upstash-Forward-${at}`, 'h'.repeat(8_000)]),
    )
    const batch = Array.from({ length: 200 }, (_, at) => ({
      destination: `http://x.test/${at}`,
      headers: { ...headers, 'Upstash-Label': 'long', 'Upstash-Delay': '1d' },
    }))
    expect((await call('POST', '/v2/batch', {}, JSON.stringify(batch))).status).toBe(200)
    for (const more of ['', '&trimBody=0']) {
      const seen: string[] = []
      const lengths: number[] = []
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const answer = await call('GET', `/v2/events?label=long&count=1000${more}&cursor=${cursor}`)
        const page = (await answer.json()) as { events: { url: string }[]; cursor?: string }
        seen.push(...page.events.map(({ url }) => url))
        lengths.push(JSON.stringify(page.events).length)
        cursor = page.cursor
      }
      expect(new Set(seen).size).toBe(200)
      expect(seen).toHaveLength(200)
      expect(Math.max(...lengths)).toBeLessThan(9_000_000)
    }
  })
})
