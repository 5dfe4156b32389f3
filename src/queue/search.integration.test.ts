import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { setQueueScenes } from './testing/scene.js'

describeOnSampledStore('a search in the log of messages', (openStore) => {
  const scene = setQueueScenes(openStore)
  const found = async (search: string, more = '') => {
    const ids = new Set<string>()
    let cursor = ''
    do {
      const query = `search=${encodeURIComponent(search)}&count=100${more}${cursor && `&cursor=${cursor}`}`
      const { answer } = (await scene.ask('GET', `/v2/logs?${query}`)) as {
        answer: { logs: { messageId: string }[]; cursor?: string }
      }
      for (const { messageId } of answer.logs) ids.add(messageId)
      cursor = answer.cursor ?? ''
    } while (cursor !== '')
    return [...ids]
  }

  it('finds messages by parts of ids, URLs, labels, queues and errors, in any case of letters', async () => {
    const { client, sink } = scene
    sink.answer = ({ target }) => (target.includes('fails') ? { status: 400, body: 'The Card was declined 100%' } : {})
    const order = await client.publish({ url: `${sink.url}/Orders/17`, body: 'x', label: 'eu_Shop', delay: '1d' })
    const other = await client.publish({ url: `${sink.url}/mails`, body: 'Orders', delay: '1d' })
    const failed = await client.publish({ url: `${sink.url}/fails`, body: 'x', retries: 0 })
    const queued = await client.queue({ queueName: 'night-jobs' }).enqueue({ url: `${sink.url}/nothing`, body: 'x' })
    await waitFor(async () => (await found('declined')).length === 1, { what: 'the failure in the log' })
    const [a, b, c, d] = [order, other, failed, queued].map((one) => (one as { messageId: string }).messageId)
    expect(await found('orders/1')).toEqual([a])
    expect(await found('EU_SHOP')).toEqual([a])
    expect(await found(b?.slice(4, 40) ?? '')).toEqual([b])
    expect(await found('card was DECLINED 100%')).toEqual([c])
    expect(await found('night-')).toEqual([d])
    expect(await found('declined', '&label=eu_Shop')).toEqual([])
    for (const text of ['%', '_', "'", 'ä', '\\']) expect(await found(`no such ${text}`), text).toEqual([])
  })

  it('skips messages that ended before the requested time, however many they are', async () => {
    const item = { destination: `${scene.sink.url}/old`, headers: { 'Upstash-Delay': '1d', 'Upstash-Label': 'old' } }
    await scene.ask('POST', '/v2/batch', Array(1_001).fill(item))
    expect(await scene.ask('DELETE', '/v2/messages?label=old')).toMatchObject({ answer: { cancelled: 1_001 } })
    const from = Date.now() + 1
    const { answer } = await scene.ask('GET', `/v2/logs?label=old&fromDate=${from}`)
    expect(answer).toEqual({ events: [], logs: [] })
  })

  it('is refused when it is empty or too long, and by a cancel, which would ignore it', async () => {
    const { messageId } = (await scene.client.publish({ url: `${scene.sink.url}/kept`, body: 'x', delay: '1d' })) as {
      messageId: string
    }
    expect(await scene.ask('DELETE', '/v2/messages?search=kept')).toMatchObject({ status: 400 })
    expect(await scene.ask('GET', `/v2/logs?search=${'x'.repeat(201)}`)).toMatchObject({ status: 400 })
    expect(await scene.ask('GET', '/v2/logs?search=')).toMatchObject({ status: 400 })
    expect(await found('kept')).toEqual([messageId])
  })
})
