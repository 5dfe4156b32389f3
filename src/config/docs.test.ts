import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { configurationPage, OPTION_NAMES, optionOf } from './index.js'

it('docs/configuration.md matches the table of options (run `npm run docs` to update it)', () => {
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  expect(page).toBe(configurationPage())
})

it('every option has a meaning of one sentence', () => {
  for (const name of OPTION_NAMES) expect(optionOf(name).meaning, name).toMatch(/^[A-Z].*[^.]\.$/)
})
