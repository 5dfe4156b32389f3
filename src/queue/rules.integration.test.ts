import { beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { setQueueScenes } from './testing/scene.js'

const SECOND = 1_000
const T = 1_760_000_000_000

interface Answer {
  readonly messageId: string
  readonly replaced?: string
  readonly deduplicated?: true
  readonly because?: string
}

describeOnSampledStore('debounce and singleton keys', (openStore) => {
  let clock: ManualClock
  const scene = setQueueScenes(openStore, {
    clock: () => {
      clock = new ManualClock(T)
      return clock
    },
  })
  let debounced: Record<string, string>
  beforeEach(() => {
    debounced = { 'Homeport-Debounce': 'cart 7', 'Homeport-Debounce-Delay': '30s' }
  })

  const request = (headers: Record<string, string>, body: string, path = '/v2/publish/') =>
    fetch(`${scene.service.url}${path}${scene.sink.url}/hook`, {
      method: 'POST',
      headers: { ...scene.service.auth, ...headers },
      body,
    })
  const publish = async (headers: Record<string, string>, body: string, path?: string): Promise<Answer> => {
    const response = await request(headers, body, path)
    if (!response.ok) throw new Error(await response.text())
    return (await response.json()) as Answer
  }
  const bodies = () => scene.sink.received.map(({ body }) => body)
  const message = async (messageId: string) =>
    (await scene.ask('GET', `/v2/messages/${messageId}`)) as { answer: object }
  const states = async (messageId: string) =>
    (await scene.client.logs({ filter: { messageId } })).logs.map(({ state }) => state)
  /** Nothing else follows: a message that is due at the same time, published last, has been delivered. */
  const settled = async (count: number) => {
    await scene.arrived(count)
    await publish({}, 'last')
    await scene.arrived(count + 1)
    expect(bodies().at(-1)).toBe('last')
    scene.sink.received.pop()
  }
  const ended = (messageId: string, state: string) =>
    waitFor(async () => (await states(messageId))[0] === state, { what: `${state} of ${messageId}` })

  it('delivers the newest of a burst once, when its delay has passed without another', async () => {
    const first = await publish(debounced, '1')
    expect(first).toEqual({ messageId: first.messageId, url: `${scene.sink.url}/hook` })
    clock.advance(20 * SECOND)
    const second = await publish(debounced, '2')
    expect(second).toMatchObject({
      replaced: first.messageId,
      because: 'The message with the debounce key "cart 7" had not been sent; this one replaces it.',
    })
    clock.advance(20 * SECOND)
    // The official client passes on headers that it does not know as headers to forward.
    const third = await scene.client.publish({ url: `${scene.sink.url}/hook`, body: '3', headers: debounced })
    expect(third).toMatchObject({ replaced: second.messageId })
    expect((await message(first.messageId)).answer).toMatchObject({ error: expect.stringContaining(first.messageId) })
    expect((await message(third.messageId)).answer).toMatchObject({
      debounceKey: 'cart 7',
      notBefore: T + 70 * SECOND,
      because: [{ kind: 'debounced', until: T + 70 * SECOND }],
    })
    const { events } = await scene.client.events({ filter: { messageId: second.messageId } })
    expect(events[0]).toMatchObject({
      state: 'CANCELED',
      error: `Replaced by ${third.messageId}, which has the same debounce key.`,
    })
    clock.advance(29 * SECOND)
    await settled(0)
    clock.advance(SECOND)
    await settled(1)
    expect(bodies()).toEqual(['3'])
    expect(Object.keys(scene.sink.received[0]?.headers ?? {}).filter((name) => name.includes('homeport'))).toEqual([])
    await ended(third.messageId, 'DELIVERED')
    expect(await publish(debounced, '4')).not.toHaveProperty('replaced')
  })

  it('keeps one message of a burst that comes at once, in many requests and in batches', async () => {
    const items = ['a', 'b', 'c'].map((body) => ({ destination: `${scene.sink.url}/hook`, headers: debounced, body }))
    const answers = await Promise.all([
      ...Array.from({ length: 20 }, (_, n) => publish(debounced, String(n)).then((answer) => [answer])),
      ...[1, 2].map(async () => (await scene.ask('POST', '/v2/batch', items)).answer as Answer[]),
    ])
    const all = answers.flat()
    const replaced = all.flatMap((answer) => answer.replaced ?? [])
    expect(new Set(replaced).size).toBe(all.length - 1)
    const [left] = all.filter(({ messageId }) => !replaced.includes(messageId))
    await scene.restart()
    clock.advance(30 * SECOND)
    await settled(1)
    expect(scene.sink.received[0]?.headers['upstash-message-id']).toBe(left?.messageId)
  })

  it('waits no longer than the longest delay since the first message', async () => {
    const headers = { ...debounced, 'Homeport-Debounce-Max-Delay': '1m' }
    for (const body of ['1', '2', '3', '4']) {
      await publish(headers, body)
      clock.advance(19 * SECOND)
    }
    await scene.arrived(1)
    expect(bodies()).toEqual(['4'])
  })

  it('begins a new burst while the message of the last one is sent', async () => {
    scene.sink.answer = ({ body }) => (body === '1' ? { status: 500 } : {})
    const first = await publish({ ...debounced, 'Upstash-Retry-Delay': '90000' }, '1')
    clock.advance(30 * SECOND)
    await scene.arrived(1)
    await waitFor(async () => (await states(first.messageId)).includes('RETRY'), { what: 'the failed attempt' })
    expect(await publish(debounced, '2')).not.toHaveProperty('replaced')
    clock.advance(30 * SECOND)
    await settled(2)
    expect(bodies()).toEqual(['1', '2'])
    await scene.client.messages.delete(first.messageId)
  })

  it('replaces a message in its queue, and gives its turn to the next', async () => {
    const path = '/v2/enqueue/orders/'
    const first = await publish(debounced, '1', path)
    await publish({}, 'other', path)
    expect(await publish(debounced, '2', path)).toMatchObject({ replaced: first.messageId })
    await scene.arrived(1)
    expect(bodies()).toEqual(['other'])
    clock.advance(30 * SECOND)
    await scene.arrived(2)
    expect(bodies()).toEqual(['other', '2'])
  })

  it('skips a message while an older one with its singleton key is pending', async () => {
    const headers = { 'Homeport-Singleton': 'report', 'Upstash-Delay': '10s' }
    const first = await publish(headers, '1')
    const response = await request(headers, '2')
    expect(response.status).toBe(202)
    expect(await response.json()).toEqual({
      messageId: first.messageId,
      url: `${scene.sink.url}/hook`,
      deduplicated: true,
      because: 'The message with the singleton key "report" has not ended.',
    })
    const other = { ...headers, 'Homeport-Singleton': 'other' }
    const several = await Promise.all(['3', '4'].map((body) => publish(other, body)))
    expect(new Set(several.map(({ messageId }) => messageId)).size).toBe(1)
    expect((await message(first.messageId)).answer).toMatchObject({ singletonKey: 'report' })
    await scene.restart()
    clock.advance(10 * SECOND)
    await settled(2)
    await ended(first.messageId, 'DELIVERED')
    expect(await publish({ 'Homeport-Singleton': 'report' }, '5')).not.toHaveProperty('deduplicated')
    await scene.arrived(3)
  })

  it('leaves the deduplication id of a skipped message free', async () => {
    const headers = { 'Homeport-Singleton': 'nightly', 'Upstash-Delay': '10s' }
    const first = await publish(headers, '1')
    const again = { ...headers, 'Upstash-Deduplication-Id': 'night 2' }
    const items = ['2', '3'].map((body) => ({ destination: `${scene.sink.url}/hook`, headers: again, body }))
    const skipped = (await scene.ask('POST', '/v2/batch', items)).answer as Answer[]
    expect(skipped.map(({ messageId }) => messageId)).toEqual([first.messageId, first.messageId])
    clock.advance(10 * SECOND)
    await ended(first.messageId, 'DELIVERED')
    const second = await publish(again, '4')
    expect(second).not.toHaveProperty('deduplicated')
    expect(await publish(again, '5')).toMatchObject({ messageId: second.messageId, deduplicated: true })
    clock.advance(10 * SECOND)
    await settled(2)
    expect(bodies()).toEqual(['1', '4'])
  })

  it('cancels the older message of a singleton key, also in flight, in the mode cancel', async () => {
    const headers = { 'Homeport-Singleton': 'sync', 'Homeport-Singleton-Mode': 'cancel' }
    scene.sink.answer = ({ body }) => (body === '1' ? { silent: true } : {})
    const first = await publish(headers, '1')
    await scene.arrived(1)
    expect(await publish(headers, '2')).toMatchObject({ replaced: first.messageId })
    await waitFor(() => scene.sink.aborted === 1, { what: 'the abort' })
    await settled(2)
    expect(bodies()).toEqual(['1', '2'])
    expect(await states(first.messageId)).toEqual(['CANCELED', 'CANCEL_REQUESTED', 'CREATED'])
  })

  it('sends a dead letter again without its key while another message holds the key', async () => {
    scene.sink.answer = ({ body }) => (body === '1' ? { status: 500 } : {})
    const headers = { 'Homeport-Singleton': 'once', 'Upstash-Retries': '0' }
    const first = await publish(headers, '1')
    await ended(first.messageId, 'FAILED')
    await publish({ ...headers, 'Upstash-Delay': '1h' }, '2')
    const { messages } = await scene.client.dlq.listMessages({ filter: { messageId: first.messageId } })
    const again = await scene.ask('POST', `/v2/dlq/retry/${messages[0]?.dlqId}`)
    await scene.arrived(2)
    expect(bodies()).toEqual(['1', '1'])
    const { messageId } = again.answer as Answer
    expect((await message(messageId)).answer).not.toHaveProperty('singletonKey')
    await scene.client.messages.deleteAll()
  })

  it('publishes with a rule from a schedule', async () => {
    const singleton = { 'Homeport-Singleton': 'cron', 'Upstash-Delay': '1h' }
    const headers = { ...scene.service.auth, ...singleton, 'Upstash-Cron': '* * * * *', 'Upstash-Schedule-Id': 'each' }
    await fetch(`${scene.service.url}/v2/schedules/${scene.sink.url}`, { method: 'POST', headers })
    const fired = async () => (await scene.ask('GET', '/v2/schedules/each')).answer as { lastScheduleTime?: number }
    for (const minute of [1, 2]) {
      const before = (await fired()).lastScheduleTime
      clock.advance(60 * SECOND)
      await waitFor(async () => (await fired()).lastScheduleTime !== before, { what: `fire ${minute}` })
    }
    await scene.client.schedules.delete('each')
    const { logs } = await scene.client.logs()
    expect(logs.map(({ state }) => state)).toEqual(['CREATED'])
    await scene.client.messages.delete(logs[0]?.messageId ?? '')
  })

  it('refuses settings that contradict each other, or are unknown', async () => {
    const problems: [Record<string, string>, RegExp][] = [
      [{ 'Homeport-Debounce': 'x' }, /Homeport-Debounce-Delay/],
      [{ ...debounced, 'Upstash-Delay': '1s' }, /Upstash-Delay/],
      [{ ...debounced, 'Homeport-Debounce-Max-Delay': '29s' }, /Homeport-Debounce-Max-Delay/],
      [{ ...debounced, 'Homeport-Debounce-Delay': '367d' }, /366d/],
      [{ ...debounced, 'Homeport-Singleton': 'x' }, /not both/],
      [{ 'Homeport-Singleton': 'x', 'Homeport-Singleton-Mode': 'queue' }, /skip or cancel/],
      [{ 'Homeport-Singleton': 'x'.repeat(513) }, /512 characters/],
      [{ 'Homeport-Singleton-Mode': 'cancel' }, /no effect without Homeport-Singleton:/],
      [{ 'Upstash-Forward-Homeport-Debounce-Delay': '1s' }, /no effect without Homeport-Debounce:/],
      [{ 'Upstash-Flow-Control-Value': 'rate=1' }, /no effect without Upstash-Flow-Control-Key:/],
      [
        { 'Upstash-Callback': 'http://a.test', 'Upstash-Callback-Flow-Control-Value': 'rate=1' },
        /no effect without Upstash-Callback-Flow-Control-Key:/,
      ],
      [{ 'Homeport-Debounse': 'x' }, /Homeport-Debounse.* is unknown/],
      [{ 'Upstash-Forward-Homeport-Key': 'x' }, /Homeport-Key.* is unknown/],
    ]
    for (const [headers, problem] of problems) {
      const response = await request(headers, 'x')
      expect([response.status >= 400 && response.status < 500, await response.text()]).toEqual([
        true,
        expect.stringMatching(problem),
      ])
    }
    expect((await scene.client.logs()).logs).toEqual([])
  })
})
