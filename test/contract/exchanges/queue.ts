import type { Exchange, Exchanges } from './stage.js'

const ask =
  (method: string, path: string, body?: unknown): Exchange =>
  ({ homeport }) =>
    homeport.queue(method, path, body)

/** The queue. */
export const queueExchanges: Exchanges = {
  publishMessage: ({ homeport, sink }) => homeport.queue('POST', `/v2/publish/${sink.url}`, { any: 'body' }),
  publishBatch: ({ homeport, sink }) =>
    homeport.queue('POST', '/v2/batch', [{ destination: sink.url, body: 'x' }, { destination: 'no-such-group' }]),
  getMessage: async (stage) => stage.homeport.queue('GET', `/v2/messages/${await stage.waitingMessage()}`),
  cancelMessage: async (stage) => stage.homeport.queue('DELETE', `/v2/messages/${await stage.waitingMessage()}`),
  cancelMessages: async (stage) => {
    await stage.waitingMessage('many')
    return stage.homeport.queue('DELETE', '/v2/messages?label=many')
  },
  listDeadLetters: async (stage) => {
    await stage.deadLetter()
    return stage.homeport.queue('GET', '/v2/dlq')
  },
  getDeadLetter: async (stage) => stage.homeport.queue('GET', `/v2/dlq/${await stage.deadLetter()}`),
  deleteDeadLetter: async (stage) => stage.homeport.queue('DELETE', `/v2/dlq/${await stage.deadLetter()}`),
  deleteDeadLetters: async (stage) => stage.homeport.queue('DELETE', `/v2/dlq?dlqIds=${await stage.deadLetter()}`),
  retryDeadLetter: async (stage) => stage.homeport.queue('POST', `/v2/dlq/retry/${await stage.deadLetter()}`),
  retryDeadLetters: async (stage) => stage.homeport.queue('POST', `/v2/dlq/retry?dlqIds=${await stage.deadLetter()}`),
  listEvents: ask('GET', '/v2/events'),
  listLogs: ask('GET', '/v2/logs'),
  getSigningKeys: ask('GET', '/v2/keys'),
  verifySignature: ask('POST', '/v2/verify', { headers: { 'Upstash-Signature': 'a.b.c' }, body: 'x' }),
}

/** Runs last: receivers with the old keys reject messages sent after two rotations. */
export const lastExchanges: Exchanges = {
  rotateSigningKeys: ask('POST', '/v2/keys/rotate'),
  rotateSigningKeysByGet: ask('GET', '/v2/keys/rotate'),
}
