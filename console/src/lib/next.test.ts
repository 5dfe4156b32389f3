import { expect, it } from 'vitest'
import { nextOf, signInPath } from './next.js'

it.each(['/', '/audit', '/runs?label=a%20b&state=RUN_FAILED'])('signing in leads back to %s', (path) => {
  expect(nextOf(new URL(signInPath(path), 'http://console').search)).toBe(path)
})

it.each(['//evil.example', '/\\evil.example', '/\t/evil.example', 'https://evil.example', 'javascript:alert(1)', ''])(
  'signing in never leads to %j',
  (next) => {
    expect(nextOf(`?${new URLSearchParams({ next })}`)).toBe('/')
  },
)
