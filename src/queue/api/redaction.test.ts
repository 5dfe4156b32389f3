import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { setQueueScenes } from '../testing/scene.js'

const SECRET = 'correct horse battery staple'

/** Whether a text contains the secret, plain or in nested base64. */
function betrays(text: string, deep = 3): boolean {
  if (text.includes(SECRET)) return true
  if (deep === 0) return false
  const encoded = text.match(/[A-Za-z0-9+/]{16,}={0,2}/g) ?? []
  return encoded.some((part) => betrays(Buffer.from(part, 'base64').toString('latin1'), deep - 1))
}

describeOnSampledStore('redaction', (openStore) => {
  const scene = setQueueScenes(openStore)
  const readable = async (messageIds: readonly string[]): Promise<string[]> => {
    const targets = ['/v2/events', '/v2/logs', '/v2/dlq', ...messageIds.map((id) => `/v2/messages/${id}`)]
    const answers = await Promise.all(targets.map((target) => scene.ask('GET', target)))
    return answers.map(({ answer }) => JSON.stringify(answer))
  }

  it('covers the callbacks of a message, which contain its content, and their callbacks', async () => {
    scene.sink.answer = ({ target }) => ({ status: target === '/last' ? 200 : 500 })
    const settings = {
      'Upstash-Callback': `${scene.sink.url}/callback`,
      'Upstash-Callback-Failure-Callback': `${scene.sink.url}/last`,
      'Upstash-Failure-Callback': `${scene.sink.url}/failure`,
    }
    await scene.client.publish({
      url: `${scene.sink.url}/source`,
      body: SECRET,
      retries: 0,
      headers: { Authorization: SECRET, ...settings },
      redact: { body: true, header: ['Authorization'] },
    })
    await scene.arrived(4)
    expect(scene.sink.received.every(({ headers, body }) => betrays(JSON.stringify(headers) + body))).toBe(true)
    const ids = scene.sink.received.map(({ headers }) => String(headers['upstash-message-id']))
    await waitFor(async () => (await scene.client.dlq.listMessages()).messages.length === 3, { what: 'all to end' })
    expect((await readable(ids)).filter((text) => betrays(text))).toEqual([])
  })

  it.each([
    ['the message', { 'Upstash-Redact-Fields': 'header' }],
    ['the callback', { 'Upstash-Callback-Redact-Fields': 'headers[authorization]' }],
  ])('of headers covers those that a callback forwards, when %s sets it', async (_who, settings) => {
    const { messageId } = await scene.client.publish({
      url: scene.sink.url,
      callback: `${scene.sink.url}/callback`,
      headers: { 'Upstash-Callback-Forward-Authorization': SECRET, 'Upstash-Callback-Retries': '2', ...settings },
    })
    await scene.arrived(2)
    const [callback] = scene.sink.received.filter(({ target }) => target === '/callback')
    expect(callback?.headers.authorization).toBe(SECRET)
    const texts = await readable([messageId, String(callback?.headers['upstash-message-id'])])
    expect(texts.filter((text) => betrays(text))).toEqual([])
    const { events } = await scene.client.events({ filter: { messageId } })
    expect(events[0]).toMatchObject({
      callbackHeaders: {
        'Upstash-Forward-Authorization': [expect.stringMatching(/^REDACTED:/)],
        'Upstash-Retries': ['2'],
      },
    })
  })
})
