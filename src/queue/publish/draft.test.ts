import { describe, expect, it } from 'vitest'
import type { PublishItem } from '../types.js'
import { draftMessage } from './draft.js'
import { itemOfRequest } from './request.js'
import { AS_ACCEPTED } from './settings.js'

const NOW = 1_700_000_000_000
const drafting = { accountId: 'acc', callerIp: null, now: NOW, limits: { timeoutMs: 900_000 } }

const item = (headers: Record<string, string>, more: Partial<PublishItem> = {}): PublishItem => ({
  destination: 'https://x.test/hook',
  headers,
  body: undefined,
  ...more,
})
const draft = (headers: Record<string, string>, more: Partial<PublishItem> = {}) =>
  draftMessage(item(headers, more), drafting)
const headersOf = (headers: Record<string, string>): unknown => JSON.parse(draft(headers).message.headers)

describe('a draft', () => {
  it('has the defaults of the service', () => {
    const { message, dedup } = draft({})
    expect(message).toMatchObject({
      kind: 'http',
      method: 'POST',
      max_retries: 3,
      next_at: NOW,
      config: '{}',
      labels: '',
    })
    expect(dedup).toBeNull()
  })

  it('forwards only prefixed headers and the content type', () => {
    const headers = { 'content-type': 'text/x', 'upstash-forward-x-a': '1', 'x-b': '2', 'upstash-retries': '1' }
    expect(headersOf(headers)).toEqual({ 'Content-Type': ['text/x'], 'X-A': ['1'] })
  })

  it('does not let a forwarded content type add a second one', () => {
    const headers = { 'upstash-forward-content-type': 'text/b', 'content-type': 'text/a' }
    expect(headersOf(headers)).toEqual({ 'Content-Type': ['text/a'] })
    expect(headersOf({ 'upstash-forward-content-type': 'text/b' })).toEqual({ 'Content-Type': ['text/b'] })
  })

  it('forwards all headers on request, except those of the connection and of this server', () => {
    const headers = {
      'upstash-header-forward': 'True',
      'x-b': '2',
      host: 'me',
      connection: 'close',
      'upstash-label': 'l',
    }
    expect(headersOf(headers)).toEqual({ 'X-B': ['2'] })
  })

  describe('of a request with a trace context', () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

    it('forwards it', () => {
      const context = { Traceparent: [traceparent], Tracestate: ['vendor=1'] }
      expect(headersOf({ traceparent, tracestate: 'vendor=1', 'x-b': '2' })).toEqual(context)
      const other = traceparent.replace('0af', '1bf')
      expect(headersOf({ traceparent, 'upstash-forward-traceparent': other })).toEqual({ Traceparent: [other] })
    })

    it('ignores a malformed one', () => {
      for (const wrong of ['', 'x', traceparent.toUpperCase(), `${traceparent}-${'x'.repeat(201)}`, `${traceparent}\n`])
        expect(headersOf({ traceparent: wrong, tracestate: 'x'.repeat(513) })).toEqual({})
    })

    it('is a duplicate of the same content in another trace', () => {
      const key = (headers: Record<string, string>) =>
        draft({ ...headers, 'upstash-content-based-deduplication': 'true' }).dedup?.key
      expect(key({ traceparent, tracestate: 'a=1' })).toBe(key({}))
      expect(key({ traceparent, 'upstash-forward-x': '1' })).not.toBe(key({}))
    })
  })

  it('prefers a forwarded header to a request header of the same name', () => {
    const both = [
      ['x-a', 'of the request'],
      ['upstash-forward-x-a', 'meant'],
    ]
    for (const order of [both, [...both].reverse()]) {
      expect(headersOf({ 'upstash-header-forward': 'true', ...Object.fromEntries(order) })).toEqual({
        'X-A': ['meant'],
      })
    }
  })

  it('refuses header names and values that are not valid in HTTP', () => {
    expect(() => draft({ 'upstash-forward-x a': '1' })).toThrow('is not valid in an HTTP request')
    expect(() => draft({ 'upstash-forward-x': 'a\r\nb: c' })).toThrow('is not valid in an HTTP request')
  })

  it('is due after its delay or at its time; the time wins', () => {
    expect(draft({ 'upstash-delay': '1d10h30m' }).message.next_at - NOW).toBe(124_200_000)
    expect(draft({ 'upstash-delay': '5' }).message.next_at - NOW).toBe(5_000)
    expect(draft({ 'upstash-delay': '5s', 'upstash-not-before': String(NOW / 1_000 + 60) }).message.next_at - NOW).toBe(
      60_000,
    )
    expect(draft({ 'upstash-not-before': '1' }).message.next_at).toBe(NOW)
  })

  it('says what is wrong with a time in milliseconds, and with limits of a flow-control key', () => {
    const inMs = () => draft({ 'upstash-not-before': String(NOW + 1) })
    expect(inMs).toThrow(/^Upstash-Not-Before is "1700000000001"; that is in milliseconds; .*such as 1700000000\.$/)
    const flow = (value: string) => () =>
      draft({ 'upstash-flow-control-key': 'k', 'upstash-flow-control-value': value })
    expect(flow('rate=0')).toThrow(/; rate is a whole number of 1 or more\.$/)
    expect(flow('rate=1, period=8d')).toThrow(/; period is a duration of whole seconds, from 1s to 7d\.$/)
    expect(flow('rte=1')).toThrow(/; send for example/)
  })

  it('refuses limits without a flow-control key, but not those of a schedule that was accepted with them', () => {
    const headers = { 'upstash-flow-control-value': 'rate=1' }
    expect(() => draft(headers)).toThrow('without Upstash-Flow-Control-Key')
    expect(draftMessage(item(headers), { ...drafting, limits: AS_ACCEPTED }).message.flow_key).toBeUndefined()
  })

  it('stores the settings of callbacks as their own publish headers, also nested ones', () => {
    const { message } = draft({
      'upstash-callback': 'https://cb.test/',
      'upstash-callback-retries': '1',
      'upstash-callback-forward-x-c': 'c',
      'upstash-callback-failure-callback': 'https://fail.test/',
      'upstash-callback-failure-callback-method': 'PUT',
    })
    expect(JSON.parse(message.config)).toEqual({
      callback: {
        url: 'https://cb.test/',
        headers: {
          'upstash-retries': '1',
          'upstash-forward-x-c': 'c',
          'upstash-failure-callback': 'https://fail.test/',
          'upstash-failure-callback-method': 'PUT',
        },
      },
    })
    expect(() => draft({ 'upstash-callback': 'https://cb.test/', 'upstash-callback-retries': 'x' })).toThrow(
      'Upstash-Retries',
    )
  })

  it('refuses what would keep a callback from being stored', () => {
    const callback = { 'upstash-callback': 'https://cb.test/' }
    expect(() => draft({ 'upstash-callback': 'https://cb.test/\0' })).toThrow('it contains a control character')
    expect(() => draft({ ...callback, 'upstash-callback-flow-control-key': 'a\0' })).toThrow('U+0000')
    const nested = {
      'upstash-callback-callback': 'https://cb.test/',
      'upstash-callback-callback-deduplication-id': 'a\0',
    }
    expect(() => draft({ ...callback, ...nested })).toThrow('U+0000')
  })

  it('compares destination, body and headers when it deduplicates by content', () => {
    const settings = { 'upstash-content-based-deduplication': 'True' }
    const body = new TextEncoder().encode('b')
    const keys = [
      draft(settings),
      draft(settings, { body }),
      draft({ ...settings, 'upstash-forward-x': '1' }),
      draft(settings, { destination: 'https://x.test/other' }),
    ].map((each) => each.dedup?.key)
    expect(new Set(keys).size).toBe(4)
    expect(draft(settings, { body }).dedup?.key).toBe(keys[1])
  })

  it('accepts a percent-encoded destination', () => {
    expect(draft({}, { destination: encodeURIComponent('https://x.test/a?b=c') }).message.url).toBe(
      'https://x.test/a?b=c',
    )
  })

  it('reads its queue from the path or the headers, and refuses invalid names', () => {
    expect(draft({}, { queue: 'q' }).message.queue).toBe('q')
    expect(draft({ 'upstash-queue-name': 'h' }).message.queue).toBe('h')
    expect(() => draft({}, { queue: 'a b' })).toThrow('queue name')
  })
})

describe('an item of a request', () => {
  const request = (rest: string, headers = {}) => itemOfRequest({ rest, headers, body: new Uint8Array() })

  it('keeps order and encoding of the destination', () => {
    const rest = 'https://Ex.com:8443/a%20b/x?foo=bar&u=http://z/y&%C3%BC=1'
    expect(request(rest).destination).toBe(rest)
  })

  it('removes the token and settings from the query', () => {
    const { destination, headers } = request('http://x.test/?qstash_token=t&Upstash-Label=a%20b&k=v', {
      'upstash-method': 'PUT',
    })
    expect(destination).toBe('http://x.test/?k=v')
    expect(headers).toEqual({ 'upstash-label': 'a b', 'upstash-method': 'PUT' })
    expect(request('http://x.test/?qstash_token=t').destination).toBe('http://x.test/')
  })

  it('drops telemetry and the token', () => {
    const headers = { authorization: 'Bearer t', 'upstash-telemetry-sdk': 'x', 'x-a': '1' }
    expect(request('http://x.test', headers).headers).toEqual({ 'x-a': '1' })
    expect(request('http://x.test', { authorization: 'Basic u' }).headers).toEqual({ authorization: 'Basic u' })
  })
})
