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

it('a debounce or singleton key is sent with its own settings', () => {
  const values = { ...EMPTY, destination: 'orders', ruleKey: 'cart-7', debounceDelay: '30s', priority: -60 as const }
  const keysOf = (rule: 'none' | 'debounce' | 'skip' | 'cancel') => itemOf({ ...values, rule }).headers
  const own = { 'upstash-method': 'POST', 'homeport-priority': '-60' }
  expect(keysOf('none')).toEqual(own)
  expect(keysOf('debounce')).toEqual({ ...own, 'homeport-debounce': 'cart-7', 'homeport-debounce-delay': '30s' })
  expect(keysOf('skip')).toEqual({ ...own, 'homeport-singleton': 'cart-7' })
  expect(keysOf('cancel')).toEqual({ ...own, 'homeport-singleton': 'cart-7', 'homeport-singleton-mode': 'cancel' })
  expect(PUBLISH_RULES.ruleKey('', { rule: 'skip' })).toBe('Enter the key')
  expect(PUBLISH_RULES.debounceDelay('', { rule: 'debounce' })).toContain('30s')
})

it('the form rejects values that the server would refuse while the user types', () => {
  expect(PUBLISH_RULES.destination('ftp://x')).toContain('http://')
  expect(PUBLISH_RULES.destination('my-group')).toBeNull()
  expect(PUBLISH_RULES.body('{', EMPTY)).toBe('The body is not valid JSON')
  expect(PUBLISH_RULES.body('{', { ...EMPTY, contentType: 'text/plain' })).toBeNull()
  expect(PUBLISH_RULES.headers('no header')).toBe('Not a header: no header')
  expect(PUBLISH_RULES.delay('soon')).toContain('10s')
  expect(PUBLISH_RULES.delay('1h30m')).toBeNull()
})
