import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { configurationPage, OPTION_NAMES, optionOf } from './index.js'

it('docs/configuration.md says what the table says (run `npm run docs` to renew it)', () => {
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  expect(page).toBe(configurationPage())
})

it('every option promises one thing in one sentence', () => {
  for (const name of OPTION_NAMES) expect(optionOf(name).meaning, name).toMatch(/^[A-Z].*[^.]\.$/)
})
