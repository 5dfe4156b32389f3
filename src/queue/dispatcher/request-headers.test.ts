import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { PendingMessage } from '../types.js'
import { RequestHeaders } from './request-headers.js'

const message: PendingMessage = {
  seq: 1,
  messageId: 'msg_1',
  accountId: 'acc',
  kind: 'http',
  groupKey: undefined,
  url: 'https://x.test/',
  method: 'POST',
  headers: {},
  body: undefined,
  config: {},
  maxRetries: 3,
  retried: 0,
  nextAt: 0,
  createdAt: 0,
  callerIp: undefined,
  labels: [],
  flowKey: undefined,
}
const request = { url: message.url, method: message.method, headers: { 'X-Tenant': ['blue'] }, body: undefined }

describe('headers that are signed ahead', () => {
  let key = 'sig_old'
  const clock = new ManualClock()
  const headers = new RequestHeaders({ clock, signingKey: () => key, region: 'US-EAST-1' })

  it('are sent unchanged soon afterwards', () => {
    const ahead = headers.ahead(message, request)
    clock.advance(1_000)
    expect(headers.of(message, ahead)).toBe(ahead.ahead?.headers)
    expect(headers.of(message, ahead)).toEqual(
      expect.arrayContaining(['X-Tenant', 'blue', 'Upstash-Message-Id', 'msg_1']),
    )
  })

  it('are made again later, for a retry, for another message, and after the key was rotated', () => {
    const ahead = headers.ahead(message, request)
    const made = ahead.ahead?.headers
    expect(headers.of({ ...message, retried: 1 }, ahead)).toEqual(expect.arrayContaining(['Upstash-Retried', '1']))
    expect(headers.of({ ...message, messageId: 'msg_2' }, ahead)).toContain('msg_2')
    key = 'sig_new'
    expect(headers.of(message, ahead)).not.toEqual(made)
    key = 'sig_old'
    clock.advance(1_001)
    expect(headers.of(message, ahead)).not.toEqual(made)
  })
})
