import { expect, it } from 'vitest'
import { EMPTY, itemOf, PUBLISH_RULES } from './publish-form.js'

it('empty fields are not sent, so that the server uses its defaults', () => {
  expect(itemOf({ ...EMPTY, destination: ' https://example.com/hook?a=1 ' })).toEqual({
    destination: 'https://example.com/hook?a=1',
    headers: { 'upstash-method': 'POST' },
  })
})

it('settings become headers, and the entered headers are forwarded', () => {
  const values = {
    ...EMPTY,
    destination: 'orders',
    queue: 'mails',
    body: '{}',
    headers: 'X-Trace: a:b\n\nAuthorization: Bearer x',
    retries: 0 as const,
    delay: '10s',
    flowValue: 'rate=5',
  }
  expect(itemOf(values)).toEqual({
    destination: 'orders',
    queue: 'mails',
    body: '{}',
    headers: {
      'content-type': 'application/json',
      'upstash-method': 'POST',
      'upstash-delay': '10s',
      'upstash-retries': '0',
      'upstash-forward-X-Trace': 'a:b',
      'upstash-forward-Authorization': 'Bearer x',
    },
  })
})

it('rejects while typing what the server would refuse', () => {
  expect(PUBLISH_RULES.destination('ftp://x')).toContain('http://')
  expect(PUBLISH_RULES.destination('my-group')).toBeNull()
  expect(PUBLISH_RULES.body('{', EMPTY)).toBe('The body is not valid JSON')
  expect(PUBLISH_RULES.body('{', { ...EMPTY, contentType: 'text/plain' })).toBeNull()
  expect(PUBLISH_RULES.headers('no header')).toBe('Not a header: no header')
  expect(PUBLISH_RULES.delay('soon')).toContain('10s')
  expect(PUBLISH_RULES.delay('1h30m')).toBeNull()
})
