import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { setQueueScenes } from '../testing/scene.js'
import type { EventView } from './event-routes.js'

describeOnSampledStore('the log of messages', (openStore) => {
  const scene = setQueueScenes(openStore)
  const later = { delay: '7d' } as const

  it('has every state of a message', async () => {
    scene.sink.answer = () =>
      scene.sink.received.length === 1 ? { status: 503, body: 'busy' } : { status: 201, body: 'done' }
    const { messageId } = await scene.client.publish({
      url: `${scene.sink.url}/log`,
      body: 'b',
      retryDelay: '1',
      label: 'logged',
    })
    const logs = await waitFor(
      async () => {
        const { logs } = await scene.client.logs({ filter: { messageId } })
        return logs[0]?.state === 'DELIVERED' && logs
      },
      { what: 'the log of the delivery' },
    )
    expect(logs.map((log) => log.state)).toEqual(['DELIVERED', 'ACTIVE', 'RETRY', 'ERROR', 'ACTIVE', 'CREATED'])
    expect(logs[0]).toMatchObject({
      url: `${scene.sink.url}/log`,
      responseStatus: 201,
      responseBody: btoa('done'),
      body: btoa('b'),
    })
    expect(logs[2]).toMatchObject({ error: expect.stringContaining('503'), nextDeliveryTime: expect.any(Number) })
    const oldest = await scene.ask('GET', `/v2/events?messageId=${messageId}&order=earliestFirst&state=IN_PROGRESS`)
    expect((oldest.answer as { events: { state: string }[] }).events.map((log) => log.state)).toEqual([
      'ACTIVE',
      'ERROR',
      'RETRY',
      'ACTIVE',
    ])
  })

  it.each(['latestFirst', 'earliestFirst'])(
    'repeats no entry, %s, of a message that is retried between two pages',
    async (order) => {
      scene.sink.answer = () => ({ status: 500 })
      const { messageId } = await scene.client.publish({ url: scene.sink.url, retries: 25, retryDelay: '400' })
      const page = async (count: number, cursor = '') => {
        const target = `/v2/logs?messageId=${messageId}&order=${order}&count=${count}&cursor=${cursor}`
        const { logs, ...rest } = (await scene.ask('GET', target)).answer as { logs: EventView[]; cursor?: string }
        return { entries: logs.map(({ state, time }) => `${state} at ${time}`), ...rest }
      }
      const more = async (than: number) => (await page(90)).entries.length > than
      await waitFor(() => more(3), { what: 'a failed attempt' })
      const first = await page(2)
      const { length } = (await page(90)).entries
      await waitFor(() => more(length), { what: 'another attempt' })
      const all = (await page(90)).entries
      const second = await page(90, first.cursor)
      await scene.client.messages.cancel(messageId)
      const expected = all.slice(all.indexOf(first.entries[0] ?? ''))
      expect([...first.entries, ...second.entries].slice(0, expected.length)).toEqual(expected)
    },
  )

  it('begins a page at a time, as the SDK describes the cursor', async () => {
    const { messageId } = await scene.client.publish({ url: scene.sink.url, ...later })
    const at = async (cursor: number, order = '') => {
      const { answer } = await scene.ask('GET', `/v2/logs?cursor=${cursor}${order}`)
      return (answer as { logs: EventView[] }).logs.map((entry) => entry.messageId)
    }
    const { logs } = await scene.client.logs({ cursor: Date.now() + 60_000 })
    expect(logs).toMatchObject([{ messageId, state: 'CREATED' }])
    const time = logs[0]?.time ?? 0
    expect(await at(time - 1)).toEqual([])
    expect(await at(time)).toEqual([messageId])
    expect(await at(time, '&order=earliestFirst')).toEqual([messageId])
    expect(await at(time + 1, '&order=earliestFirst')).toEqual([])
    expect(await scene.ask('GET', `/v2/logs?cursor=${Math.floor(time / 1000)}`)).toMatchObject({
      status: 400,
      answer: { error: expect.stringMatching(/^cursor is \d+, which looks like seconds; send Unix milliseconds/) },
    })
  })

  it('is read in pages without gaps or repetitions, in both orders', async () => {
    for (let n = 0; n < 5; n++) {
      const { messageId } = await scene.client.publish({ url: scene.sink.url, ...later })
      await scene.client.messages.delete(messageId)
    }
    for (const order of ['earliestFirst', 'latestFirst']) {
      const seen: string[] = []
      let cursor = ''
      do {
        const { answer } = await scene.ask('GET', `/v2/logs?count=4&order=${order}&cursor=${cursor}`)
        const page = answer as { logs: { messageId: string; state: string }[]; cursor?: string }
        seen.push(...page.logs.map((log) => `${log.messageId} ${log.state}`))
        cursor = page.cursor ?? ''
      } while (cursor !== '')
      expect(new Set(seen).size).toBe(15)
      expect(seen).toHaveLength(15)
      const sorted = order === 'earliestFirst' ? seen : [...seen].reverse()
      expect(sorted[0]).toContain('CREATED')
    }
  })
})
