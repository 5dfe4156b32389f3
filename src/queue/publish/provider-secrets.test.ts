import { expect, it } from 'vitest'
import { parseDestination } from './destination.js'
import { redactionFor } from './provider-secrets.js'

const SECRETS = ['authorization', 'x-api-key', 'helicone-auth']

it.each([
  'https://api.openai.com/v1/chat/completions',
  'https://api.anthropic.com/v1/messages',
  'https://api.resend.com/emails/batch',
  'https://gateway.helicone.ai/v1/chat/completions',
  'http://models.internal:8000/v1/chat/completions?trace=1',
])('the token of %s is hidden', (url) => {
  expect(redactionFor(parseDestination(url), undefined)).toEqual({ headers: SECRETS })
})

it('the token is hidden in addition to what the publisher hides', () => {
  const url = parseDestination('https://api.resend.com/emails')
  expect(redactionFor(url, { body: true, headers: ['x-own', 'authorization'] })).toEqual({
    body: true,
    headers: ['x-own', ...SECRETS],
  })
  expect(redactionFor(url, { headers: 'all' })).toEqual({ headers: 'all' })
})

it('nothing is hidden for other destinations', () => {
  const url = parseDestination('https://example.com/v1/chat/completions/hook')
  expect(redactionFor(url, undefined)).toBeUndefined()
  expect(redactionFor(url, { body: true })).toEqual({ body: true })
})
